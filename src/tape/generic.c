/* What rows of the table describe: operands, what is kept of them, results. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "tape/state.h"

/* --- Operands ---------------------------------------------------------------------------------- */

static void push_operand(onv_tape *t, uint32_t value, uint32_t tensor, uint32_t letter)
{
    onv_tape_operand o = {.value = value, .tensor = tensor, .letter = letter};
    if (o.tensor == ONV_NO_TENSOR) return;
    if (!onv_vec_push(&t->operands, o) && t->emit.status == ONV_OK)
        t->emit.status = onv_fail_memory(t->emit.err);
}

static void add_argument(onv_tape *t, const onv_argument *a, uint32_t letter)
{
    onv_values_in given = {.arguments = a, .count = a != NULL};
    for (uint32_t value; onv_next_value(&given, &value);)
        push_operand(t, value, onv_tape_tensor(t, value), letter);
}

/* Names of a row's arguments, one after the other. */
static bool next_name(const char **at, char *name, size_t size)
{
    size_t length = strcspn(*at, " ");
    if (length == 0 || length >= size) return false;
    memcpy(name, *at, length);
    name[length] = '\0';
    *at += length + ((*at)[length] == ' ');
    return true;
}

void onv_tape_operands(onv_tape *t, const onv_program_call *call, const onv_aten_op *op)
{
    enum { MAX_NAME = 40 };
    const char *at = op != NULL ? op->in : "";
    char name[MAX_NAME];
    t->operands.count = 0;
    for (uint32_t letter = 0; next_name(&at, name, sizeof name); letter++)
        add_argument(t, onv_call_argument(call, name), letter);
    /* Overloads call some arguments otherwise, and those of src/lower have no names: their places tell. */
    bool has_none = t->operands.count == 0;
    for (uint32_t i = 0; has_none && i < call->n_arguments; i++)
        add_argument(t, &call->arguments[i], i < ONV_ATEN_MOST_TENSORS ? i : 0);
}

/* Numbers in tensors do not widen others. */
static uint8_t promoted(const onv_tape *t)
{
    uint8_t best = ONV_UNDEFINED, of_number = ONV_UNDEFINED;
    for (size_t i = 0; i < t->operands.count; i++) {
        onv_eager_tensor x = onv_tensor_at(&t->emit, t->operands.at[i].tensor);
        uint8_t *at = x.rank > 0 ? &best : &of_number;
        if (!onv_dtype_is_float((onv_dtype)x.dtype)) continue;
        bool is_same = *at == ONV_UNDEFINED || *at == x.dtype;
        bool is_wider = onv_dtype_bits((onv_dtype)x.dtype) > onv_dtype_bits((onv_dtype)*at);
        *at = is_same || is_wider                                                    ? x.dtype
              : onv_dtype_bits((onv_dtype)x.dtype) == onv_dtype_bits((onv_dtype)*at) ? ONV_FLOAT
                                                                                     : *at;
    }
    return best != ONV_UNDEFINED ? best : of_number;
}

uint32_t onv_tape_low(onv_tape *t, uint32_t value, uint32_t tensor)
{
    const onv_program_call *by = onv_tape_maker(t, value);
    if (t->emit.amp == ONV_UNDEFINED || t->emit.views != ONV_VIEWS_OF_KERNELS || by == NULL ||
        !onv_tape_is(t, by, ONV_ATEN_expand))
        return onv_amp_low(&t->emit, tensor);
    onv_eager_tensor wide = onv_tensor_at(&t->emit, onv_tape_tensor(t, onv_call_result(by, 0)));
    onv_eager_tensor shown = onv_tensor_at(&t->emit, tensor);
    uint32_t low = onv_amp_low(&t->emit, onv_call_tensor(t, by, "self"));
    low = onv_emit_expand(&t->emit, low, wide.rank, wide.dims);
    return onv_emit_reshape(&t->emit, low, shown.rank, shown.dims);
}

