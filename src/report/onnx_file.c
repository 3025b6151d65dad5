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
 * Lengths stand before messages, so the graph is gone through twice: once for the lengths of what is written anew. Graphs of
 * nodes recurse; loading has bounded how deep they nest. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "load/wire.h"
#include "report/format.h"
#include "report/wire_made.h"

enum {
    MODEL_GRAPH = 7,
    MODEL_METADATA = 14,
    GRAPH_NODE = 1,
    GRAPH_INPUT = 11,
    GRAPH_OUTPUT = 12,
    GRAPH_VALUE_INFO = 13,
    NODE_OUTPUT = 2,
    NODE_ATTRIBUTE = 5,
    ATTRIBUTE_NAME = 1,
    ATTRIBUTE_GRAPH = 6,
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
    uint64_t bytes;            /* counted */
    ONV_VEC(uint64_t) lengths; /* of messages around others, in the order of their beginnings */
    size_t next_length;        /* that is written */
    range graph;
    range *nodes; /* of the main graph, as in the file */
    size_t n_nodes;
    uint32_t *order; /* places of nodes; NULL: as in the file */
    uint32_t *slots; /* values by graph and name: index + 1, 0 where empty */
    size_t n_slots;
    bool *has_info; /* by value: an entry of the file's */
    bool *at_peak;  /* by buffer */
} splice;

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
    size_t n = onv_varint_write((uint64_t)field << 3 | ONV_WIRE_BYTES, bytes);
    n += onv_varint_write(length, bytes + n);
    put(s, bytes, n);
}

/* --- Values by name ------------------------------------------------------------------------------- */

static uint32_t *slot_of(const splice *s, onv_graph_id graph, const void *name, size_t length)
{
    const onv_model *model = s->view->model;
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
        if (value->name[0] == '\0') continue;
        uint32_t *slot = slot_of(s, value->graph, value->name, strlen(value->name));
        if (*slot == 0) *slot = i + 1;
    }
    for (uint32_t i = 0; i < s->view->live->n_peak_set; i++)
        s->at_peak[s->view->live->peak_set[i]] = true;
    return true;
}

/* Values of a graph of a node are called by its path, too. */
static const onv_value *find_value(splice *s, onv_graph_id graph, range name, uint32_t *index)
{
    size_t length = (size_t)(name.end - name.at);
    const char *path = onv_model_graph(s->view->model, graph)->name;
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
    return &s->view->model->values.at[*index];
}

