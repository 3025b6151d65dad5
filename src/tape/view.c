/* Views, and copies that stand in for them. */
#include <string.h>

#include "base/fail.h"
#include "base/quota.h"
#include "load/text.h"
#include "tape/state.h"

/* In other strides than the program's: dims of the result are those of the argument that the program gives the same
 * stride; steps of slices are multiples of it. */
static void map_strides(onv_tape *t, uint32_t value, const onv_eager_tensor *x, uint32_t rank,
                        const int64_t *dims, int64_t *strides)
{
    int64_t before[ONV_MAX_RANK];
    uint32_t taken = 0;
    if (t->program->values.at[value].rank != x->rank || !onv_tape_strides(t, value, before)) return;
    for (uint32_t i = 0; i < rank; i++) {
        uint32_t best = UINT32_MAX;
        for (uint32_t k = 0; k < x->rank; k++) {
            bool fits = before[k] > 0 && strides[i] % before[k] == 0 && x->dims[k] >= dims[i] &&
                        (taken >> k & 1) == 0;
            if (fits && (best == UINT32_MAX || before[k] > before[best])) best = k;
        }
        if (best == UINT32_MAX || dims[i] == 1) continue;
        int64_t steps = strides[i] / before[best];
        if (!__builtin_mul_overflow(steps, x->strides[best], &steps)) strides[i] = steps;
        taken |= UINT32_C(1) << best;
    }
}

static uint32_t emit_view(onv_tape *t, onv_aten_id id, uint32_t of, uint32_t value)
{
    uint32_t x = onv_tape_tensor(t, of);
    onv_eager_tensor from = onv_tensor_at(&t->emit, x);
    onv_shape shape;
    int64_t strides[ONV_MAX_RANK];
    if (x == ONV_NO_TENSOR || !onv_tape_shape(t, value, &shape)) return ONV_NO_TENSOR;
    if (!onv_tape_strides(t, value, strides)) return ONV_NO_TENSOR;
    if (!onv_tape_is_as_told(t, of, x)) map_strides(t, of, &from, shape.rank, shape.dims, strides);
    /* By autocast the dtype is the argument's, where the program's is. */
    uint8_t before = t->program->values.at[of].dtype, after = t->program->values.at[value].dtype;
    uint64_t elems = 1;
    for (uint32_t i = 0; i < shape.rank; i++) elems *= (uint64_t)shape.dims[i]; /* compared alone */
    return onv_emit_view_as(&t->emit, onv_aten_ops[id].name, x,
                            after == before ? from.dtype : after, shape.rank, shape.dims, strides,
                            elems == from.elems || after != before ? ONV_GRAD_ALIAS : ONV_GRAD_NEW);
}

/* Indexing leaves out slices of everything (python_variable_indexing.cpp, applySlice()), but not while it is traced, where sizes
 * are symbols. */
static bool is_whole_slice(onv_tape *t, uint32_t of, uint32_t result)
{
    onv_shape shape;
    return onv_aten_as(t->row) == ONV_ATEN_slice && onv_tape_shape(t, result, &shape) &&
           onv_tensor_has_dims(&t->emit, onv_tape_tensor(t, of), shape.rank, shape.dims);
}

void onv_tape_view(onv_tape *t, const onv_program_call *call)
{
    uint32_t of = onv_call_value(call, "self"), result = onv_call_result(call, 0);
    if (of == ONV_NO_PROGRAM_VALUE && call->n_arguments > 0 &&
        call->arguments[0].kind == ONV_ARGUMENT_TENSOR)
        of = call->arguments[0].value;
    if (of == ONV_NO_PROGRAM_VALUE || result == ONV_NO_PROGRAM_VALUE) return;
    if (t->values[of].object == t->values[result].object) return;
    if (is_whole_slice(t, of, result)) {
        onv_tape_same(t, call, of);
        return;
    }
    uint32_t view = emit_view(t, onv_aten_as(t->row), of, result);
    onv_tape_set_view(t, result, of, view);
}

void onv_tape_reshape(onv_tape *t, const onv_program_call *c)
{
    uint32_t of = onv_call_value(c, "self"), result = onv_call_result(c, 0);
    uint32_t x = onv_tape_tensor(t, of);
    onv_shape shape;
    if (result == ONV_NO_PROGRAM_VALUE || !onv_tape_shape(t, result, &shape)) return;
    /* flatten() gives what it is given where nothing changes. */
    if (onv_aten_id_of(t->row) == ONV_ATEN_flatten &&
        onv_tensor_has_dims(&t->emit, x, shape.rank, shape.dims)) {
        onv_tape_same(t, c, of);
        return;
    }
    uint32_t view = onv_emit_reshape(&t->emit, x, shape.rank, shape.dims);
    bool shares = view != ONV_NO_TENSOR &&
                  onv_tensor_at(&t->emit, view).storage == onv_tensor_at(&t->emit, x).storage;
    /* To autograd what _unsafe_view() gives is no view: what is written to it changes nothing else. */
    if (shares && onv_aten_id_of(t->row) != ONV_ATEN__unsafe_view)
        onv_tape_set_view(t, result, of, view);
    else
        onv_tape_set(t, result, view);
}

