#include "cli/values.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/sweep.h"

bool onv_cli_parse_count(const char *text, int64_t *value, const char **end)
{
    if (*text < '0' || *text > '9') return false;
    errno = 0;
    char *stop;
    long long number = strtoll(text, &stop, 10);
    if (errno != 0) return false;
    *value = number;
    *end = stop;
    return true;
}

static bool parse_whole(const char *text, int64_t *value)
{
    const char *end;
    return onv_cli_parse_count(text, value, &end) && *end == '\0';
}

/* Splits NAME=VALUE at the last '=' (names may hold one); the name is a copy. */
static char *split(onv_cli *cli, const char *text, const char **value)
{
    const char *equals = strrchr(text, '=');
    if (equals == NULL || equals == text) return NULL;
    *value = equals + 1;
    return onv_cli_copy(cli, text, (size_t)(equals - text));
}

onv_cli_verdict onv_cli_add_model(onv_cli *cli, const char *text)
{
    const char *star = strrchr(text, '*');
    int64_t times = 1;
    bool is_many =
        star != NULL && star > text && access(text, F_OK) != 0 && parse_whole(star + 1, &times);
    if (is_many && (times < 1 || times > 1024))
        return onv_cli_reject("MODEL*N takes from 1 to 1024 of a model, not '%s'", star + 1);
    char *path = onv_cli_copy(cli, text, is_many ? (size_t)(star - text) : strlen(text));
    if (path == NULL) return onv_cli_reject("out of memory");
    cli->instances[cli->n_models] = (unsigned)times;
    cli->models[cli->n_models++] = path;
    return ONV_CLI_RUN;
}

onv_cli_verdict onv_cli_add_dim(onv_cli *cli, const char *text)
{
    const char *value;
    int64_t size;
    char *name = split(cli, text, &value);
    if (name != NULL && onv_cli_takes_list(cli, value)) return onv_cli_add_axis(cli, name, value);
    if (name == NULL || !parse_whole(value, &size))
        return onv_cli_reject("--dim takes NAME=N, as in --dim batch=8, not '%s'", text);
    /* Of a dim as of any option, the last one given counts. */
    for (size_t i = 0; i < cli->analysis.n_dims; i++) {
        if (strcmp(cli->dims[i].name, name) != 0) continue;
        cli->dims[i].size = size;
        return ONV_CLI_RUN;
    }
    cli->dims[cli->analysis.n_dims++] = (onv_dim_binding){name, size};
    return ONV_CLI_RUN;
}

/* AxBxC; an empty text is the shape of a scalar. */
static int64_t *parse_shape(onv_cli *cli, const char *text, size_t *rank)
{
    *rank = 0;
    int64_t *dims = onv_cli_alloc(cli, (strlen(text) / 2 + 1) * sizeof *dims);
    if (dims == NULL || *text == '\0') return dims;
    for (;;) {
        const char *end;
        if (!onv_cli_parse_count(text, &dims[(*rank)++], &end)) return NULL;
        if (*end == '\0') return dims;
        if (*end != 'x' && *end != 'X' && *end != ',') return NULL;
        text = end + 1;
    }
}

onv_cli_verdict onv_cli_add_shape(onv_cli *cli, const char *text)
{
    const char *value;
    size_t rank;
    char *name = split(cli, text, &value);
    int64_t *dims = name != NULL ? parse_shape(cli, value, &rank) : NULL;
    if (dims == NULL)
        return onv_cli_reject(
            "--shape takes INPUT=AxBxC, as in --shape input=1x3x224x224, not '%s'", text);
    cli->shapes[cli->analysis.n_shapes++] = (onv_shape_binding){name, dims, rank};
    return ONV_CLI_RUN;
}

/* MIN:OPT:MAX of a profile of TensorRT: an engine is planned at MAX. Each of one rank, none below the one before. */
static int64_t *parse_profile(onv_cli *cli, const char *text, size_t *rank)
{
    char *own = onv_cli_copy(cli, text, strlen(text));
    int64_t *before = NULL, *dims = NULL;
    int n = 0;
    for (char *at; (at = strtok_r(own, ":", &own)) != NULL; n++, before = dims) {
        size_t now;
        dims = parse_shape(cli, at, &now);
        if (dims == NULL || n == 3 || (n > 0 && now != *rank)) return NULL;
        *rank = now;
        for (size_t i = 0; n > 0 && i < now; i++)
            if (dims[i] < before[i]) return NULL;
    }
    return n == 3 ? dims : NULL;
}

