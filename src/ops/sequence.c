/* Sequences of tensors, and optionals. Where the type of each item is known alone, `items` has it; else `type` is
 * what all share. An empty sequence has an element type of which only the dtype may be known. */
#include "base/fail.h"
#include "ops/controlflow.h"
#include "ops/rules.h"

/* --- Sequence types ---------------------------------------------------------------------------- */

/* Items beyond this are not told apart. */
enum { MAX_ITEMS = 1024 };

/* Its length is a number, and what is known of its items is known of each. */
static bool has_items(const onv_type *type)
{
    const onv_elements of = onv_type_elements(type);
    return type->kind == ONV_TYPE_SEQUENCE && onv_dim_is_const(of.length) &&
           (of.items != NULL || of.type != NULL || of.length.raw == 0);
}

const onv_type *onv_sequence_item(const onv_type *sequence, int64_t i)
{
    const onv_elements of = onv_type_elements(sequence);
    return of.items != NULL ? &of.items->at[i] : of.type;
}

static onv_items *new_items(onv_op_ctx *c, uint32_t used, uint32_t room)
{
    onv_items *items = onv_arena_calloc(c->arena, 1, sizeof *items + room * sizeof items->at[0],
                                        _Alignof(onv_items));
    if (items == NULL) return NULL;
    items->used = used;
    items->room = room;
    return items;
}

onv_items *onv_sequence_items(onv_op_ctx *c, uint32_t n)
{
    return new_items(c, n, n);
}

static onv_status need_sequence(onv_op_ctx *c)
{
    uint8_t kind = onv_op_in(c, 0)->kind;
    if (kind == ONV_TYPE_SEQUENCE || kind == ONV_TYPE_UNKNOWN) return ONV_OK;
    return onv_op_fail(c, "input 0 is not a sequence");
}

/* Sets output 0 to a sequence of `length` items of one type. */
static onv_status set_uniform(onv_op_ctx *c, const onv_type *elem, onv_dim length)
{
    onv_type *copy = elem != NULL ? onv_arena_copy(c->arena, elem, sizeof *elem) : NULL;
    onv_type sequence = onv_type_sequence(c, copy, NULL, length);
    return onv_op_set_out_type(c, 0, &sequence);
}

/* Sets output 0 to a sequence of the first `n` of these items, which share that type where it is known. */
static onv_status set_items(onv_op_ctx *c, onv_items *items, uint32_t n, const onv_type *shared)
{
    onv_type elem, sequence = onv_type_sequence(c, shared, items, onv_dim_const(n));
    bool differ = false;
    if (items == NULL) return ONV_OK;
    for (uint32_t i = 1; i < n && !differ; i++)
        differ = !onv_type_same(&items->at[0], &items->at[i]);
    ONV_TRY(onv_sequence_elem(c, &sequence, &elem));
    if (!differ || n > MAX_ITEMS)
        return set_uniform(c, n > 0 && !differ ? &items->at[0] : &elem, onv_dim_const(n));
    shared = onv_arena_copy(c->arena, &elem, sizeof elem);
    sequence = onv_type_sequence(c, shared, items, onv_dim_const(n));
    return onv_op_set_out_type(c, 0, &sequence);
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
    int64_t length = onv_type_elements(onv_op_in(c, 0)).length.raw;
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
    return set_uniform(c, &elem, onv_dim_const(0));
}

static onv_status infer_sequence_construct(onv_op_ctx *c)
{
    onv_items *items = onv_sequence_items(c, c->n_in);
    for (uint32_t k = 0; items != NULL && k < c->n_in; k++) items->at[k] = *onv_op_in(c, k);
    return set_items(c, items, c->n_in, NULL);
}

/* The `n` items of the sequence with one more at that place; NULL: there are too many to copy. */
static onv_items *with_item(onv_op_ctx *c, const onv_type *sequence, uint32_t n, uint32_t place,
                            const onv_type *item)
{
    onv_items *from = onv_type_elements(sequence).items;
    while (from != NULL && from->grown != NULL) from = from->grown;
    bool is_last = from != NULL && place == n, grows = is_last && n == from->used;
    if (grows && n < from->room) from->at[from->used++] = *item;
    if (is_last && n < from->used && onv_type_same(&from->at[n], item)) return from;
    if (n >= MAX_ITEMS || (!grows && n > ONV_ITEMS_COPIED)) return NULL;
    onv_items *items = new_items(c, n + 1, grows ? 2 * n : n + 1);
    if (items == NULL) return NULL;
    for (uint32_t i = 0; i <= n; i++)
        items->at[i] = i == place ? *item : *onv_sequence_item(sequence, i < place ? i : i - 1);
    if (grows) from->grown = items;
    return items;
}

