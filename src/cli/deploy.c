#include "cli/deploy.h"

#include <stdlib.h>
#include <string.h>

#include "cli/json.h"
#include "cli/message.h"
#include "cli/values.h"
#include "cli/work.h"

/* --- What both put ----------------------------------------------------------------------------- */

void onv_cli_put(onv_cli_deployment *d, json_t *object, const char *key, json_t *value)
{
    d->has_failed |= json_object_set_new(object, key, value) != 0;
}

void onv_cli_put_number(onv_cli_deployment *d, json_t *object, const char *key, uint64_t number)
{
    onv_cli_put(d, object, key, json_integer(number < INT64_MAX ? (json_int_t)number : INT64_MAX));
}

json_t *onv_cli_put_row(onv_cli_deployment *d, const char *list)
{
    json_t *row = json_object();
    if (json_object_get(d->json, list) == NULL) onv_cli_put(d, d->json, list, json_array());
    d->has_failed |= json_array_append_new(json_object_get(d->json, list), row) != 0;
    return d->has_failed ? d->json : row;
}

void onv_cli_put_name(onv_cli_deployment *d, json_t *object, const char *key, const char *name)
{
    char text[2048];
    onv_printable(name, text, sizeof text);
    fputs(text, d->text);
    onv_cli_put(d, object, key, json_string(text));
}

static void print_range(const onv_cli_deployment *d, const char *what, uint64_t low, uint64_t high)
{
    char text[ONV_CLI_SIZE_TEXT];
    onv_size_text(low, high, d->cli->report.unicode, text, sizeof text);
    fprintf(d->text, "  %-26s %s\n", what, text);
}

void onv_cli_put_size(onv_cli_deployment *d, json_t *object, const char *what, const char *key,
                      uint64_t bytes)
{
    print_range(d, what, bytes, bytes);
    onv_cli_put_number(d, object, key, bytes);
}

void onv_cli_put_range(onv_cli_deployment *d, json_t *object, const char *what, const char *key,
                       uint64_t low, uint64_t high)
{
    print_range(d, what, low, high);
    json_t *ends = json_array();
    onv_cli_put(d, object, key, ends);
    d->has_failed |= json_array_append_new(ends, json_integer((json_int_t)low)) != 0 ||
                     json_array_append_new(ends, json_integer((json_int_t)high)) != 0;
}

void onv_cli_put_total(onv_cli_deployment *d, uint64_t low, uint64_t high)
{
    print_range(d, "together", low, high);
    onv_cli_put_number(d, d->json, "low_bytes", low);
    onv_cli_put_number(d, d->json, "high_bytes", high);
}

void onv_cli_put_gpu(onv_cli_deployment *d, const char *gpu, bool is_assumed)
{
    bool has_one = gpu != NULL && gpu[0] != '\0';
    onv_cli_put(d, d->json, "gpu", has_one ? json_string(gpu) : json_null());
    onv_cli_put(d, d->json, "gpu_assumed", json_boolean(is_assumed));
    if (has_one) fprintf(d->text, ", %s%s", gpu, is_assumed ? " (assumed)" : "");
}

uint64_t onv_cli_usable(const onv_cli *cli, size_t budget)
{
    return onv_budget_usable(cli->budgets[budget].bytes, cli->analysis.margin_percent);
}

json_t *onv_cli_put_budget(onv_cli_deployment *d, size_t budget, bool fits)
{
    const onv_budget *b = &d->cli->budgets[budget];
    char size[ONV_CLI_SIZE_TEXT];
    json_t *row = onv_cli_put_row(d, "devices");
    onv_size_text(b->bytes, b->bytes, false, size, sizeof size);
    fprintf(d->text, "%s: %s", b->name != NULL ? b->name : size, fits ? "fits" : "does not fit");
    onv_cli_put(d, row, "device", b->name != NULL ? json_string(b->name) : json_null());
    onv_cli_put_number(d, row, "budget_bytes", b->bytes);
    onv_cli_put_number(d, row, "usable_bytes", onv_cli_usable(d->cli, budget));
    onv_cli_put(d, row, "fits", json_boolean(fits));
    d->fits |= fits;
    return row;
}

void onv_cli_use_budget(const onv_cli *cli, onv_options *options)
{
    if (options->compute_capability == 0 && options->n_budgets > 0) {
        options->compute_capability = cli->budgets[0].compute_capability;
        options->gpu = cli->budgets[0].name;
    }
    options->n_budgets = 0;
}