/* A recording shows the copy of what the next call overwrites, which autograd keeps: rules make it with that call. */
static bool is_for_backward(const onv_tape *t, uint32_t value)
{
    return onv_program_is_recorded(t->program) && value != ONV_NO_PROGRAM_VALUE &&
           t->program->values.at[value].is_kept && t->values[value].n_uses == 0;
}

/* contiguous() gives its argument where that is; clone() never does. */
void onv_tape_contiguous(onv_tape *t, const onv_program_call *c)
{
    uint32_t of = onv_call_value(c, "self"), x = onv_tape_tensor(t, of);
    onv_eager_tensor from = onv_tensor_at(&t->emit, x);
    const char *format = onv_call_text(c, "memory_format");
    if (x == ONV_NO_TENSOR || is_for_backward(t, onv_call_result(c, 0))) return;
    bool is_last = format != NULL && strncmp(format, "channels_last", 13) == 0;
    bool clones = onv_aten_id_of(t->row) != ONV_ATEN_contiguous;
    bool is_there = is_last ? onv_tensor_is_channels_last(&from) : onv_tensor_is_contiguous(&from);
    if (!clones && is_there) {
        onv_tape_same(t, c, of);
        return;
    }
    int64_t strides[ONV_MAX_RANK];
    bool preserves = clones && (format == NULL || strcmp(format, "preserve") == 0);
    if (preserves) onv_strides_like(&from, strides);
    uint32_t out = is_last ? onv_tape_new(t, onv_call_result(c, 0), from.dtype)
                           : onv_tensor_new(&t->emit, from.dtype, from.rank, from.dims,
                                            preserves ? strides : NULL);
    onv_tape_give(t, c, 0,
                  onv_emit_one(&t->emit, clones ? "clone" : "contiguous", x, ONV_GRAD_ALIAS, out));
}

/* A cast that does nothing in the file, as x.float() of float32, gives its argument a second name, which later calls read wherever forward
 * says x. What is cast once more, or gives its type, is x, which under autocast may be of another type. */
static uint32_t before_casts(const onv_tape *t, uint32_t value)
{
    const onv_program *p = t->program;
    while (value != ONV_NO_PROGRAM_VALUE && t->emit.amp != ONV_UNDEFINED && onv_work(1)) {
        uint32_t call = p->values.at[value].call;
        if (call >= p->calls.count || t->ops[call] == NULL || t->ops[call]->rule != ONV_RULE_TO)
            break;
        uint32_t of = onv_call_value(&p->calls.at[call], "self");
        if (of == ONV_NO_PROGRAM_VALUE || p->values.at[of].dtype != p->values.at[value].dtype)
            break;
        value = of;
    }
    return value;
}

static onv_text line_of(const onv_program_call *call)
{
    enum { BYTES_BY_WORK = 64 };
    onv_text trace = onv_text_of(call->trace), code = onv_text_of("");
    if (!onv_work(1 + trace.length / BYTES_BY_WORK)) return code;
    for (onv_trace_frame f; onv_next_frame(&trace, &f);) code = f.code;
    return code;
}

/* The line of forward has `x.dtype`, where x is not a parameter of its module. */
static bool takes_type_of_tensor(onv_text code)
{
    size_t end = code.length - onv_text_from(code, ".dtype").length, start = end;
    while (start > 0 && (onv_is_word(code.at[start - 1]) || code.at[start - 1] == '.')) start--;
    return end < code.length && !onv_text_begins(onv_text_skip(code, start), "self.");
}

/* `x.to(input_dtype)`: forward has a name for the type. */
static bool takes_named_type(onv_text code)
{
    onv_text from = onv_text_from(code, ".to(");
    size_t at = sizeof ".to(" - 1;
    while (at < from.length && onv_is_word(from.at[at])) at++;
    return at < from.length && from.at[at] == ')';
}

/* Types that the file has as float32 and autocast may change. A type with a name is likely that of what the same module has cast from
 * 16 bits before, as norms do. */
void onv_tape_find_typed(onv_tape *t)
{
    const onv_program *p = t->program;
    uint32_t widens = UINT32_MAX; /* the module that did so last */
    for (size_t i = 0; i < p->calls.count && t->emit.amp != ONV_UNDEFINED; i++) {
        const onv_program_call *call = &p->calls.at[i];
        const onv_argument *dtype = onv_call_argument(call, "dtype");
        bool is_float =
            dtype != NULL && dtype->kind == ONV_ARGUMENT_DTYPE && dtype->dtype == ONV_FLOAT;
        if (!is_float || call->trace == NULL) continue;
        onv_eager_tensor from =
            onv_tensor_at(&t->emit, onv_tape_tensor(t, onv_call_value(call, "self")));
        onv_eager_tensor to = onv_tensor_at(&t->emit, onv_tape_tensor(t, onv_call_result(call, 0)));
        if (onv_dtype_bits((onv_dtype)from.dtype) == 16) widens = call->module;
        onv_text code = line_of(call);
        bool may_be_low =
            takes_type_of_tensor(code) ||
            (call->module == widens && widens != UINT32_MAX && takes_named_type(code));
        if (may_be_low && to.bytes > 0)
            onv_say(&t->emit, ONV_SAID_typed, call->name, to.bytes, NULL);
    }
}

