/* What the options say together. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/deploy.h"
#include "cli/input.h"
#include "cli/values.h"

/* Limits that were not given become small. */
static void distrust(onv_cli *cli)
{
    onv_limits *limits = &cli->limits;
    cli->analysis.no_external_data = true;
    if (limits->nodes == 0) limits->nodes = 64 << 10;
    if (limits->values == 0) limits->values = 1 << 20;
    if (limits->node_runs == 0) limits->node_runs = 64 << 10;
    if (limits->arena_bytes == 0) limits->arena_bytes = 256 << 20;
    if (limits->file_bytes == 0) limits->file_bytes = (uint64_t)4 << 30;
    if (limits->seconds == 0) limits->seconds = 30;
}

/* Examples are for reports that say more than a line; a line alone says the answer. */
static void ask_for_outputs(onv_cli *cli)
{
    onv_options *o = &cli->analysis;
    o->example = cli->is_diff;
    o->answer_alone = !cli->is_diff && !cli->is_compare && !cli->together &&
                      cli->baseline == NULL && o->replay == NULL && o->measured == 0;
    for (size_t i = 0; i < cli->n_outputs; i++) {
        onv_format format = cli->outputs[i].format;
        bool is_line = format == ONV_FORMAT_TEXT && cli->report.verbosity < 0;
        o->answer_alone &= is_line;
        o->example |= format == ONV_FORMAT_JSON || format == ONV_FORMAT_MARKDOWN ||
                      format == ONV_FORMAT_HTML || format == ONV_FORMAT_SVG ||
                      (format == ONV_FORMAT_TEXT && !is_line);
    }
}

static bool is_formula(onv_format format)
{
    return format == ONV_FORMAT_FORMULA || format == ONV_FORMAT_FORMULA_PYTHON ||
           format == ONV_FORMAT_FORMULA_C;
}

/* The formats of a diff in place of those of a report. */
onv_cli_verdict onv_cli_check_diff(onv_cli *cli)
{
    if (cli->n_models != 2)
        return onv_cli_reject(
            "diff takes two models, not %zu, as in onnxvram diff OLD.onnx NEW.onnx", cli->n_models);
    if (cli->together || cli->baseline != NULL)
        return onv_cli_reject(
            "diff compares two models alone: leave --together and --baseline out");
    for (size_t i = 0; i < cli->n_outputs; i++) {
        if (cli->outputs[i].format != ONV_FORMAT_JSON)
            return onv_cli_reject(
                "diff writes text, --format markdown or --json: leave other outputs out");
        cli->outputs[i].format = ONV_FORMAT_DIFF_JSON;
    }
    cli->format = cli->format == ONV_FORMAT_MARKDOWN ? ONV_FORMAT_DIFF_MARKDOWN : ONV_FORMAT_DIFF;
    return ONV_CLI_RUN;
}

/* The comparison in place of the report. */
onv_cli_verdict onv_cli_check_compare(onv_cli *cli)
{
    if (cli->n_models != 1)
        return onv_cli_reject("compare takes one model, not %zu, as in onnxvram compare model.onnx "
                              "--snapshot snapshot.pickle",
                              cli->n_models);
    if (cli->analysis.snapshot == NULL && cli->analysis.measured == 0)
        return onv_cli_reject("compare: nothing to compare with: add --snapshot FILE of "
                              "torch.cuda.memory._dump_snapshot(), or --measured SIZE");
    cli->format =
        cli->format == ONV_FORMAT_MARKDOWN ? ONV_FORMAT_MEASURED_MARKDOWN : ONV_FORMAT_MEASURED;
    return ONV_CLI_RUN;
}

onv_cli_verdict onv_cli_check_gate(onv_cli *cli)
{
    if (cli->baseline == NULL && cli->analysis.n_budgets == 0)
        return onv_cli_reject("gate: nothing to judge by: add --baseline FILE, which --json=FILE "
                              "wrote before, or --budget SIZE or GPU");
    /* No growth is let through, unless it is said how much. */
    if (cli->baseline != NULL) cli->analysis.has_max_growth = true;
    return ONV_CLI_RUN;
}

