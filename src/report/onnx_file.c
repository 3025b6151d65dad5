/* The model's own file once more, with what the analysis knows of its values.
 *
 * The file is spliced, not decoded: a walk over the fields of the model and of its main graph copies
 * their bytes, weights, functions and subgraphs among them, and writes anew what it adds to:
 *
 *     ModelProto      metadata_props "onnxvram.*": the figures and what they are of
 *     GraphProto      the nodes in the order of execution; an entry in value_info for every output of a
 *                     node that had none
 *     ValueInfoProto  the type where the file has none; metadata_props "onnxvram.*", before IR
 *                     version 10, which brought them, the same as text in doc_string
 *
 * What an earlier run added is replaced. Types are those of the model as it is, with nothing bound:
 * a file that still takes any batch must not say that its values have one.
 *
 * Lengths stand before messages, so the graph is gone through twice: once for its length. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "load/wire.h"
#include "report/format.h"

enum {
    MODEL_GRAPH = 7,
    MODEL_METADATA = 14,
    GRAPH_NODE = 1,
    GRAPH_INPUT = 11,
    GRAPH_OUTPUT = 12,
    GRAPH_VALUE_INFO = 13,
    NODE_OUTPUT = 2,
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
    PAIR_KEY = 1,
    PAIR_VALUE = 2,
};

enum { IR_OF_VALUE_METADATA = 10, LONGEST_DIM = 256 };

#define PREFIX "onnxvram."

typedef struct range {
    const unsigned char *at, *end;
} range;

typedef struct splice {
    const onv_report_job *job;
    const onv_view *view;
    const onv_model *types;
    onv_arena scratch; /* of one entry */
    bool has_metadata; /* of value_info, by the IR version */
    bool is_counting;
    uint64_t bytes; /* counted */
    range graph;
    range *nodes; /* of the main graph, as in the file */
    size_t n_nodes;
    uint32_t *order;   /* places of nodes; NULL: as in the file */
    uint32_t *outputs; /* values of them, in the order of the file, once each */
    size_t n_outputs;
    uint32_t *slots; /* values of the main graph by name: index + 1, 0 where empty */
    size_t n_slots;
    bool *has_info; /* by value: an entry of the file's */
    bool *at_peak;  /* by buffer */
} splice;

/* --- Messages that are made here ------------------------------------------------------------------ */

typedef struct text {
    ONV_VEC(unsigned char) bytes;
    bool failed;
} text;

static void add(text *to, const void *data, size_t n)
{
    if (to->failed || !onv_vec_reserve(&to->bytes, n)) {
        to->failed = true;
        return;
    }
    if (n > 0) memcpy(to->bytes.at + to->bytes.count, data, n);
    to->bytes.count += n;
}

static size_t encode(uint64_t value, unsigned char *to)
{
    size_t n = 0;
    do {
        to[n++] = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        value >>= 7;
    } while (value != 0);
    return n;
}

static void add_varint(text *to, uint64_t value)
{
    unsigned char bytes[ONV_VARINT_MOST_BYTES];
    add(to, bytes, encode(value, bytes));
}

static void add_number(text *to, uint32_t field, uint64_t value)
{
    add_varint(to, (uint64_t)field << 3 | ONV_WIRE_VARINT);
    add_varint(to, value);
}

static void add_field(text *to, uint32_t field, const void *data, size_t n)
{
    add_varint(to, (uint64_t)field << 3 | ONV_WIRE_BYTES);
    add_varint(to, n);
    add(to, data, n);
}

/* Puts `part` into `to`, and empties it. */
static void add_message(text *to, uint32_t field, text *part)
{
    add_field(to, field, part->bytes.at, part->bytes.count);
    to->failed |= part->failed;
    onv_vec_cleanup(&part->bytes);
}

static void add_pair(text *to, uint32_t field, const char *key, const char *value)
{
    text pair = {0};
    add_field(&pair, PAIR_KEY, key, strlen(key));
    add_field(&pair, PAIR_VALUE, value, strlen(value));
    add_message(to, field, &pair);
}

/* --- Output --------------------------------------------------------------------------------------- */

