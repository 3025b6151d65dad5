/* Reports: everything that leaves the program as text.
 *
 * One format is one row in the list of formats (report.c): a name and a function that writes
 * `count` analysed models through an onv_writer. Names come from models: the text report escapes
 * control characters and ill-formed UTF-8, JSON all that is no ASCII.
 */
#ifndef ONV_REPORT_REPORT_H
#define ONV_REPORT_REPORT_H

#include "answer/answer.h"
#include "ckpt/training.h"
#include "device/replay.h"
#include "graph/formula.h"
#include "graph/kv_cache.h"
#include "graph/liveness.h"
#include "infer/infer.h"
#include "measured/measured.h"
#include "onnxvram/report.h"
#include "order/order.h"
#include "ort/node_stats.h"
#include "ort/shape_trace.h"
#include "runtime/executions.h"
#include "runtime/fit.h"
#include "runtime/gate.h"
#include "runtime/ort_advice.h"
#include "runtime/runtime.h"
#include "runtime/savings.h"

/* The graph that a runtime makes of the model, in its order; without nodes: not asked for. */
typedef struct onv_made_graph {
    onv_rewritten rewritten;
    onv_live live;
} onv_made_graph;

/* The results of an analysis. What has no mode, name, rows or figures was not asked for. */
struct onv_analysis {
    struct onv_making *making; /* what it was made of, and with: src/api */
    onv_analysis *example;     /* the model with usual sizes for its free dims; NULL: none */
    onv_model model;
    onv_model *unbound; /* the same with nothing bound, where that differs and is to be written */
    bool writes_onnx;
    onv_infer_info infer;
    onv_quantized quantized; /* weights in fewer bits */
    onv_kv_cache cache;
    onv_order_result order;      /* that `live` is in */
    onv_order_result best_order; /* beside the file's */
    onv_live live;
    onv_largest largest;
    onv_formula *formula;                          /* of the peak; NULL: not asked for */
    onv_sampled sampled;                           /* formulas of what runtimes hold */
    onv_ort_settings ort;                          /* of the session of the runtime `ort` */
    onv_cuda_library_settings cuda;                /* whose workspaces */
    onv_runtime_result runtimes[ONV_MAX_RUNTIMES]; /* none where a size is unknown */
    size_t n_runtimes;
    onv_made_graph ort_graph, cpu_graph,
        engine_graph;             /* of ONNX Runtime's providers; of TensorRT */
    const onv_made_graph *dumped; /* the one of these that a dump of the graph shows; NULL: none */
    const uint64_t *plan_offsets; /* of live's intervals; NULL: no plan was made */
    uint64_t plan_alignment;      /* that they are multiples of; 1 or more */
    onv_training training;
    onv_global_savings global_savings; /* and `best_order`: once a report asks for them, */
    bool has_what_if;                  /* which it did */
    onv_savings savings;
    onv_answer answer;
    onv_fit fit;                   /* of the first budget */
    onv_gate gate;                 /* beside a baseline */
    onv_ort_node_stats node_stats; /* these three: of ONNX Runtime */
    onv_ort_advice advice;
    onv_shape_requests requests;
    onv_replays replays;
    onv_executions executions; /* that were kept to be drawn or compared */
    onv_measured measured;
    const char *in_force; /* options, a value of JSON; NULL: of an example */
};

/* A report only looks at it. */
typedef struct onv_analysis onv_view;

static inline bool onv_view_trains(const onv_view *view)
{
    return view->training.optimizer != NULL;
}

/* The view with figures: the example's, where dims are free. */
static inline const onv_view *onv_view_sized(const onv_view *view)
{
    return view->example != NULL ? view->example : view;
}

static inline const char *onv_view_path(const onv_view *view)
{
    return view->model.path != NULL ? view->model.path : "";
}

/* The path without its folder. */
const char *onv_view_file(const onv_view *view);

/* All of them. `options` is complete. */
onv_status onv_report_write(const onv_view *const *views, size_t count, onv_format format,
                            const onv_report_options *options, onv_write_fn write, void *context,
                            onv_error *err);

#endif
