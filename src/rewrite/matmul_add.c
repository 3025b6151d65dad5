/* A product with a matrix and the addition of a bias are a Gemm. Of an operand of more than two dims, a
 * Reshape before it and one after it make a matrix. */
#include <string.h>

#include "rewrite/fuse.h"

/* Attention is fused as a whole later: projections of a normalised value that three products read, of
 * which the sum with that value comes next, are left to that. */
static bool is_attended(const onv_edit *e, onv_node_id norm)
{
    uint32_t adds = 0, products = 0, shapes = 0, n = 0;
    onv_node_id add = ONV_NO_NODE;
    if (!onv_edit_is(e, norm, ONV_OP_LayerNormalization, 0)) return false;
    onv_value_id out = onv_edit_out(e, norm, 0);
    if (onv_edit_n_uses(e, out) > ONV_MOST_READERS) return false;
    for (const onv_use *u = onv_edit_first_use(e, out); u != NULL;
         u = onv_edit_next_use(e, u), n++) {
        uint16_t op = onv_edit_node_at(e, u->node)->code;
        if (op == ONV_OP_Add) {
            add = u->node;
            adds++;
        }
        products += op == ONV_OP_MatMul;
        shapes += op == ONV_OP_Shape;
    }
    if (adds != 1 || products != 3 || n < 4 || shapes != n - 4) return false;
    onv_node_id other = onv_edit_in_node(e, add, onv_edit_in(e, add, 0).index == out.index ? 1 : 0);
    return onv_edit_is(e, other, ONV_OP_Add, 0);
}

/* The projection behind such an attention: the sum that goes into the sum with the normalised value. */
static bool is_after_attention(const onv_edit *e, onv_node_id add)
{
    onv_node_id next = onv_edit_only_user(e, onv_edit_out(e, add, 0));
    if (!onv_edit_is(e, next, ONV_OP_Add, 0)) return false;
    uint32_t other = onv_edit_in(e, next, 0).index == onv_edit_out(e, add, 0).index ? 1 : 0;
    return is_attended(e, onv_edit_in_node(e, next, other));
}

typedef struct product {
    onv_node_id matmul, add;
    onv_value_id a, b, bias;
    bool has_reshapes;
    int64_t shape[ONV_MAX_RANK]; /* of the result */
    int rank;
    int64_t m, k, n;
} product;

static bool is_gemm_type(uint8_t dtype)
{
    return dtype == ONV_FLOAT || dtype == ONV_FLOAT16 || dtype == ONV_BFLOAT16;
}

/* (N); of two dims also (1, N), (M, 1) and (M, N). */
static bool is_bias(const onv_edit *e, const product *p)
{
    const onv_type *a = onv_edit_seen(e, p->a), *b = onv_edit_seen(e, p->b);
    const onv_type *bias = onv_edit_seen(e, p->bias);
    if (p->has_reshapes && (!onv_type_has_rank(bias) || bias->rank != 1)) return false;
    return onv_fuse_is_gemm_bias(bias, a->dims[0], b->dims[1]);
}

/* Before providers are known, attention is left as it is. */
static bool find_product(const onv_edit *e, onv_node_id id, product *p)
{
    *p = (product){.matmul = id, .add = onv_edit_only_user(e, onv_edit_out(e, id, 0))};
    if (!onv_edit_is(e, id, ONV_OP_MatMul, 0) || !onv_is_node(p->add) ||
        !onv_edit_is(e, p->add, ONV_OP_Add, 0))
        return false;
    if (onv_edit_node_at(e, id)->provider != onv_edit_node_at(e, p->add)->provider) return false;
    p->a = onv_edit_in(e, id, 0);
    p->b = onv_edit_in(e, id, 1);
    p->bias = onv_fuse_other_input(e, p->add, onv_edit_out(e, id, 0));
    const onv_type *a = onv_edit_seen(e, p->a), *b = onv_edit_seen(e, p->b);
    if (!onv_type_has_rank(a) || !onv_type_has_rank(b) || a->rank < 1 || b->rank != 2) return false;
    if (a->dtype != onv_edit_seen(e, p->bias)->dtype || !is_gemm_type(a->dtype)) return false;
    p->has_reshapes = a->rank != 2;
    if (p->has_reshapes) {
        if (e->level == 1 &&
            (is_attended(e, onv_edit_in_node(e, id, 0)) || is_after_attention(e, p->add)))
            return false;
        if (!onv_type_is_static(a) || !onv_type_is_static(b)) return false;
    }
    return is_bias(e, p);
}

static bool set_sizes(const onv_edit *e, product *p)
{
    const onv_type *a = onv_edit_seen(e, p->a), *b = onv_edit_seen(e, p->b);
    p->rank = a->rank;
    p->m = 1;
    for (int i = 0; i < a->rank - 1; i++) {
        p->shape[i] = a->dims[i].raw;
        if (__builtin_mul_overflow(p->m, a->dims[i].raw, &p->m)) return false;
    }
    p->k = b->dims[0].raw;
    p->n = p->shape[a->rank - 1] = b->dims[1].raw;
    return true;
}

static onv_value_id add_reshape(onv_edit *e, const product *p, onv_value_id in, const char *name,
                                const int64_t *shape, uint32_t rank, const onv_value_id *out)
{
    return ONV_MAKE(e, p->add, "Reshape", .name = name,
                    ONV_INPUTS(in, onv_edit_add_ints(e, p->matmul, name, shape, rank)),
                    .outputs = out);
}

static void replace(onv_edit *e, const product *p)
{
    onv_value_id out = onv_edit_out(e, p->add, 0), a = p->a;
    const int64_t matrix[] = {p->m, p->k};
    if (p->has_reshapes) a = add_reshape(e, p, a, "gemm_input_reshape", matrix, 2, NULL);
    onv_value_id made =
        ONV_MAKE(e, p->add, "Gemm", .name = onv_edit_node_at(e, p->matmul)->name,
                 ONV_INPUTS(a, p->b, p->bias), .outputs = p->has_reshapes ? NULL : &out);
    if (p->has_reshapes)
        add_reshape(e, p, made, "gemm_output_reshape", p->shape, (uint32_t)p->rank, &out);
    onv_edit_remove(e, p->add);
    onv_edit_remove(e, p->matmul);
}

bool onv_rule_matmul_add(onv_edit *e, onv_node_id node)
{
    product p;
    if (!find_product(e, node, &p)) return false;
    if (p.has_reshapes && !set_sizes(e, &p)) return false;
    replace(e, &p);
    return true;
}
