#include "cli/options.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/check.h"
#include "cli/values.h"

/* Long options without a letter get a number beyond the characters. */
enum {
    OPT_JSON = 256,
    OPT_CSV,
    OPT_LAYERS,
    OPT_FORMULA,
    OPT_FORMAT,
    OPT_BASELINE,
    OPT_MAX_GROWTH,
    OPT_DUMP,
    OPT_TOP,
    OPT_COLOR,
    OPT_VERSION,
    OPT_PRECISION,
    OPT_ORDER,
    OPT_RUNTIME,
    OPT_EFFORT,
    OPT_LIMIT,
    OPT_EXPANDABLE,
    OPT_BUDGET,
    OPT_MARGIN,
    OPT_MAX_BATCH,
    OPT_MAX_DIM,
    OPT_LIST_GPUS,
    OPT_TRAIN,
    OPT_AMP,
    OPT_LOSS,
    OPT_FREEZE,
    OPT_TRAIN_ONLY,
    OPT_INPLACE,
    OPT_ATTENTION_DROPOUT,
    OPT_ACCUMULATE,
    OPT_ZERO,
    OPT_WORLD,
    OPT_DDP,
    OPT_FSDP,
    OPT_MASTER_WEIGHTS,
    OPT_OFFLOAD,
    OPT_EMA,
    OPT_WEIGHTS,
    OPT_POOL,
    OPT_AS_EXPORTED,
    OPT_FOLDED_NORMS,
    OPT_GRAPH_MODULE,
    OPT_NO_FAST_PATH,
    OPT_OP_SHAPES,
    OPT_CHECKPOINT,
    OPT_PLAN_OUT,
    OPT_COMPILE,
    OPT_ATTENTION,
    OPT_LOCALS,
    OPT_ZERO_GRAD,
    OPT_OPTIMIZER_IMPL,
    OPT_REPLAY,
    OPT_NO_EXTERNAL_DATA,
    OPT_UNTRUSTED,
    OPT_ORT,
    OPT_ORT_ADVISE,
    OPT_ORT_PARTITION,
    OPT_SHAPE_TRACE,
    OPT_TOGETHER,
    OPT_GPU,
    OPT_CHANNELS_LAST,
    OPT_NO_TF32,
    OPT_CUDNN_BENCHMARK,
    OPT_PYTORCH,
    OPT_ONNX_OUT,
    OPT_ALIGN,
    OPT_KV_CACHE,
};

typedef struct option_row {
    int code; /* a letter, or OPT_... */
    const char *name;
    int has_arg;
    const char *arg; /* as --help shows it */
    const char *help;
} option_row;

