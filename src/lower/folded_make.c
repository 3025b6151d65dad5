/* The operations of terms that the exporter replaced by constants: what PyTorch runs in each pass. */
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/quota.h"
#include "lower/folded_terms.h"
#include "lower/lowering.h"

static void sized(const onv_folded_plan *plan, const onv_term *term, onv_shape *shape)
{
    shape->rank = term->shape.dims.rank;
    for (uint32_t i = 0; i < shape->rank; i++)
        shape->dims[i] = onv_term_dim(plan, term->shape.dims.dims[i]);
}

static uint32_t make_filled(onv_lowering *l, const onv_shape *shape, uint8_t dtype)
{
    uint32_t out = onv_tensor_new(&l->emit, dtype, shape->rank, shape->dims, NULL);
    onv_emit_begin(&l->emit, "full");
    onv_emit_out(&l->emit, out);
    onv_emit_end(&l->emit);
    return out;
}

/* One that other constants were computed of, too, is there once. */
static uint32_t make_leaf(onv_lowering *l, const onv_folded_plan *plan, const onv_term *term,
                          uint8_t dtype)
{
    uint32_t value, tensor;
    onv_shape shape;
    sized(plan, term, &shape);
    if (onv_ptr_map_get(&l->folded.leaf_values, term->name, &value)) {
        tensor = onv_value_tensor(l, (onv_value_id){value});
        onv_eager_tensor t = onv_tensor_at(&l->emit, tensor);
        bool is_turned = l->emit.model->values.at[value].role == ONV_ROLE_NOT_NOTED;
        if (tensor == ONV_NO_TENSOR || !is_turned || t.rank != 2) return tensor;
        const int64_t dims[] = {t.dims[1], t.dims[0]}, strides[] = {t.strides[1], t.strides[0]};
        return onv_emit_view(&l->emit, "t", tensor, 2, dims, strides, ONV_GRAD_ALIAS);
    }
    if (onv_ptr_map_get(&l->folded.constants, term->name, &value))
        return onv_value_tensor(l, (onv_value_id){value});
    if (onv_ptr_map_get(&l->weights.layers, term->name, &tensor)) return tensor;
    /* An attribute that is no buffer stays where it was made: each call copies it to the device. */
    if (strstr(term->name, "lifted_tensor") != NULL) return make_filled(l, &shape, dtype);
    bool is_listed = onv_listed_find(l, term->name) != SIZE_MAX;
    tensor = is_listed ? onv_parameter_new(l, dtype, &shape, term->name)
                       : onv_tensor_new(&l->emit, dtype, shape.rank, shape.dims, NULL);
    if (tensor == ONV_NO_TENSOR) return tensor;
    onv_eager_storage *storage =
        &l->emit.eager->storages.at[onv_tensor_at(&l->emit, tensor).storage];
    storage->is_assumed = plan->is_assumed && is_listed;
    storage->label = term->name;
    if (!is_listed) storage->kind = ONV_STORAGE_BUFFER;
    if (!onv_ptr_map_set(&l->weights.layers, term->name, tensor))
        l->emit.status = onv_fail_memory(l->emit.err);
    return tensor;
}

static uint32_t make_pointwise(onv_lowering *l, const onv_term_kind *kind, uint32_t x)
{
    uint8_t cast = onv_aten_ops[onv_aten_named(kind->op)].cast;
    if (cast == ONV_CAST_FLOAT32 || cast == ONV_CAST_RESULT) x = onv_amp_fp32(&l->emit, x);
    onv_eager_tensor t = onv_tensor_at(&l->emit, x);
    if (x == ONV_NO_TENSOR) return x;
    uint32_t out = onv_tensor_new(&l->emit, t.dtype, t.rank, t.dims, NULL);
    onv_emit_begin(&l->emit, kind->op);
    onv_emit_in(&l->emit, x, ONV_GRAD_NEW);
    if (kind->keeps == ONV_TERM_KEEPS_RESULT) onv_emit_save(&l->emit, out);
    if (kind->keeps == ONV_TERM_KEEPS_OPERAND) onv_emit_save(&l->emit, x);
    onv_emit_out(&l->emit, out);
    onv_emit_end(&l->emit);
    return out;
}

