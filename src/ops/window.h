/* The sliding window of convolutions and poolings: its attributes, and how many places it takes.
 *
 * Along an axis of size h, a window of k elements that stand `dilation` apart covers
 * extent = (k - 1) * dilation + 1 elements. It moves by `stride` over the padded axis:
 *
 *     |<-- pad_begin -->|<------------ h ------------>|<-- pad_end -->|
 *     |<--- extent --->|
 *     |<- stride ->|<--- extent --->|
 *
 * Sizes may be symbolic; attributes are numbers.
 */
#ifndef ONV_OPS_WINDOW_H
#define ONV_OPS_WINDOW_H

#include "ops/op.h"

typedef enum onv_pad_mode {
    ONV_PAD_EXPLICIT,
    ONV_PAD_SAME, /* as many places as fit when the axis is padded to a multiple of the stride */
    ONV_PAD_VALID,
} onv_pad_mode;

typedef struct onv_window {
    int axes; /* spatial ones */
    onv_pad_mode mode;
    bool ceil_mode;
    onv_dim kernel[ONV_MAX_RANK]; /* unknown where neither attribute nor weights tell */
    int64_t stride[ONV_MAX_RANK];
    int64_t dilation[ONV_MAX_RANK];
    int64_t pad_begin[ONV_MAX_RANK], pad_end[ONV_MAX_RANK];
} onv_window;

/* A list attribute of `count` numbers in [least, INT32_MAX]; all `fallback` where it is absent. */
onv_status onv_window_list(onv_op_ctx *c, const char *name, int count, int64_t least,
                           int64_t fallback, int64_t *list);

/* Everything from the attributes kernel_shape, strides, dilations, pads, auto_pad and ceil_mode. */
onv_status onv_window_read(onv_op_ctx *c, int axes, onv_window *w);

/* The kernel that the last dims of a weight tensor give; fails where kernel_shape contradicts. */
onv_status onv_window_weights(onv_op_ctx *c, uint32_t input, onv_window *w);

/* The places the window takes along an axis of size `in`. */
onv_status onv_window_places(onv_op_ctx *c, const onv_window *w, int axis, onv_dim in,
                             onv_dim *places);

/* The size from which the window would come to `in` places: transposed convolution, unpooling. */
onv_status onv_window_inverse(onv_op_ctx *c, const onv_window *w, int axis, onv_dim in,
                              int64_t output_padding, onv_dim *size);

#endif