static const option_row rows[] = {
    {'b', "batch", required_argument, "N", "the batch size: the first dimension of the inputs"},
    {'d', "dim", required_argument, "NAME=N",
     "bind a symbolic dimension, or a data-dependent size by its name (range#1); repeatable"},
    {'s', "shape", required_argument, "INPUT=AxBxC", "give an input's whole shape; repeatable"},
    {'i', "input-value", required_argument, "NAME=V,V,...",
     "give the value of an input that decides shapes; or NAME=@FILE.pb"},
    {OPT_OP_SHAPES, "op-shapes", required_argument, "FILE",
     "teach operators that are not known: docs/op-shapes.md"},
    {OPT_PRECISION, "precision", required_argument, "TYPE",
     "as if the float tensors were cast: fp32, fp16, bf16"},
    {OPT_ORDER, "order", required_argument, "NAME", "order of execution; see below"},
    {OPT_RUNTIME, "runtime", required_argument, "LIST", "whose memory to work out; see below"},
    {OPT_EFFORT, "effort", required_argument, "N", "units of work for searches"},
    {OPT_LIMIT, "limit", required_argument, "NAME=N",
     "what input may ask for before it is refused; see below; repeatable"},
    {OPT_NO_EXTERNAL_DATA, "no-external-data", no_argument, NULL,
     "open no file beside the model's own"},
    {OPT_UNTRUSTED, "untrusted", no_argument, NULL,
     "for files of strangers: small limits, no external data, a confined process"},
    {OPT_ORT, "ort", required_argument, "KEY=VALUE",
     "a setting of ONNX Runtime, by its own name; see below; repeatable"},
    {OPT_ORT_ADVISE, "ort-advise", no_argument, NULL,
     "settings of ONNX Runtime side by side, and how the best are written"},
    {OPT_ORT_PARTITION, "ort-partition", required_argument, "FILE",
     "bytes by node, for ONNX Runtime's session.resource_cuda_partitioning_settings"},
    {OPT_SHAPE_TRACE, "shape-trace", required_argument, "FILE",
     "requests to one session of ONNX Runtime: names of dims, then a line of sizes for each"},
    {OPT_TOGETHER, "together", no_argument, NULL,
     "sessions of ONNX Runtime in one process: the models given, MODEL*N for N of one"},
    {OPT_EXPANDABLE, "expandable-segments", no_argument, NULL,
     "PyTorch's allocator with expandable_segments:True"},
    {OPT_PYTORCH, "pytorch", required_argument, "VERSION",
     "the release whose rules eager PyTorch follows; see below"},
    {OPT_POOL, "pool", required_argument, "SIZE",
     "what PyTorch's allocator has cached before, in one segment"},
    {OPT_TRAIN, "train", required_argument, "OPTIMIZER", "what training would need; see below"},
    {OPT_AMP, "amp", required_argument, "TYPE", "train with mixed precision: fp16, bf16"},
    {OPT_LOSS, "loss", required_argument, "NAME",
     "cross-entropy, fused-cross-entropy, chunked-cross-entropy[=N], mse or none; OUTPUT=NAME,... "
     "for some"},
    {OPT_FREEZE, "freeze", required_argument, "PATTERN",
     "parameters or modules that are not trained (* and ?); repeatable"},
    {OPT_TRAIN_ONLY, "train-only", required_argument, "PATTERN",
     "parameters or modules that are trained, no others; repeatable"},
    {OPT_INPLACE, "inplace", optional_argument, "[=PATTERN]",
     "activations that overwrite their input: all, or those of modules; repeatable"},
    {OPT_ATTENTION_DROPOUT, "attention-dropout", required_argument, "P",
     "dropout inside scaled_dot_product_attention, which exports leave out"},
    {OPT_ACCUMULATE, "accumulate", required_argument, "N", "batches per optimizer step"},
    {OPT_ZERO, "zero", required_argument, "STAGE", "ZeRO 1, 2 or 3; with --world"},
    {OPT_DDP, "ddp", optional_argument, "[=HOW]",
     "DistributedDataParallel: gradients are copied into buckets (copy) or views of them (view)"},
    {OPT_FSDP, "fsdp", optional_argument, "[=PATTERN,...]",
     "fully_shard of these modules (repeated ones, if none is given) and of the network"},
    {OPT_WORLD, "world", required_argument, "N",
     "devices that share training: --zero, --ddp, --fsdp"},
    {OPT_MASTER_WEIGHTS, "master-weights", no_argument, NULL,
     "the optimizer has float32 copies of parameters in 16 bits (--precision)"},
    {OPT_OFFLOAD, "offload", required_argument, "WHAT",
     "optimizer: its state and step are on the host; gradients: they go there too"},
    {OPT_EMA, "ema", no_argument, NULL, "a moving average of the parameters, on the device"},
    {OPT_WEIGHTS, "weights", required_argument, "FORMAT",
     "linear layers in fewer bits, with --train those that are frozen; see below"},
    {OPT_KV_CACHE, "kv-cache", required_argument, "HOW",
     "the key-value cache, as copies or shared (one buffer a layer); with --budget the longest "
     "context"},
    {OPT_AS_EXPORTED, "as-exported", no_argument, NULL,
     "run the exporter's operators, not those that it decomposed"},
    {OPT_FOLDED_NORMS, "folded-norms", no_argument, NULL,
     "eager PyTorch: batch norms that the export folded are folded in the network, too"},
    {OPT_GRAPH_MODULE, "graph-module", no_argument, NULL,
     "eager PyTorch: the network is a torch.fx.GraphModule, whose code holds no value too long"},
    {OPT_NO_FAST_PATH, "no-fast-path", no_argument, NULL,
     "eager PyTorch: layers of nn.TransformerEncoder run operation by operation"},
    {OPT_LOCALS, "locals", no_argument, NULL,
     "eager PyTorch: values stay until the call of the module that names them returns"},
    {OPT_ATTENTION, "attention", required_argument, "KERNEL",
     "auto (what PyTorch takes), math (separate operations), flash or efficient"},
    {OPT_ZERO_GRAD, "zero-grad", required_argument, "WHEN",
     "gradients are freed before-forward or before-backward, or keep: zeroed"},
    {OPT_OPTIMIZER_IMPL, "optimizer-impl", required_argument, "NAME",
     "foreach (PyTorch's choice on GPUs), fused or for-loop"},
    {OPT_GPU, "gpu", required_argument, "NAME",
     "whose libraries take workspaces; otherwise that of --budget, or H100"},
    {OPT_CHANNELS_LAST, "channels-last", no_argument, NULL,
     "PyTorch: tensors of convolutions lie in channels_last"},
    {OPT_NO_TF32, "no-tf32", no_argument, NULL, "PyTorch: convolutions do not use TF32"},
    {OPT_CUDNN_BENCHMARK, "cudnn-benchmark", no_argument, NULL,
     "PyTorch: the first iteration tries all of cuDNN's kernels"},
    {OPT_CHECKPOINT, "checkpoint", required_argument, "LIST",
     "train with checkpointing plans, compare them; see below"},
    {OPT_PLAN_OUT, "plan-out", required_argument, "FILE",
     "the plan's segments, and how PyTorch applies them"},
    {OPT_COMPILE, "compile", optional_argument, "[=BUDGET]",
     "training under torch.compile: what it keeps, with an activation_memory_budget from 0 to 1 "
     "(1)"},
    {OPT_BUDGET, "budget", required_argument, "SIZE|GPU,...",
     "memory to fit: 16GiB, 80GB, a GPU, or several; exit status 3 if the model fits none"},
    {OPT_MARGIN, "margin", required_argument, "PERCENT", "of the budget, to keep free (0)"},
    {OPT_MAX_BATCH, "max-batch", no_argument, NULL, "the largest batch that fits the budget"},
    {OPT_MAX_DIM, "max-dim", required_argument, "NAME",
     "the largest size of a symbolic dimension that fits the budget"},
    {OPT_REPLAY, "replay", optional_argument, "[=DEVICE]",
     "make the allocations and compare: cuda (the default) or host; exit status 4 if they differ"},
    {OPT_LIST_GPUS, "list-gpus", no_argument, NULL, "the GPUs that --budget knows"},
    {OPT_JSON, "json", optional_argument, "[=FILE]", "everything, as JSON"},
    {OPT_CSV, "csv", optional_argument, "[=FILE]", "one row per tensor, as CSV"},
    {OPT_LAYERS, "layers", optional_argument, "[=DEPTH]", "a table per module"},
    {OPT_FORMAT, "format", required_argument, "NAME",
     "of the report: text, or markdown for a pull request"},
    {OPT_BASELINE, "baseline", required_argument, "FILE",
     "a --json report of before to compare with"},
    {OPT_MAX_GROWTH, "max-growth", required_argument, "PERCENT",
     "exit status 3 if a figure grew by more since the baseline"},
    {OPT_FORMULA, "formula", optional_argument, "[=HOW]",
     "peak and totals as functions of the free dims: text, python, c"},
    {OPT_DUMP, "dump", required_argument, "WHAT",
     "what stands between the passes: graph, intervals, plan, header, trace, replay"},
    {OPT_ALIGN, "align", required_argument, "N",
     "offsets of the runtime arena are multiples of N bytes, a power of two"},
    {OPT_ONNX_OUT, "onnx-out", required_argument, "FILE",
     "the model with shapes, bytes and steps of its values, nodes in the --order"},
    {OPT_TOP, "top", required_argument, "N", "how many of the largest tensors to list (10)"},
    {OPT_COLOR, "color", required_argument, "WHEN", "auto, always or never"},
    {'q', "quiet", no_argument, NULL, "only the figures, no advice and no diagnostics"},
    {'v', "verbose", no_argument, NULL, "every diagnostic and every row"},
    {OPT_VERSION, "version", no_argument, NULL, "print the version"},
    {'h', "help", no_argument, NULL, "print this"},
};