/* Several sessions are in one process. */
onv_cli_verdict onv_cli_check_serve(onv_cli *cli)
{
    bool are_many = cli->n_models > 1;
    for (size_t i = 0; i < cli->n_models; i++) are_many = are_many || cli->instances[i] > 1;
    cli->together = cli->together || are_many;
    return ONV_CLI_RUN;
}

/* A first word that is not a file was perhaps to be a command. */
static onv_cli_verdict check_command(const onv_cli *cli)
{
    const char *names[ONV_CLI_MAX_COMMANDS + 1] = {NULL};
    if (access(cli->models[0], F_OK) == 0) return ONV_CLI_RUN;
    for (size_t i = 0; i < onv_cli_n_commands; i++) names[i] = onv_cli_commands[i].name;
    const char *near = onv_nearest_name(cli->models[0], names);
    if (near == NULL) return ONV_CLI_RUN;
    return onv_cli_reject("'%s' is neither a file nor a command: did you mean 'onnxvram %s'?",
                          cli->models[0], near);
}

/* What is no file, but what an option takes; or the weights in place of the model. */
static onv_cli_verdict check_file(onv_cli *cli, const char *word)
{
    uint64_t bytes;
    onv_gpu_info gpu;
    const char *end = strrchr(word, '.');
    if (end != NULL && strcmp(end, ".data") == 0) {
        char *model = onv_cli_copy(cli, word, (size_t)(end - word));
        if (model != NULL && access(model, F_OK) == 0)
            return onv_cli_reject("'%s' has the weights of a model: give the model, '%s'", word,
                                  model);
    }
    if (access(word, F_OK) == 0) return ONV_CLI_RUN;
    if (word[strspn(word, "0123456789")] == '\0')
        return onv_cli_reject("'%s' is not a file; a batch is --batch %s", word, word);
    if (onv_size_parse(word, &bytes) || onv_gpu_by_name(word, &gpu, 1) == 1)
        return onv_cli_reject("'%s' is not a file; a budget is --budget %s", word, word);
    return ONV_CLI_RUN;
}

static onv_cli_verdict check_models(onv_cli *cli)
{
    size_t n_input = 0;
    for (size_t i = 0; i < cli->n_models; i++) {
        n_input += onv_cli_is_input(cli->models[i]);
        if (check_file(cli, cli->models[i]) != ONV_CLI_RUN) return ONV_CLI_USAGE;
        if (cli->instances[i] > 1 && !cli->together)
            return onv_cli_reject("'%s*%u' asks for several of one model: add --together",
                                  cli->models[i], cli->instances[i]);
    }
    if (n_input > 1)
        return onv_cli_reject("standard input is one model, and '-' is given %zu times: write the "
                              "others to files",
                              n_input);
    return ONV_CLI_RUN;
}

/* Where the page goes that no file was named for: beside nothing, in the working directory. */
static onv_cli_verdict name_page(onv_cli *cli)
{
    const char *model = cli->models[0], *slash = strrchr(model, '/');
    const char *base = slash != NULL ? slash + 1 : model;
    const char *end = strrchr(base, '.');
    if (end == NULL || end == base || strcmp(end, ".onnx") != 0) end = base + strlen(base);
    size_t length = (size_t)(end - base);
    cli->page = onv_cli_alloc(cli, length + sizeof ".html");
    if (cli->page == NULL) return onv_cli_reject("out of memory");
    strcpy(mempcpy(cli->page, base, length), ".html");
    return ONV_CLI_RUN;
}

