/* What becomes of a Transpose before each operator. */
#include <string.h>

#include "rewrite/fuse.h"
#include "rewrite/transpose.h"

/* --- Axes -------------------------------------------------------------------------------------- */

static bool normalize_axis(int64_t *axis, int rank)
{
    if (*axis < 0) *axis += rank;
    return *axis >= 0 && *axis < rank;
}

static bool normalize_axes(onv_axes *a, int rank)
{
    bool taken[ONV_MAX_RANK] = {false};
    for (uint32_t i = 0; i < a->count; i++) {
        if (rank > ONV_MAX_RANK || !normalize_axis(&a->at[i], rank) || taken[a->at[i]])
            return false;
        taken[a->at[i]] = true;
    }
    return true;
}

/* Axes of what is before the Transpose, sorted. */
static onv_axes sorted_before(const onv_axes *a, const onv_perm *perm)
{
    onv_axes before = {.count = 0};
    for (int64_t axis = 0; axis < perm->rank; axis++)
        for (uint32_t i = 0; i < a->count; i++)
            if (perm->at[a->at[i]] == axis) before.at[before.count++] = axis;
    return before;
}

static void set_axes(onv_push *p, uint32_t k, const onv_axes *a)
{
    onv_edit *e = p->e;
    onv_value_id in = onv_edit_in(e, p->node, k);
    if (onv_node_attr(onv_edit_node_at(e, p->node), "axes") != NULL || !onv_is_value(in)) {
        onv_edit_set_attr(e, p->node, onv_fuse_ints(e, "axes", a->at, a->count));
        return;
    }
    onv_dtype dtype = onv_edit_dtype(e, in);
    onv_push_set_numbers(e, p->node, k, dtype, a->at, a->count);
}

static void set_axis(onv_push *p, int64_t axis)
{
    onv_edit_set_attr(p->e, p->node, onv_fuse_int(p->e, "axis", axis));
}

/* --- Moves ------------------------------------------------------------------------------------- */

static void move_inputs(onv_push *p)
{
    for (uint32_t i = 0; i < p->n_inputs; i++)
        onv_push_input(p->e, p->node, p->inputs[i], &p->inverse);
}

static bool move_all(onv_push *p)
{
    move_inputs(p);
    onv_push_outputs(p->e, p->node, &p->perm);
    return true;
}

static bool move_broadcast(onv_push *p)
{
    return onv_push_raise_ranks(p) && move_all(p);
}

/* With one axis. */
static bool move_axis(onv_push *p)
{
    onv_axes axis = {.count = 1};
    axis.at[0] = onv_edit_int(p->e, p->node, "axis", p->how->axis);
    if (!normalize_axis(&axis.at[0], p->perm.rank)) return false;
    axis.at[0] = p->perm.at[axis.at[0]];
    set_axis(p, axis.at[0]);
    move_inputs(p);
    bool drops =
        p->how->axes == ONV_PUSH_DROPS ||
        (p->how->axes == ONV_PUSH_KEEPDIMS && onv_edit_int(p->e, p->node, "keepdims", 1) == 0);
    onv_perm behind = drops ? onv_perm_squeezed(&p->perm, &axis) : p->perm;
    onv_push_outputs(p->e, p->node, &behind);
    return true;
}

/* Before opset 13 the axis divides a matrix's rows from its columns: none may change sides. */
static bool move_softmax(onv_push *p)
{
    if (onv_edit_opset(p->e) >= 13) return move_axis(p);
    int64_t axis = onv_edit_int(p->e, p->node, "axis", 1);
    if (!normalize_axis(&axis, p->perm.rank)) return false;
    for (int i = 0; i < p->perm.rank; i++)
        if ((i < axis) != (p->perm.at[i] < axis)) return false;
    return move_all(p);
}

/* The sizes of what is before it, in the other order. */
static bool move_shape(onv_push *p)
{
    onv_edit *e = p->e;
    int rank = p->perm.rank;
    int64_t start = onv_edit_int(e, p->node, "start", 0),
            end = onv_edit_int(e, p->node, "end", rank);
    if (start < 0) start += rank;
    if (end < 0) end += rank;
    start = start < 0 ? 0 : start > rank ? rank : start;
    end = end < start ? start : end > rank ? rank : end;
    move_inputs(p);
    onv_edit_set_attr(e, p->node, onv_fuse_int(e, "start", 0));
    onv_edit_set_attr(e, p->node, onv_fuse_int(e, "end", rank));
    onv_value_id out = onv_edit_out(e, p->node, 0);
    onv_value_id fresh =
        onv_edit_add_value(e, onv_edit_node_at(e, p->node)->graph, out, "_transposed");
    onv_value_id order =
        onv_edit_add_ints(e, p->node, "perm", p->perm.at + start, (uint32_t)(end - start));
    ONV_MAKE(e, p->node, "Gather", ONV_INPUTS(fresh, order), ONV_OUTPUTS(out), .is_behind = true,
             ONV_ATTRS(onv_fuse_int(e, "axis", 0)));
    if (e->status != ONV_OK) return true;
    onv_node_id made = onv_edit_producer(e, out);
    onv_edit_take_output(e, p->node, 0, fresh);
    onv_edit_retype(e, p->node);
    if (e->status == ONV_OK) onv_edit_retype(e, made);
    return true;
}

