#include "ops/controlflow.h"

#include <string.h>

#include "ops/rules.h"

/* --- Types ------------------------------------------------------------------------------------- */

onv_type onv_type_unknown(void)
{
    return (onv_type){.kind = ONV_TYPE_UNKNOWN, .rank = -1};
}

onv_type onv_type_tensor(onv_op_ctx *c, onv_dtype dtype, const onv_dim *dims, int rank)
{
    onv_type type = {.kind = ONV_TYPE_TENSOR, .dtype = (uint8_t)dtype, .rank = -1};
    if (rank < 0) return type;
    type.dims = onv_arena_copy(c->arena, dims, (size_t)rank * sizeof *dims);
    if (type.dims != NULL) type.rank = (int16_t)rank;
    return type;
}

onv_type onv_type_sequence(onv_op_ctx *c, const onv_type *elem, onv_items *items, onv_dim length)
{
    return onv_type_of_elements(c->arena, ONV_TYPE_SEQUENCE, (onv_elements){elem, items, length});
}

static bool same_dim(onv_dim a, onv_dim b)
{
    return a.raw == b.raw;
}

bool onv_type_same(const onv_type *a, const onv_type *b)
{
    if (a == b) return true;
    if (a == NULL || b == NULL) return false;
    if (a->kind != b->kind || a->dtype != b->dtype || a->rank != b->rank) return false;
    for (int i = 0; onv_type_has_rank(a) && i < a->rank; i++)
        if (!same_dim(a->dims[i], b->dims[i])) return false;
    const onv_elements of_a = onv_type_elements(a), of_b = onv_type_elements(b);
    if (!onv_type_same(of_a.type, of_b.type)) return false;
    if (a->kind != ONV_TYPE_SEQUENCE) return true;
    if (!same_dim(of_a.length, of_b.length) || (of_a.items == NULL) != (of_b.items == NULL))
        return false;
    if (of_a.items == of_b.items || !onv_dim_is_const(of_a.length)) return true;
    for (int64_t i = 0; i < of_a.length.raw; i++)
        if (!onv_type_same(&of_a.items->at[i], &of_b.items->at[i])) return false;
    return true;
}

/* --- Merging ----------------------------------------------------------------------------------- */

static onv_dim merge_dims(onv_op_ctx *c, onv_dim a, onv_dim b)
{
    uint32_t place = c->n_merged++;
    if (onv_dim_same(a, b)) return a;
    if (!onv_dim_is_known(a) || !onv_dim_is_known(b)) return ONV_DIM_UNKNOWN;
    onv_dim most_a = onv_dim_substitute_bounds(c->dims, a);
    onv_dim most_b = onv_dim_substitute_bounds(c->dims, b);
    /* A symbol that stands for "at most that" covers what is never more. So merging again what was
     * merged changes nothing, and loops come to an end. */
    if (onv_dim_is_symbol(c->dims, a) && onv_dim_has_bound(c->dims, a) &&
        onv_dim_always_le(c->dims, most_b, most_a))
        return a;
    if (onv_dim_is_symbol(c->dims, b) && onv_dim_has_bound(c->dims, b) &&
        onv_dim_always_le(c->dims, most_a, most_b))
        return b;
    return onv_dim_fresh_at(c->dims, "either", place, onv_dim_max(c->dims, most_a, most_b));
}

static const char *kind_name(const onv_type *type)
{
    static const char *const names[] = {
        [ONV_TYPE_UNKNOWN] = "an unknown value",      [ONV_TYPE_TENSOR] = "a tensor",
        [ONV_TYPE_SPARSE_TENSOR] = "a sparse tensor", [ONV_TYPE_SEQUENCE] = "a sequence",
        [ONV_TYPE_OPTIONAL] = "an optional",          [ONV_TYPE_MAP] = "a map",
    };
    return names[type->kind <= ONV_TYPE_MAP ? type->kind : 0];
}

static onv_status merge_elem(onv_op_ctx *c, const onv_type *a, const onv_type *b,
                             const onv_type **out)
{
    *out = NULL;
    if (a == NULL || b == NULL) return ONV_OK;
    onv_type *merged = ONV_ARENA_ARRAY(c->arena, onv_type, 1);
    if (merged == NULL) return ONV_OK;
    *out = merged;
    return onv_type_merge(c, a, b, merged);
}

