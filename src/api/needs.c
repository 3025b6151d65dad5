#include "api/needs.h"

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

static bool trains(const onv_options *o)
{
    return o->train != NULL;
}

static bool infers_in_torch(const onv_options *o)
{
    return lists(o, "torch");
}

static bool runs_torch(const onv_options *o)
{
    return trains(o) || infers_in_torch(o);
}

static bool runs_ort(const onv_options *o)
{
    return lists(o, "ort");
}

static bool has_libraries(const onv_options *o)
{
    return runs_torch(o) || runs_ort(o);
}

static bool has_arena(const onv_options *o)
{
    return lists(o, "arena");
}

static bool shares(const onv_options *o)
{
    return o->zero_stage > 0 || o->ddp != NULL || o->fsdp != NULL || o->world == 1;
}

static bool has_world(const onv_options *o)
{
    return o->world > 1;
}

static bool compiles(const onv_options *o)
{
    return o->compile;
}

static bool has_budget(const onv_options *o)
{
    return o->n_budgets > 0 || o->budget > 0;
}

static bool has_budget_or_replay(const onv_options *o)
{
    return has_budget(o) || o->replay != NULL;
}

static bool has_baseline(const onv_options *o)
{
    return o->baseline != NULL;
}

typedef struct need {
    bool (*is_met)(const onv_options *o);
    const char *text;
} need;

static const need training = {trains, "training: add --train OPTIMIZER, as in --train adamw"};
static const need pytorch = {runs_torch, "PyTorch: add torch to --runtime, or --train OPTIMIZER"};
static const need inference = {infers_in_torch, "inference in PyTorch: add torch to --runtime"};
static const need ort = {runs_ort, "ONNX Runtime: add ort to --runtime, as in --runtime ort"};
static const need libraries = {
    has_libraries, "a runtime with libraries: add torch or ort to --runtime, or --train OPTIMIZER"};
static const need arena = {has_arena, "the runtime arena: add arena to --runtime"};
static const need sharing = {shares, "something to share: add --zero STAGE, --ddp or --fsdp"};
static const need world = {has_world, "2 devices or more: add --world N, as in --world 2"};
static const need compilation = {compiles, "torch.compile: add --compile"};
static const need budget = {has_budget, "a budget: add --budget SIZE or GPU, as in --budget L4"};
static const need budget_or_replay = {
    has_budget_or_replay,
    "a budget or a replay: add --budget SIZE or GPU, as in --budget L4, or --replay"};
static const need baseline = {
    has_baseline, "figures to compare with: add --baseline FILE, which --json=FILE wrote before"};

/* --- Options ----------------------------------------------------------------------------------- */

#define FIELD(name) offsetof(onv_options, name), sizeof(((onv_options *)NULL)->name)

/* By the field that says whether it is given. */
static const struct {
    const char *name;
    size_t at, bytes;
    const need *needs[2];
} rows[] = {
    {"ort", FIELD(n_ort), {&ort}},
    {"ort-advise", FIELD(ort_advise), {&ort}},
    {"ort-partition", FIELD(ort_partition), {&ort}},
    {"shape-trace", FIELD(shape_trace), {&ort}},
    {"expandable-segments", FIELD(expandable_segments), {&pytorch}},
    {"pytorch", FIELD(pytorch), {&pytorch}},
    {"pool", FIELD(pool), {&pytorch}},
    {"amp", FIELD(amp), {&pytorch}},
    {"loss", FIELD(loss), {&training}},
    {"freeze", FIELD(n_freeze), {&training}},
    {"train-only", FIELD(n_train_only), {&training}},
    {"inplace", FIELD(n_inplace), {&pytorch}},
    {"parameters", FIELD(parameters), {&pytorch}},
    {"buffers", FIELD(buffers), {&pytorch}},
    {"attention-dropout", FIELD(attention_dropout), {&training}},
    {"accumulate", FIELD(accumulate), {&training}},
    {"zero", FIELD(zero_stage), {&training, &world}},
    {"ddp", FIELD(ddp), {&training, &world}},
    {"fsdp", FIELD(fsdp), {&training, &world}},
    {"world", FIELD(world), {&training, &sharing}},
    {"master-weights", FIELD(master_weights), {&training}},
    {"offload", FIELD(offload), {&training}},
    {"ema", FIELD(ema), {&training}},
    {"as-exported", FIELD(as_exported), {&pytorch}},
    {"folded-norms", FIELD(folded_norms), {&pytorch}},
    {"graph-module", FIELD(graph_module), {&inference}},
    {"no-fast-path", FIELD(no_fast_path), {&inference}},
    {"locals", FIELD(locals), {&inference}},
    {"attention", FIELD(attention), {&pytorch}},
    {"zero-grad", FIELD(zero_grad), {&training}},
    {"optimizer-impl", FIELD(optimizer_impl), {&training}},
    {"gpu", FIELD(compute_capability), {&libraries}},
    {"channels-last", FIELD(channels_last), {&pytorch}},
    {"no-tf32", FIELD(no_tf32), {&pytorch}},
    {"cudnn-benchmark", FIELD(cudnn_benchmark), {&pytorch}},
    {"checkpoint", FIELD(checkpoint), {&training}},
    {"compile", FIELD(compile), {&training}},
    {"compile budget", FIELD(compile_budget), {&compilation}},
    {"margin", FIELD(margin_percent), {&budget}},
    {"max-dim", FIELD(max_dim), {&budget}},
    {"max-batch", FIELD(max_batch), {&budget_or_replay}},
    {"max-growth", FIELD(has_max_growth), {&baseline}},
    {"align", FIELD(align), {&arena}},
    {"snapshot", FIELD(snapshot), {&pytorch}},
};

enum { N_ROWS = sizeof rows / sizeof rows[0] };

static const char *missing(const onv_options *options, size_t row)
{
    for (size_t i = 0; i < 2 && rows[row].needs[i] != NULL; i++)
        if (!rows[row].needs[i]->is_met(options)) return rows[row].needs[i]->text;
    return NULL;
}

const char *onv_option_missing(const onv_options *given, const char *option)
{
    onv_options options = onv_options_default();
    onv_take(&options, sizeof options, given, given->struct_size);
    for (size_t i = 0; i < N_ROWS; i++)
        if (strcmp(rows[i].name, option) == 0) return missing(&options, i);
    return NULL;
}

/* Zeros are defaults, too, where a struct was not filled by its initializer. */
static bool is_given(const onv_options *options, size_t row)
{
    static const char zeros[sizeof(double)];
    const onv_options plain = onv_options_default();
    const char *field = (const char *)options + rows[row].at;
    return memcmp(field, (const char *)&plain + rows[row].at, rows[row].bytes) != 0 &&
           memcmp(field, zeros, rows[row].bytes) != 0;
}

onv_status onv_check_needs(const onv_options *options, onv_error *err)
{
    for (size_t i = 0; i < N_ROWS; i++) {
        const char *text = is_given(options, i) ? missing(options, i) : NULL;
        if (text != NULL) return onv_fail(err, ONV_ERR_USAGE, "--%s needs %s", rows[i].name, text);
    }
    return ONV_OK;
}
