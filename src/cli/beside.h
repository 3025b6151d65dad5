/* Where a model may be written: names of the files with its weights are relative to its folder. */
#ifndef ONV_CLI_BESIDE_H
#define ONV_CLI_BESIDE_H

#include "onnxvram/onnxvram.h"

/* Whether `file` may hold the model at `model` once more. False with a message. */
bool onv_cli_is_beside_weights(const onv_analysis *analysis, const char *model, const char *file);

#endif