static void put(splice *s, const void *data, size_t n)
{
    if (s->is_counting)
        s->bytes += n;
    else if (n > 0)
        onv_write_bytes(s->job->out, data, n);
}

static void put_range(splice *s, range r)
{
    put(s, r.at, (size_t)(r.end - r.at));
}

static void put_tag(splice *s, uint32_t field, uint64_t length)
{
    unsigned char bytes[2 * ONV_VARINT_MOST_BYTES];
    size_t n = encode((uint64_t)field << 3 | ONV_WIRE_BYTES, bytes);
    n += encode(length, bytes + n);
    put(s, bytes, n);
}

/* --- Values by name ------------------------------------------------------------------------------- */

static uint32_t *slot_of(const splice *s, const void *name, size_t length)
{
    const onv_model *model = s->view->model;
    size_t mask = s->n_slots - 1, slot = onv_hash_bytes(name, length, 0) & mask;
    for (; s->slots[slot] != 0; slot = (slot + 1) & mask) {
        const char *there = model->values.at[s->slots[slot] - 1].name;
        if (strlen(there) == length && memcmp(there, name, length) == 0) break;
    }
    return &s->slots[slot];
}

/* Values of the file stand before those of functions, whose paths may be called alike. */
static bool list_values(splice *s)
{
    const onv_model *model = s->view->model;
    for (s->n_slots = 4; s->n_slots < 2 * model->values.count;) s->n_slots *= 2;
    s->slots = ONV_ARENA_ARRAY(s->job->arena, uint32_t, s->n_slots);
    s->has_info = ONV_ARENA_ARRAY(s->job->arena, bool, model->values.count + 1);
    s->at_peak = ONV_ARENA_ARRAY(s->job->arena, bool, s->view->live->timeline.buffers.count + 1);
    if (s->slots == NULL || s->has_info == NULL || s->at_peak == NULL) return false;
    for (uint32_t i = 0; i < model->values.count; i++) {
        const onv_value *value = &model->values.at[i];
        if (value->graph.index != 0 || value->name[0] == '\0') continue;
        uint32_t *slot = slot_of(s, value->name, strlen(value->name));
        if (*slot == 0) *slot = i + 1;
    }
    for (uint32_t i = 0; i < s->view->live->n_peak_set; i++)
        s->at_peak[s->view->live->peak_set[i]] = true;
    return true;
}

static const onv_value *find_value(const splice *s, range name, uint32_t *index)
{
    uint32_t found = *slot_of(s, name.at, (size_t)(name.end - name.at));
    if (found == 0) return NULL;
    *index = found - 1;
    return &s->view->model->values.at[*index];
}

/* The value that an entry is about; UINT32_MAX: none. */
static uint32_t value_of_info(const splice *s, range info)
{
    onv_wire_field field;
    uint32_t index = UINT32_MAX;
    for (const unsigned char *at = info.at; onv_wire_next(&at, info.end, &field);)
        if (field.number == INFO_NAME && field.type == ONV_WIRE_BYTES)
            if (find_value(s, (range){field.value, field.end}, &index) == NULL) index = UINT32_MAX;
    return index;
}

/* --- What is said of a value ----------------------------------------------------------------------- */

static const char *number_text(splice *s, uint64_t number)
{
    return onv_arena_printf(&s->scratch, "%" PRIu64, number);
}

enum { MOST_NOTES = 5 };

typedef struct note {
    const char *key, *value;
} note;

/* Lifetime and size of what has them; returns how many notes. */
static size_t list_notes(splice *s, uint32_t value, note *notes)
{
    const onv_live *live = s->view->live;
    uint32_t row = live->of_value[value];
    size_t n = 0;
    if (row == UINT32_MAX) return 0;
    const onv_buffer *b = &live->timeline.buffers.at[row];
    if (b->sized) notes[n++] = (note){PREFIX "bytes", number_text(s, b->bytes)};
    if (b->sized && b->bound) notes[n++] = (note){PREFIX "bound", "true"};
    notes[n++] = (note){PREFIX "first_step", number_text(s, b->first)};
    notes[n++] = (note){PREFIX "last_step", number_text(s, b->last)};
    if (live->unknown == 0)
        notes[n++] = (note){PREFIX "at_peak", s->at_peak[row] ? "true" : "false"};
    for (size_t i = 0; i < n; i++)
        if (notes[i].value == NULL) return 0; /* the arena failed, which its owner finds */
    return n;
}

