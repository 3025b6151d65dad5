/* Sequences of tensors. Where the type of each item is known alone, `items` has it; else `elem` is
 * what all share. An empty sequence has an element type of which only the dtype may be known. */
#include "base/fail.h"
#include "ops/controlflow.h"
#include "ops/tensor.h"

/* --- Sequence types ---------------------------------------------------------------------------- */

/* Items beyond this are not told apart. */
enum { MAX_ITEMS = 1024 };

static bool has_items(const onv_type *type)
{
    return type->kind == ONV_TYPE_SEQUENCE && onv_dim_is_const(type->length) &&
           (type->items != NULL || type->length.raw == 0);
}

static onv_status need_sequence(onv_op_ctx *c)
{
    uint8_t kind = onv_op_in(c, 0)->kind;
    if (kind == ONV_TYPE_SEQUENCE || kind == ONV_TYPE_UNKNOWN) return ONV_OK;
    return onv_op_fail(c, "input 0 is not a sequence");
}

/* Sets output 0 to a sequence of these items. */
static onv_status set_items(onv_op_ctx *c, const onv_type *items, uint32_t n)
{
    onv_type *elem = ONV_ARENA_ARRAY(c->arena, onv_type, 1);
    onv_type sequence = onv_type_sequence(NULL, onv_dim_const(n));
    sequence.items = onv_arena_copy(c->arena, items, n * sizeof *items);
    if (elem == NULL || sequence.items == NULL) return ONV_OK;
    ONV_TRY(onv_sequence_elem(c, &sequence, elem));
    sequence.elem = elem;
    if (n > MAX_ITEMS) sequence.items = NULL;
    onv_op_set_out_type(c, 0, &sequence);
    return ONV_OK;
}

/* Sets output 0 to a sequence of `length` items of one type. */
static void set_uniform(onv_op_ctx *c, const onv_type *elem, onv_dim length)
{
    onv_type *copy = elem != NULL ? onv_arena_copy(c->arena, elem, sizeof *elem) : NULL;
    onv_type sequence = onv_type_sequence(copy, length);
    onv_op_set_out_type(c, 0, &sequence);
}

/* A position (input k, absent: `fallback`) among `n` places, made non-negative; -1: not known. */
static onv_status read_position(onv_op_ctx *c, uint32_t k, int64_t n, int64_t fallback,
                                int64_t *position)
{
    *position = fallback;
    if (!onv_op_has_in(c, k)) return ONV_OK;
    onv_dim given = onv_op_in_scalar(c, k);
    *position = -1;
    if (!onv_dim_is_const(given)) return ONV_OK;
    /* Insertion may also come after the last item; -1 is then the place before it. */
    int64_t length = onv_op_in(c, 0)->length.raw;
    if (given.raw < -length || given.raw >= n)
        return onv_op_fail(c, "position %lld in a sequence of %lld", (long long)given.raw,
                           (long long)length);
    *position = given.raw < 0 ? given.raw + length : given.raw;
    return ONV_OK;
}

/* --- Making and changing ----------------------------------------------------------------------- */

static onv_status infer_sequence_empty(onv_op_ctx *c)
{
    onv_type elem = onv_type_tensor(c, onv_op_attr_dtype(c, "dtype", ONV_FLOAT), NULL, -1);
    set_uniform(c, &elem, onv_dim_const(0));
    return ONV_OK;
}

static onv_status infer_sequence_construct(onv_op_ctx *c)
{
    onv_type *items = ONV_ARENA_ARRAY(c->arena, onv_type, c->n_in);
    if (items == NULL) return ONV_OK;
    for (uint32_t k = 0; k < c->n_in; k++) items[k] = *onv_op_in(c, k);
    return set_items(c, items, c->n_in);
}

