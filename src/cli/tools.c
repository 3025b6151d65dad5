/* The commands beside the analysis: `onnxvram plan`, `simulate` and `attach`. */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/files.h"
#include "cli/guard.h"
#include "cli/input.h"
#include "cli/message.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/values.h"

static onv_cli_verdict add_file(void *into, const char *word, const onv_cli_row *after)
{
    onv_cli_tool *tool = into;
    (void)after;
    if (tool->n_files < sizeof tool->files / sizeof tool->files[0])
        tool->files[tool->n_files] = word;
    tool->n_files++;
    return ONV_CLI_RUN;
}

/* False: help was printed, or a message; *status says which. */
static bool read_words(onv_cli_tool *tool, int argc, char **argv, int *status)
{
    const onv_cli_reading reading = {onv_cli_command_named(argv[0]), tool, add_file, NULL};
    onv_cli_verdict verdict = onv_cli_read_words(&reading, argc, argv);
    *status = verdict == ONV_CLI_DONE ? onv_cli_answered() : EXIT_USAGE;
    return verdict == ONV_CLI_RUN;
}

/* The one file that a command takes. */
static int wrong_count(const char *command, size_t count, const char *example)
{
    return onv_cli_usage("%s takes one file, not %zu, as in onnxvram %s %s", command, count,
                         command, example);
}

/* --- offsets, plan ------------------------------------------------------------------------------- */

static int run_plan(const onv_cli_tool *a)
{
    onv_cli_sink sink;
    onv_plan_info info;
    onv_error error = {0};
    if (!onv_cli_spares_input(a->output, a->files[0])) return EXIT_USAGE;
    if (!onv_cli_open(&sink, a->output)) return EXIT_UNUSABLE;
    onv_cli_progress_start(false);
    onv_cli_progress_begin(a->files[0], 0, 1);
    onv_status status = onv_plan_file(onv_cli_input_path(a->files[0], false), a->capacity,
                                      a->effort, a->alignment, onv_cli_write, &sink, &info, &error);
    onv_cli_progress_end();
    bool kept = onv_cli_close(&sink, status == ONV_OK);
    if (status != ONV_OK) return onv_cli_complain(a->files[0], &error);
    if (!kept) return EXIT_UNUSABLE;
    fprintf(stderr, "height %" PRIu64 ", lower bound %" PRIu64 "%s\n", info.height,
            info.lower_bound, info.optimal ? ": optimal" : "");
    if (info.fits) return EXIT_DONE;
    fprintf(stderr, "onnxvram: no plan within the capacity of %" PRIu64 " bytes was found\n",
            a->capacity);
    return EXIT_NO_FIT;
}

int onv_cli_plan(int argc, char **argv)
{
    onv_cli_tool a = {.output = "-"};
    int status;
    if (!read_words(&a, argc, argv, &status)) return status;
    if (a.n_files != 1) return wrong_count(argv[0], a.n_files, "intervals.csv");
    return run_plan(&a);
}

/* --- simulate ---------------------------------------------------------------------------------- */

static int run_simulate(const char *input, const char *runtimes,
                        const onv_simulate_options *options)
{
    onv_cli_sink sink;
    onv_error error = {0};
    const char *path = onv_cli_input_path(input, strchr(runtimes, ',') != NULL);
    if (path == NULL || !onv_cli_open(&sink, "-")) return EXIT_UNUSABLE;
    onv_cli_guard(input);
    onv_cli_progress_start(false);
    onv_cli_progress_begin(input, 0, 1);
    onv_status status = onv_simulate_file(path, runtimes, options, onv_cli_write, &sink, &error);
    onv_cli_progress_end();
    bool kept = onv_cli_close(&sink, true);
    if (status != ONV_OK) {
        int verdict = onv_cli_complain(input, &error);
        return status == ONV_ERR_DEVICE ? EXIT_NO_FIT : verdict;
    }
    return kept ? EXIT_DONE : EXIT_UNUSABLE;
}

int onv_cli_simulate(int argc, char **argv)
{
    onv_cli_tool a = {.n_files = 0};
    int status;
    if (!read_words(&a, argc, argv, &status)) return status;
    if (a.n_files != 1) return wrong_count(argv[0], a.n_files, "trace.csv --runtime torch");
    if (a.runtimes == NULL)
        return onv_cli_usage(
            "simulate needs an allocator: add --runtime NAME, as in --runtime torch");
    return run_simulate(a.files[0], a.runtimes,
                        &(onv_simulate_options){.struct_size = sizeof(onv_simulate_options),
                                                .capacity = a.capacity,
                                                .summary = a.summary,
                                                .header = a.header,
                                                .expandable_segments = a.expandable_segments});
}

/* --- attach ------------------------------------------------------------------------------------ */

/* Which weights the model names is known once it is read: where there is a file to overwrite. */
static int check_output(const char *model, const char *program, const char *output)
{
    onv_analysis *analysis;
    onv_error error = {0};
    onv_options options = onv_options_default();
    options.runtimes = "ideal";
    options.program = "none"; /* one beside the model does not matter here */
    if (!onv_cli_spares_input(output, model) || !onv_cli_spares_input(output, program))
        return EXIT_USAGE;
    if (strcmp(output, "-") == 0 || access(output, F_OK) != 0) return EXIT_DONE;
    if (onv_analysis_new(model, &options, &analysis, &error) != ONV_OK)
        return onv_cli_complain(model, &error);
    bool spares = onv_cli_spares_weights(analysis, output);
    onv_analysis_destroy(analysis);
    return spares ? EXIT_DONE : EXIT_USAGE;
}

static int run_attach(const char *model, const char *program, const char *output)
{
    onv_cli_sink sink;
    onv_error error = {0};
    int status_of_output = check_output(model, program, output);
    if (status_of_output != EXIT_DONE) return status_of_output;
    if (!onv_cli_open(&sink, output)) return EXIT_UNUSABLE;
    onv_status status = onv_attach_program(model, program, NULL, onv_cli_write, &sink, &error);
    bool kept = onv_cli_close(&sink, status == ONV_OK);
    if (status != ONV_OK) return onv_cli_complain(model, &error);
    return kept ? EXIT_DONE : EXIT_UNUSABLE;
}

int onv_cli_attach(int argc, char **argv)
{
    onv_cli_tool a = {.n_files = 0};
    int status;
    if (!read_words(&a, argc, argv, &status)) return status;
    if (a.n_files != 2)
        return onv_cli_usage("attach takes a model and its program, not %zu files, as in onnxvram "
                             "attach model.onnx model.pt2 -o out.onnx",
                             a.n_files);
    if (a.output == NULL)
        return onv_cli_usage("attach: no file to write; add -o OUT.onnx, or -o - for standard "
                             "output");
    return run_attach(a.files[0], a.files[1], a.output);
}
