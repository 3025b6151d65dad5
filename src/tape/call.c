/* Arguments of calls. A call has those alone that differ from the operator's defaults. */
#include <math.h>
#include <string.h>

#include "tape/state.h"

uint32_t onv_call_value(const onv_program_call *call, const char *name)
{
    const onv_argument *a = onv_call_argument(call, name);
    return a != NULL && a->kind == ONV_ARGUMENT_TENSOR ? a->value : ONV_NO_PROGRAM_VALUE;
}

uint32_t onv_call_tensor(onv_tape *t, const onv_program_call *call, const char *name)
{
    return onv_tape_tensor(t, onv_call_value(call, name));
}

int64_t onv_call_int(onv_tape *t, const onv_program_call *call, const char *name, int64_t fallback)
{
    return onv_call_int_at(t, call, name, 0, fallback);
}

int64_t onv_call_int_at(onv_tape *t, const onv_program_call *call, const char *name, uint32_t i,
                        int64_t fallback)
{
    const onv_argument *a = onv_call_argument(call, name);
    int64_t number;
    if (a == NULL) return fallback;
    if (a->kind == ONV_ARGUMENT_INT && onv_tape_number(t, a->number, &number)) return number;
    if (a->kind != ONV_ARGUMENT_INTS || a->count == 0) return fallback;
    uint32_t at = i < a->count ? i : a->count - 1;
    return onv_tape_number(t, a->numbers[at], &number) ? number : fallback;
}

uint32_t onv_call_dims(onv_tape *t, const onv_program_call *call, uint32_t rank)
{
    const onv_argument *a = onv_call_argument(call, "dim");
    uint32_t n = a == NULL ? 0 : a->kind == ONV_ARGUMENT_INTS ? a->count : 1, dims = 0;
    for (uint32_t i = 0; i < n && i < ONV_MAX_RANK; i++) {
        int64_t axis = onv_call_int_at(t, call, "dim", i, INT64_MAX);
        if (axis < 0) axis += rank;
        if (axis >= 0 && axis < rank) dims |= UINT32_C(1) << axis;
    }
    return dims;
}

double onv_call_real(const onv_program_call *call, const char *name, double fallback)
{
    const onv_argument *a = onv_call_argument(call, name);
    if (a == NULL) return fallback;
    if (a->kind == ONV_ARGUMENT_FLOAT) return isnan(a->real) ? fallback : a->real;
    if (a->kind == ONV_ARGUMENT_INT && onv_dim_is_const(a->number)) return (double)a->number.raw;
    return fallback;
}

bool onv_call_flag(const onv_program_call *call, const char *name, bool fallback)
{
    const onv_argument *a = onv_call_argument(call, name);
    return a != NULL && a->kind == ONV_ARGUMENT_BOOL ? a->flag : fallback;
}

const char *onv_call_text(const onv_program_call *call, const char *name)
{
    const onv_argument *a = onv_call_argument(call, name);
    return a != NULL && (a->kind == ONV_ARGUMENT_STRING || a->kind == ONV_ARGUMENT_FORMAT) ? a->text
                                                                                           : NULL;
}

const onv_program_call *onv_tape_maker(const onv_tape *t, uint32_t value)
{
    if (value == ONV_NO_PROGRAM_VALUE || t->program->values.at[value].call == ONV_NO_CALL_INDEX)
        return NULL;
    return &t->program->calls.at[t->program->values.at[value].call];
}

bool onv_tape_is(const onv_tape *t, const onv_program_call *call, onv_aten_id id)
{
    const onv_aten_op *op = t->ops[call - t->program->calls.at];
    return op != NULL && (onv_aten_id_of(op) == id || op->as == id);
}