static bool move_pad(onv_push *p)
{
    onv_edit *e = p->e;
    int rank = p->perm.rank;
    int64_t order[2 * ONV_MAX_RANK] = {0};
    for (int i = 0; i < rank; i++) {
        order[i] = p->inverse.at[i];
        order[i + rank] = p->inverse.at[i] + rank;
    }
    if (onv_edit_opset(e) >= 11) {
        onv_push_permute_numbers(e, p->node, 1, order, 2 * (uint32_t)rank);
        return move_all(p);
    }
    const onv_attr *attr = onv_node_attr(onv_edit_node_at(e, p->node), "pads");
    int64_t pads[2 * ONV_MAX_RANK];
    if (attr == NULL || attr->kind != ONV_ATTR_INTS || attr->count != 2 * (uint32_t)rank)
        return false;
    for (int i = 0; i < 2 * rank; i++) pads[i] = attr->ints[order[i]];
    onv_edit_set_attr(e, p->node, onv_fuse_ints(e, "pads", pads, attr->count));
    return move_all(p);
}

/* With axes, which a Squeeze has to have. */
static bool move_axes(onv_push *p)
{
    onv_edit *e = p->e;
    bool drops = p->how->axes == ONV_PUSH_DROPS || onv_edit_int(e, p->node, "keepdims", 1) == 0;
    bool is_given = p->how->axes == ONV_PUSH_DROPS || onv_is_value(onv_edit_in(e, p->node, 1)) ||
                    onv_node_attr(onv_edit_node_at(e, p->node), "axes") != NULL;
    onv_perm behind = p->perm;
    onv_axes a = {.count = 0};
    if (is_given && (!onv_push_read_axes(e, p->node, 1, &a) || !normalize_axes(&a, p->perm.rank)))
        return false;
    if (a.count > 0) {
        onv_axes before = sorted_before(&a, &p->perm);
        set_axes(p, 1, &before);
        if (drops) behind = onv_perm_squeezed(&p->perm, &before);
    } else if (drops && onv_edit_int(e, p->node, "noop_with_empty_axes", 0) == 0) {
        behind.rank = 0;
    }
    move_inputs(p);
    onv_push_outputs(e, p->node, &behind);
    return true;
}

static bool move_unsqueeze(onv_push *p)
{
    onv_axes a;
    if (!onv_push_read_axes(p->e, p->node, 1, &a) || p->perm.rank + (int)a.count > ONV_MAX_RANK ||
        !normalize_axes(&a, p->perm.rank + (int)a.count))
        return false;
    onv_push_input(p->e, p->node, 0, &p->inverse);
    onv_perm behind = onv_perm_unsqueezed(&p->perm, &a);
    onv_push_outputs(p->e, p->node, &behind);
    return true;
}

static bool move_quantize(onv_push *p)
{
    bool has_axis =
        onv_edit_opset(p->e) >= 13 && onv_fuse_rank(p->e, onv_edit_in(p->e, p->node, 1)) != 0;
    return has_axis ? move_axis(p) : move_all(p);
}

/* One element of an axis, by a constant index without dims. */
static bool move_gather(onv_push *p)
{
    onv_value_id index = onv_edit_in(p->e, p->node, 1);
    return onv_edit_is_constant(p->e, index) && onv_fuse_rank(p->e, index) == 0 && move_axis(p);
}

/* As many axes as the list of starts is long, where none are given. */
static bool default_slice_axes(onv_push *p, onv_axes *a)
{
    const onv_attr *attr = onv_node_attr(onv_edit_node_at(p->e, p->node), "starts");
    onv_dim count = onv_fuse_dim(p->e, onv_edit_in(p->e, p->node, 1), 0);
    if (attr != NULL && attr->kind == ONV_ATTR_INTS) count = onv_dim_const(attr->count);
    if (!onv_dim_is_const(count) || count.raw < 0 || count.raw > p->perm.rank) return false;
    a->count = (uint32_t)count.raw;
    for (uint32_t i = 0; i < a->count; i++) a->at[i] = i;
    return true;
}