static onv_status infer_sequence_insert(onv_op_ctx *c)
{
    const onv_type *sequence = onv_op_in(c, 0), *item = onv_op_in(c, 1);
    onv_type elem = *item;
    ONV_TRY(need_sequence(c));
    onv_dim length = sequence->kind == ONV_TYPE_SEQUENCE ? sequence->length : ONV_DIM_UNKNOWN;
    if (has_items(sequence)) {
        int64_t n = length.raw, position;
        ONV_TRY(read_position(c, 2, n + 1, n, &position));
        onv_type *items = ONV_ARENA_ARRAY(c->arena, onv_type, (size_t)n + 1);
        if (items == NULL) return ONV_OK;
        for (int64_t i = 0; i <= n && position >= 0; i++)
            items[i] = i == position ? *item : sequence->items[i < position ? i : i - 1];
        if (position >= 0) return set_items(c, items, (uint32_t)n + 1);
    }
    if (!onv_dim_is(length, 0)) {
        ONV_TRY(onv_sequence_elem(c, sequence, &elem));
        ONV_TRY(onv_type_merge(c, &elem, item, &elem));
    }
    set_uniform(c, &elem, onv_dim_add(c->dims, length, onv_dim_const(1)));
    return ONV_OK;
}

static onv_status infer_sequence_erase(onv_op_ctx *c)
{
    const onv_type *sequence = onv_op_in(c, 0);
    ONV_TRY(need_sequence(c));
    if (sequence->kind != ONV_TYPE_SEQUENCE) {
        set_uniform(c, NULL, ONV_DIM_UNKNOWN);
        return ONV_OK;
    }
    if (onv_dim_is(sequence->length, 0)) return onv_op_fail(c, "the sequence is empty");
    if (has_items(sequence)) {
        int64_t n = sequence->length.raw, position;
        ONV_TRY(read_position(c, 1, n, n - 1, &position));
        onv_type *items = ONV_ARENA_ARRAY(c->arena, onv_type, (size_t)n);
        if (items == NULL) return ONV_OK;
        for (int64_t i = 0, from = 0; i < n - 1; i++, from++) {
            if (from == position) from++;
            items[i] = sequence->items[from];
        }
        if (position >= 0 && n > 1) return set_items(c, items, (uint32_t)n - 1);
    }
    onv_type elem;
    ONV_TRY(onv_sequence_elem(c, sequence, &elem));
    set_uniform(c, &elem, onv_dim_add(c->dims, sequence->length, onv_dim_const(-1)));
    return ONV_OK;
}

/* --- Reading ----------------------------------------------------------------------------------- */

static onv_status infer_sequence_at(onv_op_ctx *c)
{
    const onv_type *sequence = onv_op_in(c, 0);
    ONV_TRY(need_sequence(c));
    if (has_items(sequence)) {
        int64_t position;
        ONV_TRY(read_position(c, 1, sequence->length.raw, -1, &position));
        if (position >= 0) {
            onv_op_set_out_type(c, 0, &sequence->items[position]);
            return ONV_OK;
        }
    }
    onv_type elem;
    ONV_TRY(onv_sequence_elem(c, sequence, &elem));
    onv_op_set_out_type(c, 0, &elem);
    return ONV_OK;
}

static onv_status infer_sequence_length(onv_op_ctx *c)
{
    ONV_TRY(need_sequence(c));
    onv_op_set_out(c, 0, ONV_INT64, NULL, 0);
    return ONV_OK;
}

static onv_status fold_sequence_length(onv_op_ctx *c)
{
    const onv_type *sequence = onv_op_in(c, 0);
    onv_known *known = onv_op_new_known(c, 0);
    if (known != NULL && sequence->kind == ONV_TYPE_SEQUENCE)
        known->elems[0] = onv_scalar_int(sequence->length);
    return ONV_OK;
}

/* --- To and from tensors ----------------------------------------------------------------------- */

/* The input with another size along the axis, or without the axis. */
static onv_type slice_type(onv_op_ctx *c, int axis, onv_dim size, bool keep)
{
    const onv_type *type = onv_op_in(c, 0);
    onv_dim dims[ONV_MAX_RANK];
    int n = 0;
    for (int i = 0; i < type->rank; i++)
        if (i != axis)
            dims[n++] = type->dims[i];
        else if (keep)
            dims[n++] = size;
    return onv_type_tensor(c, (onv_dtype)type->dtype, dims, n);
}

