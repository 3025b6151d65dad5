/* Layers: convolution, normalisation, dropout, softmax. */
#include "emit/layers.h"

#include <string.h>

#include "base/checked.h"
#include "emit/conv.h"
#include "tape/state.h"

/* --- Convolution ------------------------------------------------------------------------------- */

static onv_conv_call conv_call(onv_tape *t, const onv_program_call *c)
{
    onv_conv_call call = {.groups = onv_call_int(t, c, "groups", 1),
                          .is_transposed = strstr(c->op_name, "transpose") != NULL ||
                                           onv_call_flag(c, "transposed", false)};
    bool is_same = onv_call_text(c, "padding") != NULL; /* "same", "valid" */
    for (uint32_t i = 0; i < 3; i++) {
        call.stride[i] = onv_call_int_at(t, c, "stride", i, 1);
        call.dilation[i] = onv_call_int_at(t, c, "dilation", i, 1);
        call.pad[i] = is_same ? -1 : onv_call_int_at(t, c, "padding", i, 0);
    }
    return call;
}

/* padding="same" pads the input by an operation of its own where both ends differ. */
static uint32_t padded(onv_tape *t, const onv_program_call *c, uint32_t x, uint32_t w,
                       const onv_conv_call *call)
{
    const char *text = onv_call_text(c, "padding");
    onv_eager_tensor in = onv_tensor_at(&t->emit, x), kernel = onv_tensor_at(&t->emit, w);
    int64_t dims[ONV_MAX_RANK];
    bool is_uneven = false;
    if (text == NULL || strcmp(text, "same") != 0 || in.rank != kernel.rank) return x;
    for (uint32_t i = 0; i < in.rank; i++) {
        bool is_odd = i >= 2 && (call->dilation[i - 2] * (kernel.dims[i] - 1)) % 2 != 0;
        dims[i] = in.dims[i] + is_odd;
        is_uneven |= is_odd;
    }
    if (!is_uneven) return x;
    return onv_emit_of(&t->emit, "pad", x, ONV_GRAD_NEW, in.rank, dims, NULL);
}

uint32_t onv_tape_conv(onv_tape *t, const onv_program_call *c)
{
    uint32_t *in = t->in;
    onv_amp_low_all(&t->emit, in, 3);
    onv_conv_call call = conv_call(t, c);
    in[0] = padded(t, c, in[0], in[1], &call);
    onv_eager_tensor x = onv_tensor_at(&t->emit, in[0]);
    uint32_t out = onv_tape_new_image(t, onv_call_result(c, 0), &x);
    if (out == ONV_NO_TENSOR) return out;
    return onv_emit_conv(&t->emit, &call, in[0], in[1], in[2], out);
}

/* --- Normalisation ----------------------------------------------------------------------------- */

/* Results beside the first are statistics, which the operation keeps as its own. */

uint32_t onv_tape_batch_norm(onv_tape *t, const onv_program_call *c)
{
    uint32_t *in = t->in;
    uint32_t x = in[0];
    (void)c;
    onv_eager_tensor s = onv_tensor_at(&t->emit, x);
    bool last = onv_tensor_is_channels_last(&s);
    if (!last) x = onv_emit_contiguous(&t->emit, x);
    uint32_t out = onv_tensor_new(&t->emit, s.dtype, s.rank, s.dims, last ? s.strides : NULL);
    uint64_t channels = s.rank > 1 ? (uint64_t)s.dims[1] : 1;
    return onv_emit_norm(&t->emit, "batch_norm", x, in[1], in[2], channels, true, out);
}

/* Of channels of each sample: weight and bias are repeated for them. */
static uint32_t repeated(onv_tape *t, uint32_t w, uint64_t groups)
{
    const int64_t dims[] = {groups <= INT64_MAX ? (int64_t)groups : INT64_MAX};
    if (w == ONV_NO_TENSOR) return w;
    return onv_emit_of(&t->emit, "repeat", w, ONV_GRAD_NEW, 1, dims, NULL);
}

uint32_t onv_tape_instance_norm(onv_tape *t, const onv_program_call *c)
{
    uint32_t *in = t->in;
    uint32_t x = onv_emit_contiguous(&t->emit, in[0]);
    onv_eager_tensor s = onv_tensor_at(&t->emit, x);
    uint64_t groups = s.rank > 1 ? onv_u64_times((uint64_t)s.dims[0], (uint64_t)s.dims[1]) : 1;
    in[1] = repeated(t, in[1], groups);
    in[2] = repeated(t, in[2], groups);
    uint32_t out = onv_tensor_new(&t->emit, s.dtype, s.rank, s.dims, NULL);
    out = onv_emit_norm(&t->emit, "instance_norm", x, in[1], in[2], groups, true, out);
    onv_tape_set_view_inside(t, onv_call_result(c, 0), out); /* of what batch_norm() gives */
    return ONV_NO_TENSOR;
}

