/* The typed graph (of ONNX Runtime alone: the one that it runs), one node per line:
 *
 *     graph (input: float32[256, 3, 224, 224]) -> (output)
 *       0  /conv1/Conv_output_0: float32[256, 64, 112, 112] = Conv(input, w, b) {strides = [2, 2]}
 *
 * Subgraphs follow, each with the node and attribute that owns it. */
#include <string.h>

#include "base/fail.h"
#include "report/clean.h"
#include "report/format.h"
#include "report/value.h"

enum { MAX_LIST = 16 }; /* elements of an attribute that are shown */

typedef struct dump {
    const onv_report_job *job;
    const onv_model *model;
    onv_clean_mode mode;
    uint32_t *step_of; /* by node */
} dump;

static void put(const dump *d, const char *text)
{
    onv_write_clean(d->job->out, text != NULL ? text : "?", d->mode);
}

static void put_value(const dump *d, onv_value_id id, bool with_type)
{
    if (!onv_is_value(id)) {
        onv_write_char(d->job->out, '_'); /* an optional one that is absent */
        return;
    }
    const onv_value *value = onv_model_value(d->model, id);
    put(d, value->name);
    if (!with_type) return;
    onv_write_text(d->job->out, ": ");
    put(d, onv_view_dtype(d->job->arena, &value->type));
    if (value->type.kind == ONV_TYPE_TENSOR || value->type.kind == ONV_TYPE_SPARSE_TENSOR)
        put(d, onv_type_shape_text(&d->model->dims, d->job->arena, &value->type));
}

static void put_values(const dump *d, const onv_value_id *ids, uint32_t n, bool with_type)
{
    for (uint32_t i = 0; i < n; i++) {
        if (i > 0) onv_write_text(d->job->out, ", ");
        put_value(d, ids[i], with_type);
    }
}

/* --- Attributes -------------------------------------------------------------------------------- */

static void put_element(const dump *d, const onv_attr *attr, uint32_t i)
{
    onv_writer *out = d->job->out;
    onv_arena *arena = d->job->arena;
    const onv_dims *dims = &d->model->dims;
    switch ((onv_attr_kind)attr->kind) {
    case ONV_ATTR_INTS: onv_write_format(out, "%lld", (long long)attr->ints[i]); break;
    case ONV_ATTR_FLOATS: onv_write_format(out, "%g", (double)attr->floats[i]); break;
    case ONV_ATTR_STRINGS: put(d, attr->strings[i]); break;
    case ONV_ATTR_TENSOR:
    case ONV_ATTR_TENSORS:
    case ONV_ATTR_SPARSE_TENSOR:
    case ONV_ATTR_SPARSE_TENSORS:
        put(d, onv_view_dtype(arena, &attr->tensor[i].type));
        put(d, onv_type_shape_text(dims, arena, &attr->tensor[i].type));
        break;
    case ONV_ATTR_GRAPHS: put(d, onv_model_graph(d->model, attr->graphs[i])->name); break;
    default: onv_write_text(out, "..."); break;
    }
}

static void put_attr(const dump *d, const onv_attr *attr)
{
    onv_writer *out = d->job->out;
    put(d, attr->name);
    onv_write_text(out, " = ");
    switch ((onv_attr_kind)attr->kind) {
    case ONV_ATTR_INT: onv_write_format(out, "%lld", (long long)attr->i); return;
    case ONV_ATTR_FLOAT: onv_write_format(out, "%g", (double)attr->f); return;
    case ONV_ATTR_STRING: put(d, attr->s); return;
    case ONV_ATTR_GRAPH: put(d, onv_model_graph(d->model, attr->graph)->name); return;
    case ONV_ATTR_TENSOR:
    case ONV_ATTR_SPARSE_TENSOR: put_element(d, attr, 0); return;
    case ONV_ATTR_UNDEFINED:
    case ONV_ATTR_TYPE_PROTO:
    case ONV_ATTR_TYPE_PROTOS: onv_write_text(out, "..."); return;
    default: break;
    }
    if (attr->count > 0 && attr->ints == NULL) { /* of ai.onnx.ml, too long to be kept */
        onv_write_format(out, "[%u elements]", attr->count);
        return;
    }
    onv_write_char(out, '[');
    for (uint32_t i = 0; i < attr->count && i < MAX_LIST; i++) {
        if (i > 0) onv_write_text(out, ", ");
        put_element(d, attr, i);
    }
    onv_write_text(out, attr->count > MAX_LIST ? ", ...]" : "]");
}