static uint32_t make_view(onv_lowering *l, const onv_term *term, const onv_shape *shape, uint32_t x)
{
    onv_eager_tensor t = onv_tensor_at(&l->emit, x);
    uint64_t elems = 1;
    if (x == ONV_NO_TENSOR) return x;
    for (uint32_t i = 0; i < shape->rank; i++) elems *= (uint64_t)shape->dims[i]; /* a constant's */
    bool is_turned = t.rank == 2 && shape->rank == 2 && t.dims[0] == shape->dims[1] &&
                     t.dims[1] == shape->dims[0];
    if (elems != t.elems) {
        x = onv_emit_expand(&l->emit, x, shape->rank, shape->dims);
    } else if (is_turned && strcmp(term->kind->op, "view") != 0) {
        const int64_t strides[] = {t.strides[1], t.strides[0]};
        return onv_emit_view(&l->emit, term->kind->op, x, 2, shape->dims, strides, ONV_GRAD_ALIAS);
    } else {
        x = onv_emit_reshape(&l->emit, x, shape->rank, shape->dims);
    }
    bool is_buffer = l->emit.eager->storages.at[t.storage].kind == ONV_STORAGE_BUFFER;
    return term->form == ONV_TERM_COPY && !is_buffer ? onv_emit_clone(&l->emit, x) : x;
}

/* The first one: their gradients are zeros around that of the part. */
static uint32_t make_part(onv_lowering *l, const onv_term *term, const onv_shape *shape, uint32_t x)
{
    onv_eager_tensor t = onv_tensor_at(&l->emit, x);
    int64_t strides[ONV_MAX_RANK];
    if (x == ONV_NO_TENSOR || t.rank != shape->rank + 1) return ONV_NO_TENSOR;
    uint32_t dim = 0;
    while (dim < shape->rank && t.dims[dim] == shape->dims[dim]) dim++;
    for (uint32_t i = 0; i < shape->rank; i++) strides[i] = t.strides[i + (i >= dim)];
    return onv_emit_view(&l->emit, term->kind->op, x, shape->rank, shape->dims, strides,
                         t.dims[dim] == 1 ? ONV_GRAD_ALIAS : ONV_GRAD_NEW);
}

/* Gradients of what is added are that of the sum, or sums of it. */
static onv_grad grad_of(const onv_lowering *l, const char *op, uint32_t x, uint32_t out)
{
    bool adds = strcmp(op, "add") == 0 || strcmp(op, "sub") == 0;
    bool is_same = onv_tensor_at(&l->emit, x).elems == onv_tensor_at(&l->emit, out).elems;
    return adds && is_same ? ONV_GRAD_ALIAS : ONV_GRAD_NEW;
}

static uint32_t make_pair(onv_lowering *l, const onv_term *term, const onv_shape *shape,
                          const uint32_t in[2])
{
    const char *op = term->kind->op;
    onv_eager_tensor t = onv_tensor_at(&l->emit, in[0]);
    if (in[0] == ONV_NO_TENSOR) return in[0];
    bool keeps = term->kind->keeps == ONV_TERM_KEEPS_OPERAND && term->n_in == 2;
    bool wants[2] = {onv_tensor_needs_grad(&l->emit, in[0]),
                     onv_tensor_needs_grad(&l->emit, in[1])};
    uint32_t out = onv_tensor_new(&l->emit, t.dtype, shape->rank, shape->dims, NULL);
    onv_emit_begin(&l->emit, op);
    l->emit.op.swaps_grads = true;
    for (uint32_t k = 0; k < term->n_in; k++) {
        onv_grad grad = grad_of(l, op, in[k], out);
        onv_emit_in(&l->emit, in[k], k == 1 && strcmp(op, "sub") == 0 ? ONV_GRAD_NEW : grad);
    }
    if (keeps && wants[1]) onv_emit_save(&l->emit, in[0]);
    if (keeps && (wants[0] || strcmp(op, "div") == 0)) onv_emit_save(&l->emit, in[1]);
    onv_emit_out(&l->emit, out);
    onv_emit_end(&l->emit);
    return out;
}