static bool move_slice(onv_push *p)
{
    onv_edit *e = p->e;
    bool is_old = onv_edit_opset(e) < 10;
    onv_axes a;
    bool is_given = onv_node_attr(onv_edit_node_at(e, p->node), "axes") != NULL ||
                    onv_is_value(onv_edit_in(e, p->node, 3));
    if (is_given ? !onv_push_read_axes(e, p->node, 3, &a) : !default_slice_axes(p, &a))
        return false;
    if (!normalize_axes(&a, p->perm.rank)) return false;
    for (uint32_t i = 0; i < a.count; i++) a.at[i] = p->perm.at[a.at[i]];
    if (is_old || is_given) {
        set_axes(p, 3, &a);
    } else {
        onv_value_id starts = onv_edit_in(e, p->node, 1);
        onv_dtype dtype = onv_edit_dtype(e, starts);
        onv_push_set_numbers(e, p->node, 3, dtype, a.at, a.count);
    }
    return move_all(p);
}

static bool move_tile(onv_push *p)
{
    onv_push_permute_numbers(p->e, p->node, 1, p->inverse.at, (uint32_t)p->perm.rank);
    return move_all(p);
}

/* --- Transposes that meet ---------------------------------------------------------------------- */

/* Nothing is left of both: what reads the second reads what is before the first. */
static void drop_both(onv_push *p)
{
    onv_edit *e = p->e;
    onv_value_id in = onv_edit_in(e, p->transpose, 0);
    onv_edit_set_input(e, p->node, 0, in);
    if (!onv_edit_bypass(e, p->node, 0)) {
        ONV_MAKE(e, p->node, "Identity", ONV_INPUTS(in), ONV_OUTPUTS(onv_edit_out(e, p->node, 0)));
        onv_edit_remove(e, p->node);
    }
    onv_edit_remove_unread(e, p->transpose);
}

/* `node` works as a Transpose by `perm`. */
static bool merge(onv_push *p, const onv_perm *perm)
{
    onv_edit *e = p->e;
    if (onv_perm_same(&p->inverse, perm)) {
        drop_both(p);
        return true;
    }
    onv_perm both = onv_perm_compose(&p->perm, perm);
    onv_attr attr = onv_fuse_ints(e, "perm", both.at, (uint32_t)both.rank);
    if (onv_edit_is(e, p->node, ONV_OP_Transpose)) {
        onv_edit_set_input(e, p->node, 0, onv_edit_in(e, p->transpose, 0));
        onv_edit_set_attr(e, p->node, attr);
        onv_edit_retype(e, p->node);
    } else {
        ONV_MAKE(e, p->node, "Transpose", ONV_INPUTS(onv_edit_in(e, p->transpose, 0)),
                 ONV_OUTPUTS(onv_edit_out(e, p->node, 0)), ONV_ATTRS(attr));
        onv_edit_remove(e, p->node);
    }
    onv_edit_remove_unread(e, p->transpose);
    return true;
}

static bool move_transpose(onv_push *p)
{
    onv_perm own;
    return onv_perm_of(p->e, p->node, &own) && own.rank == p->perm.rank && merge(p, &own);
}

/* The dims that a Reshape asks for, of an input of the same rank whose dims are numbers. */
static bool read_reshape(onv_push *p, int64_t *from, int64_t *to)
{
    onv_edit *e = p->e;
    onv_value_id in = onv_edit_in(e, p->node, 0), shape = onv_edit_in(e, p->node, 1);
    const onv_scalar *list;
    uint32_t n;
    int rank = onv_fuse_rank(e, in), open = -1;
    if (rank != p->perm.rank || !onv_is_value(shape) || !onv_edit_is_constant(e, shape) ||
        !onv_edit_ints(e, shape, &list, &n) || (int)n != rank)
        return false;
    bool allow_zero = onv_edit_int(e, p->node, "allowzero", 0) != 0;
    int64_t total = 1, size = 1;
    for (int i = 0; i < rank; i++) {
        onv_dim dim = onv_fuse_dim(e, in, i);
        if (!onv_dim_is_const(dim)) return false;
        from[i] = dim.raw;
        to[i] = list[i].i.raw == 0 && !allow_zero ? from[i] : list[i].i.raw;
        if (__builtin_mul_overflow(total, from[i], &total)) return false;
        if (to[i] == -1 && open >= 0) return false;
        if (to[i] == -1)
            open = i;
        else if (__builtin_mul_overflow(size, to[i], &size))
            return false;
    }
    if (open < 0) return size == total;
    if (size == 0 || total % size != 0) return false;
    to[open] = total / size;
    return true;
}