enum { N_ROWS = sizeof rows / sizeof rows[0] };

/* What a function of the library names, one a line. */
static void list_names(FILE *to, const char *title, const char *(*name)(size_t, const char **))
{
    const char *summary;
    fprintf(to, "\n%s\n", title);
    for (size_t i = 0; name(i, &summary) != NULL; i++)
        fprintf(to, "  %-10s %s\n", name(i, NULL), summary);
}

void onv_cli_help(FILE *to)
{
    fputs("Usage: onnxvram [OPTION...] MODEL.onnx [MODEL.onnx...]\n"
          "       onnxvram diff [OPTION...] OLD.onnx NEW.onnx\n"
          "       onnxvram plan INTERVALS.csv [--capacity BYTES] [--align N] [-o OUT.csv]\n"
          "       onnxvram simulate TRACE.csv --runtime NAME\n"
          "\n"
          "Says how much GPU memory an exported ONNX model needs, and why.\n"
          "\n"
          "Options:\n",
          to);
    for (size_t i = 0; i < N_ROWS; i++) {
        char left[48];
        const char *arg = rows[i].arg != NULL ? rows[i].arg : "";
        const char *gap = rows[i].has_arg == required_argument ? " " : "";
        if (rows[i].code < 256)
            snprintf(left, sizeof left, "-%c, --%s%s%s", rows[i].code, rows[i].name, gap, arg);
        else
            snprintf(left, sizeof left, "    --%s%s%s", rows[i].name, gap, arg);
        /* What does not fit its column gets a line of its own. */
        if (strlen(left) > 30)
            fprintf(to, "  %s\n  %-30s  %s\n", left, "", rows[i].help);
        else
            fprintf(to, "  %-30s  %s\n", left, rows[i].help);
    }
    const char *summary;
    list_names(to, "Orders:", onv_order_name);
    list_names(to, "Runtimes (all, unless a comma-separated list is given):", onv_runtime_name);
    list_names(to, "Devices of --replay:", onv_replay_device_name);
    const char *values;
    fputs("\nSettings of ONNX Runtime:\n", to);
    for (size_t i = 0; onv_ort_setting_at(i, &values) != NULL; i++)
        fprintf(to, "  %s=\n             %s\n", onv_ort_setting_at(i, NULL), values);
    uint64_t fallback;
    fputs("\nLimits:\n", to);
    for (size_t i = 0; onv_limit_name(i, &summary, &fallback) != NULL; i++)
        fprintf(to, "  %-14s %s (%llu)\n", onv_limit_name(i, NULL, NULL), summary,
                (unsigned long long)fallback);
    list_names(to, "Optimizers:", onv_optimizer_name);
    fputs("\nReleases of PyTorch (the first, unless one is given):\n ", to);
    for (size_t i = 0; onv_pytorch_name(i) != NULL; i++) fprintf(to, " %s", onv_pytorch_name(i));
    fputs("\n", to);
    list_names(to, "Formats of --weights:", onv_weight_format_name);
    bool counts;
    fputs("\nCheckpointing plans (a comma-separated list, or all):\n", to);
    for (size_t i = 0; onv_checkpoint_name(i, &summary, &counts) != NULL; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s%s", onv_checkpoint_name(i, NULL, NULL), counts ? "=K" : "");
        fprintf(to, "  %-10s %s\n", name, summary);
    }
    fputs("\n"
          "Exit status: 0 done, 1 a model or file could not be used, 2 wrong usage,\n"
          "3 does not fit the budget or the device, 4 the replay contradicts the prediction.\n",
          to);
}

