/* Signal processing: DFT, STFT, the window functions and MelWeightMatrix. */
#include "ops/op.h"
#include "ops/rules.h"

/* --- DFT --------------------------------------------------------------------------------------- */

/* The signal axis: an attribute (default 1) in opset 17, input 2 (default -2) since 20. -1 where the
 * input is not known. */
static onv_status dft_axis(onv_op_ctx *c, int rank, int *axis)
{
    int64_t given = c->version < 20 ? onv_op_attr_int(c, "axis", 1) : -2;
    if (c->version >= 20 && onv_op_has_in(c, 2)) {
        onv_dim value = onv_op_in_scalar(c, 2);
        *axis = -1;
        if (!onv_dim_is_const(value)) return ONV_OK;
        given = value.raw;
    }
    ONV_TRY(onv_op_axis(c, given, rank, axis));
    if (*axis == rank - 1)
        return onv_op_fail(c, "axis %lld is the one that holds the complex numbers",
                           (long long)given);
    return ONV_OK;
}

static onv_status infer_dft(onv_op_ctx *c)
{
    onv_dim dims[ONV_MAX_RANK];
    int rank = onv_op_in_dims(c, 0, dims), axis;
    bool onesided = onv_op_attr_int(c, "onesided", 0) != 0;
    bool inverse = onv_op_attr_int(c, "inverse", 0) != 0;
    onv_dim parts, length = onv_op_in_scalar(c, 1);
    ONV_TRY(onv_tensor_need_rank(c, 0, 2, ONV_MAX_RANK));
    if (onv_dim_always_lt(c->dims, length, onv_dim_const(1)))
        return onv_op_fail(c, "input 1 is %s, which is not a length",
                           onv_dim_text(c->dims, c->arena, length));
    if (rank < 0) return onv_op_set_like(c, NULL, -1);
    parts = onv_dim_const(inverse ? 2 : 1);
    if (onesided && onv_dim_always_ne(c->dims, onv_op_in_dim(c, 0, -1), parts))
        return onv_op_fail(c, "a one-sided transform needs %s input, not %s",
                           inverse ? "complex" : "real", onv_op_in_text(c, 0));
    ONV_TRY(dft_axis(c, rank, &axis));
    for (int i = 0; i < rank - 1; i++) {
        if (axis >= 0 && i != axis) continue;
        onv_dim n = onv_op_has_in(c, 1) ? length : dims[i];
        if (onesided && inverse && !onv_op_has_in(c, 1)) /* as if the signal had been even */
            n = onv_dim_mul(c->dims, onv_dim_sub(c->dims, n, onv_dim_const(1)), onv_dim_const(2));
        if (onesided && !inverse)
            n = onv_dim_add(c->dims, onv_dim_floordiv(c->dims, n, onv_dim_const(2)),
                            onv_dim_const(1));
        bool any_axis = axis < 0 && !onv_dim_same(n, dims[i]);
        dims[i] = any_axis ? ONV_DIM_UNKNOWN : n;
    }
    dims[rank - 1] = onv_dim_const(onesided && inverse ? 1 : 2);
    return onv_op_set_like(c, dims, rank);
}

#define WINDOW "(size): [size[0]] attr.output_datatype or f32"

static const onv_op rows[] = {
    ONV_OP("DFT", 17, 1, 2, 1, 1, infer_dft),
    ONV_OP("DFT", 20, 1, 3, 1, 1, infer_dft),
    /* The signal is multiplied by the window, which autograd keeps. */
    ONV_SAYS("STFT", 17, 2, 4, 1, 1,
             "(signal[batch, all] or [batch, all, _], frame_step, window[frame], frame_length) "
             "where frame = frame_length[0], "
             "frame = if(given(window), frame, if(given(frame_length), frame, all)), "
             "step = frame_step[0], behind_the_first_frame = all - frame: "
             "[batch, behind_the_first_frame / step + 1, "
             "if(attr.onesided or 1, frame / 2 + 1, frame), 2]",
             .traits = {.save_in = ONV_BIT(2)}),
    ONV_SAYS("HannWindow", 17, 1, 1, 1, 1, WINDOW),
    ONV_SAYS("HammingWindow", 17, 1, 1, 1, 1, WINDOW),
    ONV_SAYS("BlackmanWindow", 17, 1, 1, 1, 1, WINDOW),
    ONV_SAYS("MelWeightMatrix", 17, 5, 5, 1, 1,
             "(bins, length): [length[0] / 2 + 1, bins[0]] attr.output_datatype or f32"),
};

const onv_op_family onv_ops_signal = {"", rows, sizeof rows / sizeof rows[0]};
