/* Weights in fewer bits: what a format keeps of a matrix, and what it takes to use it.
 *
 * The formats are those of bitsandbytes, which quantizes the weights of frozen linear layers: all but the
 * one whose result is the network's own (the head). Read in source (0.50): nn/modules.py, functional.py,
 * autograd/_functions.py, backends/cuda/ops.py.
 */
#ifndef ONV_EAGER_QUANTIZED_H
#define ONV_EAGER_QUANTIZED_H

#include "eager/eager.h"

typedef struct onv_weight_format {
    const char *name; /* as --weights takes it */
    const char *summary;
    uint32_t bits;         /* of an element */
    uint32_t block;        /* elements that share a scale; 0: those of a row */
    uint32_t scale_bytes;  /* of a scale */
    uint32_t second_block; /* scales that share a scale of theirs, of float32; 0: none */
    uint32_t table_bytes;  /* the values that the bits stand for, of each matrix */
    bool keeps_input;      /* the layer's input stays for its backward */
} onv_weight_format;

extern const onv_weight_format onv_weight_formats[];
extern const size_t onv_n_weight_formats;

/* By name; NULL if there is none. */
const onv_weight_format *onv_weight_format_find(const char *name);

enum { ONV_MAX_WEIGHT_PARTS = 6 };

/* The tensors that stand for a matrix of so many rows: their bytes; returns how many there are. */
uint32_t onv_weight_parts(const onv_weight_format *format, uint64_t elems, uint64_t rows,
                          uint64_t bytes[ONV_MAX_WEIGHT_PARTS]);

/* What a product with the matrix has beside its operands and its result: the matrix in the product's type
 * of so many bytes an element, and what it is made with. */
uint64_t onv_weight_temps(const onv_weight_format *format, const onv_eager_op *op,
                          const onv_eager *eager, uint64_t elems, bool backward);

/* By storage: the rows of a matrix that is quantized, 0: it is not. Linear in the tape. */
onv_status onv_weight_find(const onv_eager *eager, onv_arena *arena, uint64_t **rows,
                           onv_error *err);

#endif
