/* Layers: normalisation, dropout, softmax. */
#ifndef ONV_EMIT_LAYERS_H
#define ONV_EMIT_LAYERS_H

#include "emit/emit.h"

/* "batch_norm", "instance_norm", "group_norm", "layer_norm", "rms_norm" of x, into `out`, with statistics of each of
 * `groups`; of which a mean is one, where it `centres`. */
uint32_t onv_emit_norm(onv_emitter *e, const char *name, uint32_t x, uint32_t w, uint32_t b,
                       uint64_t groups, bool centres, uint32_t out);
uint32_t onv_emit_group_norm(onv_emitter *e, uint32_t x, uint32_t w, uint32_t b, int64_t groups);
/* Over the dims from `axis` on; by the root of the mean of squares alone, where it does not centre. */
uint32_t onv_emit_layer_norm(onv_emitter *e, uint32_t x, uint32_t w, uint32_t b, int64_t axis,
                             bool centres);
/* What CUDA's dropout makes of x: a new tensor and a mask of bytes. */
uint32_t onv_emit_dropout(onv_emitter *e, uint32_t x);
/* `op`: ONV_ATEN_softmax or ONV_ATEN_log_softmax, of x in `dtype`. */
uint32_t onv_emit_softmax(onv_emitter *e, onv_aten_id op, uint32_t x, uint8_t dtype);

#endif
