/* Whether ONNX Runtime loads a model, and what it would run on the CPU: diagnostics whose codes begin with ONV_LOADS. What
 * it refuses is a warning, external data that is absent and what it runs in another way a note. Measured: version 1.31, files that break one limit each. */
#ifndef ONV_RUNTIME_LOADS_H
#define ONV_RUNTIME_LOADS_H

#include "rewrite/rewrite.h"

#define ONV_LOADS "loads-"

/* Limits of the format, versions, external data. */
onv_status onv_check_file(onv_model *model, onv_error *err);

/* What the CPU runs for want of a kernel; `rewritten` is what a session of the CUDA provider makes of the model. */
onv_status onv_check_kernels(onv_model *model, const onv_rewritten *rewritten, onv_error *err);

#endif
