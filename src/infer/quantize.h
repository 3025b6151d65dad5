/* Weights as if they were in fewer bits.
 *
 * Requires: inference, and casts. Gives: matrices that nothing but MatMul and Gemm read as their second
 * operand, themselves or transposed, have the bytes of a format (ir/weight_format.h). Everything else stays as
 * it is: tables that Gather reads, even if a product reads them too, norms, biases, convolutions. Cost: linear.
 */
#ifndef ONV_INFER_QUANTIZE_H
#define ONV_INFER_QUANTIZE_H

#include "ir/model.h"
#include "ir/weight_format.h"

/* What became of the weights. */
typedef struct onv_quantized {
    const onv_weight_format *format; /* NULL: not asked for */
    uint32_t n_matrices;
    uint64_t bytes_before, bytes; /* of them */
    uint64_t bytes_left;          /* of all others, and of these: */
    uint64_t bytes_tables, bytes_convolutions;
} onv_quantized;

/* ONV_ERR_USAGE where there is no such matrix. */
onv_status onv_infer_quantize(onv_model *model, const onv_weight_format *format,
                              onv_quantized *result, onv_error *err);

#endif
