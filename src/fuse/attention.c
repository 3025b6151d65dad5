/* Attention: softmax(scale * query key + mask) value, in the forms in which exporters write it. */
#include <string.h>

#include "fuse/find.h"
#include "ir/notes.h"
#include "ops/op.h"

static bool is_single(const onv_finder *s, onv_value_id value)
{
    if (!onv_is_value(value)) return false;
    const onv_type *type = &onv_model_value(s->model, value)->type;
    return type->rank == 0 || (type->rank == 1 && onv_dim_is(type->dims[0], 1));
}

/* Where(IsNaN(p), 0, p) of a softmax p, as torch.export writes a softmax whose rows may be masked whole. */
typedef struct guard {
    const onv_node *is_nan, *where;
} guard;

static bool find_guard(const onv_finder *s, const onv_node *softmax, guard *g)
{
    onv_value_id p = softmax->outputs[0];
    *g = (guard){0};
    const onv_node *is_nan = onv_find_node(s, s->f->user[p.index]);
    if (s->f->n_uses[p.index] != 2 || is_nan == NULL || !onv_find_is_op(is_nan, ONV_OP_IsNaN))
        return false;
    const onv_node *where = onv_find_reader(s, is_nan->outputs[0], ONV_OP_Where);
    if (where == NULL || where->n_inputs != 3 || !onv_find_same(where->inputs[2], p)) return false;
    if (!is_single(s, where->inputs[1])) return false;
    *g = (guard){is_nan, where};
    return true;
}

/* The product of a tensor and a single number, which may be computed from shapes, or the quotient. */
static const onv_node *scaling(const onv_finder *s, onv_value_id value, onv_value_id *scaled)
{
    const onv_node *mul = onv_find_sole(s, value, ONV_OP_Mul),
                   *div = onv_find_sole(s, value, ONV_OP_Div);
    const onv_node *node = mul != NULL ? mul : div;
    if (node == NULL || node->n_inputs != 2) return NULL;
    bool by_second = is_single(s, node->inputs[1]);
    if (!by_second && (node == div || !is_single(s, node->inputs[0]))) return NULL;
    *scaled = node->inputs[by_second ? 0 : 1];
    return node;
}

static bool is_in_call(const onv_node *node)
{
    static const char call[] = "aten.scaled_dot_product_attention";
    return node->aten_op != NULL && strncmp(node->aten_op, call, sizeof call - 1) == 0;
}

/* softmax(scale * query key + mask) value, the scale at the scores or at their factors; the softmax may
 * be computed in another type. */
typedef struct attention {
    const onv_node *scale_query, *scale_key, *scores, *scale, *add, *cast, *softmax, *cast_back;
    const onv_node *dropout, *last;
    const onv_node *turned[3];   /* the key, in the axes of an exporter */
    const onv_node *repeated[5]; /* of key and value, for groups of queries */
    guard guard;
    onv_value_id query, key, mask;
} attention;

/* The scores, scaled or not, that `value` is. */
static bool find_scores(const onv_finder *s, onv_value_id value, attention *a)
{
    a->scale = scaling(s, value, &value);
    a->scores = onv_find_sole(s, value, ONV_OP_MatMul);
    return a->scores != NULL;
}

/* Reshape, Transpose and Reshape, as the exporter writes the transpose of a key with more than three axes for its own
 * operator: what the first one reads. */
static onv_value_id find_turn(const onv_finder *s, onv_value_id key, const onv_node *nodes[3])
{
    static const uint16_t ops[] = {ONV_OP_Reshape, ONV_OP_Transpose, ONV_OP_Reshape};
    for (uint32_t i = 3; i-- > 0; key = nodes[i]->inputs[0]) {
        nodes[i] = onv_find_sole(s, key, ops[i]);
        if (nodes[i] == NULL) return ONV_NO_VALUE;
    }
    return key;
}

