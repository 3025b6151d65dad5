/* Reports: everything that leaves the program as text.
 *
 * One format is one row in the list of formats (report.c): a name and a function that writes
 * `count` analysed models through an onv_writer. Names come from models: the text report escapes
 * control characters and ill-formed UTF-8, JSON goes through jansson.
 */
#ifndef ONV_REPORT_REPORT_H
#define ONV_REPORT_REPORT_H

#include "answer/answer.h"
#include "ckpt/training.h"
#include "device/replays.h"
#include "graph/formula.h"
#include "graph/kv_cache.h"
#include "graph/largest.h"
#include "graph/liveness.h"
#include "graph/sampled.h"
#include "infer/infer.h"
#include "infer/quantize.h"
#include "measured/measured.h"
#include "onnxvram/report.h"
#include "order/order.h"
#include "ort/node_stats.h"
#include "ort/shape_trace.h"
#include "runtime/executions.h"
#include "runtime/fit.h"
#include "runtime/gate.h"
#include "runtime/global_savings.h"
#include "runtime/ort_advice.h"
#include "runtime/runtime.h"
#include "runtime/savings.h"

/* What a report may look at: the results of one analysis. */
typedef struct onv_view {
    const struct onv_view *example; /* the model with usual sizes for its free dims; NULL: none */
    const onv_model *model;
    const onv_model *unbound; /* the same with nothing bound; NULL: it was not made */
    const onv_infer_info *infer;
    const onv_live *live;
    const onv_largest *largest;
    const onv_formula *formula;
    const onv_sampled *sampled;
    const onv_order_result *order;      /* that live is in; may be NULL: the file's */
    const onv_order_result *best_order; /* NULL, or without a name: not looked for */
    const onv_runtime_result *runtimes; /* those asked for; none where a size is unknown */
    size_t n_runtimes;
    const onv_rewritten *rewritten; /* what ONNX Runtime runs, NULL: not asked for */
    const onv_live *rewritten_live;
    bool dumps_rewritten;         /* it is what a dump of the graph shows */
    const uint64_t *plan_offsets; /* of live's intervals; NULL: no plan was made */
    uint64_t plan_alignment;      /* that they are multiples of */
    const onv_training *training; /* NULL, or without an optimizer: not asked for */
    const onv_timeline *trained;  /* its program, that of the last plan; NULL: not there */
    const onv_global_savings *global_savings; /* NULL: not computed */
    const onv_savings *savings;               /* NULL, or without rows: none */
    const onv_quantized *quantized;           /* NULL, or without a format: not asked for */
    const onv_kv_cache *cache;                /* NULL, or without a mode: not asked for */
    const onv_gate *gate;          /* beside a baseline; NULL, or without one: not asked for */
    const onv_device_fit *devices; /* of several budgets, the first one is `fit`; none: NULL */
    size_t n_devices;
    const onv_answer *answer;
    const onv_fit *fit;                   /* NULL, or without a budget: not asked for */
    const onv_ort_node_stats *node_stats; /* these three: NULL or without rows: not asked for */
    const onv_ort_advice *advice;
    const onv_shape_requests *requests;
    const onv_replays *replays;       /* NULL, or without a device: not asked for */
    const onv_executions *executions; /* that were kept to be drawn; NULL, or none: not asked for */
    const onv_measured *measured;     /* NULL, or without figures: not asked for */
    const char *in_force;             /* options, a value of JSON; NULL: of an example */
} onv_view;

static inline bool onv_view_trains(const onv_view *view)
{
    return view->training != NULL && view->training->optimizer != NULL;
}

/* The view with figures: the example's, where dims are free. */
static inline const onv_view *onv_view_sized(const onv_view *view)
{
    return view->example != NULL ? view->example : view;
}

static inline const char *onv_view_path(const onv_view *view)
{
    return view->model->path != NULL ? view->model->path : "";
}

/* The path without its folder. */
const char *onv_view_file(const onv_view *view);

/* All of them. `options` is complete. */
onv_status onv_report_write(const onv_view *views, size_t count, onv_format format,
                            const onv_report_options *options, onv_write_fn write, void *context,
                            onv_error *err);

#endif
