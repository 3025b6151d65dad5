/* Formats of weights in fewer bits: what each keeps of a matrix.
 *
 * A name stands for what the usual tools make under it. In PyTorch that is bitsandbytes (0.50, read in source:
 * nn/modules.py, functional.py). In ONNX Runtime it is what its own quantizers write (1.31, read in source:
 * quantization/matmul_nbits_quantizer.py, matmul_bnb4_quantizer.py, with their defaults): int8 and int4 are
 * MatMulNBits in asymmetric blocks of 128, nf4 is MatMulBnb4 in blocks of 64. The graph's own terms count the
 * first.
 */
#ifndef ONV_IR_WEIGHT_FORMAT_H
#define ONV_IR_WEIGHT_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct onv_weight_format {
    const char *name; /* as --weight-format takes it */
    const char *summary;
    uint32_t bits;         /* of an element */
    uint32_t block;        /* elements that share a scale; 0: those of a row */
    uint32_t scale_bytes;  /* of a scale */
    uint32_t second_block; /* scales that share a scale of theirs, of float32; 0: none */
    uint32_t table_bytes;  /* the values that the bits stand for, of each matrix */
    bool keeps_input;      /* the layer's input stays for its backward */
    /* ONNX Runtime: a block lies in one row of the transposed matrix, or the matrix is cut as a whole; its
     * scales are of the type of the product. */
    const char *ort_op;
    uint32_t ort_block;
    bool ort_by_row; /* and each block has a zero point of so many bits */
} onv_weight_format;

extern const onv_weight_format onv_weight_formats[];
extern const size_t onv_n_weight_formats;

/* By name; NULL if there is none. */
const onv_weight_format *onv_weight_format_find(const char *name);

enum { ONV_MAX_WEIGHT_PARTS = 6 };

/* The tensors that stand for a matrix of so many rows: their bytes; returns how many there are. */
uint32_t onv_weight_parts(const onv_weight_format *format, uint64_t elems, uint64_t rows,
                          uint64_t bytes[ONV_MAX_WEIGHT_PARTS]);

/* How many scales it has. */
uint64_t onv_weight_scales(const onv_weight_format *format, uint64_t elems, uint64_t rows);

#endif