/* A Reshape that only moves dims of 1 about is a Transpose. */
static bool is_moving_ones(const onv_push *p, int64_t *from, const int64_t *to, onv_perm *own)
{
    own->rank = p->perm.rank;
    for (int i = 0; i < own->rank; i++) {
        int at = 0;
        for (; at < own->rank && from[at] != to[i]; at++)
            if (from[at] != -1 && from[at] != 1 && to[i] != 1) return false;
        if (at == own->rank) return false;
        own->at[i] = at;
        from[at] = -1;
    }
    return true;
}

/* How many dims each dim of the input is split into; false where some are joined. */
static bool count_parts(const onv_type *from, const onv_type *to, int *parts)
{
    int next = 0;
    for (int i = 0; i < from->rank; i++) {
        int64_t product = 1, dim = from->dims[i].raw;
        for (parts[i] = 0; next < to->rank && (parts[i] == 0 || product < dim); parts[i]++) {
            int64_t factor = to->dims[next].raw;
            if (factor <= 0 || dim % factor != 0 ||
                __builtin_mul_overflow(product, factor, &product))
                return false;
            next++;
        }
        if (product != dim) return false;
    }
    for (; next < to->rank && onv_dim_is(to->dims[next], 1); next++) parts[from->rank - 1]++;
    return next == to->rank;
}

/* A Reshape that splits axes splits them before the Transpose. */
static bool move_split_axes(onv_push *p)
{
    onv_edit *e = p->e;
    const onv_type *from = onv_edit_seen(e, onv_edit_in(e, p->node, 0));
    const onv_type *to = onv_edit_seen(e, onv_edit_out(e, p->node, 0));
    int parts[ONV_MAX_RANK], first[ONV_MAX_RANK], n = 0;
    if (!onv_type_is_static(from) || !onv_type_is_static(to) || from->rank != p->perm.rank ||
        to->rank <= from->rank || !count_parts(from, to, parts))
        return false;
    for (int i = 0; i < from->rank; i++) {
        first[i] = n;
        n += parts[i];
    }
    int64_t dims[ONV_MAX_RANK];
    onv_perm behind = {.rank = to->rank};
    n = 0;
    for (int axis = 0; axis < from->rank; axis++) { /* of what is before the Transpose */
        int64_t i = p->inverse.at[axis];
        for (int k = 0; k < parts[i]; k++) {
            behind.at[first[i] + k] = n;
            dims[n++] = to->dims[first[i] + k].raw;
        }
    }
    onv_push_input(e, p->node, 0, &p->inverse);
    onv_push_set_numbers(e, p->node, 1, ONV_INT64, dims, (uint32_t)n);
    onv_push_outputs(e, p->node, &behind);
    return true;
}

static bool move_reshape(onv_push *p)
{
    int64_t from[ONV_MAX_RANK], to[ONV_MAX_RANK];
    onv_perm own;
    if (read_reshape(p, from, to) && is_moving_ones(p, from, to, &own)) return merge(p, &own);
    onv_value_id shape = onv_edit_in(p->e, p->node, 1);
    return onv_is_value(shape) && onv_edit_is_constant(p->e, shape) && move_split_axes(p);
}

static bool is_from_channels_last(const onv_push *p)
{
    onv_perm last = onv_perm_channels_last(p->perm.rank);
    return onv_perm_same(&p->inverse, &last);
}

/* Of integers, in the last step: with channels last it is another operator. */
static bool move_max_pool(onv_push *p)
{
    onv_edit *e = p->e;
    const onv_node at = *onv_edit_node_at(e, p->node);
    onv_dtype dtype = onv_edit_dtype(e, at.inputs[0]);
    if (e->level < 3 || (dtype != ONV_INT8 && dtype != ONV_UINT8) || !is_from_channels_last(p) ||
        (at.n_outputs > 1 && onv_is_value(at.outputs[1])))
        return false;
    const onv_value_id in = onv_edit_in(e, p->transpose, 0), out = onv_edit_out(e, p->node, 0);
    onv_node_id made =
        onv_edit_add(e, &ONV_NEW_NODE(.op_type = "NhwcMaxPool", .domain = ONV_MS_DOMAIN,
                                      .version = 1, .at = p->node, ONV_INPUTS(in), ONV_OUTPUTS(out),
                                      .attrs = at.attrs, .n_attrs = at.n_attrs));
    if (e->status != ONV_OK) return false;
    onv_edit_remove(e, p->node);
    onv_push_outputs(e, made, &p->perm);
    onv_edit_remove_unread(e, p->transpose);
    return true;
}

