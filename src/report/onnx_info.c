/* Entries for values in a model that is written: their types, and what the analysis says of them. */
#include <inttypes.h>
#include <string.h>

#include "program/attached.h"
#include "report/onnx_made.h"

enum {
    GRAPH_VALUE_INFO = 13,
    INFO_NAME = 1,
    INFO_TYPE = 2,
    INFO_DOC = 3,
    INFO_METADATA = 4,
    TYPE_TENSOR = 1,
    TYPE_SPARSE = 8,
    TENSOR_ELEM = 1,
    TENSOR_SHAPE = 2,
    SHAPE_DIM = 1,
    DIM_VALUE = 1,
    DIM_PARAM = 2,
};

enum { LONGEST_DIM = 256 };

/* --- Values by name ------------------------------------------------------------------------------- */

static uint32_t *slot_of(const onv_splice *s, onv_graph_id graph, const void *name, size_t length)
{
    const onv_model *model = &s->view->model;
    size_t mask = s->n_slots - 1, slot = onv_hash_bytes(name, length, graph.index) & mask;
    for (; s->slots[slot] != 0; slot = (slot + 1) & mask) {
        const onv_value *there = &model->values.at[s->slots[slot] - 1];
        if (there->graph.index == graph.index && strlen(there->name) == length &&
            memcmp(there->name, name, length) == 0)
            break;
    }
    return &s->slots[slot];
}

/* Values of the file stand before those of functions, whose paths may be called alike. */
bool onv_splice_list_values(onv_splice *s)
{
    const onv_model *model = &s->view->model;
    for (s->n_slots = 4; s->n_slots < 2 * model->values.count;) s->n_slots *= 2;
    s->slots = ONV_ARENA_ARRAY(s->job->arena, uint32_t, s->n_slots);
    s->has_info = ONV_ARENA_ARRAY(s->job->arena, bool, model->values.count + 1);
    s->at_peak = ONV_ARENA_ARRAY(s->job->arena, bool, s->view->live.timeline.buffers.count + 1);
    if (s->slots == NULL || s->has_info == NULL || s->at_peak == NULL) return false;
    for (uint32_t i = 0; i < model->values.count; i++) {
        const onv_value *value = &model->values.at[i];
        if (value->name[0] == '\0') continue;
        uint32_t *slot = slot_of(s, value->graph, value->name, strlen(value->name));
        if (*slot == 0) *slot = i + 1;
    }
    for (uint32_t i = 0; i < s->view->live.n_peak_set; i++)
        s->at_peak[s->view->live.peak_set[i]] = true;
    return true;
}

/* Values of a graph of a node are called by its path, too. */
const onv_value *onv_splice_find(onv_splice *s, onv_graph_id graph, onv_span name, uint32_t *index)
{
    size_t length = (size_t)(name.end - name.at);
    const char *path = onv_model_graph(&s->view->model, graph)->name;
    const void *key = name.at;
    if (path[0] != '\0') {
        size_t n = strlen(path) + 1;
        char *joined = onv_arena_alloc(&s->scratch, n + length);
        if (joined == NULL) return NULL; /* the arena failed, which its owner finds */
        memcpy(joined, path, n - 1);
        joined[n - 1] = '/';
        if (length > 0) memcpy(joined + n, name.at, length);
        key = joined;
        length += n;
    }
    uint32_t found = *slot_of(s, graph, key, length);
    if (found == 0) return NULL;
    *index = found - 1;
    return &s->view->model.values.at[*index];
}

/* The value that an entry is about; UINT32_MAX: none. */
static uint32_t value_of(onv_splice *s, onv_graph_id graph, onv_span info)
{
    onv_wire_field field;
    uint32_t index = UINT32_MAX;
    for (const unsigned char *at = info.at; onv_wire_next(&at, info.end, &field);)
        if (field.number == INFO_NAME && field.type == ONV_WIRE_BYTES)
            if (onv_splice_find(s, graph, (onv_span){field.value, field.end}, &index) == NULL)
                index = UINT32_MAX;
    return index;
}

/* --- What is said of a value ----------------------------------------------------------------------- */

const char *onv_splice_number(onv_splice *s, uint64_t number)
{
    return onv_arena_printf(&s->scratch, "%" PRIu64, number);
}

enum { MOST_NOTES = 5 };

