/* Options that would change nothing: what each needs beside it. One table for analyses and for the program, whose
 * names it has. Those that only say how a report looks are always taken, limits and work limits too: scripts pass
 * them along. */
#include <stddef.h>
#include <string.h>

#include "api/names.h"
#include "api/sized.h"
#include "base/fail.h"

/* --- What is there ----------------------------------------------------------------------------- */

/* Without a list all runtimes are asked for, with training torch alone. */
static bool lists(const onv_options *o, const char *runtime)
{
    const char *list = o->runtimes == NULL && o->train != NULL ? "torch" : o->runtimes;
    return onv_is_listed(list, runtime);
}

typedef enum need {
    NOTHING,
    TRAINING,
    PYTORCH,
    INFERENCE,
    ORT,
    ORT_SESSION,
    LIBRARIES,
    ARENA,
    TENSORRT,
    SHARING,
    WORLD,
    COMPILATION,
    BUDGET,
    BUDGET_OR_REPLAY,
    BASELINE,
    BATCHES
} need;

static const char *const texts[] = {
    [TRAINING] = "training: add --train OPTIMIZER, as in --train adamw",
    [PYTORCH] = "PyTorch: add torch to --runtime, or --train OPTIMIZER",
    [INFERENCE] = "inference in PyTorch: add torch to --runtime",
    [ORT] = "ONNX Runtime: add ort to --runtime, as in --runtime ort",
    [ORT_SESSION] = "ONNX Runtime: add ort to --runtime, as in --runtime ort, or cpu",
    [LIBRARIES] = "a runtime with libraries: add torch or ort to --runtime, or --train OPTIMIZER",
    [TENSORRT] = "the runtime tensorrt: add --runtime tensorrt",
    [ARENA] = "the runtime arena: add arena to --runtime",
    [SHARING] = "something to share: add --zero STAGE, --ddp or --fsdp",
    [WORLD] = "2 devices or more: add --world N, as in --world 2",
    [COMPILATION] = "torch.compile: add --compile",
    [BUDGET] = "a budget: add --budget SIZE or GPU, as in --budget L4",
    [BUDGET_OR_REPLAY] =
        "a budget or a replay: add --budget SIZE or GPU, as in --budget L4, or --replay",
    [BATCHES] = "the largest batch: add --max-batch, as in onnxvram fit MODEL.onnx --budget L4",
    [BASELINE] = "figures to compare with: add --baseline FILE, which --json=FILE wrote before",
};

static bool is_met(need what, const onv_options *o)
{
    bool trains = o->train != NULL, has_budget = o->n_budgets > 0 || o->budget > 0;
    switch (what) {
    case NOTHING: return true;
    case TRAINING: return trains;
    case PYTORCH: return trains || lists(o, "torch");
    case INFERENCE: return lists(o, "torch");
    case ORT: return lists(o, "ort");
    case ORT_SESSION: return lists(o, "ort") || lists(o, "cpu");
    case LIBRARIES: return trains || lists(o, "torch") || lists(o, "ort");
    case TENSORRT: return o->runtimes != NULL && lists(o, "tensorrt");
    case ARENA: return lists(o, "arena");
    case SHARING: return o->zero_stage > 0 || o->ddp != NULL || o->fsdp != NULL || o->world == 1;
    case WORLD: return o->world > 1;
    case COMPILATION: return o->compile;
    case BUDGET: return has_budget;
    case BUDGET_OR_REPLAY: return has_budget || o->replay != NULL;
    case BASELINE: return o->baseline != NULL;
    case BATCHES: return o->max_batch && o->max_dim == NULL;
    }
    return true;
}

/* --- Options ----------------------------------------------------------------------------------- */

#define FIELD(name) offsetof(onv_options, name), sizeof(((onv_options *)NULL)->name)