/* The reports that draw what was executed. */
static onv_cli_verdict check_drawings(onv_cli *cli)
{
    for (size_t i = 0; i < cli->n_outputs; i++) {
        onv_cli_output *output = &cli->outputs[i];
        if (output->format < ONV_FORMAT_HTML) continue;
        cli->analysis.timelines = true;
        if (output->format > ONV_FORMAT_SVG && cli->n_models > 1)
            return onv_cli_reject("--memory-viz, --perfetto and --model-explorer are of one model: "
                                  "give one, not %zu",
                                  cli->n_models);
        if (output->file[0] != '\0') continue;
        if (output->format != ONV_FORMAT_HTML)
            return onv_cli_reject("pictures, traces and node data go to a file, as in --svg "
                                  "peak.svg");
        if (name_page(cli) != ONV_CLI_RUN) return ONV_CLI_USAGE;
        output->file = cli->page;
    }
    return ONV_CLI_RUN;
}

/* --- Options that would change nothing: by the library's rule, and those of the program alone --------------- */

static bool has_page(const onv_cli *cli)
{
    for (size_t i = 0; i < cli->n_outputs; i++)
        if (strcmp(cli->outputs[i].file, "-") == 0) return false;
    return true;
}

static const char *missing(const onv_cli *cli, const onv_cli_row *row)
{
    switch ((onv_cli_needs)row->needs) {
    case ONV_NEEDS_CHECKPOINTS:
        return cli->analysis.checkpoint != NULL || cli->analysis.plan != NULL
                   ? NULL
                   : "plans: add --checkpoint LIST, as in --checkpoint all, or --plan FILE";
    case ONV_NEEDS_BASELINE:
        return cli->baseline != NULL || cli->is_diff
                   ? NULL
                   : "figures to compare with: add --baseline FILE, which --json=FILE wrote before";
    case ONV_NEEDS_PAGE:
        return has_page(cli) ? NULL
                             : "standard output for the report: give the other output a file, as "
                               "in --json=FILE";
    case ONV_NEEDS_NOTHING_HERE: break;
    }
    return onv_option_missing(&cli->analysis, row->like != NULL ? row->like : row->name);
}

static onv_cli_verdict check_needs(const onv_cli *cli)
{
    for (size_t i = 0; i < onv_cli_n_rows; i++) {
        const char *text = cli->given[i] ? missing(cli, &onv_cli_rows[i]) : NULL;
        if (text != NULL && cli->brought[i])
            return onv_cli_reject("%s needs %s", cli->command->name, text);
        if (text != NULL) return onv_cli_reject("--%s needs %s", onv_cli_rows[i].name, text);
    }
    return ONV_CLI_RUN;
}

/* --- All of it --------------------------------------------------------------------------------- */

/* What follows from the options, once they do not exclude each other. */
static onv_cli_verdict finish(onv_cli *cli)
{
    size_t on_stdout = 0;
    if (cli->untrusted) distrust(cli);
    for (size_t i = 0; i < cli->n_outputs; i++) on_stdout += strcmp(cli->outputs[i].file, "-") == 0;
    if (on_stdout > 1)
        return onv_cli_reject("only one output can go to standard output, not %zu: give the others "
                              "a file, as in --json=FILE",
                              on_stdout);
    /* The report for people, unless something else takes its place. */
    onv_cli_verdict verdict =
        on_stdout == 0 ? onv_cli_add_output(cli, cli->format, NULL) : ONV_CLI_RUN;
    /* Formulas of runtimes are looked for around usual sizes; those of the graph need none. */
    cli->analysis.formulas = cli->analysis.formulas && cli->analysis.runtimes != NULL;
    ask_for_outputs(cli);
    cli->analysis.savings = cli->analysis.example && !cli->is_diff && !cli->is_compare;
    cli->analysis.remedies = cli->analysis.savings;
    return verdict;
}

