/* What eager PyTorch runs of a model: the views of its program, of inference and of training, where there is one.
 *
 * A program is the file that is analysed, the one that an option names, or one that is found inside the model or next to it
 * (MODEL.program.json, MODEL.program.json.gz, MODEL.pt2). One that is found, and is not this model's, is left with a warning.
 */
#ifndef ONV_API_EAGER_VIEWS_H
#define ONV_API_EAGER_VIEWS_H

#include "graph/liveness.h"
#include "ir/model.h"
#include "onnxvram/options.h"
#include "program/load.h"

typedef struct onv_eager_views {
    onv_model models[2]; /* the first `n` are there */
    onv_live lives[2];   /* of those that are bound */
    uint32_t n;
    bool has[2];      /* by mode (onv_program_mode): there is a view of it */
    uint8_t place[2]; /* likewise: where */
    char *path;       /* of the program, of one that was left, too; on the heap */
} onv_eager_views;

/* What an analysis asks for. */
typedef struct onv_eager_request {
    const onv_options *options;
    const onv_program_file *file; /* that is analysed */
    onv_model *model;             /* inferred and bound; gets what is said */
    const onv_eager_views
        *loaded;   /* with nothing bound; outlives what is made; NULL: they are read */
    bool modes[2]; /* that are asked for */
} onv_eager_request;

/* Finds, reads and binds what there is. `kept` (NULL allowed) becomes the same with nothing bound, for further
 * analyses. ONV_ERR_USAGE: a program that was named, or was this model's with other sizes, is not of this model. Both are zeroed
 * before, and empty after a failure. */
onv_status onv_eager_views_open(const onv_eager_request *request, onv_eager_views *views,
                                onv_eager_views *kept, onv_error *err);

/* As if the float tensors of a model, or of a view and its program, were of the type that the options ask for. */
onv_status onv_cast_floats(const onv_options *options, onv_model *model, onv_error *err);

void onv_eager_views_cleanup(onv_eager_views *views);

#endif