static onv_cli_verdict list_gpus(void)
{
    onv_gpu_info gpu;
    printf("%-28s %10s  %4s  %s\n", "GPU", "usable MiB", "cc", "source");
    for (size_t i = 0; onv_gpu_at(i, &gpu); i++)
        printf("%-28s %10llu  %2u.%u  %s\n", gpu.name, (unsigned long long)(gpu.usable_bytes >> 20),
               gpu.cc_major, gpu.cc_minor, gpu.source);
    return ONV_CLI_DONE;
}

/* --- Parsing ----------------------------------------------------------------------------------- */

static onv_cli_verdict apply(onv_cli *cli, int code, const char *arg)
{
    switch (code) {
    case 'b': return onv_cli_set_batch(cli, arg);
    case 'd': return onv_cli_add_dim(cli, arg);
    case 's': return onv_cli_add_shape(cli, arg);
    case 'i': return onv_cli_add_input_value(cli, arg);
    case OPT_OP_SHAPES: cli->analysis.op_shapes_file = arg; return ONV_CLI_RUN;
    case OPT_PRECISION: return onv_cli_set_precision(&cli->analysis.precision, "precision", arg);
    case OPT_ORDER: cli->analysis.order = arg; return ONV_CLI_RUN;
    case OPT_RUNTIME: cli->analysis.runtimes = arg; return ONV_CLI_RUN;
    case OPT_EFFORT: return onv_cli_set_effort(cli, arg);
    case OPT_LIMIT: return onv_cli_set_limit(cli, arg);
    case OPT_NO_EXTERNAL_DATA: cli->analysis.no_external_data = true; return ONV_CLI_RUN;
    case OPT_UNTRUSTED: cli->untrusted = true; return ONV_CLI_RUN;
    case OPT_EXPANDABLE: cli->analysis.expandable_segments = true; return ONV_CLI_RUN;
    case OPT_ORT: cli->ort[cli->analysis.n_ort++] = arg; return ONV_CLI_RUN;
    case OPT_ORT_ADVISE: cli->analysis.ort_advise = true; return ONV_CLI_RUN;
    case OPT_ORT_PARTITION:
        cli->analysis.ort_partition = true;
        return onv_cli_add_output(cli, ONV_FORMAT_ORT_PARTITION, arg);
    case OPT_TOGETHER: cli->together = true; return ONV_CLI_RUN;
    case OPT_SHAPE_TRACE: cli->analysis.shape_trace = arg; return ONV_CLI_RUN;
    case OPT_BUDGET: return onv_cli_set_budget(cli, arg);
    case OPT_LIST_GPUS: return list_gpus();
    case OPT_PYTORCH: cli->analysis.pytorch = arg; return ONV_CLI_RUN;
    case OPT_TRAIN: cli->analysis.train = arg; return ONV_CLI_RUN;
    case OPT_AMP: return onv_cli_set_precision(&cli->analysis.amp, "amp", arg);
    case OPT_LOSS: cli->analysis.loss = arg; return ONV_CLI_RUN;
    case OPT_FREEZE: cli->freeze[cli->analysis.n_freeze++] = arg; return ONV_CLI_RUN;
    case OPT_TRAIN_ONLY: cli->train_only[cli->analysis.n_train_only++] = arg; return ONV_CLI_RUN;
    case OPT_INPLACE:
        cli->inplace[cli->analysis.n_inplace++] = arg != NULL ? arg : "*";
        return ONV_CLI_RUN;
    case OPT_ATTENTION_DROPOUT: return onv_cli_set_attention_dropout(cli, arg);
    case OPT_ACCUMULATE:
        return onv_cli_set_unsigned(&cli->analysis.accumulate, "accumulate", arg, 1);
    case OPT_ZERO: return onv_cli_set_unsigned(&cli->analysis.zero_stage, "zero", arg, 1);
    case OPT_WORLD: return onv_cli_set_unsigned(&cli->analysis.world, "world", arg, 1);
    case OPT_DDP: cli->analysis.ddp = arg != NULL ? arg : "copy"; return ONV_CLI_RUN;
    case OPT_FSDP: cli->analysis.fsdp = arg != NULL ? arg : ""; return ONV_CLI_RUN;
    case OPT_MASTER_WEIGHTS: cli->analysis.master_weights = true; return ONV_CLI_RUN;
    case OPT_OFFLOAD: cli->analysis.offload = arg; return ONV_CLI_RUN;
    case OPT_POOL:
        if (onv_cli_parse_size(arg, &cli->analysis.pool) && cli->analysis.pool > 0)
            return ONV_CLI_RUN;
        return onv_cli_reject("--pool takes a size like 2GiB, not '%s'", arg);
    case OPT_EMA: cli->analysis.ema = true; return ONV_CLI_RUN;
    case OPT_WEIGHTS: cli->analysis.weights = arg; return ONV_CLI_RUN;
    case OPT_KV_CACHE: return onv_cli_set_kv_cache(cli, arg);
    case OPT_AS_EXPORTED: cli->analysis.as_exported = true; return ONV_CLI_RUN;
    case OPT_FOLDED_NORMS: cli->analysis.folded_norms = true; return ONV_CLI_RUN;
    case OPT_GRAPH_MODULE: cli->analysis.graph_module = true; return ONV_CLI_RUN;
    case OPT_NO_FAST_PATH: cli->analysis.no_fast_path = true; return ONV_CLI_RUN;
    case OPT_CHECKPOINT: cli->analysis.checkpoint = arg; return ONV_CLI_RUN;
    case OPT_PLAN_OUT: return onv_cli_add_output(cli, ONV_FORMAT_CHECKPOINTS, arg);
    case OPT_COMPILE: return onv_cli_set_compile(cli, arg);
    case OPT_LOCALS: cli->analysis.locals = true; return ONV_CLI_RUN;
    case OPT_ATTENTION: cli->analysis.attention = arg; return ONV_CLI_RUN;
    case OPT_ZERO_GRAD: cli->analysis.zero_grad = arg; return ONV_CLI_RUN;
    case OPT_OPTIMIZER_IMPL: cli->analysis.optimizer_impl = arg; return ONV_CLI_RUN;
    case OPT_GPU: return onv_cli_set_gpu(cli, arg);
    case OPT_CHANNELS_LAST: cli->analysis.channels_last = true; return ONV_CLI_RUN;
    case OPT_NO_TF32: cli->analysis.no_tf32 = true; return ONV_CLI_RUN;
    case OPT_CUDNN_BENCHMARK: cli->analysis.cudnn_benchmark = true; return ONV_CLI_RUN;
    case OPT_MARGIN: return onv_cli_set_margin(cli, arg);
    case OPT_REPLAY: cli->analysis.replay = arg != NULL ? arg : "cuda"; return ONV_CLI_RUN;
    case OPT_MAX_BATCH: cli->analysis.max_batch = true; return ONV_CLI_RUN;
    case OPT_MAX_DIM:
        cli->analysis.max_batch = true;
        cli->analysis.max_dim = arg;
        return ONV_CLI_RUN;
    case OPT_JSON: return onv_cli_add_output(cli, ONV_FORMAT_JSON, arg);
    case OPT_CSV: return onv_cli_add_output(cli, ONV_FORMAT_CSV, arg);
    case OPT_LAYERS:
        if (arg != NULL &&
            onv_cli_set_unsigned(&cli->report.layer_depth, "layers", arg, 1) != ONV_CLI_RUN)
            return ONV_CLI_USAGE;
        return onv_cli_add_output(cli, ONV_FORMAT_LAYERS, NULL);
    case OPT_FORMAT: return onv_cli_set_format(cli, arg);
    case OPT_BASELINE: cli->baseline = arg; return ONV_CLI_RUN;
    case OPT_MAX_GROWTH: return onv_cli_set_max_growth(cli, arg);
    case OPT_FORMULA: return onv_cli_add_formula(cli, arg);
    case OPT_ALIGN: return onv_cli_set_align(&cli->analysis.align, "align", arg);
    case OPT_ONNX_OUT:
        cli->analysis.onnx_out = true;
        return onv_cli_add_output(cli, ONV_FORMAT_ONNX, arg);
    case OPT_DUMP: return onv_cli_add_dump(cli, arg);
    case OPT_TOP: return onv_cli_set_unsigned(&cli->report.top, "top", arg, 1);
    case OPT_COLOR: return onv_cli_set_color(cli, arg);
    case 'q': cli->report.verbosity = -1; return ONV_CLI_RUN;
    case 'v': cli->report.verbosity = 1; return ONV_CLI_RUN;
    case OPT_VERSION: printf("onnxvram %s\n", onv_version()); return ONV_CLI_DONE;
    case 'h': onv_cli_help(stdout); return ONV_CLI_DONE;
    default: break;
    }
    return ONV_CLI_USAGE;
}

