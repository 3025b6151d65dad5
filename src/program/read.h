/* A file becomes a program.
 *
 * Requires: a model without graphs, whose arena, strings and pool of dims the program is made in. Gives: a
 * program that was checked. Errors: ONV_ERR_IO, ONV_ERR_FORMAT (no program, damaged, of a schema that is not
 * known), ONV_ERR_LIMIT. Cost: linear in the text; the document is in memory until it is read.
 */
#ifndef ONV_PROGRAM_READ_H
#define ONV_PROGRAM_READ_H

#include "ir/model.h"
#include "load/source.h"
#include "onnxvram/options.h"
#include "program/program.h"

/* A recording has a program of training and one of inference, or one of them. An archive has one for both. */
typedef enum onv_program_mode {
    ONV_PROGRAM_INFERENCE = 0,
    ONV_PROGRAM_TRAINING,
} onv_program_mode;

/* The program of that mode, or the one that there is. `path` is for messages. */
onv_status onv_program_read(onv_source *source, const char *path, const onv_limits *limits,
                            onv_program_mode mode, onv_model *model, const onv_program **program,
                            onv_error *err);

#endif