static void add_notes(splice *s, const note *notes, size_t n, text *to)
{
    text doc = {0};
    for (size_t i = 0; i < n; i++) {
        if (s->has_metadata) {
            add_pair(to, INFO_METADATA, notes[i].key, notes[i].value);
            continue;
        }
        if (i > 0) add(&doc, "\n", 1);
        add(&doc, notes[i].key, strlen(notes[i].key));
        add(&doc, "=", 1);
        add(&doc, notes[i].value, strlen(notes[i].value));
    }
    if (!s->has_metadata && n > 0) add_message(to, INFO_DOC, &doc);
}

/* Sizes that inference made are called by the number of a node, which means another one in another order: no name
 * for readers. */
static bool is_made(const char *dim)
{
    return strchr(dim, '#') != NULL;
}

static void add_dim(splice *s, onv_dim d, text *shape)
{
    text dim = {0};
    if (onv_dim_is_const(d) && d.raw >= 0) {
        add_number(&dim, DIM_VALUE, (uint64_t)d.raw);
    } else if (onv_dim_is_expr(d)) {
        const char *name = onv_dim_text(&s->types->dims, &s->scratch, d);
        if (name != NULL && strlen(name) <= LONGEST_DIM && !is_made(name))
            add_field(&dim, DIM_PARAM, name, strlen(name));
    }
    add_message(shape, SHAPE_DIM, &dim);
}

/* False unless it is a tensor of a known type. */
static bool add_type(splice *s, uint32_t value, text *to)
{
    const onv_type *type = &s->types->values.at[value].type;
    bool is_sparse = type->kind == ONV_TYPE_SPARSE_TENSOR;
    if ((type->kind != ONV_TYPE_TENSOR && !is_sparse) || type->dtype == ONV_UNDEFINED) return false;
    text shape = {0}, tensor = {0}, whole = {0};
    add_number(&tensor, TENSOR_ELEM, type->dtype);
    for (int i = 0; i < type->rank; i++) add_dim(s, type->dims[i], &shape);
    if (type->rank >= 0) add_message(&tensor, TENSOR_SHAPE, &shape);
    add_message(&whole, is_sparse ? TYPE_SPARSE : TYPE_TENSOR, &tensor);
    add_message(to, INFO_TYPE, &whole);
    return true;
}

/* --- Entries that are there ----------------------------------------------------------------------- */

static bool begins_with_prefix(range r)
{
    size_t n = sizeof PREFIX - 1;
    return (size_t)(r.end - r.at) >= n && memcmp(r.at, PREFIX, n) == 0;
}

/* Whether a StringStringEntryProto has a key that is written here. */
static bool is_ours(range pair)
{
    onv_wire_field field;
    for (const unsigned char *at = pair.at; onv_wire_next(&at, pair.end, &field);)
        if (field.number == PAIR_KEY && field.type == ONV_WIRE_BYTES)
            return begins_with_prefix((range){field.value, field.end});
    return false;
}

static bool is_filled(range dim)
{
    onv_wire_field field;
    for (const unsigned char *at = dim.at; onv_wire_next(&at, dim.end, &field);)
        if (field.number == DIM_VALUE || (field.number == DIM_PARAM && field.end > field.value))
            return true;
    return false;
}

/* The part of a message that stands in field `number`; false where there is none. */
static bool find_part(range message, uint32_t number, range *part)
{
    onv_wire_field field;
    bool found = false;
    for (const unsigned char *at = message.at; onv_wire_next(&at, message.end, &field);) {
        if (field.number != number || field.type != ONV_WIRE_BYTES) continue;
        *part = (range){field.value, field.end};
        found = true;
    }
    return found;
}