/* --- Nodes and graphs -------------------------------------------------------------------------- */

static void put_node(const dump *d, onv_node_id id)
{
    onv_writer *out = d->job->out;
    const onv_node *node = onv_model_node(d->model, id);
    onv_write_format(out, "%5lu  ", (unsigned long)d->step_of[id.index]);
    put_values(d, node->outputs, node->n_outputs, true);
    onv_write_text(out, node->n_outputs > 0 ? " = " : "");
    if (node->domain[0] != '\0') {
        put(d, node->domain);
        onv_write_char(out, '.');
    }
    put(d, node->op_type);
    onv_write_char(out, '(');
    put_values(d, node->inputs, node->n_inputs, false);
    onv_write_char(out, ')');
    for (uint32_t i = 0; i < node->n_attrs; i++) {
        onv_write_text(out, i == 0 ? " {" : ", ");
        put_attr(d, &node->attrs[i]);
    }
    onv_write_text(out, node->n_attrs > 0 ? "}\n" : "\n");
}

static void put_graph(const dump *d, const onv_graph *graph)
{
    onv_writer *out = d->job->out;
    onv_write_text(out, "graph ");
    if (onv_is_node(graph->owner)) {
        put(d, graph->name);
        onv_write_text(out, ", ");
        put(d, graph->owner_attr);
        onv_write_format(out, " of step %lu ", (unsigned long)d->step_of[graph->owner.index]);
    }
    onv_write_char(out, '(');
    put_values(d, graph->inputs, graph->n_inputs, true);
    onv_write_text(out, ") -> (");
    put_values(d, graph->outputs, graph->n_outputs, false);
    onv_write_char(out, ')');
    if (graph->never_runs) {
        onv_write_text(out, ", never runs");
    } else if (!onv_dim_is(graph->trips, 1)) {
        onv_write_text(out, ", trips ");
        put(d, onv_dim_text(&d->model->dims, d->job->arena, graph->trips));
    }
    onv_write_char(out, '\n');
}

static onv_status dump_view(const onv_report_job *job, const onv_view *view)
{
    const onv_model *model = view->dumped != NULL ? &view->dumped->rewritten.model : &view->model;
    const onv_live *live = view->dumped != NULL ? &view->dumped->live : &view->live;
    dump d = {.job = job, .model = model};
    d.mode = job->options->unicode ? ONV_CLEAN_UNICODE : ONV_CLEAN_ASCII;
    /* Lives on while the arena is emptied behind each line. */
    onv_arena arena;
    onv_arena_init(&arena, SIZE_MAX);
    d.step_of = ONV_ARENA_ARRAY(&arena, uint32_t, model->nodes.count);
    onv_status status = d.step_of != NULL ? ONV_OK : onv_fail_memory(job->err);
    for (uint32_t s = 0; status == ONV_OK && s < live->timeline.steps.count; s++)
        d.step_of[live->timeline.steps.at[s].node.index] = s;
    for (size_t g = 0; g < model->graphs.count && status == ONV_OK; g++) {
        const onv_graph *graph = &model->graphs.at[g];
        put_graph(&d, graph);
        for (uint32_t i = 0; i < graph->n_nodes && status == ONV_OK && !job->out->failed; i++) {
            put_node(&d, graph->nodes[i]);
            if (job->arena->failed) status = onv_fail_memory(job->err);
            onv_arena_reset(job->arena);
        }
    }
    onv_arena_cleanup(&arena);
    return status;
}

onv_status onv_format_dump_graph_add(const onv_report_job *job)
{
    onv_write_between(job, "\n");
    return dump_view(job, job->views[0]);
}