static int64_t first_axis(const onv_program_call *c)
{
    const onv_argument *a = onv_call_argument(c, "normalized_shape");
    return a != NULL && a->kind == ONV_ARGUMENT_INTS ? -(int64_t)a->count : -1;
}

uint32_t onv_tape_layer_norm(onv_tape *t, const onv_program_call *c)
{
    return onv_emit_layer_norm(&t->emit, t->in[0], t->in[1], t->in[2], first_axis(c), true);
}

uint32_t onv_tape_rms_norm(onv_tape *t, const onv_program_call *c)
{
    return onv_emit_layer_norm(&t->emit, t->in[0], t->in[1], ONV_NO_TENSOR, first_axis(c), false);
}

uint32_t onv_tape_group_norm(onv_tape *t, const onv_program_call *c)
{
    int64_t groups = onv_call_int(t, c, "num_groups", onv_call_int(t, c, "group", 1));
    return onv_emit_group_norm(&t->emit, t->in[0], t->in[1], t->in[2], groups);
}

/* Of each length a norm is kept, in float32. */
uint32_t onv_tape_weight_norm(onv_tape *t, const onv_program_call *c)
{
    const uint32_t *in = t->in;
    onv_eager_tensor v = onv_tensor_at(&t->emit, in[0]);
    (void)c;
    uint32_t out = onv_tensor_new(&t->emit, v.dtype, v.rank, v.dims, NULL);
    onv_emit_begin(&t->emit, "_weight_norm_interface");
    for (uint32_t k = 0; k < 2; k++) onv_emit_in_saved(&t->emit, in[k], ONV_GRAD_NEW);
    onv_emit_extra(&t->emit, onv_tensor_at(&t->emit, in[1]).elems, sizeof(float), "norms");
    onv_emit_out(&t->emit, out);
    onv_emit_end(&t->emit);
    return out;
}

/* --- Dropout, softmax -------------------------------------------------------------------------- */

/* Whether it drops something: its flag of training is that of the run. */
static bool drops(const onv_tape *t, const onv_program_call *c)
{
    return !t->emit.options->inference && onv_call_real(c, "p", 0.5) > 0;
}

uint32_t onv_tape_dropout(onv_tape *t, const onv_program_call *c)
{
    uint32_t *in = t->in;
    uint32_t value = t->operands.at[0].value;
    if (!drops(t, c)) {
        onv_tape_same(t, c, value);
        return ONV_NO_TENSOR;
    }
    if (!t->overwrites) return onv_emit_dropout(&t->emit, in[0]);
    /* nn.Dropout(inplace=True) multiplies by factors, which it keeps. */
    uint32_t out = onv_tape_result(t, c, value, ONV_UNDEFINED);
    onv_emit_begin(&t->emit, "dropout_");
    t->emit.op.in_place = true;
    onv_emit_in(&t->emit, in[0], ONV_GRAD_NEW);
    onv_emit_extra(&t->emit, onv_tensor_at(&t->emit, in[0]).bytes, 1, "factors");
    onv_emit_out(&t->emit, out);
    onv_emit_end(&t->emit);
    onv_tape_give_result(t, c, value, out);
    return ONV_NO_TENSOR;
}

/* Whole channels: a number for each, with which the input is multiplied. */
uint32_t onv_tape_feature_dropout(onv_tape *t, const onv_program_call *c)
{
    uint32_t *in = t->in;
    onv_eager_tensor x = onv_tensor_at(&t->emit, in[0]);
    if (!drops(t, c)) {
        onv_tape_same(t, c, t->operands.at[0].value);
        return ONV_NO_TENSOR;
    }
    bool is_feature = strstr(c->op_name, "feature") != NULL;
    int64_t dims[ONV_MAX_RANK];
    for (uint32_t i = 0; i < x.rank; i++) dims[i] = is_feature && i >= 2 ? 1 : x.dims[i];
    uint32_t noise = onv_emit_one(&t->emit, "bernoulli", ONV_NO_TENSOR, ONV_GRAD_NONE,
                                  onv_tensor_new(&t->emit, x.dtype, x.rank, dims, NULL));
    uint32_t out = onv_tape_result(t, c, t->operands.at[0].value, x.dtype);
    onv_emit_begin(&t->emit, "mul");
    t->emit.op.in_place = t->overwrites;
    onv_emit_in(&t->emit, in[0], ONV_GRAD_NEW);
    onv_emit_in_saved(&t->emit, noise, ONV_GRAD_NONE);
    onv_emit_out(&t->emit, out);
    onv_emit_end(&t->emit);
    onv_tape_give_result(t, c, t->operands.at[0].value, out);
    return ONV_NO_TENSOR;
}

uint32_t onv_tape_softmax(onv_tape *t, const onv_program_call *c)
{
    uint8_t dtype = t->program->values.at[onv_call_result(c, 0)].dtype;
    return onv_emit_softmax(&t->emit, onv_aten_as(t->row), t->in[0], dtype);
}