static void cast_operands(onv_tape *t, uint8_t cast)
{
    uint8_t widest = cast == ONV_CAST_WIDEST ? promoted(t) : ONV_UNDEFINED;
    onv_tape_operand *at = t->operands.at;
    if (t->emit.amp == ONV_UNDEFINED) return;
    /* Arguments from the last to the first (onv_amp_low_all); what is in a list, in its order. */
    for (size_t end = t->operands.count, first; end > 0; end = first) {
        for (first = end - 1; first > 0 && at[first - 1].letter == at[first].letter;) first--;
        for (size_t i = first; i < end; i++) {
            uint32_t *x = &at[i].tensor;
            if (cast == ONV_CAST_LOW) *x = onv_amp_low(&t->emit, *x);
            if (cast == ONV_CAST_FLOAT32 || (cast == ONV_CAST_WIDEST && widest == ONV_FLOAT))
                *x = onv_amp_fp32(&t->emit, *x);
        }
    }
}

static uint32_t operand_of(const onv_tape *t, uint32_t letter)
{
    for (size_t i = 0; i < t->operands.count; i++)
        if (t->operands.at[i].letter == letter) return t->operands.at[i].tensor;
    return ONV_NO_TENSOR;
}

void onv_tape_inputs(onv_tape *t, const onv_program_call *call)
{
    onv_tape_operands(t, call, t->row);
    for (uint32_t k = 0; k < ONV_MOST_INPUTS; k++) t->in[k] = operand_of(t, k);
}

/* --- Results ----------------------------------------------------------------------------------- */

bool onv_tape_is_as_told(onv_tape *t, uint32_t value, uint32_t tensor)
{
    int64_t strides[ONV_MAX_RANK];
    onv_eager_tensor x = onv_tensor_at(&t->emit, tensor);
    const onv_program_value *v = &t->program->values.at[value];
    if (v->rank != x.rank || v->strides == NULL || !onv_tape_strides(t, value, strides))
        return true;
    for (uint32_t i = 0; i < x.rank; i++)
        if (x.dims[i] > 1 && x.strides[i] != strides[i]) return false;
    return true;
}

/* Kernels here lay some results out otherwise than the device of the archive; pointwise results follow. */
static uint32_t new_result(onv_tape *t, uint32_t value, uint8_t form, uint8_t dtype)
{
    onv_shape shape;
    int64_t strides[ONV_MAX_RANK];
    const onv_program_value *v = &t->program->values.at[value];
    bool is_told = v->strides != NULL || v->rank == 0;
    for (size_t i = 0; i < t->operands.count; i++)
        is_told &= onv_tape_is_as_told(t, t->operands.at[i].value, t->operands.at[i].tensor);
    if (is_told || (form != ONV_ATEN_POINTWISE && form != ONV_ATEN_SHARED))
        return onv_tape_new(t, value, dtype);
    if (!onv_tape_shape(t, value, &shape)) return ONV_NO_TENSOR;
    for (size_t i = 0; i < t->operands.count; i++) {
        onv_eager_tensor x = onv_tensor_at(&t->emit, t->operands.at[i].tensor);
        if (!onv_tensor_has_dims(&t->emit, t->operands.at[i].tensor, shape.rank, shape.dims))
            continue;
        onv_strides_like(&x, strides);
        return onv_tensor_new(&t->emit, dtype, shape.rank, shape.dims, strides);
    }
    return onv_tape_new(t, value, dtype);
}

void onv_tape_give(onv_tape *t, const onv_program_call *call, uint32_t k, uint32_t tensor)
{
    if (k < call->n_results) onv_tape_set(t, call->results[k], tensor);
}

void onv_tape_same(onv_tape *t, const onv_program_call *call, uint32_t value)
{
    uint32_t result = onv_call_result(call, 0);
    if (result == ONV_NO_PROGRAM_VALUE || value == ONV_NO_PROGRAM_VALUE) return;
    t->values[result].object = t->values[value].object;
}

/* --- Writing ----------------------------------------------------------------------------------- */