onv_status onv_sequence_elem(onv_op_ctx *c, const onv_type *sequence, onv_type *elem)
{
    const onv_elements of = onv_type_elements(sequence);
    *elem = of.type != NULL ? *of.type : onv_type_unknown();
    if (onv_type_has_rank(elem) || of.items == NULL) return ONV_OK;
    for (int64_t i = 0; i < of.length.raw; i++)
        if (i == 0)
            *elem = of.items->at[0];
        else
            ONV_TRY(onv_type_merge(c, elem, &of.items->at[i], elem));
    return ONV_OK;
}

/* Items that differ are merged one by one, if they are few. */
static onv_status merge_items(onv_op_ctx *c, const onv_type *a, const onv_type *b, onv_items **out)
{
    const onv_elements of = onv_type_elements(a);
    *out = NULL;
    if (of.items == NULL && onv_type_elements(b).items == NULL) return ONV_OK;
    if (onv_type_same(a, b)) *out = of.items;
    if (*out != NULL || of.length.raw > ONV_ITEMS_COPIED || onv_sequence_item(a, 0) == NULL ||
        onv_sequence_item(b, 0) == NULL)
        return ONV_OK;
    onv_items *items = *out = onv_sequence_items(c, (uint32_t)of.length.raw);
    for (int64_t i = 0; items != NULL && i < of.length.raw; i++)
        ONV_TRY(onv_type_merge(c, onv_sequence_item(a, i), onv_sequence_item(b, i), &items->at[i]));
    return ONV_OK;
}

static onv_status merge_sequence(onv_op_ctx *c, const onv_type *a, const onv_type *b, onv_type *out)
{
    const onv_dim length_a = onv_type_elements(a).length, length_b = onv_type_elements(b).length;
    onv_type elem_a, elem_b, *elem = ONV_ARENA_ARRAY(c->arena, onv_type, 1);
    onv_items *items = NULL;
    ONV_TRY(onv_sequence_elem(c, a, &elem_a));
    ONV_TRY(onv_sequence_elem(c, b, &elem_b));
    const onv_dim length = merge_dims(c, length_a, length_b);
    if (elem == NULL) return ONV_OK;
    /* An empty sequence says nothing of the elements. */
    if (onv_dim_is(length_a, 0))
        *elem = elem_b;
    else if (onv_dim_is(length_b, 0))
        *elem = elem_a;
    else
        ONV_TRY(onv_type_merge(c, &elem_a, &elem_b, elem));
    if (onv_dim_same(length_a, length_b)) ONV_TRY(merge_items(c, a, b, &items));
    *out = onv_type_sequence(c, elem, items, length);
    return ONV_OK;
}

static onv_status merge_tensor(onv_op_ctx *c, const onv_type *a, const onv_type *b, onv_type *out)
{
    onv_dim dims[ONV_MAX_RANK];
    if (a->dtype != b->dtype && a->dtype != ONV_UNDEFINED && b->dtype != ONV_UNDEFINED)
        return onv_op_fail(c, "a value is either %s or %s", onv_dtype_name((onv_dtype)a->dtype),
                           onv_dtype_name((onv_dtype)b->dtype));
    onv_dtype dtype = (onv_dtype)(a->dtype != ONV_UNDEFINED ? a->dtype : b->dtype);
    int rank = a->rank == b->rank ? a->rank : -1;
    for (int i = 0; i < rank; i++) dims[i] = merge_dims(c, a->dims[i], b->dims[i]);
    *out = onv_type_tensor(c, dtype, dims, rank);
    out->kind = a->kind;
    return ONV_OK;
}

/* A value that is there or may be absent. The optional's own element takes in the other type. */
static onv_status merge_optional(onv_op_ctx *c, const onv_type *optional, const onv_type *other,
                                 onv_type *out)
{
    onv_elements merged = onv_type_elements(optional);
    if (!onv_dim_is(merged.length, 1)) merged.length = ONV_DIM_UNKNOWN;
    ONV_TRY(merge_elem(c, merged.type, other, &merged.type));
    *out = onv_type_of_elements(c->arena, ONV_TYPE_OPTIONAL, merged);
    return ONV_OK;
}