typedef struct note {
    const char *key, *value;
} note;

/* Lifetime and size of what has them; returns how many notes. */
static size_t list_notes(onv_splice *s, uint32_t value, note *notes)
{
    const onv_live *live = &s->view->live;
    uint32_t row = live->of_value[value];
    size_t n = 0;
    if (row == UINT32_MAX) return 0;
    const onv_buffer *b = &live->timeline.buffers.at[row];
    if (b->sized) notes[n++] = (note){ONV_SPLICE_PREFIX "bytes", onv_splice_number(s, b->bytes)};
    if (b->sized && b->bound) notes[n++] = (note){ONV_SPLICE_PREFIX "bound", "true"};
    notes[n++] = (note){ONV_SPLICE_PREFIX "first_step", onv_splice_number(s, b->first)};
    notes[n++] = (note){ONV_SPLICE_PREFIX "last_step", onv_splice_number(s, b->last)};
    if (live->unknown == 0)
        notes[n++] = (note){ONV_SPLICE_PREFIX "at_peak", s->at_peak[row] ? "true" : "false"};
    for (size_t i = 0; i < n; i++)
        if (notes[i].value == NULL) return 0; /* the arena failed, which its owner finds */
    return n;
}

static void add_notes(onv_splice *s, const note *notes, size_t n, onv_made *to)
{
    onv_made doc = {.arena = to->arena};
    for (size_t i = 0; i < n; i++) {
        if (s->has_metadata) {
            onv_made_pair(to, INFO_METADATA, notes[i].key, notes[i].value);
            continue;
        }
        if (i > 0) onv_made_bytes(&doc, "\n", 1);
        onv_made_bytes(&doc, notes[i].key, strlen(notes[i].key));
        onv_made_bytes(&doc, "=", 1);
        onv_made_bytes(&doc, notes[i].value, strlen(notes[i].value));
    }
    if (!s->has_metadata && n > 0) onv_made_message(to, INFO_DOC, &doc);
}

/* Sizes that inference made are called by the number of a node, which means another one in another order: no name
 * for readers. */
static bool is_made(const char *dim)
{
    return strchr(dim, '#') != NULL;
}

static void add_dim(onv_splice *s, onv_dim d, onv_made *shape)
{
    onv_made dim = {.arena = shape->arena};
    if (onv_dim_is_const(d) && d.raw >= 0) {
        onv_made_number(&dim, DIM_VALUE, (uint64_t)d.raw);
    } else if (onv_dim_is_expr(d)) {
        const char *name = onv_dim_text(&s->types->dims, &s->scratch, d);
        if (name != NULL && strlen(name) <= LONGEST_DIM && !is_made(name))
            onv_made_field(&dim, DIM_PARAM, name, strlen(name));
    }
    onv_made_message(shape, SHAPE_DIM, &dim);
}

/* False unless it is a tensor of a known type. */
static bool add_type(onv_splice *s, uint32_t value, onv_made *to)
{
    const onv_type *type = &s->types->values.at[value].type;
    bool is_sparse = type->kind == ONV_TYPE_SPARSE_TENSOR;
    if ((type->kind != ONV_TYPE_TENSOR && !is_sparse) || type->dtype == ONV_UNDEFINED) return false;
    onv_made shape = {.arena = to->arena}, tensor = shape, whole = shape;
    onv_made_number(&tensor, TENSOR_ELEM, type->dtype);
    for (int i = 0; i < type->rank; i++) add_dim(s, type->dims[i], &shape);
    if (type->rank >= 0) onv_made_message(&tensor, TENSOR_SHAPE, &shape);
    onv_made_message(&whole, is_sparse ? TYPE_SPARSE : TYPE_TENSOR, &tensor);
    onv_made_message(to, INFO_TYPE, &whole);
    return true;
}

/* --- Entries that are there ----------------------------------------------------------------------- */

static bool begins_with_prefix(onv_span r)
{
    size_t n = sizeof ONV_SPLICE_PREFIX - 1;
    return (size_t)(r.end - r.at) >= n && memcmp(r.at, ONV_SPLICE_PREFIX, n) == 0;
}