/* Gradients reach what is overwritten as a view of something larger through that: autograd's CopySlices. */
static uint32_t written_base(onv_tape *t, uint32_t value, bool any_grad)
{
    const onv_tape_value *object = &t->values[t->values[value].object];
    if (object->base == ONV_NO_PROGRAM_VALUE || t->emit.options->inference || t->emit.has_no_grad)
        return ONV_NO_TENSOR;
    uint32_t base = onv_tape_tensor(t, object->base);
    return any_grad || onv_tensor_needs_grad(&t->emit, base) ? base : ONV_NO_TENSOR;
}

uint32_t onv_tape_result(onv_tape *t, const onv_program_call *call, uint32_t target, uint8_t dtype)
{
    if (!t->overwrites) return onv_tape_new(t, onv_call_result(call, 0), dtype);
    uint32_t x = onv_tape_tensor(t, target);
    onv_eager_tensor s = onv_tensor_at(&t->emit, x);
    return x == ONV_NO_TENSOR
               ? x
               : onv_tensor_on(&t->emit, s.storage, s.dtype, s.rank, s.dims, s.strides);
}

void onv_tape_give_result(onv_tape *t, const onv_program_call *call, uint32_t target,
                          uint32_t tensor)
{
    if (t->overwrites)
        onv_tape_set_written(t, onv_call_result(call, 0), target, tensor);
    else
        onv_tape_give(t, call, 0, tensor);
}

/* --- One call ---------------------------------------------------------------------------------- */

typedef struct kept {
    uint32_t in, out;                 /* letters */
    uint32_t hands_on, parts, wanted; /* letters of arguments */
    bool second_first;                /* the formula of b comes before that of a */
} kept;

static kept kept_of(const onv_tape *t)
{
    kept k = {0};
    uint32_t wants = 0;
    const char *text = onv_aten_grads(t->row);
    onv_aten_grad grad;
    for (size_t i = 0; i < t->operands.count; i++)
        if (onv_tensor_needs_grad(&t->emit, t->operands.at[i].tensor))
            wants |= UINT32_C(1) << t->operands.at[i].letter;
    onv_aten_saved(t->row, wants, &k.in, &k.out);
    while (onv_aten_next_grad(&text, &grad)) {
        if ((grad.of & 2) != 0 && (k.wanted & 1) == 0 && (grad.of & 1) == 0) k.second_first = true;
        k.wanted |= grad.of;
        k.hands_on |= grad.hands_on ? grad.of : 0;
        k.parts |= grad.hands_part ? grad.of : 0;
    }
    return k;
}

static onv_grad grad_of(const onv_tape *t, const kept *k, const onv_tape_operand *o, uint32_t out)
{
    uint32_t bit = UINT32_C(1) << o->letter;
    onv_eager_tensor x = onv_tensor_at(&t->emit, o->tensor), y = onv_tensor_at(&t->emit, out);
    if ((k->wanted & bit) == 0) return ONV_GRAD_NONE;
    /* The engine casts a gradient to its input's dtype: a copy. */
    if (x.dtype != y.dtype) return ONV_GRAD_NEW;
    if ((k->parts & bit) != 0) return ONV_GRAD_PART;
    return (k->hands_on & bit) != 0 && x.elems == y.elems ? ONV_GRAD_ALIAS : ONV_GRAD_NEW;
}

static bool is_any_wanted(const onv_tape *t, const kept *k)
{
    bool any = false;
    for (size_t i = 0; i < t->operands.count; i++)
        any |= (k->wanted >> t->operands.at[i].letter & 1) != 0 &&
               onv_tensor_needs_grad(&t->emit, t->operands.at[i].tensor);
    return any;
}

