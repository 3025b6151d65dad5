/* A bias and the Softmax behind it. */
#include "rewrite/fuse.h"

typedef struct softmax {
    onv_value_id in[2]; /* of the Add */
    int rank[2], inner; /* how many dims the Softmax normalizes */
    bool
        is_inner; /* the bias is broadcast along the dims before the axis, not along the first ones */
} softmax;

/* Dims of both, counted from the end. */
static bool is_same(const onv_edit *e, const softmax *s, int from_end)
{
    return onv_dim_same(onv_fuse_dim(e, s->in[0], -from_end), onv_fuse_dim(e, s->in[1], -from_end));
}

/* In front of what is normalized the bias has dims of the other and dims of 1: these behind those, or before them. */
static bool is_bias(const onv_edit *e, softmax *s, int k)
{
    int rank = s->rank[k], at = rank, end = s->inner + 1;
    if (rank > s->rank[1 - k]) return false;
    while (at > s->inner && is_same(e, s, at)) at--;
    while (at > s->inner && onv_dim_is(onv_fuse_dim(e, s->in[k], -at), 1)) at--;
    s->is_inner = at == s->inner && rank == s->rank[1 - k];
    while (end <= rank && is_same(e, s, end)) end++;
    while (end <= rank && onv_dim_is(onv_fuse_dim(e, s->in[k], -end), 1)) end++;
    return s->is_inner || end > rank;
}

bool onv_fuse_bias_softmax(onv_edit *e, onv_node_id add)
{
    onv_form_match m;
    if (!onv_fuse_form(e, add, "Softmax(Add(xy))", &m) ||
        onv_edit_node_at(e, add)->provider != ONV_PROVIDER_CUDA)
        return false;
    softmax s = {.in = {onv_form_value(&m, 'x'), onv_form_value(&m, 'y')}};
    for (uint32_t k = 0; k < 2; k++) {
        s.rank[k] = onv_fuse_rank(e, s.in[k]);
        if (s.rank[k] < 1 || onv_edit_dtype(e, s.in[k]) == ONV_BFLOAT16) return false;
    }
    onv_node_id node = m.nodes[0];
    bool is_13 = onv_edit_node_at(e, node)->version >= 13;
    int rank = s.rank[0] > s.rank[1] ? s.rank[0] : s.rank[1];
    int64_t axis = onv_node_axis(onv_edit_node_at(e, node), is_13 ? -1 : 1, rank);
    if (axis < 0 || (is_13 && axis != rank - 1)) return false;
    s.inner = rank - (int)axis;
    if (s.inner > s.rank[0] || s.inner > s.rank[1]) return false;
    for (int i = 1; i <= s.inner; i++)
        if (!is_same(e, &s, i)) return false;
    int bias = is_bias(e, &s, 1) ? 1 : 0;
    if (bias == 0 && !is_bias(e, &s, 0)) return false;
    return ONV_FORM_BY(e, &m, "BiasSoftmax", .domain = ONV_MS_DOMAIN,
                       ONV_INPUTS(s.in[1 - bias], s.in[bias]),
                       ONV_ATTRS(onv_fuse_int(e, "axis", axis),
                                 onv_fuse_int(e, "is_inner_broadcast", s.is_inner)));
}
