#include "ir/weight_format.h"

#include <string.h>

/* nf4: scales of one byte, which share one of float32 and an offset; the 16 values of the type and the 256
 * that the scales' bytes stand for are of each layer (functional.py: QuantState, "nested"). int8: a float32
 * scale for each row (Int8Params: CB, SCB). int4: as nf4 without the scales' own scales (fp4 and nf4 with
 * compress_statistics=False). */
const onv_weight_format onv_weight_formats[] = {
    {"int8", "LLM.int8(): rows with a scale", .bits = 8, .scale_bytes = 4, .keeps_input = true,
     .ort_op = "MatMulNBits", .ort_block = 128, .ort_by_row = true},
    {"int4", "blocks of 64 with float32 scales", .bits = 4, .block = 64, .scale_bytes = 4,
     .table_bytes = 64, .ort_op = "MatMulNBits", .ort_block = 128, .ort_by_row = true},
    {"nf4", "QLoRA's: blocks of 64 whose scales are quantized in blocks of 256", .bits = 4,
     .block = 64, .scale_bytes = 1, .second_block = 256, .table_bytes = 64, .ort_op = "MatMulBnb4",
     .ort_block = 64},
};
const size_t onv_n_weight_formats = sizeof onv_weight_formats / sizeof onv_weight_formats[0];

/* Values of a byte (float32), and what is added to all scales. */
enum { SECOND_TABLE_BYTES = 256 * 4, OFFSET_BYTES = 4 };

const onv_weight_format *onv_weight_format_find(const char *name)
{
    for (size_t i = 0; i < onv_n_weight_formats; i++)
        if (strcmp(onv_weight_formats[i].name, name) == 0) return &onv_weight_formats[i];
    return NULL;
}

static uint64_t blocks_of(uint64_t elems, uint64_t block)
{
    return elems / block + (elems % block != 0);
}

uint64_t onv_weight_scales(const onv_weight_format *format, uint64_t elems, uint64_t rows)
{
    return format->block > 0 ? blocks_of(elems, format->block) : rows;
}

uint32_t onv_weight_parts(const onv_weight_format *format, uint64_t elems, uint64_t rows,
                          uint64_t bytes[ONV_MAX_WEIGHT_PARTS])
{
    uint32_t n = 0;
    uint64_t scales = onv_weight_scales(format, elems, rows);
    bytes[n++] = format->bits < 8 ? blocks_of(elems, 8 / format->bits) : elems;
    bytes[n++] = scales * format->scale_bytes;
    if (format->table_bytes > 0) bytes[n++] = format->table_bytes;
    if (format->second_block == 0) return n;
    bytes[n++] = blocks_of(scales, format->second_block) * sizeof(float);
    bytes[n++] = SECOND_TABLE_BYTES;
    bytes[n++] = OFFSET_BYTES;
    return n;
}