/* The value that an entry is about; UINT32_MAX: none. */
static uint32_t value_of_info(splice *s, onv_graph_id graph, range info)
{
    onv_wire_field field;
    uint32_t index = UINT32_MAX;
    for (const unsigned char *at = info.at; onv_wire_next(&at, info.end, &field);)
        if (field.number == INFO_NAME && field.type == ONV_WIRE_BYTES)
            if (find_value(s, graph, (range){field.value, field.end}, &index) == NULL)
                index = UINT32_MAX;
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

static void add_notes(splice *s, const note *notes, size_t n, onv_made *to)
{
    onv_made doc = {0};
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

static void add_dim(splice *s, onv_dim d, onv_made *shape)
{
    onv_made dim = {0};
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
static bool add_type(splice *s, uint32_t value, onv_made *to)
{
    const onv_type *type = &s->types->values.at[value].type;
    bool is_sparse = type->kind == ONV_TYPE_SPARSE_TENSOR;
    if ((type->kind != ONV_TYPE_TENSOR && !is_sparse) || type->dtype == ONV_UNDEFINED) return false;
    onv_made shape = {0}, tensor = {0}, whole = {0};
    onv_made_number(&tensor, TENSOR_ELEM, type->dtype);
    for (int i = 0; i < type->rank; i++) add_dim(s, type->dims[i], &shape);
    if (type->rank >= 0) onv_made_message(&tensor, TENSOR_SHAPE, &shape);
    onv_made_message(&whole, is_sparse ? TYPE_SPARSE : TYPE_TENSOR, &tensor);
    onv_made_message(to, INFO_TYPE, &whole);
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
static void add_info(splice *s, range info, uint32_t value, bool may_type, onv_made *to)
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
        onv_made_bytes(to, field.start, (size_t)(field.end - field.start));
    }
    if (!has_type && may_type) add_type(s, value, to);
    if (s->has_metadata || !keeps_doc) add_notes(s, notes, n, to);
}

static void put_text(splice *s, uint32_t field, onv_made *t)
{
    put_tag(s, field, t->bytes.count);
    put(s, t->bytes.at, t->bytes.count);
    if (t->failed) s->scratch.failed = true;
    onv_vec_cleanup(&t->bytes);
    onv_arena_reset(&s->scratch);
}

static void put_info(splice *s, onv_graph_id graph, const onv_wire_field *field)
{
    range info = {field->value, field->end};
    uint32_t value = value_of_info(s, graph, info);
    if (value == UINT32_MAX || onv_value_is_weight(&s->view->model->values.at[value])) {
        put_range(s, (range){field->start, field->end});
        return;
    }
    onv_made made = {0};
    add_info(s, info, value, field->number == GRAPH_VALUE_INFO, &made);
    put_text(s, field->number, &made);
}

/* --- Entries that are new ------------------------------------------------------------------------- */

static void put_new_info(splice *s, range name, uint32_t value)
{
    note notes[MOST_NOTES];
    onv_made made = {0};
    onv_made_field(&made, INFO_NAME, name.at, (size_t)(name.end - name.at));
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

/* The nodes of the main graph. */
static onv_status list_nodes(splice *s)
{
    onv_wire_field field;
    size_t count = 0;
    const unsigned char *at = s->graph.at;
    while (at < s->graph.end) {
        if (!onv_wire_next(&at, s->graph.end, &field)) return broken(s);
        count += field.number == GRAPH_NODE && field.type == ONV_WIRE_BYTES;
    }
    s->nodes = ONV_ARENA_ARRAY(s->job->arena, range, count + 1);
    if (s->nodes == NULL) return onv_fail_memory(s->job->err);
    for (at = s->graph.at; at < s->graph.end && onv_wire_next(&at, s->graph.end, &field);)
        if (field.number == GRAPH_NODE && field.type == ONV_WIRE_BYTES && s->n_nodes < count)
            s->nodes[s->n_nodes++] = (range){field.start, field.end};
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

/* --- Graphs of nodes ------------------------------------------------------------------------------ */

static bool has_type(const onv_type *a, const onv_type *b)
{
    bool same = a->kind == b->kind && a->dtype == b->dtype && a->rank == b->rank;
    for (int i = 0; same && i < a->rank; i++) same = onv_dim_same(a->dims[i], b->dims[i]);
    return same;
}

/* Whether the states of a Loop keep their types, so that types in its body are those of every iteration. */
static bool is_steady(const onv_model *types, const onv_node *loop, const onv_graph *body)
{
    enum { FIRST_STATE = 2 };
    for (uint32_t i = FIRST_STATE; i < loop->n_inputs; i++) {
        if (i >= body->n_inputs || i - 1 >= body->n_outputs || !onv_is_value(loop->inputs[i]))
            return false;
        const onv_type *now = &onv_model_value(types, body->inputs[i])->type;
        if (!has_type(now, &onv_model_value(types, loop->inputs[i])->type) ||
            !has_type(now, &onv_model_value(types, body->outputs[i - 1])->type))
            return false;
    }
    return true;
}

/* Whether types in it hold whenever it runs. Bodies of operators that are not known here are left as they are. */
static bool holds_types(const splice *s, onv_graph_id id)
{
    const onv_graph *graph = onv_model_graph(s->types, id);
    const onv_node *owner = onv_model_node(s->types, graph->owner);
    if (graph->never_runs || graph->is_unrolled) return false;
    if (strcmp(owner->op_type, "Loop") == 0) return is_steady(s->types, owner, graph);
    return strcmp(owner->op_type, "If") == 0 || strcmp(owner->op_type, "Scan") == 0;
}

/* The graph that an attribute of a node of the file holds; false: none whose values get types. */
static bool find_inner(splice *s, onv_graph_id outer, range node, range attribute,
                       onv_graph_id *inner)
{
    const onv_model *model = s->view->model;
    range name = {0}, graph = {0};
    onv_wire_field field;
    uint32_t index = UINT32_MAX;
    if (!find_part(attribute, ATTRIBUTE_NAME, &name) ||
        !find_part(attribute, ATTRIBUTE_GRAPH, &graph))
        return false;
    const onv_value *output = NULL;
    for (const unsigned char *at = node.at; output == NULL && onv_wire_next(&at, node.end, &field);)
        if (field.number == NODE_OUTPUT && field.type == ONV_WIRE_BYTES && field.end > field.value)
            output = find_value(s, outer, (range){field.value, field.end}, &index);
    if (output == NULL || !onv_is_node(output->producer)) return false;
    for (uint32_t i = 1; i < model->graphs.count; i++) {
        const onv_graph *g = &model->graphs.at[i];
        size_t length = (size_t)(name.end - name.at);
        if (g->owner.index != output->producer.index || strlen(g->owner_attr) != length ||
            memcmp(g->owner_attr, name.at, length) != 0)
            continue;
        *inner = (onv_graph_id){i};
        return holds_types(s, *inner);
    }
    return false;
}

/* --- The graph ------------------------------------------------------------------------------------ */

typedef struct around {
    uint64_t before; /* bytes that were counted */
    size_t length;   /* which */
} around;

/* A message whose parts are written one by one: its length is what was counted. */
static around begin_message(splice *s, uint32_t field)
{
    around message = {s->bytes, s->lengths.count};
    if (!s->is_counting)
        put_tag(s, field, s->next_length < s->lengths.count ? s->lengths.at[s->next_length++] : 0);
    else if (!onv_vec_push(&s->lengths, (uint64_t)0))
        s->scratch.failed = true;
    return message;
}

static void end_message(splice *s, uint32_t field, around message)
{
    if (!s->is_counting || message.length >= s->lengths.count) return;
    s->lengths.at[message.length] = s->bytes - message.before;
    put_tag(s, field, s->bytes - message.before);
}

static onv_status put_graph(splice *s, onv_graph_id id, range graph);

static onv_status put_attribute(splice *s, range attribute, onv_graph_id inner)
{
    onv_wire_field field;
    around message = begin_message(s, NODE_ATTRIBUTE);
    for (const unsigned char *at = attribute.at; onv_wire_next(&at, attribute.end, &field);) {
        if (field.number != ATTRIBUTE_GRAPH || field.type != ONV_WIRE_BYTES) {
            put_range(s, (range){field.start, field.end});
            continue;
        }
        around graph = begin_message(s, ATTRIBUTE_GRAPH);
        ONV_TRY(put_graph(s, inner, (range){field.value, field.end}));
        end_message(s, ATTRIBUTE_GRAPH, graph);
    }
    end_message(s, NODE_ATTRIBUTE, message);
    return ONV_OK;
}

static bool is_attribute(const onv_wire_field *field)
{
    return field->number == NODE_ATTRIBUTE && field->type == ONV_WIRE_BYTES;
}

/* A node as it is, but for the graphs of its attributes. `whole` begins with its tag. */
static onv_status put_node(splice *s, onv_graph_id outer, range whole)
{
    onv_wire_field field, self;
    onv_graph_id inner;
    bool has_inner = false;
    const unsigned char *at = whole.at;
    if (!onv_wire_next(&at, whole.end, &self)) return broken(s);
    range node = {self.value, self.end};
    for (at = node.at; !has_inner && onv_wire_next(&at, node.end, &field);)
        has_inner = is_attribute(&field) &&
                    find_inner(s, outer, node, (range){field.value, field.end}, &inner);
    if (!has_inner) {
        put_range(s, whole);
        return ONV_OK;
    }
    around message = begin_message(s, GRAPH_NODE);
    for (at = node.at; onv_wire_next(&at, node.end, &field);) {
        range part = {field.value, field.end};
        if (is_attribute(&field) && find_inner(s, outer, node, part, &inner))
            ONV_TRY(put_attribute(s, part, inner));
        else
            put_range(s, (range){field.start, field.end});
    }
    end_message(s, GRAPH_NODE, message);
    return ONV_OK;
}

/* Entries for outputs of nodes that have none. */
static void put_new_infos(splice *s, onv_graph_id id, range graph)
{
    onv_wire_field field, part;
    uint32_t value;
    for (const unsigned char *at = graph.at; onv_wire_next(&at, graph.end, &field);) {
        if (field.number != GRAPH_NODE || field.type != ONV_WIRE_BYTES) continue;
        for (const unsigned char *in = field.value; onv_wire_next(&in, field.end, &part);) {
            if (part.number != NODE_OUTPUT || part.type != ONV_WIRE_BYTES) continue;
            bool found = find_value(s, id, (range){part.value, part.end}, &value) != NULL;
            if (found && !s->has_info[value]) put_new_info(s, (range){part.value, part.end}, value);
        }
        if (s->job->out->failed) return;
    }
}

static onv_status put_graph(splice *s, onv_graph_id id, range graph)
{
    onv_wire_field field;
    size_t node = 0;
    bool is_main = id.index == 0;
    for (const unsigned char *at = graph.at; at < graph.end && !s->job->out->failed;) {
        if (!onv_wire_next(&at, graph.end, &field)) return broken(s);
        bool is_node = field.number == GRAPH_NODE && field.type == ONV_WIRE_BYTES;
        if (is_info(&field)) {
            uint32_t value = value_of_info(s, id, (range){field.value, field.end});
            if (value != UINT32_MAX) s->has_info[value] = true;
            put_info(s, id, &field);
        } else if (is_node) {
            range whole = {field.start, field.end};
            if (is_main && s->order != NULL) {
                if (node == s->n_nodes) return broken(s);
                whole = s->nodes[s->order[node++]];
            }
            ONV_TRY(put_node(s, id, whole));
        } else {
            put_range(s, (range){field.start, field.end});
        }
    }
    put_new_infos(s, id, graph);
    return ONV_OK;
}

/* --- The model ------------------------------------------------------------------------------------ */

static void put_note(splice *s, const char *key, const char *value)
{
    onv_made pair = {0};
    if (value == NULL) return;
    onv_made_field(&pair, PAIR_KEY, key, strlen(key));
    onv_made_field(&pair, PAIR_VALUE, value, strlen(value));
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
            around message = begin_message(s, MODEL_GRAPH);
            ONV_TRY(put_graph(s, (onv_graph_id){0}, part));
            end_message(s, MODEL_GRAPH, message);
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
    ONV_TRY(list_nodes(s));
    ONV_TRY(order_nodes(s));
    s->is_counting = true;
    around message = begin_message(s, MODEL_GRAPH);
    ONV_TRY(put_graph(s, (onv_graph_id){0}, s->graph));
    end_message(s, MODEL_GRAPH, message);
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
    onv_vec_cleanup(&s.lengths);
    return status;
}

const onv_report_format onv_format_onnx = {
    .id = ONV_FORMAT_ONNX,
    .name = "onnx",
    .summary = "the model itself, with shapes, lifetimes and its nodes in the order of execution",
    .write = write_onnx,
};