static void find_turned_key(const onv_finder *s, attention *a)
{
    const onv_node *nodes[3];
    onv_value_id key = find_turn(s, a->key, nodes);
    if (!onv_is_value(key)) return;
    bool noted = nodes[0]->aten_op != NULL && nodes[0]->aten_op[0] != '\0';
    if (noted && !is_in_call(nodes[0])) return;
    const onv_type *from = &onv_model_value(s->model, key)->type;
    const onv_type *to = &onv_model_value(s->model, a->key)->type;
    if (from->rank != to->rank || from->rank < 3) return;
    uint32_t n = from->rank;
    for (uint32_t i = 0; i + 2 < n; i++)
        if (!onv_dim_same(from->dims[i], to->dims[i])) return;
    if (!onv_dim_same(from->dims[n - 1], to->dims[n - 2]) ||
        !onv_dim_same(from->dims[n - 2], to->dims[n - 1]))
        return;
    memcpy(a->turned, nodes, sizeof nodes);
    a->key = key;
}

static bool find_attention(const onv_finder *s, const onv_node *softmax, attention *a)
{
    *a = (attention){.softmax = softmax, .mask = ONV_NO_VALUE};
    onv_value_id sum = softmax->inputs[0];
    a->cast = onv_find_sole(s, sum, ONV_OP_Cast);
    if (a->cast != NULL) sum = a->cast->inputs[0];
    a->add = onv_find_sole(s, sum, ONV_OP_Add);
    bool found = a->add == NULL && find_scores(s, sum, a);
    for (uint32_t k = 0; a->add != NULL && k < 2 && a->add->n_inputs == 2 && !found; k++) {
        found = find_scores(s, a->add->inputs[k], a);
        a->mask = a->add->inputs[1 - k];
    }
    if (!found) return false;
    a->query = a->scores->inputs[0];
    a->key = a->scores->inputs[1];
    a->scale_query = scaling(s, a->query, &a->query);
    a->scale_key = scaling(s, a->key, &a->key);
    find_turned_key(s, a);
    onv_value_id probabilities = softmax->outputs[0];
    if (find_guard(s, softmax, &a->guard)) probabilities = a->guard.where->outputs[0];
    a->cast_back = onv_find_reader(s, probabilities, ONV_OP_Cast);
    if (a->cast_back != NULL) probabilities = a->cast_back->outputs[0];
    a->dropout = onv_find_reader(s, probabilities, ONV_OP_Dropout);
    if (a->dropout != NULL) probabilities = a->dropout->outputs[0];
    a->last = onv_find_reader(s, probabilities, ONV_OP_MatMul);
    return a->last != NULL && onv_find_same(a->last->inputs[0], probabilities);
}

/* Nothing of it comes from data or parameters: a causal mask, which PyTorch tells its kernels with a
 * flag. What takes too long to look at is no such mask. */
static bool is_made_of_shapes(const onv_finder *s, onv_value_id id, uint32_t *budget)
{
    if (!onv_is_value(id)) return true;
    if (*budget == 0) return false;
    --*budget;
    const onv_value *value = onv_model_value(s->model, id);
    if (onv_value_is_weight(value))
        return value->tensor != NULL &&
               (value->tensor->elems == 1 || !onv_dtype_is_float((onv_dtype)value->type.dtype));
    const onv_node *node = onv_model_maker(s->model, id);
    if (node == NULL || node->op == NULL) return false;
    if ((node->op->flags & (ONV_OP_RANDOM | ONV_OP_SUBGRAPH)) != 0) return false;
    if (onv_find_is_op(node, ONV_OP_Shape) || onv_find_is_op(node, ONV_OP_Size)) return true;
    for (uint32_t k = 0; k < node->n_inputs; k++)
        if (!is_made_of_shapes(s, node->inputs[k], budget)) return false;
    return true;
}

/* Positions tell where samples in a row begin, and each sees itself alone. transformers asks for values whether there are any,
 * and drops a mask of one sample, but not where torch.compile traces it, as the export does: the sample's number is
 * compared with itself, "eq", for all pairs of places. */