/* Reads operands, and keeps those that backward reads; of what is overwritten a copy. */
static void emit_operands(onv_tape *t, const kept *k, bool in_place, uint32_t base, uint32_t out)
{
    for (size_t i = 0; i < t->operands.count; i++) {
        const onv_tape_operand *o = &t->operands.at[i];
        uint32_t bit = UINT32_C(1) << o->letter;
        bool is_written = in_place && i == 0;
        onv_emit_in(&t->emit, is_written && base != ONV_NO_TENSOR ? base : o->tensor,
                    is_written && base != ONV_NO_TENSOR ? ONV_GRAD_NEW : grad_of(t, k, o, out));
        onv_emit_sum_workspace(&t->emit, o->tensor, out);
        if ((k->in & bit) == 0) continue;
        if (!is_written) {
            onv_emit_save(&t->emit, o->tensor);
            continue;
        }
        onv_emit_extra(&t->emit, onv_tensor_at(&t->emit, o->tensor).bytes, 1, "input");
        onv_emit_extras_come_first(&t->emit);
    }
}

/* Backward copies the incoming gradient of the whole, clones the view of it, and has the gradient of that, which may be the clone. */
static void emit_slices(onv_tape *t, uint32_t base, bool hands_on)
{
    uint64_t bytes = onv_tensor_at(&t->emit, t->operands.at[0].tensor).bytes;
    uint64_t temps = onv_u64_times(bytes, hands_on ? 1 : 2);
    if (!onv_tensor_needs_grad(&t->emit, base))
        temps = onv_u64_plus(temps, onv_tensor_at(&t->emit, base).bytes);
    onv_emit_temps(&t->emit, 0, temps);
}

static uint32_t first_result(onv_tape *t, const onv_program_call *call, uint32_t base)
{
    uint32_t value = onv_call_result(call, 0);
    bool widens = t->row->cast == ONV_CAST_RESULT && t->emit.amp != ONV_UNDEFINED;
    if (t->overwrites && t->operands.count > 0) {
        onv_eager_tensor s =
            onv_tensor_at(&t->emit, base != ONV_NO_TENSOR ? base : t->operands.at[0].tensor);
        return onv_tensor_on(&t->emit, s.storage, s.dtype, s.rank, s.dims, s.strides);
    }
    if (value == ONV_NO_PROGRAM_VALUE) return ONV_NO_TENSOR;
    return new_result(t, value, t->row->form,
                      onv_tape_dtype(t, value, widens ? (uint8_t)ONV_FLOAT : promoted(t)));
}

/* Results that the schema has and the program does not list are there all the same, where backward reads them. */
static void emit_results(onv_tape *t, const onv_program_call *call, const kept *k, uint32_t out)
{
    for (uint32_t i = 0; i < call->n_results || i == 0; i++) {
        uint32_t value = onv_call_result(call, i);
        uint32_t result = i == 0                          ? out
                          : value != ONV_NO_PROGRAM_VALUE ? onv_tape_new(t, value, ONV_UNDEFINED)
                                                          : ONV_NO_TENSOR;
        if (i > 0 && result == ONV_NO_TENSOR) continue;
        onv_emit_out(&t->emit, result);
        if (i < ONV_ATEN_MOST_TENSORS && (k->out >> i & 1) != 0) onv_emit_save(&t->emit, result);
        if (i > 0) onv_tape_set(t, value, result);
    }
}

onv_aten_id onv_tape_norm(double order)
{
    return order == 2     ? ONV_ATEN_vector_norm_2
           : order == 1   ? ONV_ATEN_vector_norm_1
           : isinf(order) ? ONV_ATEN_vector_norm_inf
                          : ONV_ATEN_linalg_vector_norm;
}

/* var_mean, std_mean: backward has formulas for the results whose gradients there are. */
static onv_aten_id result_that_is_read(const onv_tape *t, const onv_program_call *call,
                                       onv_aten_id both, onv_aten_id first)
{
    bool reads[2];
    for (uint32_t k = 0; k < 2; k++) {
        uint32_t value = onv_call_result(call, k);
        reads[k] = value != ONV_NO_PROGRAM_VALUE && t->values[value].n_uses > 0;
    }
    return reads[0] == reads[1] ? both : reads[1] ? ONV_ATEN_mean : first;
}