void onv_cli_warn_of(onv_cli_deployment *d, const onv_analysis *part, const char *path)
{
    onv_answer_info answer;
    onv_analysis_answer(part, &answer);
    d->is_warned |= answer.warnings > 0;
    onv_cli_tell_warnings(part, path);
}

/* --- The work ---------------------------------------------------------------------------------- */

static bool write_json(const onv_cli_deployment *d, FILE *stream)
{
    json_t *all = onv_cli_json_output("deployment", json_incref(d->json));
    bool good = all != NULL && json_dumpf(all, stream, JSON_INDENT(2)) == 0;
    json_decref(all);
    return good && fputc('\n', stream) != EOF;
}

static void write_outputs(const onv_cli_task *task, const onv_cli_deployment *d, const char *text,
                          onv_cli_record *record)
{
    for (size_t k = 0; k < task->cli->n_outputs; k++) {
        FILE *stream = task->sinks[k].stream;
        if (stream == NULL) continue;
        record->kept[k] = task->cli->outputs[k].format == ONV_FORMAT_JSON
                              ? write_json(d, stream)
                              : fputs(text, stream) >= 0;
        record->kept[k] &= onv_cli_flush(&task->sinks[k]);
        if (!record->kept[k]) record->worst = EXIT_UNUSABLE;
    }
}

void onv_cli_deploy(void *context, onv_cli_record *record)
{
    const onv_cli_task *task = context;
    const onv_cli *cli = task->cli;
    char *text = NULL;
    size_t bytes;
    onv_error error = {.code = ONV_ERR_MEMORY, .message = "out of memory"};
    onv_cli_deployment d = {.cli = cli,
                            .text = open_memstream(&text, &bytes),
                            .json = json_object(),
                            .fits = cli->analysis.n_budgets == 0};
    bool good = d.text != NULL && d.json != NULL;
    snprintf(d.path, sizeof d.path, "%s", cli->models[0]);
    if (good)
        good = cli->genai != NULL ? onv_cli_answer_genai(&d, &error)
                                  : onv_cli_answer_triton(&d, &error);
    if (good) {
        onv_cli_put(&d, d.json, "fits",
                    cli->analysis.n_budgets > 0 ? json_boolean(d.fits) : json_null());
        error = (onv_error){.code = ONV_ERR_MEMORY, .message = "out of memory"};
    }
    good = d.text != NULL && fclose(d.text) == 0 && good && !d.has_failed;
    if (good) {
        record->n_analysed = 1;
        record->verdict = !d.fits                               ? EXIT_NO_FIT
                          : d.is_warned && cli->analysis.strict ? EXIT_WARNED
                                                                : EXIT_DONE;
        write_outputs(task, &d, text, record);
    } else {
        record->worst = onv_cli_complain(d.path, &error);
    }
    json_decref(d.json);
    free(text);
}

onv_cli_verdict onv_cli_check_deployment(onv_cli *cli)
{
    const char *option = cli->genai != NULL ? "genai" : "triton";
    if (cli->genai != NULL && cli->triton != NULL)
        return onv_cli_reject("--genai and --triton name a folder each: leave one of them out");
    if (cli->n_models > 0)
        return onv_cli_reject("--%s names a folder, and '%s' is a model: leave one of them out",
                              option, cli->models[0]);
    const onv_options *o = &cli->analysis;
    bool are_known = !cli->together && cli->baseline == NULL && o->train == NULL &&
                     (o->runtimes == NULL || strcmp(o->runtimes, "ort") == 0) && /* serve's */
                     cli->format == ONV_FORMAT_TEXT && o->replay == NULL && o->snapshot == NULL &&
                     o->measured == 0 && !o->max_batch && o->max_dim == NULL && !o->ort_advise;
    for (size_t i = 0; i < cli->n_outputs; i++)
        are_known = are_known && cli->outputs[i].format == ONV_FORMAT_JSON;
    if (!are_known)
        return onv_cli_reject("--%s prints one answer, as text or --json, of ONNX Runtime: leave "
                              "other outputs and questions (--train, --runtime, --max-batch, "
                              "--baseline, --replay ...) out",
                              option);
    const char *folder = cli->genai != NULL ? cli->genai : cli->triton;
    cli->models[0] = onv_cli_copy(cli, folder, strlen(folder));
    if (cli->models[0] == NULL) return onv_cli_reject("out of memory");
    cli->instances[0] = 1;
    cli->n_models = 1;
    return ONV_CLI_RUN;
}