/* Parts of the sizes in `split`. */
static onv_status split_by_list(onv_op_ctx *c, int axis)
{
    onv_dim size = onv_op_in_dim(c, 0, axis), sum = onv_dim_const(0);
    const onv_dim *list;
    uint32_t count;
    if (!onv_op_ints(c, "", 1, &list, &count)) {
        onv_dim part = onv_dim_is_known(size) ? onv_dim_fresh(c->dims, "split", size) : size;
        onv_type elem = slice_type(c, axis, part, true);
        set_uniform(c, &elem, onv_op_in_dim(c, 1, 0));
        return ONV_OK;
    }
    onv_type *items = ONV_ARENA_ARRAY(c->arena, onv_type, count);
    if (items == NULL) return ONV_OK;
    for (uint32_t i = 0; i < count; i++) {
        if (onv_dim_is_const(list[i]) && list[i].raw < 0)
            return onv_op_fail(c, "split holds %lld", (long long)list[i].raw);
        items[i] = slice_type(c, axis, list[i], true);
        sum = onv_dim_add(c->dims, sum, list[i]);
    }
    if (onv_dim_is_const(sum) && onv_dim_is_const(size) && sum.raw != size.raw)
        return onv_op_fail(c, "the split sizes sum to %lld, the dim is %lld", (long long)sum.raw,
                           (long long)size.raw);
    return set_items(c, items, count);
}

/* Parts of one size; the last one may be smaller. */
static onv_status split_evenly(onv_op_ctx *c, int axis, onv_dim part, bool keep)
{
    onv_dim size = onv_op_in_dim(c, 0, axis), one = onv_dim_const(1);
    if (onv_dim_is_const(part) && part.raw < 1)
        return onv_op_fail(c, "a split of %lld", (long long)part.raw);
    onv_dim count = onv_dim_ceildiv(c->dims, size, part);
    bool even = onv_dim_is_known(onv_dim_exact_div(c->dims, size, part));
    onv_type elem = slice_type(c, axis, part, keep);
    if (even || !onv_dim_is_const(count) || count.raw < 1 || count.raw > MAX_ITEMS) {
        onv_dim most = onv_dim_is_known(part) ? part : size;
        if (!even && onv_dim_is_known(most))
            elem = slice_type(c, axis, onv_dim_fresh(c->dims, "split", most), keep);
        set_uniform(c, &elem, count);
        return ONV_OK;
    }
    onv_type *items = ONV_ARENA_ARRAY(c->arena, onv_type, (size_t)count.raw);
    if (items == NULL) return ONV_OK;
    for (int64_t i = 0; i < count.raw; i++) items[i] = elem;
    onv_dim others = onv_dim_mul(c->dims, part, onv_dim_sub(c->dims, count, one));
    items[count.raw - 1] = slice_type(c, axis, onv_dim_sub(c->dims, size, others), true);
    return set_items(c, items, (uint32_t)count.raw);
}

static onv_status infer_split_to_sequence(onv_op_ctx *c)
{
    int rank = onv_op_in_rank(c, 0), axis, sizes = onv_op_in_rank(c, 1);
    bool given = onv_op_has_in(c, 1);
    if (rank < 0 || (given && sizes < 0)) {
        onv_type elem = onv_type_tensor(c, onv_op_in_dtype(c, 0), NULL, -1);
        set_uniform(c, &elem, ONV_DIM_UNKNOWN);
        return ONV_OK;
    }
    ONV_TRY(onv_op_axis(c, onv_op_attr_int(c, "axis", 0), rank, &axis));
    if (given && sizes > 0) return split_by_list(c, axis);
    bool keep = given || onv_op_attr_int(c, "keepdims", 1) != 0;
    return split_evenly(c, axis, given ? onv_op_in_scalar(c, 1) : onv_dim_const(1), keep);
}

