/* The sizes of a sweep, and the answers at each of them. */
#include "cli/sweep.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/files.h"
#include "cli/guard.h"
#include "cli/message.h"
#include "cli/progress.h"
#include "cli/values.h"

enum { MOST_POINTS = 4096 };

/* --- Sizes ------------------------------------------------------------------------------------- */

static bool add_size(onv_cli_axis *axis, int64_t size)
{
    if (axis->n_sizes == MOST_POINTS) return false;
    axis->sizes[axis->n_sizes++] = size;
    return true;
}

static bool read_number(const char **text, int64_t *number)
{
    return onv_cli_parse_count(*text, number, text) && *number >= 1;
}

/* "N", "N..M" (doubled from N on), "N..M:xK" or "N..M:+K"; both ends are among the sizes. */
static bool read_item(const char **text, onv_cli_axis *axis)
{
    int64_t first, last, step = 2;
    bool adds = false;
    if (!read_number(text, &first)) return false;
    if (strncmp(*text, "..", 2) != 0) return add_size(axis, first);
    *text += 2;
    if (!read_number(text, &last) || last < first) return false;
    if (**text == ':') {
        adds = (*text)[1] == '+';
        if (!adds && (*text)[1] != 'x') return false;
        *text += 2;
        if (!read_number(text, &step) || (!adds && step < 2)) return false;
    }
    for (int64_t size = first; size < last;) {
        if (!add_size(axis, size)) return false;
        if (adds ? size > last - step : size > last / step) break;
        size = adds ? size + step : size * step;
    }
    return add_size(axis, last);
}

static bool read_sizes(const char *text, onv_cli_axis *axis)
{
    for (;;) {
        if (!read_item(&text, axis)) return false;
        if (*text == '\0') return true;
        if (*text++ != ',') return false;
    }
}

bool onv_cli_takes_list(const onv_cli *cli, const char *sizes)
{
    return cli->command->run == onv_cli_sweep &&
           (strchr(sizes, ',') != NULL || strstr(sizes, "..") != NULL);
}

onv_cli_verdict onv_cli_add_axis(onv_cli *cli, const char *dim, const char *sizes)
{
    if (cli->n_axes == ONV_CLI_MAX_AXES)
        return onv_cli_reject("sweep takes up to %d lists of sizes", ONV_CLI_MAX_AXES);
    onv_cli_axis *axis = &cli->axes[cli->n_axes++];
    axis->dim = dim;
    axis->sizes = onv_cli_alloc(cli, MOST_POINTS * sizeof *axis->sizes);
    if (axis->sizes == NULL) return onv_cli_reject("out of memory");
    if (read_sizes(sizes, axis)) return ONV_CLI_RUN;
    return onv_cli_reject("sweep: expected sizes like 1,2,4..64, 128..4096:x2 or 8..64:+8 (up to "
                          "%d), found '%s'",
                          MOST_POINTS, sizes);
}

static onv_cli_verdict make_points(onv_cli *cli, onv_sweep *sweep)
{
    size_t points = 1;
    for (size_t i = 0; i < cli->n_axes; i++) points *= cli->axes[i].n_sizes;
    if (cli->n_axes == 0)
        return onv_cli_reject("sweep: no list of sizes is given: add -b 1,2,4..64 or --dim "
                              "sequence=128..4096");
    if (points > MOST_POINTS)
        return onv_cli_reject("sweep takes up to %d combinations of sizes, not %zu", MOST_POINTS,
                              points);
    *sweep = (onv_sweep){.axes = cli->axes, .n_axes = cli->n_axes, .n_points = points};
    sweep->points = onv_cli_alloc(cli, points * sizeof *sweep->points);
    return sweep->points != NULL ? ONV_CLI_RUN : onv_cli_reject("out of memory");
}

/* --- Answers ----------------------------------------------------------------------------------- */