static bool is_of_packed(const onv_finder *s, onv_value_id id, uint32_t *budget)
{
    if (!onv_is_value(id) || *budget == 0) return false;
    --*budget;
    const onv_value *value = onv_model_value(s->model, id);
    if (value->type.dtype == ONV_BOOL && value->type.rank == 4 && onv_is_call_of(value->name, "eq"))
        return true;
    const onv_node *node = onv_model_maker(s->model, id);
    bool goes_on =
        node != NULL && (onv_find_is_op(node, ONV_OP_And) || onv_find_is_op(node, ONV_OP_Where) ||
                         onv_find_is_op(node, ONV_OP_Expand));
    for (uint32_t k = 0; goes_on && k < node->n_inputs; k++)
        if (is_of_packed(s, node->inputs[k], budget)) return true;
    return false;
}

/* Kernels want rows of a head in steps of 16 bytes, and that the softmax runs along them; a call takes one for four axes alone. */
enum { ROW_STEP_BITS = 8 * 16 };

static bool has_kernel(const onv_finder *s, const attention *a, bool is_of_call)
{
    const onv_type *query = &onv_model_value(s->model, a->query)->type;
    const onv_type *scores = &onv_model_value(s->model, a->softmax->inputs[0])->type;
    if (query->rank < (is_of_call ? 4 : 3) || scores->rank != query->rank) return false;
    onv_dim head = query->dims[query->rank - 1];
    const onv_attr *axis = onv_node_attr(a->softmax, "axis");
    bool along_rows =
        axis == NULL ? a->softmax->version >= 13
                     : axis->kind == ONV_ATTR_INT && (axis->i == -1 || axis->i == query->rank - 1);
    int64_t bits = s->kernels.low ? 16 : (int64_t)onv_dtype_bits((onv_dtype)query->dtype);
    return along_rows && onv_dim_is_const(head) && head.raw > 0 && head.raw < INT64_MAX / 64 &&
           head.raw * bits % ROW_STEP_BITS == 0;
}

/* What [batch, heads, rows, values] was before each head was repeated: Unsqueeze, Expand and a Reshape. */
static bool find_repeated(const onv_finder *s, onv_value_id wide, const onv_node **nodes,
                          onv_value_id *x)
{
    const onv_node *expand = onv_find_sole(s, wide, ONV_OP_Expand);
    const onv_node *more =
        expand != NULL ? onv_find_sole(s, expand->inputs[0], ONV_OP_Unsqueeze) : NULL;
    if (more == NULL || !onv_is_value(more->inputs[0])) return false;
    const onv_type *from = &onv_model_value(s->model, more->inputs[0])->type;
    const onv_type *to = &onv_model_value(s->model, wide)->type;
    if (from->rank != 4 || to->rank != 5) return false;
    for (uint32_t i = 0; i < 4; i++)
        if (!onv_dim_same(from->dims[i], to->dims[i < 2 ? i : i + 1])) return false;
    nodes[0] = expand;
    nodes[1] = more;
    *x = more->inputs[0];
    return true;
}

/* transformers repeats keys and values for groups of queries where there is a mask, which an export has for its
 * own sake; without one the kernel does. */
static void find_groups(const onv_finder *s, attention *a, onv_value_id *value)
{
    static const char library[] = "'transformers.models.";
    const char *around = a->last->call_classes;
    const onv_node *joined = onv_find_sole(s, *value, ONV_OP_Reshape);
    const onv_node *repeated[4], *turned[3];
    onv_value_id keys, values;
    if (around == NULL || strstr(around, library) == NULL || !is_in_call(a->last)) return;
    onv_value_id flat = find_turn(s, a->key, turned);
    if (!onv_is_value(flat) || joined == NULL || !is_in_call(turned[0]) ||
        !find_repeated(s, flat, repeated, &keys) ||
        !find_repeated(s, joined->inputs[0], repeated + 2, &values))
        return;
    memcpy(a->turned, turned, sizeof turned);
    memcpy(a->repeated, repeated, sizeof repeated);
    a->repeated[4] = joined;
    a->key = keys;
    *value = values;
}

