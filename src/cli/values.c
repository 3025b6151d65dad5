#include "cli/values.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

bool onv_cli_parse_size(const char *text, uint64_t *bytes)
{
    static const struct {
        const char *name;
        uint64_t factor;
    } units[] = {
        {"", 1},
        {"B", 1},
        {"KB", 1000},
        {"MB", 1000000},
        {"GB", 1000000000},
        {"TB", 1000000000000},
        {"KiB", UINT64_C(1) << 10},
        {"MiB", UINT64_C(1) << 20},
        {"GiB", UINT64_C(1) << 30},
        {"TiB", UINT64_C(1) << 40},
        {"K", UINT64_C(1) << 10},
        {"M", UINT64_C(1) << 20},
        {"G", UINT64_C(1) << 30},
        {"T", UINT64_C(1) << 40},
    };
    if (*text < '0' || *text > '9') return false;
    char *unit;
    long double number = strtold(text, &unit);
    while (*unit == ' ') unit++;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcasecmp(units[i].name, unit) != 0) continue;
        number *= (long double)units[i].factor;
        if (!(number >= 0 && number < 9.2e18L)) return false;
        *bytes = (uint64_t)number;
        return true;
    }
    return false;
}

static bool parse_count(const char *text, int64_t *value, const char **end)
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
    return parse_count(text, value, &end) && *end == '\0';
}

/* Splits NAME=VALUE at the last '=' (names may hold one); the name is a copy on the heap. */
static char *split(const char *text, const char **value)
{
    const char *equals = strrchr(text, '=');
    if (equals == NULL || equals == text) return NULL;
    *value = equals + 1;
    return strndup(text, (size_t)(equals - text));
}

onv_cli_verdict onv_cli_add_model(onv_cli *cli, const char *text)
{
    const char *star = strrchr(text, '*');
    int64_t times = 1;
    bool is_many =
        star != NULL && star > text && access(text, F_OK) != 0 && parse_whole(star + 1, &times);
    if (is_many && (times < 1 || times > 1024))
        return onv_cli_reject("MODEL*N takes from 1 to 1024 of a model, not '%s'", star + 1);
    char *path = is_many ? strndup(text, (size_t)(star - text)) : strdup(text);
    if (path == NULL) return onv_cli_reject("out of memory");
    cli->instances[cli->n_models] = (unsigned)times;
    cli->models[cli->n_models++] = path;
    return ONV_CLI_RUN;
}

onv_cli_verdict onv_cli_add_dim(onv_cli *cli, const char *text)
{
    const char *value;
    int64_t size;
    char *name = split(text, &value);
    if (name == NULL || !parse_whole(value, &size)) {
        free(name);
        return onv_cli_reject("--dim takes NAME=N, not '%s'", text);
    }
    cli->dims[cli->analysis.n_dims++] = (onv_dim_binding){name, size};
    return ONV_CLI_RUN;
}

/* AxBxC; an empty text is the shape of a scalar. */
static int64_t *parse_shape(const char *text, size_t *rank)
{
    *rank = 0;
    int64_t *dims = calloc(strlen(text) / 2 + 1, sizeof *dims);
    if (dims == NULL || *text == '\0') return dims;
    for (;;) {
        const char *end;
        if (!parse_count(text, &dims[(*rank)++], &end)) break;
        if (*end == '\0') return dims;
        if (*end != 'x' && *end != 'X' && *end != ',') break;
        text = end + 1;
    }
    free(dims);
    return NULL;
}

onv_cli_verdict onv_cli_add_shape(onv_cli *cli, const char *text)
{
    const char *value;
    size_t rank;
    char *name = split(text, &value);
    int64_t *dims = name != NULL ? parse_shape(value, &rank) : NULL;
    if (dims == NULL) {
        free(name);
        return onv_cli_reject("--shape takes INPUT=AxBxC, not '%s'", text);
    }
    cli->shapes[cli->analysis.n_shapes++] = (onv_shape_binding){name, dims, rank};
    return ONV_CLI_RUN;
}

static double *parse_numbers(const char *text, size_t *count)
{
    *count = 0;
    double *numbers = calloc(strlen(text) / 2 + 1, sizeof *numbers);
    if (numbers == NULL) return NULL;
    for (;;) {
        char *end;
        double number = strtod(text, &end);
        if (end == text || number != number) break;
        numbers[(*count)++] = number;
        if (*end == '\0') return numbers;
        if (*end != ',') break;
        text = end + 1;
    }
    free(numbers);
    return NULL;
}

