/* A model brought as far as the runtimes need it, for tests that look inside: loaded, checked,
 * inferred, ordered, with lifetimes. */
#ifndef ONV_TESTS_FLOW_H
#define ONV_TESTS_FLOW_H

#include "graph/liveness.h"
#include "infer/infer.h"
#include "rewrite/rewrite.h"
#include "runtime/runtime.h"
#include "support/onnx_writer.h"

typedef struct flow {
    onv_model model;
    onv_infer_info infer;
    onv_live live;
} flow;

/* Each fails the test where it fails. `order` NULL: the file's; `dims` is "batch=1 sequence=16"; NULL: all
 * are free. */
void flow_open(flow *f, const char *path, const char *dims, const char *order);
void flow_open_model(flow *f, model *m, const char *order);
void flow_close(flow *f);
/* Closed at the end of its block. */
#define OWNED_FLOW __attribute__((cleanup(flow_close))) flow

/* The graph that ONNX Runtime makes of it, in its order, and what lives in it; the caller cleans up `to`. */
onv_live flow_rewrite(const flow *f, onv_provider provider, onv_rewrite_level level,
                      onv_rewritten *to);

/* With default settings where `options` is NULL. */
onv_runtime_result flow_run(flow *f, const char *runtime, const onv_runtime_options *options);

/* The row of live.timeline.buffers.at of a value; fails the test where there is none of that name. */
uint32_t flow_row(const flow *f, const char *name);

/* Where the tests find samples/NAME. */
const char *flow_sample(const char *name);

#endif
