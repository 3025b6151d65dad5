/* onnxvram: how much GPU memory an ONNX model needs, and why.
 *
 *     onv_options options = onv_options_default();
 *     options.batch = 256;
 *     onv_analysis *analysis;
 *     onv_error error = {0};
 *     if (onv_analysis_new("resnet50.onnx", &options, &analysis, &error) != ONV_OK) ...
 *     onv_summary summary;
 *     onv_analysis_summary(analysis, &summary);
 *     printf("%llu bytes at the peak\n", (unsigned long long)summary.peak_bytes);
 *     onv_analysis_destroy(analysis);
 *
 * Strings that come out of an analysis belong to it and live as long as it does. They are the
 * model's own text: untrusted, not sanitised for a terminal.
 * What comes in rows is asked for by index until the answer is false; a struct that is asked for is filled up to what
 * the caller's header has of it, and false leaves it as it was. Without memory for text the answer is false, too.
 * Sizes are bytes in uint64_t. The library keeps no global state: different analyses may run on
 * different threads; one analysis belongs to one thread at a time.
 */
#ifndef ONNXVRAM_H
#define ONNXVRAM_H

#include "analysis.h"
#include "answer.h"
#include "common.h"
#include "names.h"
#include "options.h"
#include "planner.h"
#include "report.h"

#endif
