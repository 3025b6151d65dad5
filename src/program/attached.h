/* A program inside of a file of ONNX: in the metadata of the model, under one key, JSON text that gzip compressed and base64 made
 * text of. ONNX Runtime and other tools keep such an entry, and read past it.
 */
#ifndef ONV_PROGRAM_ATTACHED_H
#define ONV_PROGRAM_ATTACHED_H

#include "ir/model.h"
#include "program/archive.h"

#define ONV_PROGRAM_KEY "onnxvram.program"

enum { ONV_MODEL_METADATA = 14 }; /* ModelProto.metadata_props */

/* What the file of a model has: gzip data, as a program is read of. NULL: nothing. The caller frees it with
 * onv_program_text_cleanup. ONV_ERR_FORMAT: the entry is damaged. Cost: the fields of the model, not what is in them. */
onv_status onv_program_attached(const onv_model *model, uint64_t most_bytes,
                                onv_program_text *packed, onv_error *err);

/* The value of the entry: a text, terminated. The caller frees it likewise. */
onv_status onv_program_pack(const onv_program_text *text, onv_program_text *packed, onv_error *err);

/* Whether an entry of the metadata, from `at` to `end`, has the key. */
bool onv_program_is_entry(const unsigned char *at, const unsigned char *end);

#endif