static void keep(onv_sweep *sweep, onv_sweep_point *point, const onv_analysis *analysis)
{
    onv_answer_info answer;
    onv_analysis_answer(analysis, &answer);
    bool is_first = sweep->n_runtimes == 0;
    size_t n = answer.runtimes < ONV_SWEEP_MAX_RUNTIMES ? answer.runtimes : ONV_SWEEP_MAX_RUNTIMES;
    point->is_answered = answer.runtime != NULL;
    if (!point->is_answered) return;
    point->n_runtimes = n;
    for (size_t i = 0; i < n; i++) {
        onv_answer_runtime_info *r = &point->runtimes[i];
        onv_analysis_answer_runtime(analysis, i, r);
        if (strcmp(r->name, answer.runtime) == 0) point->largest = i;
        if (is_first) snprintf(sweep->runtimes[i], sizeof sweep->runtimes[i], "%s", r->name);
        r->name = r->set_by = NULL; /* the analysis owns them */
    }
    size_t n_devices = answer.devices < ONV_CLI_MAX_BUDGETS ? answer.devices : ONV_CLI_MAX_BUDGETS;
    for (size_t i = 0; i < n_devices; i++) {
        onv_answer_device_info device;
        onv_analysis_answer_device(analysis, i, &device);
        point->fits[i] = device.fit.fits;
        if (!is_first) continue;
        sweep->usable[i] = device.fit.usable;
        if (device.name != NULL)
            snprintf(sweep->devices[i], sizeof sweep->devices[i], "%s", device.name);
        else
            onv_size_text(device.fit.budget, device.fit.budget, false, sweep->devices[i],
                          sizeof sweep->devices[i]);
    }
    if (!is_first) return;
    sweep->n_runtimes = n;
    sweep->n_devices = n_devices;
    if (answer.gpu != NULL)
        snprintf(sweep->gpu, sizeof sweep->gpu, "%s%s", answer.gpu,
                 answer.gpu_assumed ? " (assumed)" : "");
}

/* The options of a point: those of all, with its sizes. */
static onv_status analyse(const onv_cli *cli, const onv_sweep *sweep, const onv_sweep_point *point,
                          onv_dim_binding *dims, onv_analysis **analysis, onv_error *error)
{
    onv_options options = cli->analysis;
    if (options.n_dims > 0) memcpy(dims, cli->dims, options.n_dims * sizeof *dims);
    for (size_t i = 0; i < sweep->n_axes; i++) {
        if (sweep->axes[i].dim == NULL)
            options.batch = point->sizes[i];
        else
            dims[options.n_dims++] = (onv_dim_binding){sweep->axes[i].dim, point->sizes[i]};
    }
    options.dims = dims;
    options.dims_found = NULL;
    options.example = options.savings = options.remedies = options.timelines = false;
    options.answer_alone = true;
    onv_cli_guard(sweep->model);
    if (!onv_cli_is_input(sweep->model))
        return onv_analysis_new(sweep->model, &options, analysis, error);
    return onv_analysis_new_from_memory(cli->input.data, cli->input.bytes, sweep->model, &options,
                                        analysis, error);
}

/* What a point lacks, as the answer in a line says it. */
static int refuse_unsized(const onv_cli *cli, const onv_sweep *sweep, onv_dim_binding *dims)
{
    onv_analysis *analysis = NULL;
    onv_error error = {0};
    onv_report_options options = onv_report_options_default();
    onv_cli_sink sink = {.stream = stderr, .file = "standard error"};
    options.verbosity = -1;
    if (analyse(cli, sweep, &sweep->points[0], dims, &analysis, &error) != ONV_OK)
        return onv_cli_complain(sweep->model, &error);
    fputs("onnxvram: no point is sized: ", stderr);
    (void)onv_report((const onv_analysis *const[]){analysis}, 1, ONV_FORMAT_TEXT, &options,
                     onv_cli_write, &sink, &error);
    onv_analysis_destroy(analysis);
    return EXIT_USAGE;
}

