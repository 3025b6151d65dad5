/* Copies where a value is needed on the other side of the bus (read in source:
 * onnxruntime/core/optimizer/transformer_memcpy.cc): one for each such value and graph, which all readers of
 * that side share. What only subgraphs read, their owner hands over. */
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "rewrite/kernels.h"
#include "rewrite/rules.h"

enum { READ_BY_CUDA = 1, READ_BY_HOST = 2, MADE_BY_CUDA = 4, MADE_BY_HOST = 8 };

/* A value that is made on one side and read on the other. */
typedef struct crossing {
    const char *name;
    onv_value_id id;
    bool to_host;
} crossing;

typedef struct border {
    onv_edit *e;
    onv_graph_id graph;
    uint8_t *sides;        /* by value: who reads and makes it in this graph */
    onv_value_id *touched; /* values with sides */
    ONV_VEC(crossing) crossings;
    uint32_t n_touched, n_values;
    uint32_t n_copies;
} border;

static void touch(border *b, onv_value_id id, uint8_t side)
{
    if (!onv_is_value(id) || id.index >= b->n_values) return;
    if (b->sides[id.index] == 0) b->touched[b->n_touched++] = id;
    b->sides[id.index] |= side;
}

static bool reads_on_host(const onv_edit *e, onv_node_id node, uint32_t input)
{
    if (onv_edit_node_at(e, node)->provider != ONV_PROVIDER_CUDA) return true;
    const onv_kernel *kernel = onv_kernel_find(e, node);
    return kernel != NULL && onv_kernel_takes_host(kernel, input);
}

static void touch_node(border *b, onv_node_id id)
{
    const onv_node *node = onv_edit_node_at(b->e, id);
    bool is_cuda = node->provider == ONV_PROVIDER_CUDA;
    const onv_kernel *kernel = is_cuda ? onv_kernel_find(b->e, id) : NULL;
    for (uint32_t k = 0; k < node->n_inputs; k++) {
        bool on_host = !is_cuda || (kernel != NULL && onv_kernel_takes_host(kernel, k));
        touch(b, node->inputs[k], on_host ? READ_BY_HOST : READ_BY_CUDA);
    }
    for (uint32_t k = 0; k < node->n_outputs; k++) {
        bool on_host = !is_cuda || (kernel != NULL && onv_kernel_gives_host(kernel, k));
        touch(b, node->outputs[k], on_host ? MADE_BY_HOST : MADE_BY_CUDA);
        if (onv_is_value(node->outputs[k]))
            onv_edit_value_at(b->e, node->outputs[k])->is_on_host = on_host;
    }
}

/* What nodes of this graph read on one side, they read of another value; with `others`, nodes of other graphs, too. */
static void move_readers(border *b, onv_value_id from, onv_value_id to, bool on_host, bool others)
{
    onv_edit *e = b->e;
    uint32_t at = e->values.at[from.index].first_use;
    while (at != ONV_NO_USE && e->status == ONV_OK) {
        onv_use use = e->uses.at[at];
        at = use.next;
        bool is_here = onv_edit_node_at(e, use.node)->graph.index == b->graph.index;
        if (is_here ? reads_on_host(e, use.node, use.input) == on_host : others)
            onv_edit_set_input(e, use.node, use.input, to);
    }
}

static onv_value_id twin(border *b, onv_value_id of, const char *suffix)
{
    onv_edit *e = b->e;
    onv_value_id made = onv_edit_add_value(e, b->graph, of, suffix);
    if (e->status != ONV_OK) return made;
    const onv_value *value = onv_edit_value_at(e, of);
    onv_edit_value_at(e, made)->type = value->type;
    onv_edit_value_at(e, made)->known = value->known;
    onv_edit_value_at(e, made)->bound_used = value->bound_used;
    e->values.at[made.index].seen = e->values.at[of.index].seen;
    return made;
}

/* The node before which a copy of the value stands. */
static onv_node_id place_after(const border *b, onv_value_id value)
{
    onv_node_id made = onv_edit_producer(b->e, value);
    bool is_here = onv_is_node(made) && onv_edit_node_at(b->e, made)->graph.index == b->graph.index;
    return is_here ? onv_edit_next(b->e, made) : onv_edit_first(b->e, b->graph);
}

/* The name stays with the host's side, and with it what the graph gives. */
static void copy(border *b, onv_value_id value, bool to_host)
{
    onv_edit *e = b->e;
    const char *op = to_host ? "MemcpyToHost" : "MemcpyFromHost";
    onv_node_id maker = onv_edit_producer(e, value), at = place_after(b, value);
    onv_value_id device = twin(b, value, "_CUDAExecutionProvider");
    if (e->status != ONV_OK || !onv_is_node(at)) return;
    if (to_host) onv_edit_take_output(e, maker, onv_edit_value_at(e, value)->output_index, device);
    onv_value_id in = to_host ? device : value, out = to_host ? value : device;
    move_readers(b, in, out, to_host, to_host);
    ONV_MAKE(e, at, op, .name = op, .version = 1, ONV_INPUTS(in), ONV_OUTPUTS(out));
    b->n_copies++;
    if (e->status != ONV_OK) return;
    onv_edit_node_at(e, onv_edit_producer(e, out))->provider = ONV_PROVIDER_CUDA;
    if (to_host) onv_edit_value_at(e, value)->is_on_host = true;
}