/* Whether a StringStringEntryProto has a key that is written here. */
bool onv_splice_is_ours(onv_span pair)
{
    onv_wire_field field;
    for (const unsigned char *at = pair.at; onv_wire_next(&at, pair.end, &field);)
        if (field.number == ONV_PAIR_KEY && field.type == ONV_WIRE_BYTES)
            return begins_with_prefix((onv_span){field.value, field.end}) &&
                   !onv_program_is_entry(pair.at, pair.end);
    return false;
}

static bool is_filled(onv_span dim)
{
    onv_wire_field field;
    for (const unsigned char *at = dim.at; onv_wire_next(&at, dim.end, &field);)
        if (field.number == DIM_VALUE || (field.number == DIM_PARAM && field.end > field.value))
            return true;
    return false;
}

/* The part of a message that stands in field `number`; false where there is none. */
bool onv_splice_part(onv_span message, uint32_t number, onv_span *part)
{
    onv_wire_field field;
    bool found = false;
    for (const unsigned char *at = message.at; onv_wire_next(&at, message.end, &field);) {
        if (field.number != number || field.type != ONV_WIRE_BYTES) continue;
        *part = (onv_span){field.value, field.end};
        found = true;
    }
    return found;
}

/* Whether a TypeProto fixes a tensor's whole shape; true for types other than tensors, which stay as they are. */
static bool is_complete(onv_span type)
{
    onv_span tensor = {0}, shape = {0};
    onv_wire_field field;
    if (type.at == type.end) return false;
    if (!onv_splice_part(type, TYPE_TENSOR, &tensor)) return true;
    if (!onv_splice_part(tensor, TENSOR_SHAPE, &shape)) return false;
    for (const unsigned char *at = shape.at; onv_wire_next(&at, shape.end, &field);)
        if (field.number == SHAPE_DIM && field.type == ONV_WIRE_BYTES &&
            !is_filled((onv_span){field.value, field.end}))
            return false;
    return true;
}

/* An entry with its old fields; `may_type`: its type is not the model's interface. */
static void add_info(onv_splice *s, onv_span info, uint32_t value, bool may_type, onv_made *to)
{
    onv_wire_field field;
    note notes[MOST_NOTES];
    size_t n = list_notes(s, value, notes);
    bool has_type = false, keeps_doc = false;
    for (const unsigned char *at = info.at; onv_wire_next(&at, info.end, &field);) {
        onv_span part = {field.value, field.end};
        if (field.type == ONV_WIRE_BYTES) {
            if (field.number == INFO_METADATA && onv_splice_is_ours(part)) continue;
            if (field.number == INFO_DOC && begins_with_prefix(part)) continue;
            keeps_doc |= field.number == INFO_DOC && part.end > part.at;
            if (field.number == INFO_TYPE) {
                has_type = true;
                if (may_type && !is_complete(part) && add_type(s, value, to)) continue;
            }
        }
        onv_made_span(to, (onv_span){field.start, field.end});
    }
    if (!has_type && may_type) add_type(s, value, to);
    if (s->has_metadata || !keeps_doc) add_notes(s, notes, n, to);
}

void onv_splice_info(onv_splice *s, onv_made *to, onv_graph_id graph, const onv_wire_field *field)
{
    onv_span info = {field->value, field->end};
    uint32_t value = value_of(s, graph, info);
    if (value != UINT32_MAX) s->has_info[value] = true;
    if (value == UINT32_MAX || onv_value_is_weight(&s->view->model.values.at[value])) {
        onv_made_span(to, (onv_span){field->start, field->end});
        return;
    }
    onv_made made = {.arena = to->arena};
    add_info(s, info, value, field->number == GRAPH_VALUE_INFO, &made);
    onv_made_message(to, field->number, &made);
    onv_end_element(&s->scratch);
}

/* --- Entries that are new ------------------------------------------------------------------------- */

void onv_splice_new_info(onv_splice *s, onv_made *to, onv_span name, uint32_t value)
{
    note notes[MOST_NOTES];
    onv_made made = {.arena = to->arena};
    onv_made_field(&made, INFO_NAME, name.at, (size_t)(name.end - name.at));
    if (add_type(s, value, &made)) {
        add_notes(s, notes, list_notes(s, value, notes), &made);
        onv_made_message(to, GRAPH_VALUE_INFO, &made);
    }
    onv_vec_cleanup(&made.pieces);
    onv_end_element(&s->scratch);
}