/* Beside a single part of parameters there is one of none, as an identity. */
static uint32_t make_join(onv_lowering *l, const onv_term *term, const onv_shape *shape,
                          const uint32_t *in)
{
    onv_eager_tensor t = onv_tensor_at(&l->emit, in[0]);
    uint32_t other = ONV_NO_TENSOR;
    if (in[0] == ONV_NO_TENSOR) return in[0];
    onv_shape same = {.rank = t.rank};
    for (uint32_t i = 0; i < t.rank; i++) same.dims[i] = t.dims[i];
    if (term->n_in == 1) other = make_filled(l, &same, t.dtype);
    uint32_t out = onv_tensor_new(&l->emit, t.dtype, shape->rank, shape->dims, NULL);
    onv_emit_begin(&l->emit, term->kind->op);
    if (term->n_in == 1) onv_emit_in(&l->emit, other, ONV_GRAD_NONE);
    for (uint32_t k = 0; k < term->n_in; k++) onv_emit_in(&l->emit, in[k], ONV_GRAD_PART);
    onv_emit_out(&l->emit, out);
    onv_emit_end(&l->emit);
    return out;
}

static uint32_t make_reduction(onv_lowering *l, const onv_term *term, const onv_shape *shape,
                               uint32_t x)
{
    onv_eager_tensor t = onv_tensor_at(&l->emit, x);
    if (x == ONV_NO_TENSOR) return x;
    bool is_norm = strcmp(term->kind->op, "ReduceL2") == 0 || strcmp(term->kind->op, "std") == 0;
    uint32_t out = onv_tensor_new(&l->emit, t.dtype, shape->rank, shape->dims, NULL);
    onv_emit_begin(&l->emit, term->kind->op);
    onv_emit_in(&l->emit, x, strcmp(term->kind->op, "sum") == 0 ? ONV_GRAD_PART : ONV_GRAD_NEW);
    if (term->kind->keeps == ONV_TERM_KEEPS_OPERAND) onv_emit_save(&l->emit, x);
    if (is_norm) onv_emit_save(&l->emit, out);
    onv_emit_out(&l->emit, out);
    onv_emit_end(&l->emit);
    return out;
}

static uint32_t make_rows(onv_lowering *l, const onv_term *term, const onv_shape *shape, uint32_t x)
{
    onv_eager_tensor t = onv_tensor_at(&l->emit, x);
    if (x == ONV_NO_TENSOR) return x;
    uint32_t out = onv_tensor_new(&l->emit, t.dtype, shape->rank, shape->dims, NULL);
    uint64_t row = (uint64_t)shape->dims[shape->rank - 1];
    onv_emit_begin(&l->emit, term->kind->op);
    onv_emit_in(&l->emit, x, ONV_GRAD_NEW);
    if (strcmp(term->kind->op, "index") != 0) /* which mostly takes a buffer */
        onv_emit_extra(&l->emit, onv_tensor_at(&l->emit, out).elems / row, sizeof(int64_t),
                       "indices");
    onv_emit_out(&l->emit, out);
    onv_emit_end(&l->emit);
    return out;
}

static uint32_t make_linear(onv_lowering *l, uint32_t x, uint32_t weight, uint32_t bias)
{
    onv_eager_tensor w = onv_tensor_at(&l->emit, weight);
    if (x == ONV_NO_TENSOR || w.rank != 2) return ONV_NO_TENSOR;
    const int64_t dims[] = {w.dims[1], w.dims[0]}, strides[] = {w.strides[1], w.strides[0]};
    uint32_t turned = onv_emit_view(&l->emit, "t", weight, 2, dims, strides, ONV_GRAD_ALIAS);
    bool is_linear = bias != ONV_NO_TENSOR || onv_tensor_at(&l->emit, x).rank == 1;
    return is_linear
               ? onv_emit_linear(&l->emit, x, turned, bias)
               : onv_emit_matmul(&l->emit, onv_amp_low(&l->emit, x), onv_amp_low(&l->emit, turned));
}