/* Kernels of each element copy what is a conjugate (ConjugateFallback.cpp); the conjugate of that is a view again. */
static onv_aten_id of_complex(const onv_tape *t, onv_aten_id id)
{
    enum { FIRST = 1, SECOND = 2 };
    bool is_complex = false;
    uint32_t conjugates = 0;
    for (size_t i = 0; i < t->operands.count; i++) {
        const onv_tape_operand *o = &t->operands.at[i];
        const onv_program_call *by = onv_tape_maker(t, o->value);
        is_complex |= onv_dtype_is_complex((onv_dtype)onv_tensor_at(&t->emit, o->tensor).dtype);
        if (by != NULL && onv_tape_is(t, by, ONV_ATEN_conj)) conjugates |= UINT32_C(1) << o->letter;
    }
    if (!is_complex) return id;
    if (id == ONV_ATEN_abs) return ONV_ATEN_complex_abs;
    if (id == ONV_ATEN_angle) return ONV_ATEN_complex_angle;
    return conjugates == FIRST    ? ONV_ATEN_complex_mul_of_conj
           : conjugates == SECOND ? ONV_ATEN_complex_mul_by_conj
                                  : ONV_ATEN_complex_mul;
}

/* grid_sampler() of images (cond_cudnn_grid_sampler): bilinear, with zeros around and corners aligned. */
static bool runs_in_cudnn(const onv_tape *t, const onv_program_call *call)
{
    enum { MOST_CHANNELS = 1024, IMAGES = 4 };
    if (onv_aten_id_of(t->row) != ONV_ATEN_grid_sampler || t->operands.count == 0) return false;
    onv_eager_tensor x = onv_tensor_at(&t->emit, t->operands.at[0].tensor);
    return !t->emit.options->on_cpu && x.rank == IMAGES && x.dims[1] <= MOST_CHANNELS &&
           x.dtype != ONV_BFLOAT16 && onv_call_real(call, "interpolation_mode", 0) == 0 &&
           onv_call_real(call, "padding_mode", 0) == 0 &&
           onv_call_flag(call, "align_corners", false);
}

/* What the derivative depends on, beside the operator. */
static onv_aten_id variant_of(const onv_tape *t, const onv_program_call *call)
{
    onv_aten_id id = onv_aten_as(t->row);
    bool scales = onv_call_real(call, "alpha", 1) != 1;
    if (id == ONV_ATEN_mul || id == ONV_ATEN_abs || id == ONV_ATEN_angle) return of_complex(t, id);
    if (id == ONV_ATEN_grid_sampler_2d && runs_in_cudnn(t, call))
        return ONV_ATEN_cudnn_grid_sampler;
    if (id == ONV_ATEN_var_mean) return result_that_is_read(t, call, id, ONV_ATEN_var);
    if (id == ONV_ATEN_std_mean) return result_that_is_read(t, call, id, ONV_ATEN_std);
    if (id == ONV_ATEN_add) return scales ? ONV_ATEN_add_alpha : id;
    if (id == ONV_ATEN_sub) return scales ? ONV_ATEN_sub_alpha : id;
    if (id == ONV_ATEN_clamp) {
        const onv_argument *low = onv_call_argument(call, "min");
        const onv_argument *high = onv_call_argument(call, "max");
        bool has_low = low != NULL && low->kind != ONV_ARGUMENT_NONE;
        bool has_high = high != NULL && high->kind != ONV_ARGUMENT_NONE;
        return has_low && has_high ? id : ONV_ATEN_clamp_min;
    }
    const onv_argument *weights = onv_call_argument(call, "pos_weight");
    if (id == ONV_ATEN_bce_with_logits && weights != NULL && weights->kind != ONV_ARGUMENT_NONE)
        return ONV_ATEN_bce_with_logits_weighted;
    if (id != ONV_ATEN_linalg_vector_norm) return id;
    return onv_tape_norm(onv_call_real(call, "p", onv_call_real(call, "ord", 2)));
}