static const char *option_name(size_t index)
{
    return index < N_ROWS ? rows[index].name : NULL;
}

/* An option that getopt_long does not take: it is not there, has several names that begin so, or takes no
 * value. */
static onv_cli_verdict refuse(const char *text)
{
    char name[64];
    size_t length = strcspn(text + 2, "="), n_like = 0;
    if (text[0] != '-' || text[1] != '-' || length >= sizeof name)
        return onv_cli_reject("option '%s' is unknown", text);
    memcpy(name, text + 2, length);
    name[length] = '\0';
    for (size_t i = 0; i < N_ROWS; i++) {
        if (strcmp(rows[i].name, name) == 0)
            return onv_cli_reject("--%s takes no value, and '%s' has one", name, text);
        n_like += strncmp(rows[i].name, name, length) == 0;
    }
    if (n_like > 1)
        return onv_cli_reject("'%s' begins several options; write one of them out", text);
    const char *near = onv_nearest_name(name, option_name);
    if (near != NULL)
        return onv_cli_reject("there is no option '--%s', did you mean '--%s'?", name, near);
    return onv_cli_reject("there is no option '--%s'", name);
}

enum { NO_OPTION = 1 };

static const option_row *row_of(int code)
{
    for (size_t i = 0; i < N_ROWS; i++)
        if (rows[i].code == code) return &rows[i];
    return NULL;
}