onv_cli_verdict onv_cli_add_profile(onv_cli *cli, const char *text)
{
    const char *value;
    size_t rank = 0;
    char *name = split(cli, text, &value);
    int64_t *dims = name != NULL ? parse_profile(cli, value, &rank) : NULL;
    if (dims == NULL || rank == 0)
        return onv_cli_reject(
            "--profile takes NAME=MIN:OPT:MAX of a dim or an input, sizes that do not fall, as in "
            "--profile batch=1:8:16 or --profile input=1x3x224x224:8x3x224x224:16x3x224x224, not "
            "'%s'",
            text);
    bool is_given = false;
    for (size_t i = 0; i < cli->analysis.n_dims; i++)
        is_given |= strcmp(cli->dims[i].name, name) == 0;
    for (size_t i = 0; i < cli->analysis.n_shapes; i++)
        is_given |= strcmp(cli->shapes[i].name, name) == 0;
    if (is_given)
        return onv_cli_reject("--profile: '%s' has a size already: an engine with several profiles "
                              "has contexts for the "
                              "largest of them, so give each a run of its own",
                              name);
    cli->profiles[cli->n_profiles++] = name;
    if (rank > 1)
        cli->shapes[cli->analysis.n_shapes++] = (onv_shape_binding){name, dims, rank};
    else
        cli->dims[cli->analysis.n_dims++] = (onv_dim_binding){name, dims[0]};
    return ONV_CLI_RUN;
}

static double *parse_numbers(onv_cli *cli, const char *text, size_t *count)
{
    *count = 0;
    double *numbers = onv_cli_alloc(cli, (strlen(text) / 2 + 1) * sizeof *numbers);
    while (numbers != NULL) {
        char *end;
        double number = strtod(text, &end);
        if (end == text || number != number) break;
        numbers[(*count)++] = number;
        if (*end == '\0') return numbers;
        if (*end != ',') break;
        text = end + 1;
    }
    return NULL;
}

onv_cli_verdict onv_cli_add_input_value(onv_cli *cli, const char *text)
{
    onv_input_value given = {0};
    const char *at = strstr(text, "=@"), *value;
    if (at != NULL && at > text) {
        given.name = onv_cli_copy(cli, text, (size_t)(at - text));
        given.file = at + 2;
        if (given.name == NULL) return onv_cli_reject("out of memory");
    } else {
        given.name = split(cli, text, &value);
        if (given.name != NULL) given.numbers = parse_numbers(cli, value, &given.count);
        if (given.numbers == NULL)
            return onv_cli_reject("--input-value takes NAME=V,V,... or NAME=@FILE.pb, as in "
                                  "--input-value size=2,3, not '%s'",
                                  text);
    }
    cli->input_values[cli->analysis.n_input_values++] = given;
    return ONV_CLI_RUN;
}

onv_cli_verdict onv_cli_add_output(onv_cli *cli, onv_format format, const char *file)
{
    for (size_t i = 0; i < cli->n_outputs; i++)
        if (cli->outputs[i].format == format)
            return onv_cli_reject("an output is given twice, to '%s' and to '%s': leave one out",
                                  cli->outputs[i].file, file != NULL ? file : "-");
    if (cli->n_outputs == ONV_CLI_MAX_OUTPUTS)
        return onv_cli_reject("an analysis has up to %d outputs; run it again for the others",
                              ONV_CLI_MAX_OUTPUTS);
    cli->outputs[cli->n_outputs++] = (onv_cli_output){format, file != NULL ? file : "-"};
    return ONV_CLI_RUN;
}

/* --- Choices ----------------------------------------------------------------------------------- */

/* The place of `text` among what the row's value is chosen from; false with a message. */
static bool choose(const onv_cli_row *row, const char *text, size_t *place)
{
    enum { MOST = 32 };
    onv_cli_item items[MOST];
    const char *names[MOST + 1] = {NULL};
    char list[256] = "", word[64];
    for (size_t i = 0, used = 0; i < MOST && onv_cli_item_at(row, i, &items[i]); i++) {
        items[i].name[strcspn(items[i].name, "=")] = '\0';
        names[i] = items[i].name;
        if (used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i > 0 ? ", " : "",
                                     names[i]);
    }
    for (*place = 0; names[*place] != NULL; ++*place)
        if (onv_is_called(text, names[*place])) return true;
    const char *near = onv_nearest_name(text, names);
    snprintf(word, sizeof word, "%s=%s", row->name, text);
    const char *hint = onv_cli_hint(word);
    (void)onv_cli_usage("--%s: '%s' is unknown%s%s%s from %s%s%s", row->name, text,
                        near != NULL ? ", did you mean '" : "; choose", near != NULL ? near : "",
                        near != NULL ? "'? Choose" : "", list, hint != NULL ? "; " : "",
                        hint != NULL ? hint : "");
    return false;
}

