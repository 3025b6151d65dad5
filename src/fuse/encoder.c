/* Layers of nn.TransformerEncoder, and nn.MultiheadAttention alone, which PyTorch runs by one call of its own
 * where no gradient is asked for (torch._transformer_encoder_layer_fwd, torch._native_multi_head_attention:
 * the fast path). The export has the operations of the other way: what was recorded was a call with gradients. */
#include <string.h>

#include "fuse/find.h"
#include "ops/op.h"

#define LAYER_CLASS     "torch.nn.modules.transformer.TransformerEncoderLayer"
#define ATTENTION_CLASS "torch.nn.modules.activation.MultiheadAttention"

/* The path of a module, by notes or, in exports of the older exporter, by a node's name. */
typedef struct place {
    const char *path;
    size_t length; /* 0: no layer is told */
    bool is_named, is_attention;
} place;

/* Up to where `calls` names the layer, or attention that is in none. Both lists are written alike. */
static place place_noted(const onv_node *node)
{
    const char *at = onv_noted(node)->calls, *classes = onv_noted(node)->call_classes;
    const char *found = strstr(classes, LAYER_CLASS);
    bool is_attention = found == NULL;
    if (is_attention) found = strstr(classes, ATTENTION_CLASS);
    if (found == NULL) return (place){0};
    uint32_t quotes = 0;
    for (const char *c = classes; c < found; c++) quotes += *c == '\'';
    for (uint32_t n = 0; *at != '\0'; at++)
        if (*at == '\'' && n++ == quotes) break;
    return (place){onv_noted(node)->calls, *at != '\0' ? (size_t)(at - onv_noted(node)->calls) : 0,
                   false, is_attention};
}

/* "/encoder/layers.0/self_attn/MatMul": the first node of a layer is one of its attention or its first norm. */
static place place_named(const onv_node *node)
{
    static const char *const members[] = {"/self_attn/", "/norm1/"};
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        const char *found = node->name[0] == '/' ? strstr(node->name, members[i]) : NULL;
        if (found != NULL)
            return (place){node->name, (size_t)(found - node->name) + 1, true, false};
    }
    return (place){0};
}

static place place_of(const onv_node *node)
{
    bool is_noted = onv_noted(node)->calls[0] != '\0';
    return is_noted ? place_noted(node) : place_named(node);
}

static bool is_at(const place *at, const onv_node *node)
{
    if (at->is_named) return strncmp(node->name, at->path, at->length) == 0;
    place other = place_of(node);
    return other.length == at->length && strncmp(other.path, at->path, at->length) == 0;
}

/* What the layer is put together from, as its nodes are found. */
typedef struct parts {
    onv_group g;
    onv_encoder_layer layer;
    onv_value_id src;
    const onv_node *last, *softmax;
    uint32_t n_products, n_norms, n_sources, n_results;
    bool has_relu, has_gelu, has_batch_first;
} parts;

/* The older exporter writes equal weights once, and the others as Identity of these. */
static bool is_held(const onv_finder *s, const onv_value *value)
{
    const onv_node *from = onv_is_node(value->producer) ? onv_find_node(s, value->producer) : NULL;
    if (from != NULL && onv_find_is_op(from, ONV_OP_Identity) && onv_is_value(from->inputs[0]))
        value = onv_model_value(s->model, from->inputs[0]);
    return onv_value_is_weight(value);
}

static bool is_weight(const onv_finder *s, onv_value_id id, uint32_t rank)
{
    if (!onv_is_value(id)) return false;
    const onv_value *value = onv_model_value(s->model, id);
    return is_held(s, value) && (uint32_t)value->type.rank == rank;
}