static onv_status infer_sequence_insert(onv_op_ctx *c)
{
    const onv_type *sequence = onv_op_in(c, 0), *item = onv_op_in(c, 1);
    onv_type elem = *item;
    onv_items *items = NULL;
    ONV_TRY(need_sequence(c));
    const onv_dim length = onv_type_elements(sequence).length;
    int64_t position = -1;
    if (has_items(sequence)) ONV_TRY(read_position(c, 2, length.raw + 1, length.raw, &position));
    bool is_first = onv_dim_is(length, 0);
    if (!is_first) {
        ONV_TRY(onv_sequence_elem(c, sequence, &elem));
        bool is_like = onv_type_elements(sequence).items == NULL && onv_type_same(&elem, item);
        if (position >= 0 && !is_like && length.raw <= MAX_ITEMS)
            items = with_item(c, sequence, (uint32_t)length.raw, (uint32_t)position, item);
        ONV_TRY(onv_type_merge(c, &elem, item, &elem));
    }
    if (items != NULL) return set_items(c, items, (uint32_t)length.raw + 1, &elem);
    return set_uniform(c, &elem, onv_dim_add(c->dims, length, onv_dim_const(1)));
}

static onv_status infer_sequence_erase(onv_op_ctx *c)
{
    const onv_type *sequence = onv_op_in(c, 0);
    ONV_TRY(need_sequence(c));
    const onv_elements of = onv_type_elements(sequence);
    if (sequence->kind != ONV_TYPE_SEQUENCE) return set_uniform(c, NULL, ONV_DIM_UNKNOWN);
    if (onv_dim_is(of.length, 0)) return onv_op_fail(c, "the sequence is empty");
    int64_t n = of.length.raw, position = -1;
    if (has_items(sequence)) ONV_TRY(read_position(c, 1, n, n - 1, &position));
    if (of.items != NULL && position == n - 1) return set_items(c, of.items, (uint32_t)n - 1, NULL);
    if (of.items != NULL && position >= 0 && n <= ONV_ITEMS_COPIED) {
        onv_items *items = onv_sequence_items(c, (uint32_t)n - 1);
        for (int64_t i = 0; items != NULL && i < n - 1; i++)
            items->at[i] = of.items->at[i < position ? i : i + 1];
        return set_items(c, items, (uint32_t)n - 1, NULL);
    }
    onv_type elem;
    ONV_TRY(onv_sequence_elem(c, sequence, &elem));
    return set_uniform(c, &elem, onv_dim_add(c->dims, of.length, onv_dim_const(-1)));
}

/* --- Reading ----------------------------------------------------------------------------------- */

static onv_status infer_sequence_at(onv_op_ctx *c)
{
    const onv_type *sequence = onv_op_in(c, 0);
    ONV_TRY(need_sequence(c));
    if (has_items(sequence)) {
        int64_t position;
        ONV_TRY(read_position(c, 1, onv_type_elements(sequence).length.raw, -1, &position));
        if (position >= 0) return onv_op_set_out_type(c, 0, onv_sequence_item(sequence, position));
    }
    onv_type elem;
    ONV_TRY(onv_sequence_elem(c, sequence, &elem));
    return onv_op_set_out_type(c, 0, &elem);
}

static onv_status infer_sequence_length(onv_op_ctx *c)
{
    ONV_TRY(need_sequence(c));
    return onv_op_set_out(c, 0, ONV_INT64, NULL, 0);
}

static onv_status fold_sequence_length(onv_op_ctx *c)
{
    const onv_type *sequence = onv_op_in(c, 0);
    onv_known *known = onv_op_new_known(c, 0);
    if (known != NULL && sequence->kind == ONV_TYPE_SEQUENCE)
        known->elems[0] = onv_scalar_int(onv_type_elements(sequence).length);
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
    onv_dim size = onv_op_in_dim(c, 0, axis);
    const onv_dim *list;
    uint32_t count;
    if (!onv_op_ints(c, "", 1, &list, &count)) {
        onv_dim part = onv_dim_is_known(size) ? onv_dim_fresh(c->dims, "split", size) : size;
        onv_type elem = slice_type(c, axis, part, true);
        return set_uniform(c, &elem, onv_op_in_dim(c, 1, 0));
    }
    onv_items *items = onv_sequence_items(c, count);
    if (items == NULL) return ONV_OK;
    ONV_TRY(onv_tensor_check_parts(c, size, list, count));
    for (uint32_t i = 0; i < count; i++) items->at[i] = slice_type(c, axis, list[i], true);
    return set_items(c, items, count, NULL);
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
        return set_uniform(c, &elem, count);
    }
    onv_items *items = onv_sequence_items(c, (uint32_t)count.raw);
    if (items == NULL) return ONV_OK;
    for (int64_t i = 0; i < count.raw; i++) items->at[i] = elem;
    onv_dim others = onv_dim_mul(c->dims, part, onv_dim_sub(c->dims, count, one));
    items->at[count.raw - 1] = slice_type(c, axis, onv_dim_sub(c->dims, size, others), true);
    return set_items(c, items, (uint32_t)count.raw, NULL);
}