static bool choose_of(const onv_cli *cli, const char *option, const char *text, size_t *place)
{
    return choose(onv_cli_row_named(cli->command, option), text, place);
}

/* --- Numbers ----------------------------------------------------------------------------------- */

onv_cli_verdict onv_cli_set_batch(onv_cli *cli, const char *text)
{
    if (onv_cli_takes_list(cli, text)) return onv_cli_add_axis(cli, NULL, text);
    if (strchr(text, ',') != NULL || strstr(text, "..") != NULL)
        return onv_cli_reject("--batch takes one number, and '%s' are several: onnxvram sweep "
                              "answers at each",
                              text);
    if (!parse_whole(text, &cli->analysis.batch) || cli->analysis.batch < 1)
        return onv_cli_reject("--batch takes a number of at least 1, as in --batch 8, not '%s'",
                              text);
    return ONV_CLI_RUN;
}

onv_cli_verdict onv_cli_set_limit(onv_cli *cli, const char *text)
{
    const char *value;
    uint64_t limit = 0;
    size_t place;
    char *name = split(cli, text, &value);
    if (name == NULL)
        return onv_cli_reject("--limit takes NAME=N, as in --limit nodes=1000, not '%s'", text);
    if (!choose_of(cli, "limit", name, &place)) return ONV_CLI_USAGE;
    if (onv_size_parse(value, &limit) && limit > 0 && onv_limits_set(&cli->limits, name, limit))
        return ONV_CLI_RUN;
    return onv_cli_reject("--limit %s takes a number of at least 1 that fits it, not '%s'",
                          onv_limit_name(place, NULL, NULL), value);
}

/* --- Others ------------------------------------------------------------------------------------ */

/* "5%", "0.25": to a hundredth of a percent. */
onv_cli_verdict onv_cli_set_max_growth(onv_cli *cli, const char *text)
{
    const char *end = text;
    int64_t whole = 0, hundredths = 0;
    bool good = onv_cli_parse_count(text, &whole, &end) && whole <= 100000;
    if (good && *end == '.') {
        size_t digits = strspn(end + 1, "0123456789");
        for (size_t i = 1; i <= 2; i++)
            hundredths = 10 * hundredths + (i <= digits ? end[i] - '0' : 0);
        good = digits >= 1 && digits <= 2;
        end += 1 + digits;
    }
    if (!good || (*end != '\0' && strcmp(end, "%") != 0))
        return onv_cli_reject("--max-growth takes a percentage like 5%% or 0.5%%, not '%s'", text);
    cli->analysis.has_max_growth = true;
    cli->analysis.max_growth_basis_points = (uint32_t)(100 * whole + hundredths);
    return ONV_CLI_RUN;
}

/* --- Outputs and answers ----------------------------------------------------------------------- */

onv_cli_verdict onv_cli_set_plan_out(onv_cli *cli, const char *file)
{
    size_t length = strlen(file);
    bool has_table = length > 3 && strcmp(file + length - 3, ".py") == 0;
    bool is_json = length > 5 && strcmp(file + length - 5, ".json") == 0;
    if (!has_table && !is_json && strcmp(file, "-") != 0 && !onv_cli_is_special(file))
        return onv_cli_reject("--plan-out: expected a file named .py or .json, found '%s'", file);
    return onv_cli_add_output(
        cli, has_table ? ONV_FORMAT_CHECKPOINTS_PYTHON : ONV_FORMAT_CHECKPOINTS, file);
}

onv_cli_verdict onv_cli_say_version(onv_cli *cli, const char *text)
{
    (void)cli, (void)text;
    printf("onnxvram %s\n", onv_version());
    return ONV_CLI_DONE;
}

onv_cli_verdict onv_cli_say_help(onv_cli *cli, const char *text)
{
    (void)cli;
    return onv_cli_help(text) ? ONV_CLI_DONE : ONV_CLI_USAGE;
}

/* --- By the table ------------------------------------------------------------------------------ */