static int find_answers(const onv_cli *cli, onv_sweep *sweep)
{
    onv_error error = {0};
    size_t n_answered = 0;
    onv_dim_binding *dims = calloc(cli->analysis.n_dims + ONV_CLI_MAX_AXES, sizeof *dims);
    for (size_t k = 0; k < sweep->n_points && dims != NULL; k++) {
        onv_sweep_point *point = &sweep->points[k];
        size_t rest = k;
        for (size_t i = sweep->n_axes; i-- > 0; rest /= sweep->axes[i].n_sizes)
            point->sizes[i] = sweep->axes[i].sizes[rest % sweep->axes[i].n_sizes];
        onv_analysis *analysis = NULL;
        onv_error why = {0};
        onv_cli_progress_begin(sweep->model, k, sweep->n_points);
        if (analyse(cli, sweep, point, dims, &analysis, &why) == ONV_OK)
            keep(sweep, point, analysis);
        else if (error.code == ONV_OK)
            error = why;
        /* Wrong usage is wrong at every point. */
        bool ends = why.code == ONV_ERR_USAGE || why.code == ONV_ERR_CANCELLED;
        n_answered += point->is_answered;
        onv_analysis_destroy(analysis);
        if (ends) break;
    }
    onv_cli_progress_end();
    int status = EXIT_DONE;
    if (dims == NULL)
        status = onv_cli_usage("out of memory");
    else if (error.code != ONV_OK)
        status = onv_cli_complain(sweep->model, &error);
    else if (n_answered == 0)
        status = refuse_unsized(cli, sweep, dims);
    free(dims);
    return status;
}

static int write_reports(const onv_cli *cli, const onv_sweep *sweep)
{
    int status = EXIT_DONE;
    for (size_t k = 0; k < cli->n_outputs; k++) {
        const onv_cli_output *output = &cli->outputs[k];
        onv_cli_sink sink;
        bool good = onv_cli_open(&sink, output->file);
        good = good && onv_sweep_write(sweep, output->format, cli->report.unicode, &sink);
        if (sink.stream == NULL || !onv_cli_close(&sink, good)) status = EXIT_UNUSABLE;
    }
    return status;
}

/* With budgets: whether any of the sizes fits one. */
static int judge(const onv_sweep *sweep)
{
    for (size_t i = 0; i < sweep->n_devices; i++)
        for (size_t k = 0; k < sweep->n_points; k++)
            if (sweep->points[k].fits[i]) return EXIT_DONE;
    return sweep->n_devices > 0 ? EXIT_NO_FIT : EXIT_DONE;
}

static int run(onv_cli *cli, onv_sweep *sweep)
{
    sweep->model = cli->models[0];
    if (cli->n_models != 1) return onv_cli_usage("sweep takes one model, not %zu", cli->n_models);
    if (cli->untrusted || cli->baseline != NULL || cli->analysis.max_batch)
        return onv_cli_usage("sweep only sizes a model that is trusted: leave --untrusted, "
                             "--baseline, --max-batch and --max-dim out");
    for (size_t k = 0; k < cli->n_outputs; k++)
        if (cli->outputs[k].format != ONV_FORMAT_TEXT &&
            cli->outputs[k].format != ONV_FORMAT_JSON && cli->outputs[k].format != ONV_FORMAT_CSV &&
            cli->outputs[k].format != ONV_FORMAT_SVG && cli->outputs[k].format != ONV_FORMAT_HTML)
            return onv_cli_usage("sweep writes text, --json, --csv, --svg or --html: leave other "
                                 "outputs out");
        else if (cli->outputs[k].format == ONV_FORMAT_SVG && sweep->n_axes > 2)
            return onv_cli_usage("--svg draws one or two lists of sizes, not %zu", sweep->n_axes);
    if (!onv_cli_spares_inputs(cli)) return EXIT_USAGE;
    onv_cli_progress_start(cli->report.verbosity < 0);
    if (onv_cli_is_input(sweep->model) && !onv_cli_read_input(&cli->input, cli->limits.file_bytes))
        return EXIT_UNUSABLE;
    int status = find_answers(cli, sweep);
    if (sweep->n_runtimes == 0) return status;
    int written = write_reports(cli, sweep);
    if (status == EXIT_DONE) status = written;
    return status == EXIT_DONE ? judge(sweep) : status;
}

int onv_cli_sweep(int argc, char **argv)
{
    onv_sweep sweep = {0};
    onv_cli cli;
    int status = EXIT_USAGE;
    onv_cli_verdict verdict = onv_cli_parse(&cli, onv_cli_command_named("sweep"), argc, argv);
    if (verdict == ONV_CLI_DONE) status = onv_cli_answered();
    if (verdict == ONV_CLI_RUN && make_points(&cli, &sweep) == ONV_CLI_RUN) {
        onv_cli_fit_terminal(&cli);
        status = run(&cli, &sweep);
    }
    onv_cli_cleanup(&cli);
    return status;
}
