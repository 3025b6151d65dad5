#include "ops/rules.h"

#include <string.h>

onv_status onv_window_list(onv_op_ctx *c, const char *name, int count, int64_t least,
                           int64_t fallback, int64_t *list)
{
    uint32_t given;
    const int64_t *ints = onv_op_attr_ints(c, name, &given);
    for (int i = 0; i < count; i++) list[i] = fallback;
    if (given == 0) return ONV_OK; /* exporters write an empty list for "default", too */
    if (given != (uint32_t)count)
        return onv_op_fail(c, "attribute %s has %u values where %d are needed", name, given, count);
    for (int i = 0; i < count; i++) {
        if (ints[i] < least || ints[i] > INT32_MAX)
            return onv_op_fail(c, "attribute %s holds %lld, which is out of range", name,
                               (long long)ints[i]);
        list[i] = ints[i];
    }
    return ONV_OK;
}

static onv_status read_mode(onv_op_ctx *c, onv_window *w)
{
    const char *mode = onv_op_attr_string(c, "auto_pad", "NOTSET");
    if (strcmp(mode, "NOTSET") == 0 || *mode == '\0') {
        w->mode = ONV_PAD_EXPLICIT;
    } else if (strcmp(mode, "SAME_UPPER") == 0 || strcmp(mode, "SAME_LOWER") == 0) {
        w->mode = ONV_PAD_SAME;
    } else if (strcmp(mode, "VALID") == 0) {
        w->mode = ONV_PAD_VALID;
    } else {
        return onv_op_fail(c, "auto_pad is '%s', not NOTSET, SAME_UPPER, SAME_LOWER or VALID",
                           mode);
    }
    return ONV_OK;
}

onv_status onv_window_read(onv_op_ctx *c, int axes, onv_window *w)
{
    int64_t list[2 * ONV_MAX_RANK];
    *w = (onv_window){.axes = axes, .ceil_mode = onv_op_attr_int(c, "ceil_mode", 0) != 0};
    ONV_TRY(read_mode(c, w));
    ONV_TRY(onv_window_list(c, "kernel_shape", axes, 1, 0, list));
    for (int i = 0; i < axes; i++)
        w->kernel[i] = list[i] == 0 ? ONV_DIM_UNKNOWN : onv_dim_const(list[i]);
    ONV_TRY(onv_window_list(c, "strides", axes, 1, 1, w->stride));
    ONV_TRY(onv_window_list(c, "dilations", axes, 1, 1, w->dilation));
    ONV_TRY(onv_window_list(c, "pads", 2 * axes, 0, 0, list));
    /* The operators forbid pads next to auto_pad; runtimes let auto_pad win. */
    if (w->mode != ONV_PAD_EXPLICIT) return ONV_OK;
    memcpy(w->pad_begin, list, (size_t)axes * sizeof *list);
    memcpy(w->pad_end, list + axes, (size_t)axes * sizeof *list);
    return ONV_OK;
}

onv_status onv_window_weights(onv_op_ctx *c, uint32_t input, onv_window *w)
{
    if (onv_op_in_rank(c, input) < 0) return ONV_OK;
    for (int i = 0; i < w->axes; i++) {
        onv_dim size = onv_op_in_dim(c, input, i - w->axes);
        if (onv_dim_is(size, 0))
            return onv_op_fail(c, "the kernel is empty: weights %s", onv_op_in_text(c, input));
        if (onv_dim_always_ne(c->dims, size, w->kernel[i]))
            return onv_op_fail(c, "kernel_shape holds %lld where the weights are %s",
                               (long long)w->kernel[i].raw, onv_op_in_text(c, input));
        if (!onv_dim_is_known(w->kernel[i])) w->kernel[i] = size;
    }
    return ONV_OK;
}

/* Elements of the input that the window spans. */
static onv_dim extent_of(onv_op_ctx *c, const onv_window *w, int axis)
{
    onv_dim one = onv_dim_const(1);
    onv_dim gaps = onv_dim_sub(c->dims, w->kernel[axis], one);
    return onv_dim_add(c->dims, onv_dim_mul(c->dims, gaps, onv_dim_const(w->dilation[axis])), one);
}

onv_status onv_window_places(onv_op_ctx *c, const onv_window *w, int axis, onv_dim in,
                             onv_dim *places)
{
    onv_dim stride = onv_dim_const(w->stride[axis]);
    if (w->mode == ONV_PAD_SAME) {
        *places = onv_dim_ceildiv(c->dims, in, stride);
        return ONV_OK;
    }
    onv_dim extent = extent_of(c, w, axis);
    onv_dim begun = onv_dim_add(c->dims, in, onv_dim_const(w->pad_begin[axis]));
    onv_dim padded = onv_dim_add(c->dims, begun, onv_dim_const(w->pad_end[axis]));
    if (!w->ceil_mode) {
        onv_dim moves = onv_dim_floordiv(c->dims, onv_dim_sub(c->dims, padded, extent), stride);
        *places = onv_dim_add(c->dims, moves, onv_dim_const(1));
    } else {
        /* ceil((padded - extent) / stride) + 1, but a window that would start in the padding at
         * the end is left out: only those below ceil(begun / stride) start before it. The smaller
         * of the two is one division. ONNX says so since opset 22; runtimes do it in every
         * version. */
        onv_dim room = onv_dim_const(w->pad_end[axis] + w->stride[axis]);
        onv_dim over = onv_dim_min(c->dims, onv_dim_sub(c->dims, room, extent), onv_dim_const(0));
        *places = onv_dim_ceildiv(c->dims, onv_dim_add(c->dims, begun, over), stride);
    }
    if (!onv_dim_always_lt(c->dims, *places, onv_dim_const(1))) return ONV_OK;
    return onv_op_fail(c, "the kernel spans %s elements of spatial axis %d, which has %s",
                       onv_dim_text(c->dims, c->arena, extent), axis,
                       onv_dim_text(c->dims, c->arena, padded));
}

onv_status onv_window_inverse(onv_op_ctx *c, const onv_window *w, int axis, onv_dim in,
                              int64_t output_padding, onv_dim *size)
{
    onv_dims *d = c->dims;
    onv_dim stride = onv_dim_const(w->stride[axis]);
    onv_dim last = onv_dim_add(d, extent_of(c, w, axis), onv_dim_const(output_padding));
    onv_dim moves = onv_dim_sub(d, in, onv_dim_const(1));
    onv_dim pads = onv_dim_const(w->pad_begin[axis] + w->pad_end[axis]);
    /* SAME cuts what reaches beyond stride * in; it never adds. */
    if (w->mode == ONV_PAD_SAME)
        pads = onv_dim_max(d, onv_dim_sub(d, last, stride), onv_dim_const(0));
    *size = onv_dim_sub(d, onv_dim_add(d, onv_dim_mul(d, moves, stride), last), pads);
    /* From nothing comes nothing: only an empty axis may stay empty. */
    if (!onv_dim_always_lt(d, *size, onv_dim_const(onv_dim_is(in, 0) ? 0 : 1))) return ONV_OK;
    return onv_op_fail(c, "the padding leaves %s elements of spatial axis %d",
                       onv_dim_text(d, c->arena, *size), axis);
}
