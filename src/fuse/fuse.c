#include "fuse/find.h"

#include <string.h>

#include "base/fail.h"
#include "base/rules.h"
#include "ops/op.h"

/* --- Looking around ---------------------------------------------------------------------------- */

bool onv_find_is_op(const onv_node *node, onv_op_name op)
{
    return node != NULL && node->domain[0] == '\0' && node->code == op && node->n_outputs > 0 &&
           onv_is_value(node->outputs[0]);
}

const onv_node *onv_find_node(const onv_finder *s, onv_node_id id)
{
    return onv_is_node(id) ? onv_model_node(s->model, id) : NULL;
}

onv_node_id onv_find_id(const onv_finder *s, const onv_node *node)
{
    return (onv_node_id){(uint32_t)(node - s->model->nodes.at)};
}

const onv_node *onv_find_producer(const onv_finder *s, onv_value_id value, onv_op_name op)
{
    const onv_node *node = onv_model_maker(s->model, value);
    return onv_find_is_op(node, op) ? node : NULL;
}

const onv_node *onv_find_reader(const onv_finder *s, onv_value_id value, onv_op_name op)
{
    if (!onv_is_value(value) || s->f->n_uses[value.index] != 1) return NULL;
    const onv_node *node = onv_find_node(s, s->f->user[value.index]);
    return onv_find_is_op(node, op) ? node : NULL;
}

bool onv_find_is_number(const onv_finder *s, onv_value_id value)
{
    if (!onv_is_value(value)) return false;
    const onv_value *v = onv_model_value(s->model, value);
    return v->tensor != NULL && onv_value_is_weight(v) && v->tensor->elems == 1 &&
           v->tensor->type.rank == 0;
}

/* Any float vector of the file, plain, or with dims of 1 put behind it. */
static onv_value_id vector(const onv_finder *s, onv_value_id value)
{
    const onv_node *unsqueeze = onv_find_producer(s, value, ONV_OP_Unsqueeze);
    if (unsqueeze != NULL) value = unsqueeze->inputs[0];
    /* The older exporter keeps one copy of equal vectors, as those of networks that were never trained. */
    const onv_node *twin = onv_find_producer(s, value, ONV_OP_Identity);
    onv_value_id kept = twin != NULL ? twin->inputs[0] : value;
    if (!onv_is_value(kept)) return ONV_NO_VALUE;
    const onv_value *v = onv_model_value(s->model, kept);
    return onv_value_may_train(s->model, v) && v->type.rank >= 1 ? value : ONV_NO_VALUE;
}

onv_value_id onv_find_other(const onv_node *node, onv_value_id value)
{
    if (node == NULL || node->n_inputs != 2) return ONV_NO_VALUE;
    if (onv_is_same_value(node->inputs[0], value)) return node->inputs[1];
    return onv_is_same_value(node->inputs[1], value) ? node->inputs[0] : ONV_NO_VALUE;
}

bool onv_find_take(onv_finder *s, onv_group *g, const onv_node *node)
{
    if (node == NULL || g->count == ONV_MAX_GROUP) return false;
    onv_node_id id = onv_find_id(s, node);
    if (s->f->of_node[id.index] != 0) return false;
    /* What runs in a branch or a body is not part of what runs outside. */
    if (g->count > 0 && onv_model_node(s->model, g->nodes[0])->graph.index != node->graph.index)
        return false;
    g->nodes[g->count++] = id;
    return true;
}

bool onv_find_is_inside(const onv_group *g, onv_node_id id)
{
    for (uint32_t i = 0; i < g->count; i++)
        if (g->nodes[i].index == id.index) return true;
    return false;
}

bool onv_find_is_read_outside(const onv_finder *s, const onv_group *g, onv_value_id value)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->count; i++) {
        const onv_node *node = onv_find_node(s, g->nodes[i]);
        for (uint32_t k = 0; k < node->n_inputs; k++)
            n += onv_is_same_value(node->inputs[k], value);
    }
    return onv_is_value(value) && s->f->n_uses[value.index] != n;
}