/* A weight that both sides read is there twice. */
static void place_weight(border *b, onv_value_id id, uint8_t sides)
{
    onv_edit *e = b->e;
    if (sides != (READ_BY_CUDA | READ_BY_HOST)) {
        if (sides == READ_BY_CUDA) onv_edit_value_at(e, id)->is_on_host = false;
        return;
    }
    onv_value_id device = twin(b, id, "_CUDAExecutionProvider");
    if (e->status != ONV_OK) return;
    const onv_value *value = onv_edit_value_at(e, id);
    onv_value *copy = onv_edit_value_at(e, device);
    copy->kind = ONV_VALUE_INITIALIZER;
    copy->tensor = value->tensor;
    copy->known_tried = value->known_tried;
    copy->is_on_host = false;
    move_readers(b, id, device, false, false);
}

static void place_value(border *b, onv_value_id id)
{
    uint8_t sides = b->sides[id.index];
    const onv_value *value = onv_edit_value_at(b->e, id);
    uint8_t reads = sides & (READ_BY_CUDA | READ_BY_HOST);
    bool is_read_by_both = reads == (READ_BY_CUDA | READ_BY_HOST);
    if (onv_value_is_weight(value)) {
        place_weight(b, id, reads);
        return;
    }
    if ((sides & (MADE_BY_CUDA | MADE_BY_HOST)) == 0) { /* an input, or from around the graph */
        if (value->kind == ONV_VALUE_INPUT && value->graph.index == b->graph.index)
            onv_edit_value_at(b->e, id)->is_on_host = reads == READ_BY_HOST || is_read_by_both;
        if (is_read_by_both) copy(b, id, false);
    } else {
        bool to_host = (sides & MADE_BY_CUDA) != 0;
        if ((sides & (to_host ? READ_BY_HOST : READ_BY_CUDA)) != 0 &&
            !onv_vec_push(&b->crossings, ((crossing){value->name, id, to_host})))
            onv_edit_fail(b->e, ONV_ERR_MEMORY);
    }
}

/* In ONNX Runtime's order, by which nodes are numbered: those to the device first, by name. */
static int compare_crossings(const void *a, const void *b)
{
    const crossing *x = a, *y = b;
    return x->to_host != y->to_host ? x->to_host - y->to_host : strcmp(x->name, y->name);
}

static void place_graph(border *b)
{
    onv_edit *e = b->e;
    for (onv_node_id id = onv_edit_first(e, b->graph); onv_is_node(id); id = onv_edit_next(e, id))
        touch_node(b, id);
    for (uint32_t i = 0; i < b->n_touched && e->status == ONV_OK; i++)
        place_value(b, b->touched[i]);
    if (b->crossings.count > 1)
        qsort(b->crossings.at, b->crossings.count, sizeof(crossing), compare_crossings);
    for (size_t i = 0; i < b->crossings.count && e->status == ONV_OK; i++)
        copy(b, b->crossings.at[i].id, b->crossings.at[i].to_host);
    b->crossings.count = 0;
    for (uint32_t i = 0; i < b->n_touched; i++) b->sides[b->touched[i].index] = 0;
    b->n_touched = 0;
}

/* Weights lie in the host's memory unless a node of the device reads them; what a body gives of them is read by its owner
 * there. */
static void place_weights_on_host(onv_edit *e)
{
    for (uint32_t i = 0; i < e->values.count; i++) {
        onv_value *value = &e->model->values.at[i];
        if (!onv_value_is_weight(value)) continue;
        bool is_given = value->is_output && value->graph.index != 0;
        value->is_on_host = is_given || e->values.at[i].n_uses > 0;
    }
}

uint32_t onv_rewrite_add_copies(onv_edit *e)
{
    border b = {.e = e, .n_values = (uint32_t)e->values.count};
    if (e->status != ONV_OK) return 0;
    b.sides = onv_heap_calloc(b.n_values + 1, sizeof *b.sides);
    b.touched = onv_heap_calloc(b.n_values + 1, sizeof *b.touched);
    if (b.sides == NULL || b.touched == NULL) onv_edit_fail(e, ONV_ERR_MEMORY);
    if (e->status == ONV_OK) place_weights_on_host(e);
    for (uint32_t g = 0; g < e->graphs.count && e->status == ONV_OK; g++) {
        b.graph = (onv_graph_id){g};
        if (!e->graphs.at[g].is_removed) place_graph(&b);
    }
    onv_heap_free(b.sides);
    onv_heap_free(b.touched);
    onv_vec_cleanup(&b.crossings);
    e->model->has_providers = true;
    return b.n_copies;
}