/* Whether a TypeProto fixes a tensor's whole shape; true for types other than tensors, which stay as they are. */
static bool is_complete(range type)
{
    range tensor = {0}, shape = {0};
    onv_wire_field field;
    if (type.at == type.end) return false;
    if (!find_part(type, TYPE_TENSOR, &tensor)) return true;
    if (!find_part(tensor, TENSOR_SHAPE, &shape)) return false;
    for (const unsigned char *at = shape.at; onv_wire_next(&at, shape.end, &field);)
        if (field.number == SHAPE_DIM && field.type == ONV_WIRE_BYTES &&
            !is_filled((range){field.value, field.end}))
            return false;
    return true;
}

/* An entry with its old fields; `may_type`: its type is not the model's interface. */
static void add_info(splice *s, range info, uint32_t value, bool may_type, text *to)
{
    onv_wire_field field;
    note notes[MOST_NOTES];
    size_t n = list_notes(s, value, notes);
    bool has_type = false, keeps_doc = false;
    for (const unsigned char *at = info.at; onv_wire_next(&at, info.end, &field);) {
        range part = {field.value, field.end};
        if (field.type == ONV_WIRE_BYTES) {
            if (field.number == INFO_METADATA && is_ours(part)) continue;
            if (field.number == INFO_DOC && begins_with_prefix(part)) continue;
            keeps_doc |= field.number == INFO_DOC && part.end > part.at;
            if (field.number == INFO_TYPE) {
                has_type = true;
                if (may_type && !is_complete(part) && add_type(s, value, to)) continue;
            }
        }
        add(to, field.start, (size_t)(field.end - field.start));
    }
    if (!has_type && may_type) add_type(s, value, to);
    if (s->has_metadata || !keeps_doc) add_notes(s, notes, n, to);
}

static void put_text(splice *s, uint32_t field, text *t)
{
    put_tag(s, field, t->bytes.count);
    put(s, t->bytes.at, t->bytes.count);
    if (t->failed) s->scratch.failed = true;
    onv_vec_cleanup(&t->bytes);
    onv_arena_reset(&s->scratch);
}

static void put_info(splice *s, const onv_wire_field *field)
{
    range info = {field->value, field->end};
    uint32_t value = value_of_info(s, info);
    if (value == UINT32_MAX || onv_value_is_weight(&s->view->model->values.at[value])) {
        put_range(s, (range){field->start, field->end});
        return;
    }
    text made = {0};
    add_info(s, info, value, field->number == GRAPH_VALUE_INFO, &made);
    put_text(s, field->number, &made);
}

/* --- Entries that are new ------------------------------------------------------------------------- */

static void put_new_info(splice *s, uint32_t value)
{
    const char *name = s->view->model->values.at[value].name;
    note notes[MOST_NOTES];
    text made = {0};
    add_field(&made, INFO_NAME, name, strlen(name));
    if (!add_type(s, value, &made)) {
        onv_vec_cleanup(&made.bytes);
        onv_arena_reset(&s->scratch);
        return;
    }
    add_notes(s, notes, list_notes(s, value, notes), &made);
    put_text(s, GRAPH_VALUE_INFO, &made);
}

/* --- The graph ------------------------------------------------------------------------------------ */

static onv_status broken(const splice *s)
{
    return onv_fail(s->job->err, ONV_ERR_IO, "the file changed while it was read");
}

static bool is_info(const onv_wire_field *field)
{
    return field->type == ONV_WIRE_BYTES &&
           (field->number == GRAPH_INPUT || field->number == GRAPH_OUTPUT ||
            field->number == GRAPH_VALUE_INFO);
}

static void note_outputs(splice *s, range node, bool *listed)
{
    onv_wire_field field;
    uint32_t index;
    for (const unsigned char *at = node.at; onv_wire_next(&at, node.end, &field);) {
        if (field.number != NODE_OUTPUT || field.type != ONV_WIRE_BYTES) continue;
        const onv_value *value = find_value(s, (range){field.value, field.end}, &index);
        if (value == NULL || listed[index]) continue;
        listed[index] = true;
        s->outputs[s->n_outputs++] = index;
    }
}