uint32_t onv_find_n_reads(const onv_finder *s, onv_node_id id)
{
    const onv_node *node = onv_find_node(s, id);
    uint32_t n = 0;
    for (uint32_t k = 0; k < node->n_outputs; k++)
        n += onv_is_value(node->outputs[k]) ? s->f->n_uses[node->outputs[k].index] : 0;
    return n;
}

uint32_t onv_find_add(onv_finder *s, onv_fusion fusion)
{
    if (!onv_vec_push(&s->at, fusion)) s->failed = true;
    s->f->at = s->at.at;
    return (uint32_t)s->at.count;
}

void onv_find_publish(onv_finder *s, const onv_group *g, onv_fusion fusion)
{
    uint32_t number = onv_find_add(s, fusion);
    for (uint32_t i = 0; i < g->count; i++) s->f->of_node[g->nodes[i].index] = number;
}

onv_fusion onv_find_unary(onv_finder *s, onv_fusion_kind kind, onv_value_id x, const onv_node *last)
{
    return (onv_fusion){.kind = kind,
                        .last = onv_find_id(s, last),
                        .x = x,
                        .weight = ONV_NO_VALUE,
                        .bias = ONV_NO_VALUE,
                        .key = ONV_NO_VALUE,
                        .value = ONV_NO_VALUE,
                        .mask = ONV_NO_VALUE,
                        .out = last->outputs[0],
                        .state = ONV_NO_VALUE};
}

/* --- Linear and norms -------------------------------------------------------------------------- */

static void match_linear(onv_finder *s, const onv_node *matmul)
{
    onv_group g = {0};
    const onv_node *add = onv_find_reader(s, matmul->outputs[0], ONV_OP_Add);
    if (add == NULL) return;
    onv_value_id bias = onv_find_other(add, matmul->outputs[0]);
    if (!onv_is_same_value(vector(s, bias), bias)) return;
    const onv_value *b = onv_model_value(s->model, bias);
    const onv_value *w = onv_model_value(s->model, matmul->inputs[1]);
    if (b->type.rank != 1 || w->type.rank != 2) return;
    if (!onv_find_take(s, &g, matmul) || !onv_find_take(s, &g, add)) return;
    if (!onv_find_same_call(s, &g)) return;
    onv_fusion fusion = onv_find_unary(s, ONV_FUSION_LINEAR, matmul->inputs[0], add);
    fusion.weight = matmul->inputs[1];
    fusion.bias = bias;
    onv_find_publish(s, &g, fusion);
}

static bool is_of_last_call(const onv_finder *s, const onv_fusion *fusion, const onv_node *node)
{
    onv_group both = {{fusion->last, onv_find_id(s, node)}, 2};
    return onv_find_same_call(s, &both);
}

/* Adds `* w` and `+ b` with vectors of the file to a normalisation whose result is `out`. */
void onv_find_affine(onv_finder *s, onv_group *g, onv_fusion *fusion)
{
    const onv_node *mul = onv_find_reader(s, fusion->out, ONV_OP_Mul);
    onv_value_id w = mul != NULL ? vector(s, onv_find_other(mul, fusion->out)) : ONV_NO_VALUE;
    if (!onv_is_value(w) || !is_of_last_call(s, fusion, mul) || !onv_find_take(s, g, mul)) return;
    fusion->weight = w;
    fusion->out = mul->outputs[0];
    fusion->last = onv_find_id(s, mul);
    const onv_node *add = onv_find_reader(s, fusion->out, ONV_OP_Add);
    onv_value_id b = add != NULL ? vector(s, onv_find_other(add, fusion->out)) : ONV_NO_VALUE;
    if (!onv_is_value(b) || !is_of_last_call(s, fusion, add) || !onv_find_take(s, g, add)) return;
    fusion->bias = b;
    fusion->out = add->outputs[0];
    fusion->last = onv_find_id(s, add);
}

