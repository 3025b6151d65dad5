/* A model's own file once more, with an entry of its metadata in place of one with the same key. */
#ifndef ONV_REPORT_ONNX_ATTACH_H
#define ONV_REPORT_ONNX_ATTACH_H

#include "ir/model.h"
#include "onnxvram/common.h"
#include "program/archive.h"

/* Weights are copied byte for byte. ONV_ERR_IO: it could not be written. */
onv_status onv_onnx_attach(const onv_model *model, const onv_program_text *packed,
                           onv_write_fn write, void *context, onv_error *err);

#endif