/* The attribute says where channels are. */
static bool move_pool(onv_push *p)
{
    onv_perm last = onv_perm_channels_last(p->perm.rank);
    bool is_last = onv_edit_int(p->e, p->node, "channels_last", 0) != 0;
    if (!onv_perm_same(is_last ? &p->perm : &p->inverse, &last)) return false;
    onv_edit_set_attr(p->e, p->node, onv_fuse_int(p->e, "channels_last", !is_last));
    return move_all(p);
}

/* --- Table ------------------------------------------------------------------------------------- */

#define ROW(ops_, inputs_, moves_on_, ...)                                                         \
    {                                                                                              \
        .ops = (ops_), .inputs = (inputs_), .moves_on = (moves_on_), .move = __VA_ARGS__           \
    }

static const onv_pusher pushers[] = {
    ROW("Cast Exp Identity LeakyRelu Log Reciprocal Relu Sigmoid Sqrt Tanh Abs Not Ceil Floor Neg "
        "Erf "
        "HardSigmoid Round IsInf IsNaN Selu Shrink Sign Softplus Softsign ThresholdedRelu Celu "
        "HardSwish Sin Cos Tan Sinh Cosh Asin Acos Atan Asinh Acosh Atanh",
        ONV_PUSH_ALL, true, move_all),
    ROW("Add Max Min Mul Sub Div And Or Xor Mod PRelu BitShift Equal Greater Less GreaterOrEqual "
        "LessOrEqual Mean Sum Pow Where",
        ONV_PUSH_NOT_SCALAR, true, move_broadcast),
    ROW("Clip CastLike", ONV_PUSH_FIRST, true, move_all),
    ROW("Transpose", ONV_PUSH_FIRST, false, move_transpose),
    ROW("Concat", ONV_PUSH_ALL, true, move_axis, .axis = INT64_MIN),
    ROW("Split", ONV_PUSH_FIRST, true, move_axis),
    ROW("Shape", ONV_PUSH_FIRST, false, move_shape),
    ROW("Pad", ONV_PUSH_FIRST, true, move_pad),
    ROW("ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum "
        "ReduceSumSquare ReduceL1 ReduceL2",
        ONV_PUSH_FIRST, true, move_axes, .axes = ONV_PUSH_KEEPDIMS),
    ROW("ArgMin ArgMax", ONV_PUSH_FIRST, true, move_axis, .axes = ONV_PUSH_KEEPDIMS),
    ROW("Squeeze", ONV_PUSH_FIRST, true, move_axes, .axes = ONV_PUSH_DROPS),
    ROW("Unsqueeze", ONV_PUSH_FIRST, true, move_unsqueeze),
    ROW("Slice", ONV_PUSH_FIRST, true, move_slice),
    ROW("Gather", ONV_PUSH_FIRST, true, move_gather, .axes = ONV_PUSH_DROPS),
    ROW("Tile", ONV_PUSH_FIRST, true, move_tile),
    ROW("Softmax Hardmax LogSoftmax", ONV_PUSH_FIRST, true, move_softmax, .axis = -1),
    ROW("QuantizeLinear DequantizeLinear", ONV_PUSH_FIRST, true, move_quantize, .axis = 1),
    ROW("Reshape", ONV_PUSH_FIRST, false, move_reshape),
    ROW("MaxPool", ONV_PUSH_FIRST, true, move_max_pool),
    /* Only once a node is assigned to a provider that takes both layouts. */
    ROW("Resize", ONV_PUSH_FIRST, true, NULL),
    ROW("QLinearAdd QLinearMul", ONV_PUSH_OPERANDS, true, move_broadcast, .is_fused = true),
    ROW("QLinearConcat", ONV_PUSH_PARTS, true, move_axis, .axis = INT64_MIN, .is_fused = true),
    ROW("QLinearSigmoid QLinearLeakyRelu", ONV_PUSH_FIRST, true, move_all, .is_fused = true),
    ROW("QLinearAveragePool QLinearGlobalAveragePool", ONV_PUSH_FIRST, true, move_pool,
        .is_fused = true),
};

const onv_pusher *onv_pusher_find(const onv_edit *e, onv_node_id node)
{
    const onv_node *at = onv_edit_node_at(e, node);
    bool is_fused = strcmp(at->domain, ONV_MS_DOMAIN) == 0;
    if (at->domain[0] != '\0' && !is_fused) return NULL;
    for (size_t i = 0; i < sizeof pushers / sizeof pushers[0]; i++)
        if (pushers[i].is_fused == is_fused && onv_rewrite_names(pushers[i].ops, at->op_type))
            return &pushers[i];
    return NULL;
}
