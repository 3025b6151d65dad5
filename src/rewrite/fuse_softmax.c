/* A bias and the Softmax behind it, a bias and the Dropout behind it. */
#include "rewrite/fuse.h"

/* --- BiasSoftmaxFusion ------------------------------------------------------------------------- */

typedef struct softmax {
    onv_value_id in[2]; /* of the Add */
    int rank[2], inner; /* how many dims the Softmax normalizes */
    int axis;
    uint32_t bias; /* which input */
    bool
        is_inner; /* the bias is broadcast along the dims before the axis, not along the first ones */
} softmax;

static bool dims_agree(const onv_edit *e, const softmax *s, int from_end)
{
    return onv_dim_same(onv_fuse_dim(e, s->in[0], -from_end), onv_fuse_dim(e, s->in[1], -from_end));
}

static bool is_one(const onv_edit *e, const softmax *s, uint32_t k, int axis)
{
    return onv_dim_is(onv_fuse_dim(e, s->in[k], axis), 1);
}

static bool is_inner_broadcast(const onv_edit *e, softmax *s)
{
    int at = 0;
    if (s->rank[0] != s->rank[1]) return false;
    while (at < s->axis &&
           onv_dim_same(onv_fuse_dim(e, s->in[0], at), onv_fuse_dim(e, s->in[1], at)))
        at++;
    s->bias = at == s->axis || !is_one(e, s, 0, at) ? 1 : 0;
    for (int i = at; i < s->axis; i++)
        if (!is_one(e, s, s->bias, i)) return false;
    return true;
}

static bool is_outer_broadcast(const onv_edit *e, softmax *s)
{
    int at[2] = {s->rank[0] - s->inner - 1, s->rank[1] - s->inner - 1};
    while (at[0] >= 0 && at[1] >= 0 &&
           onv_dim_same(onv_fuse_dim(e, s->in[0], at[0]), onv_fuse_dim(e, s->in[1], at[1])))
        at[0]--, at[1]--;
    bool first_is_input =
        at[0] > at[1] || (at[0] == at[1] && (at[0] < 0 || !is_one(e, s, 0, at[0])));
    s->bias = first_is_input ? 1 : 0;
    for (int i = at[s->bias]; i >= 0; i--)
        if (!is_one(e, s, s->bias, i)) return false;
    return true;
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
        if (s.rank[k] < 1 || onv_edit_value_at(e, s.in[k])->type.dtype == ONV_BFLOAT16)
            return false;
    }
    onv_node_id node = m.nodes[0];
    bool is_13 = onv_edit_node_at(e, node)->version >= 13;
    int rank = s.rank[0] > s.rank[1] ? s.rank[0] : s.rank[1];
    int64_t axis = onv_edit_int(e, node, "axis", is_13 ? -1 : 1);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank || (is_13 && axis != rank - 1)) return false;
    s.axis = (int)axis;
    s.inner = rank - s.axis;
    if (s.inner > s.rank[0] || s.inner > s.rank[1]) return false;
    for (int i = 1; i <= s.inner; i++)
        if (!dims_agree(e, &s, i)) return false;
    s.is_inner = is_inner_broadcast(e, &s);
    if (!s.is_inner && !is_outer_broadcast(e, &s)) return false;
    return onv_fuse_form_by(
        e, &m,
        ONV_NEW_NODE(.op_type = "BiasSoftmax", .domain = ONV_MS_DOMAIN,
                     ONV_INPUTS(s.in[1 - s.bias], s.in[s.bias]),
                     ONV_ATTRS(onv_fuse_int(e, "axis", s.axis),
                               onv_fuse_int(e, "is_inner_broadcast", s.is_inner))));
}
