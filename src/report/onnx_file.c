/* The model's own file once more, with what the analysis knows of its values.
 *
 * The whole file is written by splicing, not by decoding: a walk over the fields of the model and of its main graph copies
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
#include <string.h>

#include "base/fail.h"
#include "load/source.h"
#include "report/onnx_splice.h"

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
};

enum { IR_OF_VALUE_METADATA = 10 };

/* --- The graph ------------------------------------------------------------------------------------ */

static onv_status broken(const onv_splice *s)
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
static onv_status list_nodes(onv_splice *s)
{
    onv_wire_field field;
    size_t count = 0;
    const unsigned char *at = s->graph.at;
    while (at < s->graph.end) {
        if (!onv_wire_next(&at, s->graph.end, &field)) return broken(s);
        count += field.number == GRAPH_NODE && field.type == ONV_WIRE_BYTES;
    }
    s->nodes = ONV_ARENA_ARRAY(s->job->arena, onv_span, count + 1);
    if (s->nodes == NULL) return onv_fail_memory(s->job->err);
    for (at = s->graph.at; at < s->graph.end && onv_wire_next(&at, s->graph.end, &field);)
        if (field.number == GRAPH_NODE && field.type == ONV_WIRE_BYTES && s->n_nodes < count)
            s->nodes[s->n_nodes++] = (onv_span){field.start, field.end};
    return ONV_OK;
}

