/* Convolutions as cuDNN runs them. */
#ifndef ONV_EMIT_CONV_H
#define ONV_EMIT_CONV_H

#include "emit/emit.h"

typedef struct onv_conv_call {
    int64_t stride[3], dilation[3]; /* by spatial dim */
    int64_t pad[3];                 /* at its beginning; below 0: not told */
    int64_t groups;
    bool is_transposed;
} onv_conv_call;

/* `out`, new, is in the order of memory in which cuDNN answers: channels last where those of x are. */
uint32_t onv_emit_conv(onv_emitter *e, const onv_conv_call *call, uint32_t x, uint32_t w,
                       uint32_t bias, uint32_t out);

#endif