static void add_product(const onv_finder *s, parts *p, const onv_node *node)
{
    if (node->n_inputs < 2 || !is_weight(s, node->inputs[1], 2)) return;
    if (p->n_products++ >= ONV_ENCODER_PRODUCTS) return;
    onv_encoder_product *product = &p->layer.products[p->n_products - 1];
    *product = (onv_encoder_product){node->inputs[1], ONV_NO_VALUE, false};
    const onv_attr *turned = onv_node_attr(node, "transB");
    product->is_turned = turned != NULL && turned->kind == ONV_ATTR_INT && turned->i != 0;
    if (node->n_inputs > 2) product->bias = node->inputs[2];
    const onv_node *add = onv_find_reader(s, node->outputs[0], ONV_OP_Add);
    onv_value_id bias = onv_find_other(add, node->outputs[0]);
    if (node->n_inputs == 2 && is_weight(s, bias, 1)) product->bias = bias;
}

static void add_node(const onv_finder *s, parts *p, const onv_node *node)
{
    if (onv_find_is_op(node, ONV_OP_MatMul) || onv_find_is_op(node, ONV_OP_Gemm))
        add_product(s, p, node);
    if (onv_find_is_op(node, ONV_OP_LayerNormalization) && node->n_inputs > 1) {
        if (p->n_norms == 0) p->layer.norm_first = p->n_products == 0;
        if (p->n_norms < 2) {
            p->layer.norm_weight[p->n_norms] = node->inputs[1];
            p->layer.norm_bias[p->n_norms] = node->n_inputs > 2 ? node->inputs[2] : ONV_NO_VALUE;
        }
        p->n_norms++;
    }
    if (onv_find_is_op(node, ONV_OP_Softmax)) p->softmax = node;
    p->has_relu |= onv_find_is_op(node, ONV_OP_Relu);
    p->has_gelu |= onv_find_is_op(node, ONV_OP_Gelu) || onv_find_is_op(node, ONV_OP_Erf);
    const onv_attr *perm = onv_node_attr(node, "perm");
    if (p->n_products == 0 && onv_find_is_op(node, ONV_OP_Transpose) && perm != NULL &&
        perm->kind == ONV_ATTR_INTS && perm->count == 3)
        p->has_batch_first |= perm->ints[0] == 1 && perm->ints[1] == 0 && perm->ints[2] == 2;
}

/* What comes in from outside, and what goes out. */
static void count_borders(const onv_finder *s, parts *p)
{
    for (uint32_t i = 0; i < p->g.count; i++) {
        const onv_node *node = onv_find_node(s, p->g.nodes[i]);
        for (uint32_t k = 0; k < node->n_inputs; k++) {
            if (!onv_is_value(node->inputs[k])) continue;
            const onv_value *value = onv_model_value(s->model, node->inputs[k]);
            bool is_made =
                onv_is_node(value->producer) && onv_find_is_inside(&p->g, value->producer);
            if (is_made || is_held(s, value)) continue;
            if (p->n_sources > 0 && p->src.index == node->inputs[k].index) continue;
            p->src = node->inputs[k];
            p->n_sources++;
        }
        for (uint32_t k = 0; k < node->n_outputs; k++) {
            if (!onv_find_is_read_outside(s, &p->g, node->outputs[k])) continue;
            p->last = node;
            p->n_results += 1 + (k > 0);
        }
    }
}

/* Weights are [inputs, outputs], or turned. */
static bool fits(const onv_finder *s, const onv_encoder_product *p, int64_t in, int64_t out)
{
    const onv_type *w = &onv_model_value(s->model, p->weight)->type;
    return onv_dim_is(w->dims[p->is_turned], in) && onv_dim_is(w->dims[!p->is_turned], out);
}

static bool has_shapes(const onv_finder *s, const onv_encoder_layer *layer, int64_t width)
{
    const onv_encoder_product *p = layer->products;
    if (layer->is_attention)
        return fits(s, &p[0], width, 3 * width) && fits(s, &p[1], width, width);
    const onv_type *inner = &onv_model_value(s->model, p[2].weight)->type;
    onv_dim wide = inner->dims[!p[2].is_turned];
    return onv_dim_is_const(wide) && wide.raw > 0 && fits(s, &p[0], width, 3 * width) &&
           fits(s, &p[1], width, width) && fits(s, &p[2], width, wide.raw) &&
           fits(s, &p[3], wide.raw, width);
}