/* Nothing happens where dtype and device stay. */
void onv_tape_to(onv_tape *t, const onv_program_call *c)
{
    uint32_t of = onv_call_value(c, "self"), x = onv_tape_tensor(t, of);
    uint32_t result = onv_call_result(c, 0);
    onv_eager_tensor from = onv_tensor_at(&t->emit, x);
    if (x == ONV_NO_TENSOR || result == ONV_NO_PROGRAM_VALUE) return;
    uint8_t dtype = t->program->values.at[result].dtype;
    /* What was moved to a device alone: the dtype is that of x in the file (THPVariable_to, python_variable_methods.cpp). */
    if (strcmp(c->op_name, "aten.to.dtype_layout") == 0) dtype = from.dtype;
    bool copies = onv_aten_id_of(t->row) == ONV_ATEN__to_copy || onv_call_flag(c, "copy", false);
    uint32_t other = before_casts(t, onv_call_value(c, "other"));
    if (other != ONV_NO_PROGRAM_VALUE && onv_tape_tensor(t, other) != ONV_NO_TENSOR)
        dtype = onv_tensor_at(&t->emit, onv_tape_tensor(t, other)).dtype;
    if (dtype == from.dtype && !copies) {
        uint32_t before = onv_tape_tensor(t, before_casts(t, of));
        if (onv_tensor_at(&t->emit, before).dtype != dtype)
            onv_say(&t->emit, ONV_SAID_casts, c->name, from.bytes, NULL);
        onv_tape_same(t, c, of);
        return;
    }
    uint32_t out =
        dtype != from.dtype ? onv_emit_cast(&t->emit, x, dtype) : onv_emit_clone(&t->emit, x);
    onv_tape_set(t, result, out);
}

void onv_tape_expand(onv_tape *t, const onv_program_call *c)
{
    uint32_t of = onv_call_value(c, "self"), x = onv_tape_tensor(t, of);
    uint32_t result = onv_call_result(c, 0);
    onv_shape shape;
    if (result == ONV_NO_PROGRAM_VALUE || !onv_tape_shape(t, result, &shape)) return;
    onv_tape_set_view(t, result, of, onv_emit_expand(&t->emit, x, shape.rank, shape.dims));
}

/* Each result is a view of the tensor in its place. */
void onv_tape_expand_each(onv_tape *t, const onv_program_call *c)
{
    const onv_argument *list = onv_call_argument(c, "tensors");
    if (list == NULL || list->kind != ONV_ARGUMENT_TENSORS) return;
    for (uint32_t k = 0; k < c->n_results && k < list->count; k++) {
        uint32_t of = list->values[k], result = c->results[k];
        if (of == ONV_NO_PROGRAM_VALUE || result == ONV_NO_PROGRAM_VALUE) continue;
        onv_tape_set_view(t, result, of, emit_view(t, onv_aten_as(t->row), of, result));
    }
}

void onv_tape_detach(onv_tape *t, const onv_program_call *c)
{
    uint32_t of = onv_call_value(c, "self"), x = onv_tape_tensor(t, of);
    onv_eager_tensor from = onv_tensor_at(&t->emit, x);
    if (x == ONV_NO_TENSOR) return;
    onv_tape_give(
        t, c, 0,
        onv_emit_view(&t->emit, "detach", x, from.rank, from.dims, from.strides, ONV_GRAD_NONE));
}

/* One operation, which fills missing gradients with zeros. */
void onv_tape_parts(onv_tape *t, const onv_program_call *c)
{
    uint32_t of = onv_call_value(c, "self"), x = onv_tape_tensor(t, of);
    onv_eager_tensor from = onv_tensor_at(&t->emit, x);
    if (x == ONV_NO_TENSOR) return;
    onv_aten_id id = onv_aten_id_of(t->row);
    bool told = onv_tape_is_as_told(t, of, x);
    onv_emit_begin_op(&t->emit, id == ONV_ATEN_unbind ? id : onv_aten_as(t->row));
    t->emit.op.zeroes_grads = true;
    onv_emit_in(&t->emit, x, ONV_GRAD_NEW);
    for (uint32_t k = 0; k < c->n_results && t->emit.status == ONV_OK; k++) {
        uint32_t value = c->results[k];
        onv_shape shape;
        int64_t strides[ONV_MAX_RANK];
        if (value == ONV_NO_PROGRAM_VALUE || !onv_tape_shape(t, value, &shape)) continue;
        if (!onv_tape_strides(t, value, strides))
            memcpy(strides, from.strides, from.rank * sizeof *strides);
        else if (!told)
            map_strides(t, of, &from, shape.rank, shape.dims, strides);
        uint32_t part =
            onv_tensor_on(&t->emit, from.storage, from.dtype, shape.rank, shape.dims, strides);
        onv_tape_set_view(t, value, of, onv_emit_out(&t->emit, part));
    }
    onv_emit_end(&t->emit);
}