/* einsum makes a matrix of what has more dims. */
static uint32_t make_product(onv_lowering *l, const onv_shape *shape, uint32_t a, uint32_t b)
{
    onv_eager_tensor x = onv_tensor_at(&l->emit, a), y = onv_tensor_at(&l->emit, b);
    if (x.rank != 2 || y.rank < 3 || y.rank != shape->rank || x.dims[1] != y.dims[0] ||
        y.elems == 0)
        return onv_emit_matmul(&l->emit, a, b);
    const int64_t matrix[] = {y.dims[0], (int64_t)(y.elems / (uint64_t)y.dims[0])};
    uint32_t product = onv_emit_matmul(&l->emit, a, onv_emit_reshape(&l->emit, b, 2, matrix));
    return onv_emit_reshape(&l->emit, product, shape->rank, shape->dims);
}

static uint32_t make_term(onv_lowering *l, const onv_folded_plan *plan, const onv_term *term,
                          uint8_t dtype, const uint32_t *made)
{
    uint32_t in[3] = {ONV_NO_TENSOR, ONV_NO_TENSOR, ONV_NO_TENSOR};
    onv_shape shape = {0};
    sized(plan, term, &shape);
    for (uint32_t k = 0; k < term->n_in; k++) in[k] = made[term->in[k]];
    switch ((onv_term_form)term->form) {
    case ONV_TERM_LEAF: return make_leaf(l, plan, term, dtype);
    case ONV_TERM_POINTWISE: return make_pointwise(l, term->kind, in[0]);
    case ONV_TERM_VIEW:
    case ONV_TERM_COPY: return make_view(l, term, &shape, in[0]);
    case ONV_TERM_PART: return make_part(l, term, &shape, in[0]);
    case ONV_TERM_PRODUCT:
        return make_product(l, &shape, onv_amp_low(&l->emit, in[0]), onv_amp_low(&l->emit, in[1]));
    case ONV_TERM_LINEAR: return make_linear(l, in[0], in[1], in[2]);
    case ONV_TERM_PAIR: return make_pair(l, term, &shape, in);
    case ONV_TERM_JOIN: return make_join(l, term, &shape, in);
    case ONV_TERM_REDUCTION: return make_reduction(l, term, &shape, in[0]);
    case ONV_TERM_ROWS: return make_rows(l, term, &shape, in[0]);
    case ONV_TERM_MADE: return make_filled(l, &shape, dtype);
    case ONV_TERM_OTHER: break;
    case ONV_TERM_SCALED: return onv_emit_weight_norm(&l->emit, in[0], in[1]);
    }
    return ONV_NO_TENSOR;
}

/* Of another layer, which has a parameter of that name, too. */
static const char *renamed(onv_lowering *l, const char *leaf, const char *from, const char *to)
{
    enum { MOST = 512 };
    char name[MOST];
    size_t length = strlen(from);
    if (length == 0 || strncmp(leaf, from, length) != 0 || leaf[length] != '.') return leaf;
    int n = snprintf(name, sizeof name, "%s%s", to, leaf + length);
    if (n < 0 || (size_t)n >= sizeof name) return leaf;
    size_t listed = onv_listed_find(l, name);
    return listed != SIZE_MAX ? l->signature.names[listed] : leaf;
}

/* A view that ran again, as `w.t()` in a loop, is a view of the same. */
static bool is_view_of_same(onv_lowering *l, const onv_folded_plan *plan, const char *from,
                            const char *to)
{
    uint8_t form = plan->terms[plan->n_terms - 1].form;
    for (uint32_t i = 0; i < plan->n_terms; i++) {
        const onv_term *term = &plan->terms[i];
        if (term->form == ONV_TERM_LEAF && renamed(l, term->name, from, to) != term->name)
            return false;
    }
    return form == ONV_TERM_VIEW || form == ONV_TERM_PART;
}