/* What the nodes alone tell. Most layers with such names end here: those of language models have more products. */
static bool has_members(const parts *p)
{
    if (p->softmax == NULL || !p->has_batch_first) return false;
    if (p->layer.is_attention)
        return p->n_products == 2 && p->n_norms == 0 && !p->has_relu && !p->has_gelu;
    return p->n_products == ONV_ENCODER_PRODUCTS && p->n_norms == 2 && p->has_relu != p->has_gelu;
}

/* The conditions of the module that a file tells: no mask, which is added to the scores, an even number of heads. Attention that
 * also returns its weights has scores of rank 3. */
static bool is_fast(const onv_finder *s, parts *p)
{
    if (p->n_sources != 1 || p->n_results != 1) return false;
    const onv_value *soft = onv_model_value(s->model, p->softmax->inputs[0]);
    if (onv_is_node(soft->producer) && onv_find_is_op(onv_find_node(s, soft->producer), ONV_OP_Add))
        return false;
    const onv_type *scores = &soft->type;
    const onv_type *src = &onv_model_value(s->model, p->src)->type;
    /* In 16 bits the dispatcher may take a kernel that the layer does not. */
    if (src->rank != 3 || src->dtype != ONV_FLOAT || scores->rank != 4 ||
        !onv_dim_is_const(scores->dims[1]))
        return false;
    if (!onv_dim_is_const(src->dims[2])) return false;
    p->layer.heads = scores->dims[1].raw;
    return p->layer.heads > 0 && p->layer.heads % 2 == 0 && p->layer.heads < INT32_MAX &&
           src->dims[2].raw % p->layer.heads == 0 && src->dims[2].raw < INT32_MAX &&
           has_shapes(s, &p->layer, src->dims[2].raw);
}

/* Names of modules may be anyone's; the bias of all three projections is that of nn.MultiheadAttention. */
static bool is_told(const onv_finder *s, const place *at, const parts *p)
{
    static const char bias[] = "self_attn.in_proj_bias";
    onv_value_id id = p->layer.products[0].bias;
    if (!at->is_named) return true;
    const char *name = onv_is_value(id) ? onv_model_value(s->model, id)->name : "";
    size_t length = strlen(name);
    return length >= sizeof bias - 1 && strcmp(name + length - (sizeof bias - 1), bias) == 0;
}

/* The node before is not of the layer: a layer is looked at once, not from each of its nodes on. */
static bool begins(const onv_finder *s, const place *at, const onv_node *first)
{
    const onv_node *node = first;
    if (first->code == ONV_OP_Constant) return false;
    while (node > s->model->nodes.at)
        if ((--node)->code != ONV_OP_Constant)
            return node->graph.index != first->graph.index || !is_at(at, node);
    return true;
}

void onv_find_encoder_layer(onv_finder *s, const onv_node *first)
{
    if (!s->kernels.layers) return;
    place at = place_of(first);
    if (at.length == 0 || !begins(s, &at, first)) return;
    parts p = {.src = ONV_NO_VALUE, .layer = {.is_attention = at.is_attention}};
    /* Its nodes stand together. */
    for (size_t i = (size_t)(first - s->model->nodes.at); i < s->model->nodes.count; i++) {
        const onv_node *node = &s->model->nodes.at[i];
        if (node->code == ONV_OP_Constant) continue;
        if (!is_at(&at, node)) break;
        if (node->graph.index != 0 || !onv_find_take(s, &p.g, node)) return;
        add_node(s, &p, node);
    }
    if (!has_members(&p)) return;
    count_borders(s, &p);
    if (!is_fast(s, &p) || !is_told(s, &at, &p)) {
        s->f->n_other_layers++;
        return;
    }
    onv_encoder_layer *layer = ONV_ARENA_ARRAY(&s->model->arena, onv_encoder_layer, 1);
    if (layer == NULL) {
        s->failed = true;
        return;
    }
    *layer = p.layer;
    onv_fusion fusion = onv_find_unary(s, ONV_FUSION_ENCODER_LAYER, p.src, p.last);
    fusion.layer = layer;
    onv_find_publish(s, &p.g, fusion);
    s->f->n_fast_layers++;
}
