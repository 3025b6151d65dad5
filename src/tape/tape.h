/* Program → the tape of operations that eager PyTorch executes (eager/eager.h).
 *
 * Storages, strides, views and writes are the program's facts; what operators keep and cast is the
 * table's (src/aten); kernels' temporaries and workspaces are those of src/emit. Flags of training in calls
 * are turned by the options, so that a program of either mode answers for both.
 */
#ifndef ONV_TAPE_TAPE_H
#define ONV_TAPE_TAPE_H

#include "eager/eager.h"
#include "program/program.h"

/* `view` is the program as a model: node i is call i, value i is value i, with sizes under the bindings. Fails with
 * ONV_ERR_USAGE where a size is no number. Linear in calls and values. */
onv_status onv_tape_lower(const onv_program *program, onv_model *view,
                          const onv_lower_options *options, onv_eager *eager, onv_error *err);

#endif