/* Into a field of 64 bits; false where the text is no such value. */
static bool read_wide(uint64_t *to, const onv_cli_row *row, const char *text)
{
    const uint64_t gib = UINT64_C(1) << 30;
    int64_t number;
    if (row->kind != ONV_CLI_WIDE && !onv_size_parse(text, to)) return false;
    if (row->kind == ONV_CLI_SIZE) return *to > row->least;
    if (row->kind == ONV_CLI_POWER) return *to > 0 && *to <= gib && (*to & (*to - 1)) == 0;
    if (!parse_whole(text, &number) || number < 1) return false;
    *to = (uint64_t)number;
    return true;
}

static bool read_double(double *to, const onv_cli_row *row, const char *text)
{
    char *end;
    *to = strtod(text, &end);
    return end != text && *end == '\0' && *to >= 0 &&
           (*to < 1 || (*to <= 1 && row->kind == ONV_CLI_SHARE));
}

static bool read_number(unsigned *to, const onv_cli_row *row, const char *text)
{
    const char *end;
    int64_t number;
    if (!onv_cli_parse_count(text, &number, &end) || number < row->least || number > row->most)
        return false;
    *to = (unsigned)number;
    return *end == '\0' || (row->kind == ONV_CLI_PERCENT && strcmp(end, "%") == 0);
}

static onv_cli_verdict read_value(char *field, const onv_cli_row *row, const char *text)
{
    bool good;
    if (row->kind >= ONV_CLI_SHARE)
        good = read_double((void *)field, row, text);
    else if (row->kind >= ONV_CLI_WIDE)
        good = read_wide((void *)field, row, text);
    else
        good = read_number((void *)field, row, text);
    if (good) return ONV_CLI_RUN;
    return onv_cli_reject("--%s takes %s, not '%s'", row->name, row->takes, text);
}

static void set_flag(char *field, const onv_cli_row *row)
{
    if (row->constant != 0)
        *(int *)(void *)field = (int)row->constant;
    else
        *(bool *)field = true;
}

/* Into the field, or to the end of the list there. */
static void set_text(void *into, const onv_cli_row *row, const char *text)
{
    char *field = (char *)into + row->at;
    const char **list;
    if (row->count == 0) {
        memcpy(field, &text, sizeof text);
        return;
    }
    size_t *count = (void *)((char *)into + row->count);
    memcpy(&list, field, sizeof list);
    list[(*count)++] = text;
}

onv_cli_verdict onv_cli_set(void *into, const onv_cli_row *row, const char *text)
{
    char *field = (char *)into + row->at;
    size_t place = 0;
    if (row->read != NULL) return row->read(into, text);
    if (row->flag > 0) *(bool *)((char *)into + row->flag) = true;
    if (row->arg == NULL) {
        if (row->at > 0) set_flag(field, row);
        return ONV_CLI_RUN;
    }
    if (text == NULL) text = row->fallback;
    if (row->kind == ONV_CLI_CHOICE) {
        if (text != NULL && !choose(row, text, &place)) return ONV_CLI_USAGE;
        unsigned chosen = row->formats != NULL ? row->formats[place] : row->least + (unsigned)place;
        if (row->at > 0) *(unsigned *)(void *)field = chosen;
    } else if (row->kind != ONV_CLI_TEXT) {
        if (text != NULL && read_value(field, row, text) != ONV_CLI_RUN) return ONV_CLI_USAGE;
    } else if (row->output > 0) {
        return onv_cli_add_output(into, (onv_format)(row->output - 1), text);
    } else {
        set_text(into, row, text);
    }
    return row->outputs != NULL ? onv_cli_add_output(into, row->outputs[place], NULL) : ONV_CLI_RUN;
}

/* --- GPUs of the list, by names that need not be whole ---------------------------------------- */

onv_cli_verdict onv_cli_list_gpus(onv_cli *cli, const char *text)
{
    (void)cli, (void)text;
    onv_gpu_info gpu;
    printf("%-28s %10s  %4s  %s\n", "GPU", "usable MiB", "cc", "source");
    for (size_t i = 0; onv_gpu_at(i, &gpu); i++)
        printf("%-28s %10llu  %2u.%u  %s\n", gpu.name, (unsigned long long)(gpu.usable_bytes >> 20),
               gpu.cc_major, gpu.cc_minor, gpu.source);
    return ONV_CLI_DONE;
}

enum { MAX_CANDIDATES = 8, MOST_GPUS = 256 };

