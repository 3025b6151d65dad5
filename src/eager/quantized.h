/* Weights in fewer bits (ir/weight_format.h), as bitsandbytes uses them: which ones they are, and what it
 * takes to multiply with them. Those of frozen linear layers, all but the one whose result is the network's
 * own (the head). Read in source (0.50): nn/modules.py, functional.py, autograd/_functions.py,
 * backends/cuda/ops.py.
 */
#ifndef ONV_EAGER_QUANTIZED_H
#define ONV_EAGER_QUANTIZED_H

#include "eager/eager.h"
#include "ir/weight_format.h"

/* Operands of a product; a bias comes behind them. */
enum { ONV_PRODUCT_INPUT, ONV_PRODUCT_WEIGHT };

/* What a product with the matrix has beside its operands and its result at most: the matrix in the product's type
 * of so many bytes an element, and what it is made with. */
uint64_t onv_weight_temps(const onv_weight_format *format, const onv_eager_op *op,
                          const onv_eager *eager, uint64_t elems, bool backward);

/* LLM.int8() makes these of an input, in this order, before it multiplies: its scales and bytes stay until the product is
 * there, the rest is gone before that is made. All 0 where a format makes none. */
typedef struct onv_weight_input {
    uint64_t half, scales, bytes, magnitudes, mask;
} onv_weight_input;

onv_weight_input onv_weight_input_of(const onv_weight_format *format, const onv_eager_op *op,
                                     const onv_eager *eager);

enum { ONV_MAX_WEIGHT_MADE = 3 };

/* The buffers that the product itself is made with, in order; returns how many there are. */
uint32_t onv_weight_made(const onv_weight_format *format, const onv_eager_op *op,
                         const onv_eager *eager, uint64_t elems, bool backward,
                         uint64_t bytes[ONV_MAX_WEIGHT_MADE]);

/* By storage: the rows of a matrix that is quantized, 0: it is not. Linear in the tape. */
onv_status onv_weight_find(const onv_eager *eager, onv_arena *arena, uint64_t **rows,
                           onv_error *err);

#endif