/* A function's nodes are one node of the file: they must follow each other. */
static onv_status order_nodes(onv_splice *s)
{
    const onv_order_result *order = &s->view->order;
    if (order == NULL || strcmp(order->name, "model") == 0) return ONV_OK;
    bool *done = ONV_ARENA_ARRAY(s->job->arena, bool, s->n_nodes + 1);
    s->order = ONV_ARENA_ARRAY(s->job->arena, uint32_t, s->n_nodes + 1);
    if (done == NULL || s->order == NULL) return onv_fail_memory(s->job->err);
    uint32_t n = 0;
    for (uint32_t i = 0; i < order->n_nodes; i++) {
        const onv_node *node = onv_model_node(&s->view->model, order->nodes[i]);
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
static bool holds_types(const onv_splice *s, onv_graph_id id)
{
    const onv_graph *graph = onv_model_graph(s->types, id);
    const onv_node *owner = onv_model_node(s->types, graph->owner);
    if (graph->never_runs || graph->is_unrolled) return false;
    if (owner->code == ONV_OP_Loop) return is_steady(s->types, owner, graph);
    return owner->code == ONV_OP_If || owner->code == ONV_OP_Scan;
}

/* The graph that an attribute of a node of the file holds; false: none whose values get types. */
static bool find_inner(onv_splice *s, onv_graph_id outer, onv_span node, onv_span attribute,
                       onv_graph_id *inner)
{
    const onv_model *model = &s->view->model;
    onv_span name = {0}, graph = {0};
    onv_wire_field field;
    uint32_t index = UINT32_MAX;
    if (!onv_splice_part(attribute, ATTRIBUTE_NAME, &name) ||
        !onv_splice_part(attribute, ATTRIBUTE_GRAPH, &graph))
        return false;
    const onv_value *output = NULL;
    for (const unsigned char *at = node.at; output == NULL && onv_wire_next(&at, node.end, &field);)
        if (field.number == NODE_OUTPUT && field.type == ONV_WIRE_BYTES && field.end > field.value)
            output = onv_splice_find(s, outer, (onv_span){field.value, field.end}, &index);
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
static around begin_message(onv_splice *s, uint32_t field)
{
    around message = {s->bytes, s->lengths.count};
    if (!s->is_counting)
        onv_splice_tag(s, field,
                       s->next_length < s->lengths.count ? s->lengths.at[s->next_length++] : 0);
    else if (!onv_vec_push(&s->lengths, (uint64_t)0))
        s->scratch.failed = true;
    return message;
}

static void end_message(onv_splice *s, uint32_t field, around message)
{
    if (!s->is_counting || message.length >= s->lengths.count) return;
    s->lengths.at[message.length] = s->bytes - message.before;
    onv_splice_tag(s, field, s->bytes - message.before);
}

static onv_status put_graph(onv_splice *s, onv_graph_id id, onv_span graph);

static onv_status put_attribute(onv_splice *s, onv_span attribute, onv_graph_id inner)
{
    onv_wire_field field;
    around message = begin_message(s, NODE_ATTRIBUTE);
    for (const unsigned char *at = attribute.at; onv_wire_next(&at, attribute.end, &field);) {
        if (field.number != ATTRIBUTE_GRAPH || field.type != ONV_WIRE_BYTES) {
            onv_splice_span(s, (onv_span){field.start, field.end});
            continue;
        }
        around graph = begin_message(s, ATTRIBUTE_GRAPH);
        ONV_TRY(put_graph(s, inner, (onv_span){field.value, field.end}));
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
static onv_status put_node(onv_splice *s, onv_graph_id outer, onv_span whole)
{
    onv_wire_field field, self;
    onv_graph_id inner;
    bool has_inner = false;
    const unsigned char *at = whole.at;
    if (!onv_wire_next(&at, whole.end, &self)) return broken(s);
    onv_span node = {self.value, self.end};
    for (at = node.at; !has_inner && onv_wire_next(&at, node.end, &field);)
        has_inner = is_attribute(&field) &&
                    find_inner(s, outer, node, (onv_span){field.value, field.end}, &inner);
    if (!has_inner) {
        onv_splice_span(s, whole);
        return ONV_OK;
    }
    around message = begin_message(s, GRAPH_NODE);
    for (at = node.at; onv_wire_next(&at, node.end, &field);) {
        onv_span part = {field.value, field.end};
        if (is_attribute(&field) && find_inner(s, outer, node, part, &inner))
            ONV_TRY(put_attribute(s, part, inner));
        else
            onv_splice_span(s, (onv_span){field.start, field.end});
    }
    end_message(s, GRAPH_NODE, message);
    return ONV_OK;
}

/* Entries for outputs of nodes that have none. */
static void put_new_infos(onv_splice *s, onv_graph_id id, onv_span graph)
{
    onv_wire_field field, part;
    uint32_t value;
    for (const unsigned char *at = graph.at; onv_wire_next(&at, graph.end, &field);) {
        if (field.number != GRAPH_NODE || field.type != ONV_WIRE_BYTES) continue;
        for (const unsigned char *in = field.value; onv_wire_next(&in, field.end, &part);) {
            if (part.number != NODE_OUTPUT || part.type != ONV_WIRE_BYTES) continue;
            bool found = onv_splice_find(s, id, (onv_span){part.value, part.end}, &value) != NULL;
            if (found && !s->has_info[value])
                onv_splice_new_info(s, (onv_span){part.value, part.end}, value);
        }
        if (s->job->out->failed) return;
    }
}

static onv_status put_graph(onv_splice *s, onv_graph_id id, onv_span graph)
{
    onv_wire_field field;
    size_t node = 0;
    bool is_main = id.index == 0;
    for (const unsigned char *at = graph.at; at < graph.end && !s->job->out->failed;) {
        if (!onv_wire_next(&at, graph.end, &field)) return broken(s);
        bool is_node = field.number == GRAPH_NODE && field.type == ONV_WIRE_BYTES;
        if (is_info(&field)) {
            uint32_t value = onv_splice_value_of(s, id, (onv_span){field.value, field.end});
            if (value != UINT32_MAX) s->has_info[value] = true;
            onv_splice_info(s, id, &field);
        } else if (is_node) {
            onv_span whole = {field.start, field.end};
            if (is_main && s->order != NULL) {
                if (node == s->n_nodes) return broken(s);
                whole = s->nodes[s->order[node++]];
            }
            ONV_TRY(put_node(s, id, whole));
        } else {
            onv_splice_span(s, (onv_span){field.start, field.end});
        }
    }
    put_new_infos(s, id, graph);
    return ONV_OK;
}

/* --- The model ------------------------------------------------------------------------------------ */

static void put_note(onv_splice *s, const char *key, const char *value)
{
    onv_made pair = {0};
    if (value == NULL) return;
    onv_made_field(&pair, ONV_PAIR_KEY, key, strlen(key));
    onv_made_field(&pair, ONV_PAIR_VALUE, value, strlen(value));
    onv_splice_made(s, MODEL_METADATA, &pair);
}

/* "batch=8 seq=128"; inputs whose shapes were given stand there alone. */
static const char *sizes_text(onv_splice *s)
{
    const onv_infer_info *infer = &s->view->infer;
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

static void put_model_notes(onv_splice *s)
{
    const onv_live *live = &s->view->live;
    put_note(s, ONV_SPLICE_PREFIX "version", onv_version());
    put_note(s, ONV_SPLICE_PREFIX "order", s->view->order.name);
    if (s->view->infer.bounds.count > 0) put_note(s, ONV_SPLICE_PREFIX "sizes", sizes_text(s));
    put_note(s, ONV_SPLICE_PREFIX "weight_bytes", onv_splice_number(s, live->weight_bytes));
    if (live->unknown > 0) return;
    put_note(s, ONV_SPLICE_PREFIX "peak_bytes", onv_splice_number(s, live->peak_bytes));
    put_note(s, ONV_SPLICE_PREFIX "peak_step", onv_splice_number(s, live->peak_step));
}

static onv_status put_model(onv_splice *s)
{
    const unsigned char *end = s->file.end;
    onv_wire_field field;
    for (const unsigned char *at = s->file.at; at < end && !s->job->out->failed;) {
        if (!onv_wire_next(&at, end, &field)) return broken(s);
        onv_span part = {field.value, field.end};
        bool is_bytes = field.type == ONV_WIRE_BYTES;
        if (is_bytes && field.number == MODEL_METADATA && onv_splice_is_ours(part)) continue;
        if (is_bytes && field.number == MODEL_GRAPH) {
            around message = begin_message(s, MODEL_GRAPH);
            ONV_TRY(put_graph(s, (onv_graph_id){0}, part));
            end_message(s, MODEL_GRAPH, message);
            continue;
        }
        onv_splice_span(s, (onv_span){field.start, field.end});
    }
    put_model_notes(s);
    return ONV_OK;
}

static onv_status splice_model(onv_splice *s)
{
    onv_source *source = s->view->model.source;
    ONV_TRY(onv_source_view(source, 0, source->bytes, &s->file.at, s->job->err));
    s->file.end = s->file.at + source->bytes;
    if (!onv_splice_part(s->file, MODEL_GRAPH, &s->graph)) return broken(s);
    if (!onv_splice_list_values(s)) return onv_fail_memory(s->job->err);
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

onv_status onv_format_onnx_write(const onv_report_job *job)
{
    const onv_view *view = job->views[0];
    if (job->count != 1)
        return onv_fail(job->err, ONV_ERR_USAGE, "a file takes one model, not %zu", job->count);
    if (!view->writes_onnx || view->model.source == NULL)
        return onv_fail(job->err, ONV_ERR_USAGE,
                        "the model is written only where the option onnx_out asked for it");
    /* The file's own bytes are no report. */
    if (__builtin_add_overflow(job->out->most, view->model.source->bytes, &job->out->most))
        job->out->most = UINT64_MAX;
    onv_splice s = {.job = job,
                    .view = view,
                    .types = view->unbound != NULL ? view->unbound : &view->model,
                    .has_metadata = view->model.ir_version >= IR_OF_VALUE_METADATA};
    onv_arena_init(&s.scratch, SIZE_MAX);
    onv_status status = splice_model(&s);
    onv_arena_cleanup(&s.scratch);
    onv_vec_cleanup(&s.lengths);
    return status;
}
