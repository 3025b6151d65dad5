#include "cli/commands.h"

#include <string.h>

#include "cli/values.h"

#define SIZES   "batch dim shape "
#define OFFSETS "capacity effort align output help"
#define ABOUT_OFFSETS                                                                              \
    "Reads id,lower,upper,size and adds offset.\n"                                                 \
    "Exit status 3: no plan within the capacity was found."

static int list_gpus(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "-h") != 0 && strcmp(argv[1], "--help") != 0)
        return onv_cli_usage("gpus takes nothing, found '%s': leave it out", argv[1]);
    onv_cli_list_gpus(NULL, NULL);
    return onv_cli_answered();
}

const onv_cli_command onv_cli_commands[] = {
    {"report", "MODEL...", "memory that a model needs, and why (also without a command)",
     SIZES "runtime budget gpu precision amp kv-cache program quiet verbose layers formula json "
           "html",
     .check = NULL},
    {"train", "MODEL...", "memory of training; with AdamW, if --train names no optimizer",
     SIZES "train loss amp freeze train-only accumulate ema offload ddp fsdp zero world budget "
           "checkpoint compile quiet",
     .brings = {{"train", "adamw"}}},
    {"sweep", "MODEL -b LIST | -d NAME=LIST", "the answer at many sizes: 1,2,4..64 or 128..4096:x2",
     SIZES "runtime budget gpu train amp checkpoint precision json csv svg html",
     .run = onv_cli_sweep, .has_table = true},
    {"fit", "MODEL... --budget GPU,...", "the largest batch that fits each GPU, or the fastest",
     "dim budget margin objective max-dim runtime kv-cache weight-format train checkpoint amp "
     "quiet json",
     .brings = {{"max-batch", NULL}}},
    {"plans", "MODEL", "checkpointing plans of training, and what they cost",
     SIZES "train checkpoint budget max-batch plan plan-out compile amp quiet verbose json",
     .brings = {{"train", "adamw"}, {"checkpoint", "all"}}},
    {"serve", "MODEL[*N]...", "sessions of ONNX Runtime: requests, several in one process",
     SIZES "shape-trace ort ort-advise ort-partition budget gpu quiet json",
     .brings = {{"runtime", "ort"}}, .check = onv_cli_check_serve},
    {"diff", "OLD NEW", "what changed between two models, by module and tensor",
     SIZES "max-growth format json quiet", .check = onv_cli_check_diff},
    {"gate", "MODEL... --baseline FILE", "exit status 3 if memory grew, or does not fit",
     SIZES "baseline max-growth budget strict format runtime train quiet",
     .check = onv_cli_check_gate},
    {"compare", "MODEL --snapshot FILE | --measured SIZE",
     "the prediction next to what a device held", SIZES "snapshot measured train gpu format json",
     .check = onv_cli_check_compare},
    {"verify", "MODEL", "run the model on the GPU of this machine, and compare",
     SIZES "runtime train amp gpu", .run = onv_cli_become_python, .has_table = true},
    {"hf", "ID_OR_FOLDER", "a network of transformers, by its id or its config.json",
     "batch train weight-format amp budget checkpoint", .run = onv_cli_become_python,
     .has_table = true},
    {"mcp", "[OPTION...]", "a server of the Model Context Protocol, for agents",
     "untrusted limit gpu ort", .run = onv_cli_become_python, .has_table = true},
    {"attach", "MODEL PROGRAM -o OUT", "put PyTorch's program into its model", "output help",
     .run = onv_cli_attach,
     .more = "Writes the model with PyTorch's program inside: a .pt2 of torch.export.save(),\n"
             "its JSON, or a recording. ONNX Runtime ignores it; onnxvram OUT.onnx reads it.\n"
             "Weights are copied byte for byte; those in files of their own are found from\n"
             "the folder of OUT.onnx."},
    {"offsets", "INTERVALS.csv", "an offset for every buffer", OFFSETS, .run = onv_cli_plan,
     .more = ABOUT_OFFSETS},
    {"plan", "INTERVALS.csv", "another name of offsets", OFFSETS, .run = onv_cli_plan,
     .is_other = true, .more = ABOUT_OFFSETS},
    {"simulate", "TRACE.csv --runtime NAME", "run a trace of allocations through an allocator",
     "runtime capacity summary header expandable-segments help", .run = onv_cli_simulate,
     .more = "Prints runtime,allocated_peak,reserved_peak,allocated_end,reserved_end,segments\n"
             "Exit status 3: there was no room in the capacity."},
    {"gpus", "", "the GPUs that --budget and --gpu know", "help", .run = list_gpus},
    {"help", "[TOPIC]", "more about a command, a topic or an option", "", .run = onv_cli_run_help},
    {"complete", "WORD...", "completions, for shells", "", .run = onv_cli_run_complete,
     .is_other = true},
};

const size_t onv_cli_n_commands = sizeof onv_cli_commands / sizeof onv_cli_commands[0];

const onv_cli_command *onv_cli_command_named(const char *name)
{
    for (size_t i = 0; i < onv_cli_n_commands; i++)
        if (strcmp(onv_cli_commands[i].name, name) == 0) return &onv_cli_commands[i];
    return NULL;
}

_Static_assert(sizeof onv_cli_commands / sizeof onv_cli_commands[0] <= ONV_CLI_MAX_COMMANDS,
               "lists of names have no room for all commands");