onv_cli_verdict onv_cli_add_input_value(onv_cli *cli, const char *text)
{
    onv_input_value given = {0};
    const char *at = strstr(text, "=@"), *value;
    if (at != NULL && at > text) {
        given.name = strndup(text, (size_t)(at - text));
        given.file = at + 2;
        if (given.name == NULL) return onv_cli_reject("out of memory");
    } else {
        char *name = split(text, &value);
        given.numbers = name != NULL ? parse_numbers(value, &given.count) : NULL;
        given.name = name;
        if (given.numbers == NULL) {
            free(name);
            return onv_cli_reject("--input-value takes NAME=V,V,... or NAME=@FILE.pb, not '%s'",
                                  text);
        }
    }
    cli->input_values[cli->analysis.n_input_values++] = given;
    return ONV_CLI_RUN;
}

onv_cli_verdict onv_cli_add_output(onv_cli *cli, onv_format format, const char *file)
{
    for (size_t i = 0; i < cli->n_outputs; i++)
        if (cli->outputs[i].format == format)
            return onv_cli_reject("one output is asked for twice");
    if (cli->n_outputs == ONV_CLI_MAX_OUTPUTS) return onv_cli_reject("too many outputs");
    cli->outputs[cli->n_outputs++] = (onv_cli_output){format, file != NULL ? file : "-"};
    return ONV_CLI_RUN;
}

onv_cli_verdict onv_cli_set_align(uint64_t *align, const char *option, const char *text)
{
    if (onv_cli_parse_size(text, align) && *align != 0 && (*align & (*align - 1)) == 0)
        return ONV_CLI_RUN;
    return onv_cli_reject("--%s takes a power of two, as in --align 256, not '%s'", option, text);
}

onv_cli_verdict onv_cli_add_dump(onv_cli *cli, const char *what)
{
    static const struct {
        const char *name;
        onv_format format;
    } dumps[] = {
        {"graph", ONV_FORMAT_DUMP_GRAPH},   {"intervals", ONV_FORMAT_DUMP_INTERVALS},
        {"plan", ONV_FORMAT_DUMP_PLAN},     {"trace", ONV_FORMAT_DUMP_TRACE},
        {"header", ONV_FORMAT_DUMP_HEADER}, {"replay", ONV_FORMAT_DUMP_REPLAY},
    };
    for (size_t i = 0; i < sizeof dumps / sizeof dumps[0]; i++)
        if (strcmp(dumps[i].name, what) == 0) return onv_cli_add_output(cli, dumps[i].format, NULL);
    return onv_cli_reject("--dump takes graph, intervals, plan, header, trace or replay, not '%s'",
                          what);
}

onv_cli_verdict onv_cli_add_formula(onv_cli *cli, const char *how)
{
    static const struct {
        const char *name;
        onv_format format;
    } languages[] = {
        {"text", ONV_FORMAT_FORMULA},
        {"python", ONV_FORMAT_FORMULA_PYTHON},
        {"c", ONV_FORMAT_FORMULA_C},
    };
    if (how == NULL) how = "text";
    for (size_t i = 0; i < sizeof languages / sizeof languages[0]; i++)
        if (strcmp(languages[i].name, how) == 0)
            return onv_cli_add_output(cli, languages[i].format, NULL);
    return onv_cli_reject("--formula takes text, python or c, not '%s'", how);
}

onv_cli_verdict onv_cli_set_color(onv_cli *cli, const char *when)
{
    static const char *const names[] = {"auto", "always", "never"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(names[i], when) != 0) continue;
        cli->color = (onv_cli_color)i;
        return ONV_CLI_RUN;
    }
    return onv_cli_reject("--color takes auto, always or never, not '%s'", when);
}

onv_cli_verdict onv_cli_set_unsigned(unsigned *to, const char *option, const char *text,
                                     int64_t least)
{
    int64_t value;
    if (!parse_whole(text, &value) || value < least || value > INT_MAX)
        return onv_cli_reject("--%s takes a number of at least %lld, not '%s'", option,
                              (long long)least, text);
    *to = (unsigned)value;
    return ONV_CLI_RUN;
}

onv_cli_verdict onv_cli_set_batch(onv_cli *cli, const char *text)
{
    if (!parse_whole(text, &cli->analysis.batch) || cli->analysis.batch < 1)
        return onv_cli_reject("--batch takes a number of at least 1, not '%s'", text);
    return ONV_CLI_RUN;
}

onv_cli_verdict onv_cli_set_precision(onv_precision *to, const char *option, const char *text)
{
    static const char *const names[] = {"fp32", "fp16", "bf16"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(names[i], text) != 0) continue;
        *to = (onv_precision)(ONV_PRECISION_FP32 + i);
        return ONV_CLI_RUN;
    }
    return onv_cli_reject("--%s takes fp32, fp16 or bf16, not '%s'", option, text);
}