/* The dims of the concatenation, from what the items share and from each item. */
static onv_status concat_items(onv_op_ctx *c, const onv_type *elem, int axis, onv_dim *dims)
{
    const onv_type *sequence = onv_op_in(c, 0);
    onv_dim total = onv_dim_const(0);
    for (int i = 0; i < elem->rank; i++) dims[i] = elem->dims[i];
    dims[axis] = onv_dim_mul(c->dims, elem->dims[axis], sequence->length);
    if (!has_items(sequence)) return ONV_OK;
    for (int64_t k = 0; k < sequence->length.raw; k++) {
        const onv_type *item = &sequence->items[k];
        total = onv_dim_add(c->dims, total, item->dims[axis]);
        for (int i = 0; i < elem->rank; i++)
            if (i != axis)
                ONV_TRY(onv_tensor_unify(c, "dims of the items", k > 0 ? dims[i] : item->dims[i],
                                         item->dims[i], &dims[i]));
    }
    dims[axis] = total;
    return ONV_OK;
}

static onv_status infer_concat_from_sequence(onv_op_ctx *c)
{
    const onv_type *sequence = onv_op_in(c, 0);
    int extra = onv_op_attr_int(c, "new_axis", 0) != 0 ? 1 : 0, axis;
    onv_dim dims[ONV_MAX_RANK];
    onv_type elem;
    ONV_TRY(need_sequence(c));
    ONV_TRY(onv_sequence_elem(c, sequence, &elem));
    if (onv_op_attr(c, "axis") == NULL) return onv_op_fail(c, "attribute 'axis' is absent");
    if (!onv_type_has_rank(&elem)) {
        onv_op_set_out(c, 0, (onv_dtype)elem.dtype, NULL, -1);
        return ONV_OK;
    }
    ONV_TRY(onv_tensor_check_rank(c, elem.rank + extra));
    ONV_TRY(onv_op_axis(c, onv_op_attr_int(c, "axis", 0), elem.rank + extra, &axis));
    if (extra == 0) {
        ONV_TRY(concat_items(c, &elem, axis, dims));
    } else {
        for (int i = 0, from = 0; i <= elem.rank; i++)
            dims[i] = i == axis ? sequence->length : elem.dims[from++];
    }
    onv_op_set_out(c, 0, (onv_dtype)elem.dtype, dims, elem.rank + extra);
    return ONV_OK;
}

/* --- SequenceMap ------------------------------------------------------------------------------- */

/* More items are not told apart in results. */
enum { MAX_MAPPED = 64 };

static bool is_same_type(const onv_type *a, const onv_type *b)
{
    bool same = a->kind == b->kind && a->dtype == b->dtype && a->rank == b->rank;
    for (int i = 0; same && i < a->rank; i++) same = onv_dim_same(a->dims[i], b->dims[i]);
    return same;
}

/* Items of one sequence that differ: what the body makes of each. `items`: by output and item; NULL: they are not known. */
static onv_status map_items(onv_op_ctx *c, onv_graph_id body, onv_op_value *in, onv_op_value *out,
                            uint32_t n_out, onv_type **items)
{
    const onv_type *sequence = onv_op_in(c, 0);
    bool differ = false;
    *items = NULL;
    if (c->n_in != 1 || !has_items(sequence) || sequence->length.raw > MAX_MAPPED) return ONV_OK;
    uint32_t n = (uint32_t)sequence->length.raw;
    for (uint32_t i = 1; i < n; i++)
        differ |= !is_same_type(&sequence->items[0], &sequence->items[i]);
    if (!differ) return ONV_OK;
    onv_type elem = in[0].type;
    *items = ONV_ARENA_ARRAY(c->arena, onv_type, (size_t)n * n_out);
    if (*items == NULL) return onv_fail_memory(c->err);
    for (uint32_t i = 0; i < n; i++) {
        in[0].type = sequence->items[i];
        ONV_TRY(c->run_subgraph(c, body, in, 1, out, n_out));
        for (uint32_t k = 0; k < n_out; k++) (*items)[(size_t)k * n + i] = out[k].type;
    }
    in[0].type = elem;
    return ONV_OK;
}