/* Nodes, their outputs, and which values have entries. */
static onv_status list_graph(splice *s)
{
    onv_wire_field field;
    size_t count = 0, n_values = s->view->model->values.count;
    const unsigned char *at = s->graph.at;
    while (at < s->graph.end) {
        if (!onv_wire_next(&at, s->graph.end, &field)) return broken(s);
        count += field.number == GRAPH_NODE && field.type == ONV_WIRE_BYTES;
    }
    bool *listed = ONV_ARENA_ARRAY(s->job->arena, bool, n_values + 1);
    s->nodes = ONV_ARENA_ARRAY(s->job->arena, range, count + 1);
    s->outputs = ONV_ARENA_ARRAY(s->job->arena, uint32_t, n_values + 1);
    if (listed == NULL || s->nodes == NULL || s->outputs == NULL)
        return onv_fail_memory(s->job->err);
    for (at = s->graph.at; at < s->graph.end && onv_wire_next(&at, s->graph.end, &field);) {
        if (is_info(&field)) {
            uint32_t value = value_of_info(s, (range){field.value, field.end});
            if (value != UINT32_MAX) s->has_info[value] = true;
        }
        if (field.number != GRAPH_NODE || field.type != ONV_WIRE_BYTES || s->n_nodes == count)
            continue;
        s->nodes[s->n_nodes++] = (range){field.start, field.end};
        note_outputs(s, (range){field.value, field.end}, listed);
    }
    return ONV_OK;
}

/* A function's nodes are one node of the file: they must follow each other. */
static onv_status order_nodes(splice *s)
{
    const onv_order_result *order = s->view->order;
    if (order == NULL || strcmp(order->name, "model") == 0) return ONV_OK;
    bool *done = ONV_ARENA_ARRAY(s->job->arena, bool, s->n_nodes + 1);
    s->order = ONV_ARENA_ARRAY(s->job->arena, uint32_t, s->n_nodes + 1);
    if (done == NULL || s->order == NULL) return onv_fail_memory(s->job->err);
    uint32_t n = 0;
    for (uint32_t i = 0; i < order->n_nodes; i++) {
        const onv_node *node = onv_model_node(s->view->model, order->nodes[i]);
        if (node->place >= s->n_nodes) return broken(s);
        if (n > 0 && s->order[n - 1] == node->place) continue;
        if (done[node->place]) {
            onv_status status = onv_fail(
                s->job->err, ONV_ERR_USAGE,
                "the order %s runs other nodes between those of one function call, which is one "
                "node "
                "of the file: inline the functions first (onnx.inliner), or leave --order out",
                order->name);
            onv_error_at(s->job->err, node->name, node->op_type);
            return status;
        }
        done[node->place] = true;
        s->order[n++] = node->place;
    }
    for (uint32_t i = 0; i < s->n_nodes; i++) /* calls of functions without nodes */
        if (!done[i]) s->order[n++] = i;
    return ONV_OK;
}

static onv_status put_graph(splice *s)
{
    onv_wire_field field;
    size_t node = 0;
    for (const unsigned char *at = s->graph.at; at < s->graph.end && !s->job->out->failed;) {
        if (!onv_wire_next(&at, s->graph.end, &field)) return broken(s);
        if (is_info(&field)) {
            put_info(s, &field);
        } else if (field.number == GRAPH_NODE && s->order != NULL) {
            if (node == s->n_nodes) return broken(s);
            put_range(s, s->nodes[s->order[node++]]);
        } else {
            put_range(s, (range){field.start, field.end});
        }
    }
    for (size_t i = 0; i < s->n_outputs && !s->job->out->failed; i++)
        if (!s->has_info[s->outputs[i]]) put_new_info(s, s->outputs[i]);
    return ONV_OK;
}

/* --- The model ------------------------------------------------------------------------------------ */

static void put_note(splice *s, const char *key, const char *value)
{
    text pair = {0};
    if (value == NULL) return;
    add_field(&pair, PAIR_KEY, key, strlen(key));
    add_field(&pair, PAIR_VALUE, value, strlen(value));
    put_text(s, MODEL_METADATA, &pair);
}

