/* A file, or bytes in memory, becomes a model: the view of its program. */
#ifndef ONV_PROGRAM_LOAD_H
#define ONV_PROGRAM_LOAD_H

#include "ir/model.h"
#include "onnxvram/options.h"
#include "program/program.h"

/* A recording has a program of training and one of inference, or one of them. An archive has one for both. */
typedef enum onv_program_mode {
    ONV_PROGRAM_INFERENCE = 0,
    ONV_PROGRAM_TRAINING,
} onv_program_mode;

typedef struct onv_program_file {
    const char *path;
    const void *data; /* that outlives what is read of it; NULL: the file at the path */
    size_t bytes;
} onv_program_file;

/* Whether it begins as a program does. A file that cannot be read is none: who loads it says why. */
onv_status onv_program_is(const onv_program_file *file, const onv_limits *limits, bool *is_program,
                          onv_error *err);

/* Initialises `model` and makes it the view of the program of that mode, or of the one that there is, with nothing bound. On failure
 * the model is already cleaned up. Errors: ONV_ERR_IO, ONV_ERR_FORMAT (no program, damaged, of a schema that is not known),
 * ONV_ERR_LIMIT. Cost: linear in the text; the document is in memory until it is read. */
onv_status onv_program_load(const onv_program_file *file, const onv_limits *limits,
                            onv_program_mode mode, onv_model *model, onv_error *err);

#endif