/* Reshape to [N, groups, -1], InstanceNormalization, Reshape back, times weight, plus bias. */
static void match_group_norm(onv_finder *s, const onv_node *norm)
{
    onv_group g = {0};
    const onv_node *split = onv_find_producer(s, norm->inputs[0], ONV_OP_Reshape);
    const onv_node *join = onv_find_reader(s, norm->outputs[0], ONV_OP_Reshape);
    if (split == NULL || s->f->n_uses[norm->inputs[0].index] != 1) return;
    const onv_value *x = onv_model_value(s->model, split->inputs[0]);
    const onv_value *grouped = onv_model_value(s->model, norm->inputs[0]);
    /* Channels along one dim, a group each: the exporter saw that the second reshape does nothing. */
    if (join == NULL && (x->type.rank != 3 || !onv_node_is_aten(norm, "group_norm"))) return;
    const onv_node *last = join != NULL ? join : norm;
    const onv_value *out = onv_model_value(s->model, last->outputs[0]);
    if (out->type.rank < 2 || grouped->type.rank != 3) return;
    /* Its split may be joined with a view before it. */
    if (out->type.rank != x->type.rank && !onv_node_is_aten(norm, "group_norm")) return;
    if (!onv_find_take(s, &g, split) || !onv_find_take(s, &g, norm)) return;
    if (join != NULL && !onv_find_take(s, &g, join)) return;
    onv_fusion fusion = onv_find_unary(s, ONV_FUSION_GROUP_NORM, split->inputs[0], last);
    fusion.groups = onv_dim_is_const(grouped->type.dims[1]) ? grouped->type.dims[1].raw : 1;
    onv_find_affine(s, &g, &fusion);
    onv_find_publish(s, &g, fusion);
}

/* --- Layout ------------------------------------------------------------------------------------ */

/* nn.MultiheadAttention unpacks its joint projection with unsqueeze, transpose, squeeze and
 * contiguous; an export does not show the last. */
static void match_packed(onv_finder *s, const onv_node *squeeze)
{
    onv_group g = {0};
    const onv_node *transpose = onv_find_producer(s, squeeze->inputs[0], ONV_OP_Transpose);
    const onv_node *unsqueeze =
        transpose != NULL ? onv_find_producer(s, transpose->inputs[0], ONV_OP_Unsqueeze) : NULL;
    const onv_node *user = onv_find_node(s, s->f->user[squeeze->outputs[0].index]);
    const onv_value *out = onv_model_value(s->model, squeeze->outputs[0]);
    if (unsqueeze == NULL || !onv_find_is_op(user, ONV_OP_Gather) || out->type.rank < 1) return;
    bool packed = onv_dim_is(out->type.dims[0], 3) || onv_dim_is(out->type.dims[0], 2);
    if (!packed || s->f->n_uses[squeeze->outputs[0].index] < 2) return;
    if (onv_find_take(s, &g, squeeze))
        onv_find_publish(s, &g, onv_find_unary(s, ONV_FUSION_PACKED, squeeze->inputs[0], squeeze));
}

/* --- Recurrent layers -------------------------------------------------------------------------- */

/* ONNX has the gates of a layer in another order than PyTorch, and the weights of both directions in
 * one tensor: exporters cut and join parameters for that, once for all calls of a module. */
static bool take_arrangement(onv_finder *s, onv_group *g, onv_value_id value)
{
    static const uint16_t arranging[] = {ONV_OP_Slice,   ONV_OP_Concat,  ONV_OP_Unsqueeze,
                                         ONV_OP_Squeeze, ONV_OP_Reshape, ONV_OP_Transpose,
                                         ONV_OP_Identity};
    if (!onv_is_value(value) || onv_value_is_weight(onv_model_value(s->model, value))) return true;
    const onv_node *node = NULL;
    for (size_t i = 0; i < sizeof arranging / sizeof arranging[0] && node == NULL; i++)
        node = onv_find_producer(s, value, arranging[i]);
    if (node == NULL) return false;
    if (onv_fusions_arrange(s->f, onv_find_id(s, node))) return true; /* for a call before */
    uint32_t n_uses = s->f->n_uses[value.index];
    if (n_uses != 1 && n_uses != s->f->n_layer_uses[value.index]) return false;
    if (!onv_find_take(s, g, node)) return false;
    for (uint32_t k = 0; k < node->n_inputs; k++)
        if (!take_arrangement(s, g, node->inputs[k])) return false;
    return true;
}