/* prelu() sees its slopes, one for each channel, as [1, channels, 1 ...]. */
static void reshape_slopes(onv_tape *t)
{
    onv_tape_operand *slopes = &t->operands.at[1];
    int64_t dims[ONV_MAX_RANK];
    if (t->operands.count < 2) return;
    onv_eager_tensor x = onv_tensor_at(&t->emit, t->operands.at[0].tensor),
                     w = onv_tensor_at(&t->emit, slopes->tensor);
    if (w.rank != 1 || x.rank < 2) return;
    for (uint32_t i = 0; i < x.rank; i++) dims[i] = i == 1 ? w.dims[0] : 1;
    slopes->tensor = onv_emit_reshape(&t->emit, slopes->tensor, x.rank, dims);
}

void onv_tape_by_row(onv_tape *t, const onv_program_call *call)
{
    onv_tape_operands(t, call, t->row);
    onv_aten_id id = variant_of(t, call);
    if (!t->overwrites) cast_operands(t, t->row->cast);
    if (id == ONV_ATEN__prelu_kernel) reshape_slopes(t);
    kept k = kept_of(t);
    if (id == ONV_ATEN_add_alpha) k.hands_on &= 1; /* of b alone the gradient is scaled */
    bool writes = t->overwrites && t->operands.count > 0;
    uint32_t target = writes ? t->operands.at[0].value : ONV_NO_PROGRAM_VALUE;
    uint32_t base = writes ? written_base(t, target, is_any_wanted(t, &k)) : ONV_NO_TENSOR;
    uint32_t out = first_result(t, call, base);
    onv_emit_begin_op(&t->emit, id);
    t->emit.op.in_place = writes;
    t->emit.op.swaps_grads = k.second_first;
    if (base != ONV_NO_TENSOR) emit_slices(t, base, (k.hands_on & 1) != 0);
    emit_operands(t, &k, writes, base, out);
    if (t->row->part != 0 && t->operands.count > 0) {
        uint32_t x = t->operands.at[0].tensor;
        uint32_t reduced = onv_call_dims(t, call, onv_tensor_at(&t->emit, x).rank);
        onv_emit_reduction(&t->emit, x, out, reduced, t->row->part);
    }
    emit_results(t, call, &k, out);
    onv_emit_end(&t->emit);
    if (base != ONV_NO_TENSOR)
        onv_tape_set_base_written(t, onv_call_result(call, 0), target, out);
    else if (writes)
        onv_tape_set_written(t, onv_call_result(call, 0), target, out);
    else
        onv_tape_give(t, call, 0, out);
}

uint32_t onv_tape_step(onv_tape *t, onv_aten_id id, const uint32_t *tensors, uint32_t n,
                       uint32_t out)
{
    bool writes = out == ONV_NO_TENSOR;
    t->operands.count = 0;
    for (uint32_t i = 0; i < n; i++) push_operand(t, ONV_NO_PROGRAM_VALUE, tensors[i], i);
    if (t->operands.count == 0 || t->emit.status != ONV_OK) return ONV_NO_TENSOR;
    onv_eager_tensor first = onv_tensor_at(&t->emit, tensors[0]);
    if (writes)
        out = onv_tensor_on(&t->emit, first.storage, first.dtype, first.rank, first.dims,
                            first.strides);
    kept k = kept_of(t);
    onv_emit_begin_op(&t->emit, id);
    t->emit.op.in_place = writes;
    t->emit.op.swaps_grads = k.second_first;
    emit_operands(t, &k, writes, ONV_NO_TENSOR, out);
    if (t->row->part != 0) onv_emit_reduction(&t->emit, tensors[0], out, 0, t->row->part);
    onv_emit_out(&t->emit, out);
    if ((k.out & 1) != 0) onv_emit_save(&t->emit, out);
    onv_emit_end(&t->emit);
    return out;
}

onv_eager_op *onv_tape_op_by_row(onv_tape *t, const onv_program_call *call)
{
    size_t before = t->emit.eager->ops.count;
    onv_tape_by_row(t, call);
    return onv_emit_made_since(&t->emit, before);
}
