#include "cli/table.h"

#include <limits.h>
#include <string.h>

#include "cli/values.h"

#define AT(field)         .at = offsetof(onv_cli, field)
#define COUNT(field, top) AT(field), .least = 1, .most = (top)
#define LIST(field, n)    AT(field), .count = offsetof(onv_cli, n)
#define NEEDS(what)       .needs = ONV_NEEDS_##what

const onv_cli_row onv_cli_rows[] = {
    {'b', "batch", "N", "the batch size: the first dimension of the inputs",
     .read = onv_cli_set_batch},
    {'d', "dim", "NAME=N",
     "bind a symbolic dimension, or a data-dependent size by its name (range#1); repeatable",
     .read = onv_cli_add_dim},
    {'s', "shape", "INPUT=AxBxC", "give an input's whole shape; repeatable",
     .read = onv_cli_add_shape},
    {'i', "input-value", "NAME=V,V,...", "value of a shape-determining input; or NAME=@FILE.pb",
     .read = onv_cli_add_input_value},
    {0, "op-shapes", "FILE", "shape rules for custom operators: docs/op-shapes.md",
     AT(analysis.op_shapes_file)},
    {0, "precision", "TYPE", "as if the float tensors were cast: fp32, fp16, bf16",
     .read = onv_cli_set_precision},
    {0, "order", "NAME", "order of execution; see below", AT(analysis.order)},
    {0, "runtime", "LIST", "runtimes to simulate; see below", AT(analysis.runtimes)},
    {0, "effort", "N", "units of work for searches", .read = onv_cli_set_effort},
    {0, "jobs", "N", "models that are analysed at once; without it one for each core",
     COUNT(jobs, 1024)},
    {0, "limit", "NAME=N", "safety limits; see below; repeatable", .read = onv_cli_set_limit},
    {0, "no-external-data", NULL, "open only the model file", AT(analysis.no_external_data)},
    {0, "untrusted", NULL,
     "for untrusted files: small limits, no external data, a confined process", AT(untrusted)},
    {0, "ort", "KEY=VALUE", "a setting of ONNX Runtime, by its own name; see below; repeatable",
     LIST(ort, analysis.n_ort)},
    {0, "ort-advise", NULL, "settings of ONNX Runtime side by side, and how the best are written",
     AT(analysis.ort_advise)},
    {0, "ort-partition", "FILE",
     "bytes by node, for ONNX Runtime's session.resource_cuda_partitioning_settings",
     .read = onv_cli_set_ort_partition},
    {0, "shape-trace", "FILE",
     "requests to one session of ONNX Runtime: names of dims, then a line of sizes for each",
     AT(analysis.shape_trace)},
    {0, "together", NULL,
     "sessions of ONNX Runtime in one process: the models given, MODEL*N for N of one",
     AT(together), .like = "ort"},
    {0, "expandable-segments", NULL, "PyTorch's allocator with expandable_segments:True",
     AT(analysis.expandable_segments)},
    {0, "pytorch", "VERSION", "the release whose rules eager PyTorch follows; see below",
     AT(analysis.pytorch)},
    {0, "pool", "SIZE", "what PyTorch's allocator has cached before, in one segment",
     .read = onv_cli_set_pool},
    {0, "train", "OPTIMIZER", "what training would need; see below", AT(analysis.train)},
    {0, "amp", "TYPE", "PyTorch under autocast: fp16, bf16", .read = onv_cli_set_amp},
    {0, "loss", "NAME",
     "cross-entropy, fused-cross-entropy, chunked-cross-entropy[=N], mse or none; OUTPUT=NAME,... "
     "for some",
     AT(analysis.loss)},
    {0, "freeze", "PATTERN", "parameters or modules that are not trained (* and ?); repeatable",
     LIST(freeze, analysis.n_freeze)},
    {0, "train-only", "PATTERN", "parameters or modules that are trained, no others; repeatable",
     LIST(train_only, analysis.n_train_only)},
    {0, "inplace", "[=PATTERN]",
     "activations that overwrite their input: all, or those of modules; repeatable",
     LIST(inplace, analysis.n_inplace), .fallback = "*"},
    {0, "parameters", "N",
     "elements of all parameters, as PyTorch counts them: it holds those too that the file lacks",
     .read = onv_cli_set_parameters},
    {0, "attention-dropout", "P",
     "dropout inside scaled_dot_product_attention, which exports leave out",
     .read = onv_cli_set_attention_dropout},
    {0, "accumulate", "N", "batches per optimizer step", COUNT(analysis.accumulate, INT_MAX)},
    {0, "zero", "STAGE", "ZeRO 1, 2 or 3; with --world", COUNT(analysis.zero_stage, 3)},
    {0, "ddp", "[=HOW]",
     "DistributedDataParallel: gradients are copied into buckets (copy) or views of them (view)",
     AT(analysis.ddp), .fallback = "copy"},
    {0, "fsdp", "[=PATTERN,...]",
     "fully_shard of these modules (repeated ones, if none is given) and of the network",
     AT(analysis.fsdp), .fallback = ""},
    {0, "world", "N", "number of data-parallel ranks, with --zero, --ddp or --fsdp",
     COUNT(analysis.world, INT_MAX)},
    {0, "master-weights", NULL,
     "the optimizer has float32 copies of parameters in 16 bits (--precision)",
     AT(analysis.master_weights)},
    {0, "offload", "WHAT",
     "optimizer: its state and step are on the host; gradients: they go there too",
     AT(analysis.offload)},
    {0, "ema", NULL, "a moving average of the parameters, on the device", AT(analysis.ema)},
    {0, "weights", "FORMAT",
     "linear layers in fewer bits, with --train those that are frozen; see below",
     AT(analysis.weights)},
    {0, "kv-cache", "HOW",
     "the key-value cache, as copies or shared (one buffer a layer); with --budget the longest "
     "context",
     .read = onv_cli_set_kv_cache},
    {0, "as-exported", NULL, "do not fuse decomposed patterns", AT(analysis.as_exported)},
    {0, "folded-norms", NULL,
     "eager PyTorch: batch norms that the export folded are folded in the network, too",
     AT(analysis.folded_norms)},
    {0, "graph-module", NULL,
     "eager PyTorch: the network is a torch.fx.GraphModule, whose code holds no value too long",
     AT(analysis.graph_module)},
    {0, "no-fast-path", NULL,
     "eager PyTorch: layers of nn.TransformerEncoder run operation by operation",
     AT(analysis.no_fast_path)},
    {0, "locals", NULL,
     "eager PyTorch: values stay until the call of the module that names them returns",
     AT(analysis.locals)},
    {0, "attention", "KERNEL",
     "auto (what PyTorch takes), math (separate operations), flash or efficient",
     AT(analysis.attention)},
    {0, "zero-grad", "WHEN",
     "gradients are freed before-forward or before-backward, or keep: zeroed",
     AT(analysis.zero_grad)},
    {0, "optimizer-impl", "NAME", "foreach (PyTorch's choice on GPUs), fused or for-loop",
     AT(analysis.optimizer_impl)},
    {0, "gpu", "NAME", "whose libraries take workspaces; otherwise that of --budget, or H100",
     .read = onv_cli_set_gpu},
    {0, "channels-last", NULL, "PyTorch: tensors of convolutions lie in channels_last",
     AT(analysis.channels_last)},
    {0, "no-tf32", NULL, "PyTorch: convolutions do not use TF32", AT(analysis.no_tf32)},
    {0, "cudnn-benchmark", NULL, "PyTorch: the first iteration tries all of cuDNN's kernels",
     AT(analysis.cudnn_benchmark)},
    {0, "checkpoint", "LIST", "train with checkpointing plans, compare them; see below",
     AT(analysis.checkpoint)},
    {0, "plan-out", "FILE", "the plan's segments, and how PyTorch applies them",
     .read = onv_cli_set_plan_out, NEEDS(CHECKPOINTS)},
    {0, "compile", "[=BUDGET]",
     "training under torch.compile: what it keeps, with an activation_memory_budget from 0 to 1 "
     "(1)",
     .read = onv_cli_set_compile},
    {0, "budget", "SIZE|GPU,...",
     "memory to fit: 16GiB, 80GB, a GPU, or several; exit status 3 if the model fits none",
     .read = onv_cli_set_budget},
    {0, "margin", "PERCENT", "of the budget, to keep free (0)", .read = onv_cli_set_margin},
    {0, "max-batch", NULL, "the largest batch that fits the budget", AT(analysis.max_batch)},
    {0, "max-dim", "NAME", "the largest size of a symbolic dimension that fits the budget",
     .read = onv_cli_set_max_dim},
    {0, "replay", "[=DEVICE]",
     "make the allocations and compare: cuda (the default) or host; exit status 4 if they differ",
     AT(analysis.replay), .fallback = "cuda"},
    {0, "list-gpus", NULL, "the GPUs that --budget knows", .read = onv_cli_list_gpus},
    {0, "json", "[=FILE]", "everything, as JSON", .read = onv_cli_add_json},
    {0, "timelines", NULL, "with --json: what each runtime executes, and where it lies, too",
     AT(analysis.timelines)},
    {0, "html", "[=FILE]", "a page to look at, which needs no network (MODEL.html)",
     .read = onv_cli_add_html},
    {0, "svg", "FILE", "live memory over the steps, as a picture", .read = onv_cli_add_svg},
    {0, "memory-viz", "FILE", "a memory snapshot for PyTorch's viewer, MemoryViz.js",
     .read = onv_cli_add_memory_viz},
    {0, "perfetto", "FILE", "a trace for Perfetto: bytes over the steps",
     .read = onv_cli_add_perfetto},
    {0, "model-explorer", "FILE", "bytes by node, as node data for Model Explorer",
     .read = onv_cli_add_model_explorer},
    {0, "csv", "[=FILE]", "one row per tensor, as CSV", .read = onv_cli_add_csv},
    {0, "layers", "[=DEPTH]", "a table per module", .read = onv_cli_add_layers},
    {0, "format", "NAME", "of the report: text, or markdown for a pull request",
     .read = onv_cli_set_format, NEEDS(PAGE)},
    {0, "baseline", "FILE", "a --json report of before to compare with", AT(baseline)},
    {0, "max-growth", "PERCENT", "exit status 3 if a figure grew by more since the baseline",
     .read = onv_cli_set_max_growth, NEEDS(BASELINE)},
    {0, "formula", "[=HOW]", "peak and totals as functions of the free dims: text, python, c",
     .read = onv_cli_add_formula},
    {0, "dump", "WHAT", "intermediate data: graph, intervals, plan, header, trace, replay",
     .read = onv_cli_add_dump},
    {0, "align", "N", "offsets of the runtime arena are multiples of N bytes, a power of two",
     .read = onv_cli_set_arena_align},
    {0, "onnx-out", "FILE",
     "the model with shapes, bytes and steps of its values, nodes in the --order",
     .read = onv_cli_set_onnx_out},
    {0, "top", "N", "how many of the largest tensors to list (10)", COUNT(report.top, INT_MAX)},
    {0, "color", "WHEN", "auto, always or never", .read = onv_cli_set_color},
    {'q', "quiet", NULL, "only the figures, no advice and no diagnostics",
     .read = onv_cli_be_quiet},
    {'v', "verbose", NULL, "every diagnostic and every row", .read = onv_cli_be_verbose},
    {0, "version", NULL, "print the version", .read = onv_cli_say_version},
    {'h', "help", NULL, "print this", .read = onv_cli_say_help},
};

const size_t onv_cli_n_rows = sizeof onv_cli_rows / sizeof onv_cli_rows[0];

_Static_assert(sizeof onv_cli_rows / sizeof onv_cli_rows[0] <= ONV_CLI_MAX_ROWS,
               "given[] of onv_cli has no room for all options");

bool onv_cli_may_take_value(const onv_cli_row *row)
{
    return row->arg != NULL;
}

bool onv_cli_takes_value(const onv_cli_row *row)
{
    return row->arg != NULL && row->arg[0] != '[';
}

const char *onv_cli_command_of(const char *option)
{
    static const char *const rows[][2] = {
        {"capacity", "plan and simulate"}, {"summary", "simulate"}, {"header", "simulate"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i][0], option) == 0) return rows[i][1];
    return NULL;
}