bool onv_fusions_arrange(const onv_fusions *f, onv_node_id node)
{
    uint32_t n = f->of_node[node.index];
    return n != 0 && f->at[n - 1].kind == ONV_FUSION_RECURRENT &&
           f->at[n - 1].last.index != node.index;
}

static void match_recurrent(onv_finder *s, const onv_node *layer)
{
    onv_group g = {0};
    for (uint32_t k = 1; k < 4 && k < layer->n_inputs; k++)
        if (!take_arrangement(s, &g, layer->inputs[k])) return;
    if (g.count > 0 && onv_find_take(s, &g, layer))
        onv_find_publish(s, &g, onv_find_unary(s, ONV_FUSION_RECURRENT, layer->inputs[0], layer));
}

/* --- All of them ------------------------------------------------------------------------------- */

/* From which node on each is looked for, in this order: earlier ones go first. scripts/gate reads the names. */
static const struct {
    const char *name;
    uint16_t op; /* ONV_OP_OTHER: from any; ONV_N_OP_NAMES: it lists them itself */
    void (*find)(onv_finder *s, const onv_node *node);
} rules[] = {
    {"fuse.encoder_layer", ONV_OP_OTHER, onv_find_encoder_layer},
    {"fuse.noted", ONV_OP_OTHER, onv_find_noted},
    {"fuse.formula", ONV_N_OP_NAMES, onv_find_formula},
    {"fuse.linear", ONV_OP_MatMul, match_linear},
    {"fuse.group_norm", ONV_OP_InstanceNormalization, match_group_norm},
    {"fuse.adaptive_pool", ONV_OP_Div, onv_find_adaptive_pool},
    {"fuse.adaptive_pool", ONV_OP_ReduceMean, onv_find_adaptive_pool},
    {"fuse.packed", ONV_OP_Squeeze, match_packed},
    {"fuse.attention", ONV_OP_Softmax, onv_find_attention},
    {"fuse.recurrent", ONV_OP_LSTM, match_recurrent},
    {"fuse.recurrent", ONV_OP_GRU, match_recurrent},
    {"fuse.recurrent", ONV_OP_RNN, match_recurrent},
};

enum { N_RULES = sizeof rules / sizeof rules[0] };
_Static_assert(N_RULES <= 64, "a rule is a bit");

static void list_rules(onv_finder *s)
{
    for (uint32_t i = 0; i < N_RULES; i++) {
        uint64_t rule = onv_rule_is_on(rules[i].name) ? UINT64_C(1) << i : 0;
        if (rules[i].op == ONV_N_OP_NAMES)
            onv_list_forms(s, rule);
        else
            s->rules[rules[i].op] |= rule;
    }
}

static void match(onv_finder *s, const onv_node *node)
{
    if (node->n_inputs == 0 || !onv_is_value(node->inputs[0])) return;
    uint64_t all = s->rules[ONV_OP_OTHER];
    if (onv_find_is_op(node, (onv_op_name)node->code)) all |= s->rules[node->code];
    for (uint32_t i = 0; all >> i != 0 && i < N_RULES; i++) {
        if ((all >> i & 1) == 0) continue;
        if (s->f->of_node[onv_find_id(s, node).index] != 0) return;
        rules[i].find(s, node);
    }
}