/* By the field that says whether it is given. */
static const struct {
    const char *name;
    size_t at, bytes;
    need needs[2];
} rows[] = {
    {"ort", FIELD(n_ort), {ORT_SESSION}},
    {"ort-advise", FIELD(ort_advise), {ORT}},
    {"ort-partition", FIELD(ort_partition), {ORT}},
    {"shape-trace", FIELD(shape_trace), {ORT}},
    {"expandable-segments", FIELD(expandable_segments), {PYTORCH}},
    {"pytorch", FIELD(pytorch), {PYTORCH}},
    {"pool", FIELD(pool), {PYTORCH}},
    {"amp", FIELD(amp), {PYTORCH}},
    {"loss", FIELD(loss), {TRAINING}},
    {"freeze", FIELD(n_freeze), {TRAINING}},
    {"train-only", FIELD(n_train_only), {TRAINING}},
    {"inplace", FIELD(n_inplace), {PYTORCH}},
    {"parameters", FIELD(parameters), {PYTORCH}},
    {"buffers", FIELD(buffers), {PYTORCH}},
    {"attention-dropout", FIELD(attention_dropout), {TRAINING}},
    {"accumulate", FIELD(accumulate), {TRAINING}},
    {"zero", FIELD(zero_stage), {TRAINING, WORLD}},
    {"ddp", FIELD(ddp), {TRAINING, WORLD}},
    {"fsdp", FIELD(fsdp), {TRAINING, WORLD}},
    {"world", FIELD(world), {TRAINING, SHARING}},
    {"master-weights", FIELD(master_weights), {TRAINING}},
    {"offload", FIELD(offload), {TRAINING}},
    {"ema", FIELD(ema), {TRAINING}},
    {"as-exported", FIELD(as_exported), {PYTORCH}},
    {"folded-norms", FIELD(folded_norms), {PYTORCH}},
    {"graph-module", FIELD(graph_module), {INFERENCE}},
    {"no-fast-path", FIELD(no_fast_path), {INFERENCE}},
    {"locals", FIELD(locals), {INFERENCE}},
    {"attention", FIELD(attention), {PYTORCH}},
    {"zero-grad", FIELD(zero_grad), {TRAINING}},
    {"optimizer-impl", FIELD(optimizer_impl), {TRAINING}},
    {"gpu", FIELD(compute_capability), {LIBRARIES}},
    {"channels-last", FIELD(channels_last), {PYTORCH}},
    {"no-tf32", FIELD(no_tf32), {PYTORCH}},
    {"cudnn-benchmark", FIELD(cudnn_benchmark), {PYTORCH}},
    {"checkpoint", FIELD(checkpoint), {TRAINING}},
    {"plan", FIELD(plan), {TRAINING}},
    {"compile", FIELD(compile), {TRAINING}},
    {"compile budget", FIELD(compile_budget), {COMPILATION}},
    {"margin", FIELD(margin_percent), {BUDGET}},
    {"max-dim", FIELD(max_dim), {BUDGET}},
    {"max-batch", FIELD(max_batch), {BUDGET_OR_REPLAY}},
    {"objective", FIELD(objective), {BATCHES}},
    {"max-growth", FIELD(has_max_growth), {BASELINE}},
    {"contexts", FIELD(contexts), {TENSORRT}},
    {"workspace", FIELD(workspace), {TENSORRT}},
    {"align", FIELD(align), {ARENA}},
    {"snapshot", FIELD(snapshot), {PYTORCH}},
};

enum { N_ROWS = sizeof rows / sizeof rows[0] };

static const char *missing(const onv_options *options, size_t row)
{
    for (size_t i = 0; i < 2; i++)
        if (!is_met(rows[row].needs[i], options)) return texts[rows[row].needs[i]];
    return NULL;
}

const char *onv_option_missing(const onv_options *given, const char *option)
{
    onv_options options;
    size_t i = 0;
    while (i < N_ROWS && strcmp(rows[i].name, option) != 0) i++;
    if (i == N_ROWS || given->struct_size == sizeof options)
        return i < N_ROWS ? missing(given, i) : NULL;
    options = onv_options_default();
    onv_take(&options, sizeof options, given, given->struct_size);
    return missing(&options, i);
}

/* Zeros are defaults, too, where a struct was not filled by its initializer. */
static bool is_given(const onv_options *options, const onv_options *plain, size_t row)
{
    static const char zeros[sizeof(double)];
    const char *field = (const char *)options + rows[row].at;
    return memcmp(field, (const char *)plain + rows[row].at, rows[row].bytes) != 0 &&
           memcmp(field, zeros, rows[row].bytes) != 0;
}

onv_status onv_check_needs(const onv_options *options, onv_error *err)
{
    const onv_options plain = onv_options_default();
    for (size_t i = 0; i < N_ROWS; i++) {
        const char *text = is_given(options, &plain, i) ? missing(options, i) : NULL;
        if (text != NULL) return onv_fail(err, ONV_ERR_USAGE, "--%s needs %s", rows[i].name, text);
    }
    return ONV_OK;
}