static const char *nearest_gpu(const char *text)
{
    const char *names[MOST_GPUS + 1] = {NULL};
    onv_gpu_info gpu;
    for (size_t i = 0; i < MOST_GPUS && onv_gpu_at(i, &gpu); i++) names[i] = gpu.name;
    return onv_nearest_name(text, names);
}

const char *onv_cli_gpu_word(const char *name, char room[static 64])
{
    snprintf(room, 64, "%s", name);
    for (char *at = room; (at = strchr(at, ' ')) != NULL;) *at = '-';
    return room;
}

/* Looks a GPU up by its name; false where no GPU has that name, with a message. */
static bool find_gpu(const char *option, const char *wanted, const char *text, onv_gpu_info *gpu)
{
    char room[64];
    onv_gpu_info found[MAX_CANDIDATES];
    size_t count = onv_gpu_by_name(text, found, MAX_CANDIDATES), length = 0;
    if (count == 1) {
        *gpu = found[0];
        return true;
    }
    if (count == 0) {
        const char *near = nearest_gpu(text);
        (void)onv_cli_reject("--%s takes %s of --list-gpus, not '%s'%s%s%s", option, wanted, text,
                             near != NULL ? ": did you mean '" : "",
                             near != NULL ? onv_cli_gpu_word(near, room) : "",
                             near != NULL ? "'?" : "");
        return false;
    }
    char names[256] = "";
    for (size_t i = 0; i < count && i < MAX_CANDIDATES && length < sizeof names; i++)
        length += (size_t)snprintf(names + length, sizeof names - length, "%s%s", i > 0 ? ", " : "",
                                   onv_cli_gpu_word(found[i].name, room));
    (void)onv_cli_reject("--%s takes one GPU, and '%s' may be %s%s: write one of them out", option,
                         text, names, count > MAX_CANDIDATES ? " and more" : "");
    return false;
}

/* One device of --budget: a size with its unit, or a GPU. */
static onv_cli_verdict add_budget(onv_cli *cli, const char *text)
{
    onv_gpu_info gpu;
    onv_budget *budget = &cli->budgets[cli->analysis.n_budgets++];
    size_t digits = strspn(text, "0123456789.");
    if (text[0] == '-' || strcmp(text, "0") == 0 || text[0] == '\0')
        return onv_cli_reject("--budget takes a size above 0 like 16GiB, or a GPU of --list-gpus, "
                              "not '%s'",
                              text);
    /* "3090" is a GPU, and no size without its unit. */
    bool has_unit = text[digits] != '\0';
    if (!has_unit && onv_gpu_by_name(text, &gpu, 1) == 0)
        return onv_cli_reject("--budget takes a size with its unit, not '%s': %sGiB, %sGB or %sB",
                              text, text, text, text);
    if (has_unit && onv_size_parse(text, &budget->bytes) && budget->bytes > 0) return ONV_CLI_RUN;
    if (!find_gpu("budget", "a size like 16GiB or a GPU", text, &gpu)) return ONV_CLI_USAGE;
    *budget = (onv_budget){gpu.name, gpu.usable_bytes, 10 * gpu.cc_major + gpu.cc_minor};
    return ONV_CLI_RUN;
}

onv_cli_verdict onv_cli_set_budget(onv_cli *cli, const char *text)
{
    cli->analysis.n_budgets = 0; /* the last one given counts */
    onv_cli_verdict verdict = ONV_CLI_RUN;
    for (const char *at = text; verdict == ONV_CLI_RUN; at++) {
        size_t length = strcspn(at, ",");
        char one[128];
        if (length >= sizeof one || cli->analysis.n_budgets == ONV_CLI_MAX_BUDGETS)
            return onv_cli_reject("--budget takes up to %d sizes or GPUs with commas between them",
                                  ONV_CLI_MAX_BUDGETS);
        memcpy(one, at, length);
        one[length] = '\0';
        verdict = add_budget(cli, one);
        at += length;
        if (*at == '\0') break;
    }
    return verdict;
}

onv_cli_verdict onv_cli_set_gpu(onv_cli *cli, const char *text)
{
    onv_gpu_info gpu;
    if (!find_gpu("gpu", "a GPU", text, &gpu)) return ONV_CLI_USAGE;
    cli->analysis.compute_capability = 10 * gpu.cc_major + gpu.cc_minor;
    cli->analysis.gpu = gpu.name;
    return ONV_CLI_RUN;
}