/* The body runs once per item of the first sequence; its inputs are the items, and tensors as they
 * are. */
static onv_status infer_sequence_map(onv_op_ctx *c)
{
    onv_graph_id body;
    uint32_t n_in, n_out;
    ONV_TRY(need_sequence(c));
    ONV_TRY(onv_op_body(c, "body", &body, &n_in, &n_out));
    if (n_in != c->n_in || n_out < c->n_out)
        return onv_op_fail(c, "a body of %u inputs and %u outputs for %u inputs and %u outputs",
                           n_in, n_out, c->n_in, c->n_out);
    onv_op_value *in = ONV_ARENA_ARRAY(c->arena, onv_op_value, n_in);
    onv_op_value *out = ONV_ARENA_ARRAY(c->arena, onv_op_value, n_out);
    onv_type *elems = ONV_ARENA_ARRAY(c->arena, onv_type, n_out);
    if (in == NULL || out == NULL || elems == NULL) return onv_fail_memory(c->err);
    onv_dim length =
        onv_op_in(c, 0)->kind == ONV_TYPE_SEQUENCE ? onv_op_in(c, 0)->length : ONV_DIM_UNKNOWN;
    for (uint32_t k = 0; k < n_in; k++) {
        in[k] = onv_op_in_value(c, k);
        if (in[k].type.kind != ONV_TYPE_SEQUENCE) continue;
        if (k > 0)
            ONV_TRY(onv_tensor_unify(c, "the lengths of the sequences", length, in[k].type.length,
                                     &length));
        ONV_TRY(onv_sequence_elem(c, onv_op_in(c, k), &in[k].type));
    }
    onv_type *items;
    ONV_TRY(map_items(c, body, in, out, n_out, &items));
    ONV_TRY(c->run_subgraph(c, body, in, n_in, out, n_out));
    onv_model_graph(c->model, body)->trips = length;
    onv_model_graph(c->model, body)->never_runs = onv_dim_is(length, 0);
    for (uint32_t k = 0; k < c->n_out; k++) {
        elems[k] = out[k].type;
        onv_type sequence = onv_type_sequence(&elems[k], length);
        if (items != NULL) sequence.items = items + (size_t)k * (size_t)length.raw;
        onv_op_set_out_type(c, k, &sequence);
        if (onv_op_has_out(c, k)) c->out[k].bound = out[k].bound;
    }
    return ONV_OK;
}

/* --- Rows -------------------------------------------------------------------------------------- */

#define ONE .out = {1, 1}

static const onv_op rows[] = {
    {.name = "SequenceEmpty", .since = 11, .in = {0, 0}, ONE, .infer = infer_sequence_empty},
    {.name = "SequenceConstruct",
     .since = 11,
     .in = {1, ONV_OP_MAX_ARITY},
     ONE,
     .infer = infer_sequence_construct},
    {.name = "SequenceInsert", .since = 11, .in = {2, 3}, ONE, .infer = infer_sequence_insert},
    {.name = "SequenceErase", .since = 11, .in = {1, 2}, ONE, .infer = infer_sequence_erase},
    {.name = "SequenceAt", .since = 11, .in = {2, 2}, ONE, .infer = infer_sequence_at},
    {.name = "SequenceLength",
     .since = 11,
     .in = {1, 1},
     ONE,
     .infer = infer_sequence_length,
     .fold = fold_sequence_length,
     .flags = ONV_OP_HOST},
    {.name = "SplitToSequence", .since = 11, .in = {1, 2}, ONE, .infer = infer_split_to_sequence},
    {.name = "ConcatFromSequence",
     .since = 11,
     .in = {1, 1},
     ONE,
     .infer = infer_concat_from_sequence},
    {.name = "SequenceMap",
     .since = 17,
     .in = {1, ONV_OP_MAX_ARITY},
     .out = {1, ONV_OP_MAX_ARITY},
     .infer = infer_sequence_map,
     .flags = ONV_OP_SUBGRAPH},
};

const onv_op_family onv_ops_sequence = {"", rows, sizeof rows / sizeof rows[0]};