static onv_status infer_split_to_sequence(onv_op_ctx *c)
{
    int rank = onv_op_in_rank(c, 0), axis, sizes = onv_op_in_rank(c, 1);
    bool given = onv_op_has_in(c, 1);
    if (rank < 0 || (given && sizes < 0)) {
        onv_type elem = onv_type_tensor(c, onv_op_in_dtype(c, 0), NULL, -1);
        return set_uniform(c, &elem, ONV_DIM_UNKNOWN);
    }
    ONV_TRY(onv_op_axis(c, onv_op_attr_int(c, "axis", 0), rank, &axis));
    if (given && sizes > 0) return split_by_list(c, axis);
    bool keep = given || onv_op_attr_int(c, "keepdims", 1) != 0;
    return split_evenly(c, axis, given ? onv_op_in_scalar(c, 1) : onv_dim_const(1), keep);
}

/* The dims of the concatenation, from what the items share and from each item. */
static onv_status concat_items(onv_op_ctx *c, const onv_type *elem, int axis, onv_dim *dims)
{
    const onv_elements of = onv_type_elements(onv_op_in(c, 0));
    onv_dim total = onv_dim_const(0);
    for (int i = 0; i < elem->rank; i++) dims[i] = elem->dims[i];
    dims[axis] = onv_dim_mul(c->dims, elem->dims[axis], of.length);
    if (of.items == NULL) return ONV_OK;
    for (int64_t k = 0; k < of.length.raw; k++) {
        const onv_type *item = &of.items->at[k];
        total = onv_dim_add(c->dims, total, item->dims[axis]);
        for (int i = 0; i < elem->rank; i++) {
            if (k == 0) dims[i] = item->dims[i];
            if (i != axis)
                ONV_TRY(onv_tensor_unify(c, "dims of the items", &dims[i], item->dims[i]));
        }
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
    if (!onv_type_has_rank(&elem)) return onv_op_set_out(c, 0, (onv_dtype)elem.dtype, NULL, -1);
    ONV_TRY(onv_tensor_check_rank(c, elem.rank + extra));
    ONV_TRY(onv_op_axis(c, onv_op_attr_int(c, "axis", 0), elem.rank + extra, &axis));
    if (extra == 0) {
        ONV_TRY(concat_items(c, &elem, axis, dims));
    } else {
        for (int i = 0, from = 0; i <= elem.rank; i++)
            dims[i] = i == axis ? onv_type_elements(sequence).length : elem.dims[from++];
    }
    return onv_op_set_out(c, 0, (onv_dtype)elem.dtype, dims, elem.rank + extra);
}

/* --- SequenceMap ------------------------------------------------------------------------------- */

/* More items are not told apart in results. */
enum { MAX_MAPPED = 64 };

/* Items of one sequence that differ: what the body makes of each, by output. */
static onv_status map_items(onv_op_ctx *c, onv_graph_id body, onv_op_value *in, onv_op_value *out,
                            uint32_t n_out, onv_items **items)
{
    const onv_elements of = onv_type_elements(onv_op_in(c, 0));
    if (c->n_in != 1 || of.items == NULL || of.length.raw > MAX_MAPPED) return ONV_OK;
    uint32_t n = (uint32_t)of.length.raw;
    onv_type elem = in[0].type;
    for (uint32_t k = 0; k < n_out; k++)
        if ((items[k] = onv_sequence_items(c, n)) == NULL) return onv_fail_memory(c->err);
    for (uint32_t i = 0; i < n; i++) {
        in[0].type = of.items->at[i];
        ONV_TRY(c->run_subgraph(c, body, in, 1, out, n_out));
        for (uint32_t k = 0; k < n_out; k++) items[k]->at[i] = out[k].type;
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
    onv_items **items = ONV_ARENA_ARRAY(c->arena, onv_items *, n_out);
    if (in == NULL || out == NULL || elems == NULL || items == NULL) return onv_fail_memory(c->err);
    onv_dim length = onv_type_elements(onv_op_in(c, 0)).length;
    for (uint32_t k = 0; k < n_in; k++) {
        in[k] = onv_op_in_value(c, k);
        if (in[k].type.kind != ONV_TYPE_SEQUENCE) continue;
        if (k > 0)
            ONV_TRY(onv_tensor_unify(c, "the lengths of the sequences", &length,
                                     onv_type_elements(&in[k].type).length));
        ONV_TRY(onv_sequence_elem(c, onv_op_in(c, k), &in[k].type));
    }
    ONV_TRY(map_items(c, body, in, out, n_out, items));
    ONV_TRY(c->run_subgraph(c, body, in, n_in, out, n_out));
    onv_model_graph(c->model, body)->trips = length;
    onv_model_graph(c->model, body)->never_runs = onv_dim_is(length, 0);
    for (uint32_t k = 0; k < c->n_out; k++) {
        elems[k] = out[k].type;
        onv_type sequence = onv_type_sequence(c, &elems[k], items[k], length);
        onv_op_set_out_type(c, k, &sequence);
        if (onv_op_has_out(c, k)) c->out[k].bound = out[k].bound;
    }
    return ONV_OK;
}

/* --- Optional, OptionalGetElement, OptionalHasElement ------------------------------------------- */

static onv_status infer_optional(onv_op_ctx *c)
{
    bool holds = onv_op_has_in(c, 0);
    const onv_attr *attr = onv_op_attr(c, "type");
    const onv_type *elem = holds ? onv_op_in(c, 0) : NULL;
    if (!holds) {
        if (attr == NULL || attr->kind != ONV_ATTR_TYPE_PROTO)
            return onv_op_fail(c, "neither an input nor attribute 'type' says what it may hold");
        elem = attr->type;
    }
    onv_type *copy = onv_arena_copy(c->arena, elem, sizeof *elem);
    onv_type optional = onv_type_of_elements(
        c->arena, ONV_TYPE_OPTIONAL, (onv_elements){.type = copy, .length = onv_dim_const(holds)});
    return onv_op_set_out_type(c, 0, &optional);
}

/* Since opset 18 a plain tensor or sequence is its own element. */
static onv_status infer_get_element(onv_op_ctx *c)
{
    const onv_type *type = onv_op_in(c, 0);
    if (type->kind == ONV_TYPE_OPTIONAL) {
        const onv_elements of = onv_type_elements(type);
        if (onv_dim_is(of.length, 0)) return onv_op_fail(c, "the optional holds nothing");
        if (of.type != NULL) onv_op_set_out_type(c, 0, of.type);
    } else if (type->kind != ONV_TYPE_UNKNOWN) {
        if (c->version < 18) return onv_op_fail(c, "input 0 is not an optional");
        onv_op_set_out_type(c, 0, type);
    }
    return ONV_OK;
}

static onv_status fold_has_element(onv_op_ctx *c)
{
    const onv_type *type = onv_op_in(c, 0);
    onv_dim holds = onv_dim_const(1);
    if (!onv_op_has_in(c, 0))
        holds = onv_dim_const(0);
    else if (type->kind == ONV_TYPE_OPTIONAL)
        holds = onv_type_elements(type).length;
    else if (type->kind == ONV_TYPE_UNKNOWN)
        holds = ONV_DIM_UNKNOWN;
    onv_known *known = onv_op_new_known(c, 0);
    if (known != NULL) known->elems[0] = onv_scalar_int(holds);
    return ONV_OK;
}

/* --- Rows -------------------------------------------------------------------------------------- */

static const onv_op rows[] = {
    ONV_OP("SequenceEmpty", 11, 0, 0, 1, 1, infer_sequence_empty),
    ONV_OP("SequenceConstruct", 11, 1, ONV_OP_MAX_ARITY, 1, 1, infer_sequence_construct),
    ONV_OP("SequenceInsert", 11, 2, 3, 1, 1, infer_sequence_insert),
    ONV_OP("SequenceErase", 11, 1, 2, 1, 1, infer_sequence_erase),
    ONV_OP("SequenceAt", 11, 2, 2, 1, 1, infer_sequence_at),
    ONV_OP("SequenceLength", 11, 1, 1, 1, 1, infer_sequence_length, .fold = fold_sequence_length,
           .flags = ONV_OP_HOST),
    ONV_OP("SplitToSequence", 11, 1, 2, 1, 1, infer_split_to_sequence),
    ONV_OP("ConcatFromSequence", 11, 1, 1, 1, 1, infer_concat_from_sequence),
    ONV_OP("SequenceMap", 17, 1, ONV_OP_MAX_ARITY, 1, ONV_OP_MAX_ARITY, infer_sequence_map,
           .flags = ONV_OP_SUBGRAPH),
    ONV_OP("Optional", 15, 0, 1, 1, 1, infer_optional, .traits = {.view_of = 1}),
    ONV_OP("OptionalGetElement", 15, 1, 1, 1, 1, infer_get_element, .fold = onv_fold_identity,
           .traits = {.view_of = 1}),
    ONV_SAYS("OptionalHasElement", 15, 1, 1, 1, 1, "(x): [] bool", .fold = fold_has_element,
             .flags = ONV_OP_HOST),
    ONV_SAYS("OptionalHasElement", 18, 0, 1, 1, 1, "(x): [] bool", .fold = fold_has_element,
             .flags = ONV_OP_HOST),
};

const onv_op_family onv_ops_sequence = {"", rows, sizeof rows / sizeof rows[0]};