/* "batch=8 seq=128"; inputs whose shapes were given stand there alone. */
static const char *sizes_text(splice *s)
{
    const onv_infer_info *infer = s->view->infer;
    const char *all = "";
    for (size_t i = 0; i < infer->bounds.count && all != NULL; i++) {
        const onv_bound *b = &infer->bounds.at[i];
        all = b->size < 0
                  ? onv_arena_printf(s->job->arena, "%s%s%s", all, i > 0 ? " " : "", b->name)
                  : onv_arena_printf(s->job->arena, "%s%s%s=%" PRId64, all, i > 0 ? " " : "",
                                     b->name, b->size);
    }
    return all;
}

static void put_model_notes(splice *s)
{
    const onv_live *live = s->view->live;
    put_note(s, PREFIX "version", onv_version());
    put_note(s, PREFIX "order", s->view->order != NULL ? s->view->order->name : "model");
    if (s->view->infer->bounds.count > 0) put_note(s, PREFIX "sizes", sizes_text(s));
    put_note(s, PREFIX "weight_bytes", number_text(s, live->weight_bytes));
    if (live->unknown > 0) return;
    put_note(s, PREFIX "peak_bytes", number_text(s, live->peak_bytes));
    put_note(s, PREFIX "peak_step", number_text(s, live->peak_step));
}

static onv_status put_model(splice *s)
{
    const unsigned char *file = s->view->model->file;
    const unsigned char *end = file + s->view->model->file_bytes;
    onv_wire_field field;
    for (const unsigned char *at = file; at < end && !s->job->out->failed;) {
        if (!onv_wire_next(&at, end, &field)) return broken(s);
        range part = {field.value, field.end};
        bool is_bytes = field.type == ONV_WIRE_BYTES;
        if (is_bytes && field.number == MODEL_METADATA && is_ours(part)) continue;
        if (is_bytes && field.number == MODEL_GRAPH) {
            put_tag(s, MODEL_GRAPH, s->bytes);
            ONV_TRY(put_graph(s));
            continue;
        }
        put_range(s, (range){field.start, field.end});
    }
    put_model_notes(s);
    return ONV_OK;
}

static bool find_graph(splice *s)
{
    const onv_model *model = s->view->model;
    range file = {model->file, model->file + model->file_bytes};
    return find_part(file, MODEL_GRAPH, &s->graph);
}

static onv_status splice_model(splice *s)
{
    if (!find_graph(s)) return broken(s);
    if (!list_values(s)) return onv_fail_memory(s->job->err);
    ONV_TRY(list_graph(s));
    ONV_TRY(order_nodes(s));
    s->is_counting = true;
    ONV_TRY(put_graph(s));
    s->is_counting = false;
    ONV_TRY(put_model(s));
    return s->scratch.failed ? onv_fail_memory(s->job->err) : ONV_OK;
}

static onv_status write_onnx(const onv_report_job *job)
{
    const onv_view *view = &job->views[0];
    if (job->count != 1)
        return onv_fail(job->err, ONV_ERR_USAGE, "a file takes one model, not %zu", job->count);
    if (view->unbound == NULL || view->model->file == NULL)
        return onv_fail(job->err, ONV_ERR_USAGE,
                        "the model is written only where the option onnx_out asked for it");
    /* The file's own bytes are no report. */
    if (__builtin_add_overflow(job->out->most, view->model->file_bytes, &job->out->most))
        job->out->most = UINT64_MAX;
    splice s = {.job = job,
                .view = view,
                .types = view->unbound,
                .has_metadata = view->model->ir_version >= IR_OF_VALUE_METADATA};
    onv_arena_init(&s.scratch, SIZE_MAX);
    onv_status status = splice_model(&s);
    onv_arena_cleanup(&s.scratch);
    return status;
}

const onv_report_format onv_format_onnx = {
    .id = ONV_FORMAT_ONNX,
    .name = "onnx",
    .summary = "the model itself, with shapes, lifetimes and its nodes in the order of execution",
    .write = write_onnx,
};