/* A model; behind an option with a value, what is no file is likely meant as another value. */
static onv_cli_verdict add_model(onv_cli *cli, const char *text, const option_row *behind)
{
    bool has_value = behind != NULL && behind->has_arg == required_argument;
    bool looks_like_value = strpbrk(text, "./*") == NULL && strcmp(text, "-") != 0;
    if (!has_value || !looks_like_value || access(text, F_OK) == 0)
        return onv_cli_add_model(cli, text);
    if (strchr(behind->arg, ',') != NULL || strcmp(behind->arg, "LIST") == 0)
        return onv_cli_reject("'%s' is no file; several values of --%s are one word with commas",
                              text, behind->name);
    return onv_cli_reject("'%s' is no file, and --%s takes one value", text, behind->name);
}

static onv_cli_verdict parse(onv_cli *cli, int argc, char **argv)
{
    struct option longs[N_ROWS + 1] = {{0}};
    /* "-": what is no option comes in its place. */
    char shorts[3 * N_ROWS + 3] = "-:", *to = shorts + 2;
    for (size_t i = 0; i < N_ROWS; i++) {
        longs[i] = (struct option){rows[i].name, rows[i].has_arg, NULL, rows[i].code};
        if (rows[i].code >= 256) continue;
        *to++ = (char)rows[i].code;
        if (rows[i].has_arg == required_argument) *to++ = ':';
    }
    const option_row *last = NULL; /* whose value has just been read */
    cli->is_diff = argc > 1 && strcmp(argv[1], "diff") == 0;
    opterr = 0;
    optind = cli->is_diff ? 2 : 1;
    for (;;) {
        int code = getopt_long(argc, argv, shorts, longs, NULL);
        if (code == -1) break;
        if (code == NO_OPTION) {
            if (add_model(cli, optarg, last) != ONV_CLI_RUN) return ONV_CLI_USAGE;
            last = NULL;
            continue;
        }
        if (code == ':') return onv_cli_reject("option '%s' needs a value", argv[optind - 1]);
        if (code == '?' && optopt > 0 && optopt < 256 && strchr(shorts, optopt) == NULL)
            return onv_cli_reject("there is no option '-%c'", optopt);
        if (code == '?') return refuse(argv[optind - 1]);
        onv_cli_verdict verdict = apply(cli, code, optarg);
        if (verdict != ONV_CLI_RUN) return verdict;
        last = row_of(code);
    }
    for (int i = optind; i < argc; i++)
        if (onv_cli_add_model(cli, argv[i]) != ONV_CLI_RUN) return ONV_CLI_USAGE;
    return onv_cli_check(cli);
}

