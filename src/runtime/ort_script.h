/* The script of an ONNX Runtime session: see ort_script.c. */
#ifndef ONV_RUNTIME_ORT_SCRIPT_H
#define ONV_RUNTIME_ORT_SCRIPT_H

#include "runtime/runtime.h"

onv_status onv_ort_script(const char *mode, onv_model *model, const onv_live *live,
                          const onv_runtime_options *options, onv_script *script, onv_error *err);

#endif
