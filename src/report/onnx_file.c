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
 * Lengths stand before messages, so that all of it is made before it is written (onnx_made.h). Graphs of nodes recurse; loading
 * has bounded how deep they nest. */
#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "load/source.h"
#include "report/onnx_made.h"

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

/* --- Nodes ---------------------------------------------------------------------------------------- */

static bool is_info(const onv_wire_field *field)
{
    return field->type == ONV_WIRE_BYTES &&
           (field->number == GRAPH_INPUT || field->number == GRAPH_OUTPUT ||
            field->number == GRAPH_VALUE_INFO);
}

static onv_status broken(const onv_splice *s)
{
    return onv_fail(s->job->err, ONV_ERR_IO, "the file changed while it was read");
}

static bool is_node(const onv_wire_field *field)
{
    return field->number == GRAPH_NODE && field->type == ONV_WIRE_BYTES;
}

/* The nodes of the main graph, as in the file. */
static onv_status list_nodes(onv_splice *s, onv_span graph, onv_span **nodes)
{
    onv_wire_field field;
    size_t count = 0;
    for (const unsigned char *at = graph.at; onv_wire_next(&at, graph.end, &field);)
        count += is_node(&field);
    *nodes = ONV_ARENA_ARRAY(s->job->arena, onv_span, count + 1);
    s->nodes = ONV_ARENA_ARRAY(s->job->arena, onv_span, count + 1);
    if (*nodes == NULL || s->nodes == NULL) return onv_fail_memory(s->job->err);
    for (const unsigned char *at = graph.at; onv_wire_next(&at, graph.end, &field);)
        if (is_node(&field) && s->n_nodes < count)
            (*nodes)[s->n_nodes++] = (onv_span){field.start, field.end};
    return ONV_OK;
}