/* What reads of a parameter of that name have, of which the file has one copy with an equal one: ONV_NO_TENSOR: none do. */
static uint32_t read_as(onv_lowering *l, const char *leaf, const char *name)
{
    uint32_t value;
    if (name == leaf || !onv_ptr_map_get(&l->folded.leaf_values, leaf, &value))
        return ONV_NO_TENSOR;
    for (uint32_t i = l->values[value].first_read;
         i > 0 && i <= l->weights.reads.count && onv_work(1); i++) {
        const onv_weight_read *read = &l->weights.reads.at[i - 1];
        if (read->value != value) break;
        if (read->parameter != NULL && strcmp(read->parameter, name) == 0)
            return onv_node_in(l, &l->emit.model->nodes.at[read->node], read->k);
    }
    return ONV_NO_TENSOR;
}

/* The exporter merged the constant with that of another call, which computed it again: of parameters of its own, where the
 * reader is in another layer. */
uint32_t onv_folded_make_again(onv_lowering *l, onv_value_id id, const char *call,
                               const char *scope)
{
    const onv_folded_plan *plan = l->folded.plans[id.index];
    const onv_weight_read *first = &l->weights.reads.at[l->values[id.index].first_read - 1];
    uint8_t dtype = onv_model_value(l->emit.model, id)->tensor->type.dtype;
    uint32_t made[ONV_TERM_MOST] = {0}, again;
    if (onv_ptr_map_get(&l->folded.calls, call, &again)) return again;
    if (is_view_of_same(l, plan, first->scope, scope)) return l->values[id.index].tensor;
    for (uint32_t i = 0; i < plan->n_terms && l->emit.status == ONV_OK; i++) {
        onv_term term = plan->terms[i];
        if (term.form == ONV_TERM_LEAF) {
            term.name = renamed(l, term.name, first->scope, scope);
            size_t listed = onv_listed_find(l, term.name);
            if (listed != SIZE_MAX) l->signature.explained[listed] = true;
        }
        made[i] = read_as(l, plan->terms[i].name, term.name);
        if (made[i] == ONV_NO_TENSOR) made[i] = make_term(l, plan, &term, dtype, made);
    }
    if (l->emit.status != ONV_OK) return ONV_NO_TENSOR;
    if (!onv_ptr_map_set(&l->folded.calls, call, made[plan->n_terms - 1]))
        l->emit.status = onv_fail_memory(l->emit.err);
    return made[plan->n_terms - 1];
}

/* Constants that others were computed of, one behind the other. */
enum { MOST_BEHIND = 32 };

uint32_t onv_folded_make(onv_lowering *l, onv_value_id id)
{
    onv_folded_plan *plan = l->folded.plans[id.index];
    if (l->folded.depth == MOST_BEHIND) return ONV_NO_TENSOR;
    l->folded.depth++;
    l->folded.plans[id.index] =
        NULL; /* notes may name each other's constants: while it is made it is none */
    uint8_t dtype = onv_model_value(l->emit.model, id)->tensor->type.dtype;
    uint32_t made[ONV_TERM_MOST] = {0};
    for (uint32_t i = 0; i < plan->n_terms && l->emit.status == ONV_OK; i++) {
        const onv_term *term = &plan->terms[i];
        bool is_call = term->form != ONV_TERM_LEAF && term->name != NULL;
        if (is_call && onv_ptr_map_get(&l->folded.calls, term->name, &made[i])) continue;
        made[i] = make_term(l, plan, term, dtype, made);
        if (is_call && !onv_ptr_map_set(&l->folded.calls, term->name, made[i]))
            l->emit.status = onv_fail_memory(l->emit.err);
    }
    l->folded.plans[id.index] = plan;
    l->folded.depth--;
    return l->emit.status == ONV_OK ? made[plan->n_terms - 1] : ONV_NO_TENSOR;
}