onv_cli_verdict onv_cli_set_limit(onv_cli *cli, const char *text)
{
    const char *value;
    uint64_t limit = 0;
    char *name = split(text, &value);
    bool good = name != NULL && onv_cli_parse_size(value, &limit) && limit > 0 &&
                onv_limits_set(&cli->limits, name, limit);
    free(name);
    if (!good)
        return onv_cli_reject("--limit takes NAME=N with a name that --help lists, not '%s'", text);
    return ONV_CLI_RUN;
}

onv_cli_verdict onv_cli_set_effort(onv_cli *cli, const char *text)
{
    int64_t value;
    if (!parse_whole(text, &value) || value < 1)
        return onv_cli_reject("--effort takes a number of at least 1, not '%s'", text);
    cli->analysis.effort = (uint64_t)value;
    return ONV_CLI_RUN;
}

enum { MAX_CANDIDATES = 8 };

static const char *gpu_name(size_t index)
{
    onv_gpu_info gpu;
    return onv_gpu_at(index, &gpu) ? gpu.name : NULL;
}

/* The GPU of that name; false: it is not one, and the message says why. */
static bool find_gpu(const char *option, const char *wanted, const char *text, onv_gpu_info *gpu)
{
    onv_gpu_info found[MAX_CANDIDATES];
    size_t count = onv_gpu_by_name(text, found, MAX_CANDIDATES), length = 0;
    if (count == 1) {
        *gpu = found[0];
        return true;
    }
    if (count == 0) {
        const char *near = onv_nearest_name(text, gpu_name);
        (void)onv_cli_reject("--%s takes %s of --list-gpus, not '%s'%s%s%s", option, wanted, text,
                             near != NULL ? ": did you mean '" : "", near != NULL ? near : "",
                             near != NULL ? "'?" : "");
        return false;
    }
    char names[256] = "";
    for (size_t i = 0; i < count && i < MAX_CANDIDATES && length < sizeof names; i++)
        length += (size_t)snprintf(names + length, sizeof names - length, "%s%s", i > 0 ? ", " : "",
                                   found[i].name);
    (void)onv_cli_reject("--%s: '%s' may be one of %s%s", option, text, names,
                         count > MAX_CANDIDATES ? " and more" : "");
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
    if (text[digits] == '\0')
        return onv_cli_reject("--budget takes a size with its unit, not '%s': %sGiB, %sGB or %sB",
                              text, text, text, text);
    if (onv_cli_parse_size(text, &budget->bytes) && budget->bytes > 0) return ONV_CLI_RUN;
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
    return ONV_CLI_RUN;
}

onv_cli_verdict onv_cli_set_attention_dropout(onv_cli *cli, const char *text)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !(value >= 0 && value < 1))
        return onv_cli_reject("--attention-dropout takes a probability from 0 to below 1, not '%s'",
                              text);
    cli->analysis.attention_dropout = value;
    return ONV_CLI_RUN;
}

onv_cli_verdict onv_cli_set_kv_cache(onv_cli *cli, const char *text)
{
    if (strcmp(text, "copies") != 0 && strcmp(text, "shared") != 0)
        return onv_cli_reject("--kv-cache takes copies or shared, not '%s'", text);
    cli->analysis.kv_cache = text;
    return ONV_CLI_RUN;
}

onv_cli_verdict onv_cli_set_compile(onv_cli *cli, const char *text)
{
    char *end = NULL;
    double value = text != NULL ? strtod(text, &end) : 1;
    if (text != NULL && (end == text || *end != '\0' || !(value >= 0 && value <= 1)))
        return onv_cli_reject("--compile takes a memory budget from 0 to 1, not '%s'", text);
    cli->analysis.compile = true;
    cli->analysis.compile_budget = value;
    return ONV_CLI_RUN;
}

onv_cli_verdict onv_cli_set_format(onv_cli *cli, const char *text)
{
    if (strcmp(text, "text") != 0 && strcmp(text, "markdown") != 0)
        return onv_cli_reject(
            "--format takes text or markdown, not '%s' (--json, --csv and --layers "
            "are options of their own)",
            text);
    cli->format = strcmp(text, "text") == 0 ? ONV_FORMAT_TEXT : ONV_FORMAT_MARKDOWN;
    return ONV_CLI_RUN;
}

/* "5%", "0.25": to a hundredth of a percent. */
onv_cli_verdict onv_cli_set_max_growth(onv_cli *cli, const char *text)
{
    const char *end = text;
    int64_t whole = 0, hundredths = 0;
    bool good = parse_count(text, &whole, &end) && whole <= 100000;
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

onv_cli_verdict onv_cli_set_margin(onv_cli *cli, const char *text)
{
    const char *end;
    int64_t value;
    bool good =
        parse_count(text, &value, &end) && value <= 99 && (*end == '\0' || strcmp(end, "%") == 0);
    if (!good) return onv_cli_reject("--margin takes a percentage below 100, not '%s'", text);
    cli->analysis.margin_percent = (unsigned)value;
    return ONV_CLI_RUN;
}