/* A function's nodes are one node of the file: they must follow each other. */
static onv_status order_nodes(onv_splice *s, onv_span graph)
{
    const onv_order_result *order = &s->view->order;
    onv_span *nodes;
    if (strcmp(order->name, "model") == 0) return ONV_OK;
    ONV_TRY(list_nodes(s, graph, &nodes));
    bool *done = ONV_ARENA_ARRAY(s->job->arena, bool, s->n_nodes + 1);
    if (done == NULL) return onv_fail_memory(s->job->err);
    uint32_t n = 0, last = UINT32_MAX;
    for (uint32_t i = 0; i < order->n_nodes; i++) {
        const onv_node *node = onv_model_node(&s->view->model, order->nodes[i]);
        if (node->place >= s->n_nodes) return broken(s);
        if (node->place == last) continue;
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
        last = node->place;
        done[last] = true;
        s->nodes[n++] = nodes[last];
    }
    for (uint32_t i = 0; i < s->n_nodes; i++) /* calls of functions without nodes */
        if (!done[i]) s->nodes[n++] = nodes[i];
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

static void put_graph(onv_splice *s, onv_made *to, onv_graph_id id, onv_span graph);

static void put_attribute(onv_splice *s, onv_made *to, onv_span attribute, onv_graph_id inner)
{
    onv_wire_field field;
    onv_made made = {.arena = to->arena};
    for (const unsigned char *at = attribute.at; onv_wire_next(&at, attribute.end, &field);) {
        if (field.number != ATTRIBUTE_GRAPH || field.type != ONV_WIRE_BYTES) {
            onv_made_span(&made, (onv_span){field.start, field.end});
            continue;
        }
        onv_made graph = {.arena = to->arena};
        put_graph(s, &graph, inner, (onv_span){field.value, field.end});
        onv_made_message(&made, ATTRIBUTE_GRAPH, &graph);
    }
    onv_made_message(to, NODE_ATTRIBUTE, &made);
}

static bool is_attribute(const onv_wire_field *field)
{
    return field->number == NODE_ATTRIBUTE && field->type == ONV_WIRE_BYTES;
}

/* A node as it is, but for the graphs of its attributes. `whole` begins with its tag. */
static void put_node(onv_splice *s, onv_made *to, onv_graph_id outer, onv_span whole)
{
    onv_wire_field field, self;
    onv_graph_id inner;
    bool has_inner = false;
    const unsigned char *at = whole.at;
    onv_made made = {.arena = to->arena};
    if (!onv_wire_next(&at, whole.end, &self)) {
        s->is_broken = true;
        return;
    }
    onv_span node = {self.value, self.end};
    for (at = node.at; onv_wire_next(&at, node.end, &field);) {
        onv_span part = {field.value, field.end};
        bool is_inner = is_attribute(&field) && find_inner(s, outer, node, part, &inner);
        has_inner |= is_inner;
        if (is_inner)
            put_attribute(s, &made, part, inner);
        else
            onv_made_span(&made, (onv_span){field.start, field.end});
    }
    if (has_inner)
        onv_made_message(to, GRAPH_NODE, &made);
    else
        onv_made_span(to, whole);
    onv_vec_cleanup(&made.pieces);
}

/* Entries for outputs of nodes that have none. */
static void put_new_infos(onv_splice *s, onv_made *to, onv_graph_id id, onv_span graph)
{
    onv_wire_field field, part;
    uint32_t value;
    for (const unsigned char *at = graph.at; onv_wire_next(&at, graph.end, &field);) {
        if (!is_node(&field)) continue;
        for (const unsigned char *in = field.value; onv_wire_next(&in, field.end, &part);) {
            if (part.number != NODE_OUTPUT || part.type != ONV_WIRE_BYTES) continue;
            onv_span name = {part.value, part.end};
            if (onv_splice_find(s, id, name, &value) != NULL && !s->has_info[value])
                onv_splice_new_info(s, to, name, value);
        }
    }
}

static void put_graph(onv_splice *s, onv_made *to, onv_graph_id id, onv_span graph)
{
    onv_wire_field field;
    size_t n = 0;
    const unsigned char *at = graph.at;
    while (onv_wire_next(&at, graph.end, &field)) {
        onv_span whole = {field.start, field.end};
        if (is_info(&field)) {
            onv_splice_info(s, to, id, &field);
        } else if (is_node(&field)) {
            bool is_ordered = id.index == 0 && s->nodes != NULL;
            s->is_broken |= is_ordered && n == s->n_nodes;
            put_node(s, to, id, is_ordered && n < s->n_nodes ? s->nodes[n++] : whole);
        } else {
            onv_made_span(to, whole);
        }
    }
    s->is_broken |= at < graph.end;
    put_new_infos(s, to, id, graph);
}

/* --- The model ------------------------------------------------------------------------------------ */

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

static void put_note(onv_made *to, const char *key, const char *value)
{
    if (value != NULL) onv_made_pair(to, MODEL_METADATA, key, value);
}

static void put_model_notes(onv_splice *s, onv_made *to)
{
    const onv_live *live = &s->view->live;
    put_note(to, ONV_SPLICE_PREFIX "version", onv_version());
    put_note(to, ONV_SPLICE_PREFIX "order", s->view->order.name);
    if (s->view->infer.bounds.count > 0) put_note(to, ONV_SPLICE_PREFIX "sizes", sizes_text(s));
    put_note(to, ONV_SPLICE_PREFIX "weight_bytes", onv_splice_number(s, live->weight_bytes));
    if (live->unknown > 0) return;
    put_note(to, ONV_SPLICE_PREFIX "peak_bytes", onv_splice_number(s, live->peak_bytes));
    put_note(to, ONV_SPLICE_PREFIX "peak_step", onv_splice_number(s, live->peak_step));
}

static void put_model(onv_splice *s, onv_made *to, onv_span file)
{
    onv_wire_field field;
    const unsigned char *at = file.at;
    while (onv_wire_next(&at, file.end, &field)) {
        onv_span part = {field.value, field.end};
        bool is_bytes = field.type == ONV_WIRE_BYTES;
        if (is_bytes && field.number == MODEL_METADATA && onv_splice_is_ours(part)) continue;
        if (!is_bytes || field.number != MODEL_GRAPH) {
            onv_made_span(to, (onv_span){field.start, field.end});
            continue;
        }
        onv_made graph = {.arena = to->arena};
        put_graph(s, &graph, (onv_graph_id){0}, part);
        onv_made_message(to, MODEL_GRAPH, &graph);
    }
    s->is_broken |= at < file.end;
    put_model_notes(s, to);
}

static onv_status splice_model(onv_splice *s, onv_made *to)
{
    onv_source *source = s->view->model.source;
    onv_span file, graph;
    ONV_TRY(onv_source_view(source, 0, source->bytes, &file.at, s->job->err));
    file.end = file.at + source->bytes;
    if (!onv_splice_part(file, MODEL_GRAPH, &graph)) return broken(s);
    if (!onv_splice_list_values(s)) return onv_fail_memory(s->job->err);
    ONV_TRY(order_nodes(s, graph));
    put_model(s, to, file);
    if (s->is_broken) return broken(s);
    return s->scratch.failed || to->arena->failed ? onv_fail_memory(s->job->err) : ONV_OK;
}

onv_status onv_format_onnx_write(onv_report_job *job)
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
    onv_made made = {.arena = job->arena};
    onv_arena_init(&s.scratch, SIZE_MAX);
    onv_status status = splice_model(&s, &made);
    if (status == ONV_OK) onv_made_write(&made, job->out);
    onv_vec_cleanup(&made.pieces);
    onv_arena_cleanup(&s.scratch);
    return status;
}