onv_cli_verdict onv_cli_parse(onv_cli *cli, int argc, char **argv)
{
    *cli = (onv_cli){0};
    cli->analysis = onv_options_default();
    cli->limits = onv_limits_default();
    cli->analysis.limits = &cli->limits;
    cli->report = onv_report_options_default();
    /* No list is longer than the command line. */
    size_t most = (size_t)argc + 1;
    cli->models = calloc(most, sizeof *cli->models);
    cli->instances = calloc(most, sizeof *cli->instances);
    cli->dims = calloc(most, sizeof *cli->dims);
    cli->shapes = calloc(most, sizeof *cli->shapes);
    cli->input_values = calloc(most, sizeof *cli->input_values);
    cli->freeze = calloc(most, sizeof *cli->freeze);
    cli->train_only = calloc(most, sizeof *cli->train_only);
    cli->inplace = calloc(most, sizeof *cli->inplace);
    cli->ort = calloc(most, sizeof *cli->ort);
    onv_cli_verdict verdict;
    if (cli->models == NULL || cli->instances == NULL || cli->dims == NULL || cli->shapes == NULL ||
        cli->input_values == NULL || cli->freeze == NULL || cli->train_only == NULL ||
        cli->inplace == NULL || cli->ort == NULL)
        verdict = onv_cli_reject("out of memory");
    else
        verdict = parse(cli, argc, argv);
    cli->analysis.budgets = cli->budgets;
    cli->analysis.dims = cli->dims;
    cli->analysis.shapes = cli->shapes;
    cli->analysis.input_values = cli->input_values;
    cli->analysis.freeze = cli->freeze;
    cli->analysis.train_only = cli->train_only;
    cli->analysis.inplace = cli->inplace;
    cli->analysis.ort = cli->ort;
    return verdict;
}

/* The names and arrays were allocated here; the public structs hold them as const. */
static void drop(const void *owned)
{
    free((void *)(uintptr_t)owned); /* NOLINT(performance-no-int-to-ptr): the way to shed a const */
}

void onv_cli_cleanup(onv_cli *cli)
{
    for (size_t i = 0; i < cli->analysis.n_dims; i++) drop(cli->dims[i].name);
    for (size_t i = 0; i < cli->analysis.n_shapes; i++) {
        drop(cli->shapes[i].name);
        drop(cli->shapes[i].dims);
    }
    for (size_t i = 0; i < cli->analysis.n_input_values; i++) {
        drop(cli->input_values[i].name);
        drop(cli->input_values[i].numbers);
    }
    for (size_t i = 0; i < cli->n_models; i++) drop(cli->models[i]);
    free(cli->models);
    free(cli->instances);
    free(cli->dims);
    free(cli->shapes);
    free(cli->input_values);
    free(cli->freeze);
    free(cli->train_only);
    free(cli->inplace);
    free(cli->ort);
}
