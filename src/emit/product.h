/* Products of matrices: mm, addmm, bmm, and what matmul() and linear() make of operands of other ranks. */
#ifndef ONV_EMIT_PRODUCT_H
#define ONV_EMIT_PRODUCT_H

#include "emit/emit.h"

/* What is added to a product: `beta * bias + alpha * (a @ b)`. */
typedef struct onv_added {
    uint32_t bias; /* ONV_NO_TENSOR: nothing */
    bool scales_product, scales_bias;
} onv_added;

/* The workspace of cuBLAS for a product other than that of a linear layer. */
onv_eager_workspace onv_emit_cublas_product(onv_emitter *e);
/* a @ b, into `out`. */
uint32_t onv_emit_product(onv_emitter *e, const char *name, uint32_t a, uint32_t b, onv_added c,
                          uint32_t out);
/* Of two matrices, or two batches of them. */
uint32_t onv_emit_mm(onv_emitter *e, const char *name, uint32_t a, uint32_t b, onv_added c);
uint32_t onv_emit_bmm(onv_emitter *e, uint32_t a, uint32_t b);
/* linear(x, w, bias) and x @ w as PyTorch decides; w may be a view of a parameter. */
uint32_t onv_emit_matmul(onv_emitter *e, uint32_t a, uint32_t b);
uint32_t onv_emit_linear(onv_emitter *e, uint32_t x, uint32_t w, uint32_t bias);
/* A view with the last two dims swapped. */
uint32_t onv_emit_swapped(onv_emitter *e, uint32_t x);
/* Operands are permuted to the same order of labels, and multiplied two at a time; ONV_NO_TENSOR: the equation is no plain
 * one. */
uint32_t onv_emit_einsum(onv_emitter *e, const char *equation, const uint32_t *in, uint32_t n_in);
/* Of rows (x, y of two dims), the weight, and the bias or ONV_NO_TENSOR; the result has the shape. */
uint32_t onv_emit_bilinear(onv_emitter *e, uint32_t x, uint32_t w, uint32_t y, uint32_t bias,
                           const onv_shape *shape);

#endif
