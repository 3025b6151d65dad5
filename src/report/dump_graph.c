/* The typed graph (of ONNX Runtime alone: the one that it runs), one node per line:
 *
 *     graph (input: float32[256, 3, 224, 224]) -> (output)
 *       0  /conv1/Conv_output_0: float32[256, 64, 112, 112] = Conv(input, w, b) {strides = [2, 2]}
 *
 * Subgraphs follow, each with the node and attribute that owns it. */
#include "base/fail.h"
#include "report/format.h"
#include "report/value.h"

enum { MAX_LIST = 16 }; /* elements of an attribute that are shown */

typedef struct dump {
    const onv_page *page;
    const onv_model *model;
    uint32_t *step_of; /* by node */
} dump;

static const char *type_text(const dump *d, const onv_type *type)
{
    bool has_shape = type->kind == ONV_TYPE_TENSOR || type->kind == ONV_TYPE_SPARSE_TENSOR;
    const char *shape = has_shape ? onv_type_shape_text(&d->model->dims, d->page->arena, type) : "";
    return onv_page_print(d->page, "%s%s", onv_page_kept(onv_view_dtype(d->page->arena, type)),
                          onv_page_kept(shape));
}

static void put_values(const dump *d, const onv_value_id *ids, uint32_t n, bool with_type)
{
    for (uint32_t i = 0; i < n; i++) {
        bool is_there = onv_is_value(ids[i]);
        const onv_value *value = is_there ? onv_model_value(d->model, ids[i]) : NULL;
        onv_page_format(d->page, "%s%s", i > 0 ? ", " : "", is_there ? value->name : "_");
        if (is_there && with_type) onv_page_format(d->page, ": %s", type_text(d, &value->type));
        onv_end_element(d->page->arena);
    }
}

/* --- Attributes -------------------------------------------------------------------------------- */

static const char *graph_name(const dump *d, onv_graph_id id)
{
    return onv_model_graph(d->model, id)->name;
}

static const char *or_unknown(const char *text)
{
    return text != NULL ? text : "?";
}

/* An attribute, or an element of one that is a list. */
static const char *element_text(const dump *d, const onv_attr *attr, uint32_t i)
{
    switch ((onv_attr_kind)attr->kind) {
    case ONV_ATTR_INT: return onv_page_print(d->page, "%lld", (long long)attr->i);
    case ONV_ATTR_INTS: return onv_page_print(d->page, "%lld", (long long)attr->ints[i]);
    case ONV_ATTR_FLOAT: return onv_page_print(d->page, "%g", (double)attr->f);
    case ONV_ATTR_FLOATS: return onv_page_print(d->page, "%g", (double)attr->floats[i]);
    case ONV_ATTR_STRING: return or_unknown(attr->s);
    case ONV_ATTR_STRINGS: return or_unknown(attr->strings[i]);
    case ONV_ATTR_TENSOR:
    case ONV_ATTR_TENSORS:
    case ONV_ATTR_SPARSE_TENSOR:
    case ONV_ATTR_SPARSE_TENSORS: return type_text(d, &attr->tensor[i].type);
    case ONV_ATTR_GRAPH: return graph_name(d, attr->graph);
    case ONV_ATTR_GRAPHS: return graph_name(d, attr->graphs[i]);
    default: return "...";
    }
}

static bool is_list(const onv_attr *attr)
{
    return (attr->kind >= ONV_ATTR_FLOATS && attr->kind <= ONV_ATTR_GRAPHS) ||
           attr->kind == ONV_ATTR_SPARSE_TENSORS;
}

static void put_attr(const dump *d, const onv_attr *attr)
{
    onv_page_format(d->page, "%s = ", attr->name);
    if (!is_list(attr)) {
        onv_page_put(d->page, element_text(d, attr, 0));
    } else if (attr->count > 0 && attr->ints == NULL) { /* of ai.onnx.ml, too long to be kept */
        onv_page_format(d->page, "[%u elements]", attr->count);
    } else {
        onv_page_put(d->page, "[");
        for (uint32_t i = 0; i < attr->count && i < MAX_LIST; i++)
            onv_page_format(d->page, "%s%s", i > 0 ? ", " : "", element_text(d, attr, i));
        onv_page_put(d->page, attr->count > MAX_LIST ? ", ...]" : "]");
    }
}

/* --- Nodes and graphs -------------------------------------------------------------------------- */

static void put_node(const dump *d, onv_node_id id)
{
    const onv_node *node = onv_model_node(d->model, id);
    onv_page_format(d->page, "%5lu  ", (unsigned long)d->step_of[id.index]);
    put_values(d, node->outputs, node->n_outputs, true);
    onv_page_format(d->page, "%s%s%s%s(", node->n_outputs > 0 ? " = " : "", node->domain,
                    node->domain[0] != '\0' ? "." : "", node->op_type);
    put_values(d, node->inputs, node->n_inputs, false);
    onv_page_put(d->page, ")");
    for (uint32_t i = 0; i < node->n_attrs; i++) {
        onv_page_put(d->page, i == 0 ? " {" : ", ");
        put_attr(d, &node->attrs[i]);
    }
    onv_page_put(d->page, node->n_attrs > 0 ? "}" : "");
    onv_page_line(d->page);
}

static void put_graph(const dump *d, const onv_graph *graph)
{
    onv_page_put(d->page, "graph ");
    if (onv_is_node(graph->owner))
        onv_page_format(d->page, "%s, %s of step %lu ", graph->name, graph->owner_attr,
                        (unsigned long)d->step_of[graph->owner.index]);
    onv_page_put(d->page, "(");
    put_values(d, graph->inputs, graph->n_inputs, true);
    onv_page_put(d->page, ") -> (");
    put_values(d, graph->outputs, graph->n_outputs, false);
    onv_page_put(d->page, graph->never_runs ? "), never runs" : ")");
    if (!graph->never_runs && !onv_dim_is(graph->trips, 1))
        onv_page_format(d->page, ", trips %s",
                        onv_page_kept(onv_dim_text(&d->model->dims, d->page->arena, graph->trips)));
    onv_page_line(d->page);
}

onv_status onv_format_dump_graph_add(onv_report_job *job)
{
    const onv_view *view = job->views[0];
    const onv_model *model = view->dumped != NULL ? &view->dumped->rewritten.model : &view->model;
    const onv_live *live = view->dumped != NULL ? &view->dumped->live : &view->live;
    dump d = {.page = &job->page, .model = model};
    /* Lives on while the page's arena is emptied behind each line. */
    onv_arena arena;
    onv_arena_init(&arena, SIZE_MAX);
    onv_write_between(job, "\n");
    d.step_of = ONV_ARENA_ARRAY(&arena, uint32_t, model->nodes.count);
    for (uint32_t s = 0; d.step_of != NULL && s < live->timeline.steps.count; s++)
        d.step_of[live->timeline.steps.at[s].node.index] = s;
    for (size_t g = 0; d.step_of != NULL && g < model->graphs.count; g++) {
        const onv_graph *graph = &model->graphs.at[g];
        put_graph(&d, graph);
        for (uint32_t i = 0; i < graph->n_nodes && !job->out->failed; i++) {
            put_node(&d, graph->nodes[i]);
            onv_end_element(job->arena);
        }
    }
    onv_arena_cleanup(&arena);
    return d.step_of != NULL ? ONV_OK : onv_fail_memory(job->err);
}