onv_status onv_type_merge(onv_op_ctx *c, const onv_type *a, const onv_type *b, onv_type *out)
{
    if (onv_type_same(a, b)) {
        *out = *a;
        return ONV_OK;
    }
    if (a->kind == ONV_TYPE_UNKNOWN || b->kind == ONV_TYPE_UNKNOWN) {
        const onv_type *one = a->kind == ONV_TYPE_UNKNOWN ? b : a;
        bool tensor = one->kind == ONV_TYPE_TENSOR;
        *out = tensor ? onv_type_tensor(c, (onv_dtype)one->dtype, NULL, -1) : onv_type_unknown();
        return ONV_OK;
    }
    if (a->kind != b->kind && a->kind == ONV_TYPE_OPTIONAL) return merge_optional(c, a, b, out);
    if (a->kind != b->kind && b->kind == ONV_TYPE_OPTIONAL) return merge_optional(c, b, a, out);
    if (a->kind != b->kind)
        return onv_op_fail(c, "a value is either %s or %s", kind_name(a), kind_name(b));
    if (a->kind == ONV_TYPE_SEQUENCE) return merge_sequence(c, a, b, out);
    if (a->kind == ONV_TYPE_TENSOR || a->kind == ONV_TYPE_SPARSE_TENSOR)
        return merge_tensor(c, a, b, out);
    const onv_elements of_a = onv_type_elements(a), of_b = onv_type_elements(b);
    onv_elements merged = {.length = onv_dim_same(of_a.length, of_b.length) ? of_a.length
                                                                            : ONV_DIM_UNKNOWN};
    ONV_TRY(merge_elem(c, of_a.type, of_b.type, &merged.type));
    const uint8_t key = a->dtype;
    *out = onv_type_of_elements(c->arena, (onv_type_kind)a->kind, merged);
    out->dtype = key;
    return ONV_OK;
}

const onv_known *onv_known_merge(onv_op_ctx *c, const onv_known *a, const onv_known *b)
{
    if (a == b) return a;
    if (a == NULL || b == NULL || a->dtype != b->dtype || a->rank != b->rank ||
        memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) != 0)
        return NULL;
    onv_known *out = onv_arena_copy(c->arena, a, sizeof *a);
    onv_scalar *elems = onv_arena_copy(c->arena, a->elems, a->count * sizeof *a->elems);
    if (out == NULL || elems == NULL) return NULL;
    onv_dtype dtype = (onv_dtype)a->dtype;
    bool equal = true, any = false;
    for (uint32_t i = 0; i < a->count; i++) {
        if (!onv_scalar_is_known(dtype, a->elems[i])) continue;
        if (onv_scalar_equal(c->dims, dtype, onv_scalar_canonical(dtype, a->elems[i]),
                             onv_scalar_canonical(dtype, b->elems[i])) == ONV_ALWAYS) {
            any = true;
            continue;
        }
        elems[i] = onv_scalar_unknown();
        equal = false;
    }
    out->elems = elems;
    /* The same pointer where nothing changed tells a loop that it is done. */
    return equal ? a : any ? out : NULL;
}

/* --- Subgraphs --------------------------------------------------------------------------------- */

onv_status onv_op_body(onv_op_ctx *c, const char *name, onv_graph_id *body, uint32_t *n_in,
                       uint32_t *n_out)
{
    const onv_attr *attr = onv_op_attr(c, name);
    if (attr == NULL || attr->kind != ONV_ATTR_GRAPH)
        return onv_op_fail(c, "attribute '%s' is absent or no graph", name);
    *body = attr->graph;
    *n_in = onv_model_graph(c->model, attr->graph)->n_inputs;
    *n_out = onv_model_graph(c->model, attr->graph)->n_outputs;
    return ONV_OK;
}

/* What an error says, in full. */
static const char *error_text(onv_op_ctx *c, const onv_error *error)
{
    const char *text =
        onv_arena_printf(c->arena, "%s%s%s: %s", error->op_type, error->node[0] != '\0' ? " " : "",
                         error->node, error->message);
    return text != NULL ? text : "";
}

onv_status onv_op_try_body(onv_op_ctx *c, onv_graph_id body, const onv_op_value *in, uint32_t n_in,
                           onv_op_value *out, uint32_t n_out, const char **why)
{
    const onv_error before = *c->err;
    uint64_t overflows = c->dims->overflows, too_large = c->dims->too_large;
    *why = NULL;
    onv_status status = c->run_subgraph(c, body, in, n_in, out, n_out);
    if (status != ONV_ERR_MODEL || c->dims->overflows != overflows) return status;
    *why = error_text(c, c->err);
    *c->err = before;
    c->dims->too_large = too_large;
    return ONV_OK;
}

onv_op_value onv_op_in_value(onv_op_ctx *c, uint32_t k)
{
    if (!onv_op_has_in(c, k)) return (onv_op_value){.type = onv_type_unknown()};
    return (onv_op_value){
        .type = c->in[k].type, .known = onv_op_in_known(c, k), .bound = c->in[k].bound};
}