static void publish_attention(onv_finder *s, attention *a)
{
    uint32_t budget = 256;
    onv_value_id value = a->last->inputs[1];
    bool is_masked = !is_made_of_shapes(s, a->mask, &budget) ||
                     (s->kernels.packed && is_of_packed(s, a->mask, &budget));
    if (!is_masked) find_groups(s, a, &value);
    const onv_node *const inside[] = {
        a->scale_query, a->scale_key,   a->scores,       a->scale,       a->add,
        a->cast,        a->softmax,     a->guard.is_nan, a->guard.where, a->cast_back,
        a->dropout,     a->turned[0],   a->turned[1],    a->turned[2],   a->repeated[0],
        a->repeated[1], a->repeated[2], a->repeated[3],  a->repeated[4], a->last};
    onv_group g = {0};
    for (size_t i = 0; i < sizeof inside / sizeof inside[0]; i++)
        if (inside[i] != NULL && !onv_find_take(s, &g, inside[i])) return;
    onv_fusion fusion = onv_find_unary(s, ONV_FUSION_ATTENTION, a->query, a->last);
    fusion.first = fusion.last;
    for (uint32_t i = 0; i < g.count; i++)
        if (g.nodes[i].index < fusion.first.index) fusion.first = g.nodes[i];
    fusion.key = a->key;
    fusion.value = value;
    if (is_masked) fusion.mask = a->mask;
    onv_find_publish(s, &g, fusion);
    s->f->n_grouped += a->repeated[0] != NULL;
}

/* A call of scaled_dot_product_attention: a note says so, or both factors are scaled; a network that
 * multiplies by hand scales once. */
static bool is_call(const attention *a, bool by_parts)
{
    bool noted = a->last->aten_op != NULL && a->last->aten_op[0] != '\0';
    return noted ? is_in_call(a->last) : by_parts;
}

static void mark_lost_dropout(onv_finder *s, const attention *a, bool by_parts)
{
    /* The older exporter does not say that it trains; evaluation has no dropout at all. */
    if (by_parts && a->dropout != NULL && a->dropout->n_inputs == 2)
        s->f->live_dropout[onv_find_id(s, a->dropout).index] = true;
    if (a->dropout != NULL || !is_call(a, by_parts)) return;
    const onv_node *last = a->guard.where != NULL ? a->guard.where : a->softmax;
    s->f->lost_dropout[onv_find_id(s, last).index] = true;
}

/* What autocast sees as one where the nodes run one by one; false where it is no call. */
static bool mark_parts(onv_finder *s, const attention *a)
{
    if (a->scale_query == NULL || a->scale_key == NULL || a->scale != NULL) return false;
    if (a->cast != NULL || a->cast_back != NULL) return false;
    const onv_node *const inside[] = {a->scale_query, a->scale_key,    a->scores,      a->add,
                                      a->softmax,     a->guard.is_nan, a->guard.where, a->dropout};
    for (size_t i = 0; i < sizeof inside / sizeof inside[0]; i++)
        if (inside[i] != NULL)
            s->f->attention[onv_find_id(s, inside[i]).index] = ONV_ATTENTION_INSIDE;
    s->f->attention[onv_find_id(s, a->last).index] = ONV_ATTENTION_LAST;
    s->f->scaled_query[onv_find_id(s, a->last).index] = a->scores->inputs[0];
    s->f->attended[onv_find_id(s, a->scale_query).index] = a->last->inputs[1];
    return true;
}

void onv_find_attention(onv_finder *s, const onv_node *softmax)
{
    attention a;
    if (!find_attention(s, softmax, &a)) return;
    bool by_parts = a.scale_query != NULL && a.scale_key != NULL && a.scale == NULL &&
                    a.cast == NULL && a.cast_back == NULL;
    bool fits = has_kernel(s, &a, is_call(&a, by_parts));
    bool fuses =
        s->fusing == ONV_FUSE_ATTENTION || (s->fusing == ONV_FUSE_CALLS && is_call(&a, by_parts));
    if (fits && fuses) {
        publish_attention(s, &a);
        mark_parts(s, &a);
        return;
    }
    mark_lost_dropout(s, &a, by_parts);
    if (mark_parts(s, &a)) s->f->n_apart += fits;
}