onv_cli_verdict onv_cli_check(onv_cli *cli)
{
    if (cli->genai != NULL || cli->triton != NULL)
        return onv_cli_check_deployment(cli) == ONV_CLI_RUN ? finish(cli) : ONV_CLI_USAGE;
    const char *train = cli->analysis.train;
    if (cli->n_models == 0 && train != NULL && access(train, F_OK) == 0)
        return onv_cli_reject("--train takes an optimizer, not the file '%s': write --train adamw "
                              "%s",
                              train, train);
    if (cli->n_models == 0)
        return onv_cli_reject("no model is given: give an ONNX file, as in onnxvram %s%smodel.onnx",
                              cli->command == &onv_cli_commands[0] ? "" : cli->command->name,
                              cli->command == &onv_cli_commands[0] ? "" : " ");
    if (check_command(cli) != ONV_CLI_RUN) return ONV_CLI_USAGE;
    if (cli->command->check != NULL && cli->command->check(cli) != ONV_CLI_RUN)
        return ONV_CLI_USAGE;
    if (check_models(cli) != ONV_CLI_RUN) return ONV_CLI_USAGE;
    if (check_drawings(cli) != ONV_CLI_RUN) return ONV_CLI_USAGE;
    /* --gpu says whose libraries, whatever the memory is. */
    for (size_t i = 0; i < cli->analysis.n_budgets && cli->analysis.compute_capability > 0; i++)
        cli->budgets[i].compute_capability = 0;
    if (check_needs(cli) != ONV_CLI_RUN) return ONV_CLI_USAGE;
    if (cli->analysis.runtimes != NULL && onv_is_called(cli->analysis.runtimes, "cpu") &&
        cli->analysis.n_budgets > 0 && cli->budgets[0].name != NULL)
        return onv_cli_reject("--runtime cpu takes the host's memory, and '%s' is a GPU: give a "
                              "size, as in --budget 64GiB",
                              cli->budgets[0].name);
    const char *runtimes = cli->analysis.runtimes != NULL ? cli->analysis.runtimes : "";
    if (cli->n_profiles > 0 && strstr(runtimes, "tensorrt") == NULL)
        return onv_cli_reject("--profile is what an engine of TensorRT is built for: add --runtime "
                              "tensorrt, or give a size, as in --dim batch=8");
    if (cli->analysis.kv_cache != NULL && cli->analysis.train != NULL)
        return onv_cli_reject("--kv-cache is of inference: leave --train or --kv-cache out");
    if (cli->analysis.weights != NULL && cli->analysis.train == NULL && cli->analysis.onnx_out)
        return onv_cli_reject(
            "--onnx-out keeps the weights of the file: leave --weight-format out");
    if (cli->untrusted && cli->analysis.replay != NULL)
        return onv_cli_reject(
            "--replay allocates what a model asks for: leave it or --untrusted out");
    if (cli->sequential && !cli->together)
        return onv_cli_reject("--sequential needs several sessions: add --together");
    if (cli->together && cli->analysis.replay != NULL)
        return onv_cli_reject("--replay runs one model: leave it or --together out");
    if (cli->analysis.onnx_out && cli->n_models > 1)
        return onv_cli_reject("--onnx-out writes one model: give one, not %zu", cli->n_models);
    if (cli->analysis.onnx_out && cli->analysis.precision != ONV_PRECISION_AS_EXPORTED)
        return onv_cli_reject("--onnx-out keeps the types of the file: leave --precision out");
    for (size_t i = 0; i < cli->n_outputs; i++) {
        onv_format format = cli->outputs[i].format;
        bool is_plan = format == ONV_FORMAT_CHECKPOINTS || format == ONV_FORMAT_CHECKPOINTS_PYTHON;
        if ((is_plan || is_formula(format)) && cli->n_models > 1)
            return onv_cli_reject("--%s is of one model: give one, not %zu",
                                  is_plan ? "plan-out" : "formula", cli->n_models);
        if (format == ONV_FORMAT_DUMP_REPLAY && cli->analysis.replay == NULL)
            return onv_cli_reject("--dump=replay needs a replay: add --replay or --replay=host");
    }
    return finish(cli);
}