static onv_status count_uses(onv_model *model, onv_fusions *f, onv_error *err)
{
    size_t n = model->values.count;
    f->of_node = ONV_ARENA_ARRAY(&model->arena, uint32_t, model->nodes.count);
    f->n_uses = ONV_ARENA_ARRAY(&model->arena, uint32_t, n);
    f->n_layer_uses = ONV_ARENA_ARRAY(&model->arena, uint32_t, n);
    f->user = ONV_ARENA_ARRAY(&model->arena, onv_node_id, n);
    f->attention = ONV_ARENA_ARRAY(&model->arena, onv_attention_mark, model->nodes.count);
    if (f->of_node == NULL || f->n_uses == NULL || f->user == NULL || f->attention == NULL ||
        f->n_layer_uses == NULL)
        return onv_fail_memory(err);
    for (size_t i = 0; i < n; i++) f->user[i] = ONV_NO_NODE;
    for (uint32_t i = 0; i < model->nodes.count; i++) {
        const onv_node *node = &model->nodes.at[i];
        bool is_layer = node->domain[0] == '\0' && onv_node_is_recurrent(node);
        f->attention[i].attended = ONV_NO_VALUE;
        for (uint32_t k = 0; k < node->n_inputs; k++) {
            if (!onv_is_value(node->inputs[k])) continue;
            uint32_t value = node->inputs[k].index;
            if (f->n_uses[value]++ == 0) f->user[value] = (onv_node_id){i};
            f->n_layer_uses[value] += is_layer && k >= 1 && k <= 3;
        }
    }
    for (size_t i = 0; i < n; i++) f->n_uses[i] += model->values.at[i].is_output;
    return ONV_OK;
}

static onv_status find(onv_finder *s, const onv_timeline *order, onv_error *err)
{
    bool fuses = s->fusing != ONV_FUSE_NOTHING;
    ONV_TRY(count_uses(s->model, s->f, err));
    list_rules(s);
    bool decomposes = fuses && onv_rule_is_on("fuse.decomposed");
    for (uint32_t i = 0; decomposes && i < order->steps.count && !s->failed; i++)
        onv_find_decomposed(s, onv_model_node(s->model, order->steps.at[i].node));
    for (uint32_t i = 0; fuses && i < order->steps.count && !s->failed; i++)
        match(s, onv_model_node(s->model, order->steps.at[i].node));
    s->f->at = onv_arena_copy(&s->model->arena, s->at.at, s->at.count * sizeof *s->at.at);
    return s->failed || s->f->at == NULL ? onv_fail_memory(err) : ONV_OK;
}

/* Kernels of layers make no difference to what has none. */
static bool is_same(const onv_fusions *f, const onv_fusions *as)
{
    return f->steps == as->steps && f->fusing == as->fusing &&
           f->kernels.rms_norm == as->kernels.rms_norm &&
           (f->kernels.layers == as->kernels.layers ||
            (f->kernels.layers && f->n_fast_layers == 0)) &&
           f->kernels.cells == as->kernels.cells && f->kernels.low == as->kernels.low &&
           f->kernels.packed == as->kernels.packed;
}

onv_status onv_fusions_find(onv_model *model, const onv_timeline *order, onv_fusing fusing,
                            onv_fusing_kernels kernels, const onv_fusions **fusions, onv_error *err)
{
    const onv_fusions as = {.steps = order->steps.at, .fusing = fusing, .kernels = kernels};
    for (*fusions = model->fusions; *fusions != NULL; *fusions = (*fusions)->next)
        if (is_same(*fusions, &as)) return ONV_OK;
    onv_fusions *made = onv_arena_copy(&model->arena, &as, sizeof as);
    if (made == NULL) return onv_fail_memory(err);
    onv_finder s = {.model = model, .f = made, .fusing = fusing, .kernels = kernels};
    onv_status status = find(&s, order, err);
    onv_vec_cleanup(&s.at);
    if (status != ONV_OK) return status;
    made->next = model->fusions;
    *fusions = model->fusions = made;
    return ONV_OK;
}
