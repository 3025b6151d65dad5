#include "cli/options.h"

#include <getopt.h>
#include <langinfo.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/table.h"
#include "cli/values.h"

/* What getopt_long gives for a row: its letter, or a number beyond the characters. */
enum { NO_OPTION = 1, FIRST_LONG = 256, MOST_NAMES = ONV_CLI_MAX_ROWS + ONV_CLI_MAX_SPELLINGS };

static int code_of(size_t row)
{
    return onv_cli_rows[row].letter != 0 ? onv_cli_rows[row].letter : FIRST_LONG + (int)row;
}

static size_t row_of(int code)
{
    size_t row = 0;
    while (row < onv_cli_n_rows && code_of(row) != code) row++;
    return row;
}

/* --- What is wrong ----------------------------------------------------------------------------- */

/* The option that a word is likely meant to be. */
static const char *nearest_option(const char *name)
{
    const char *names[MOST_NAMES + 1] = {NULL};
    for (size_t i = 0; i < onv_cli_n_rows; i++) names[i] = onv_cli_rows[i].name;
    for (size_t i = 0; i < onv_cli_n_spellings; i++)
        names[onv_cli_n_rows + i] = onv_cli_spellings[i].other;
    return onv_nearest_name(name, names);
}

/* The beginning of options is none of them: it would be another one as soon as there are more. */
static onv_cli_verdict refuse_prefix(const char *text, const char *name)
{
    char list[256] = "";
    size_t used = 0, length = strlen(name), n = 0;
    for (size_t i = 0; i < onv_cli_n_rows && used < sizeof list; i++) {
        if (strncmp(onv_cli_rows[i].name, name, length) != 0) continue;
        used += (size_t)snprintf(list + used, sizeof list - used, "%s--%s", n++ > 0 ? ", " : "",
                                 onv_cli_rows[i].name);
    }
    return n > 1 ? onv_cli_reject("'%s' begins several options; write one of them out: %s", text,
                                  list)
                 : onv_cli_reject("'%s' is not a whole option; write it out: %s", text, list);
}

/* An option that is not one: it does not exist, is the beginning of others, or takes no value. */
static onv_cli_verdict refuse(const char *text)
{
    char name[64];
    size_t length = strcspn(text + 2, "="), n_like = 0;
    if (text[0] != '-' || text[1] != '-' || length >= sizeof name)
        return onv_cli_reject("option '%s' is unknown", text);
    memcpy(name, text + 2, length);
    name[length] = '\0';
    if (onv_cli_row_named(name) != NULL)
        return onv_cli_reject("--%s takes no value, and '%s' has one", name, text);
    for (size_t i = 0; i < onv_cli_n_rows; i++)
        n_like += strncmp(onv_cli_rows[i].name, name, length) == 0;
    const char *hint = onv_cli_hint(name), *near = nearest_option(name);
    if (hint != NULL) return onv_cli_reject("there is no option '--%s': %s", name, hint);
    if (n_like > 0) return refuse_prefix(text, name);
    if (near != NULL)
        return onv_cli_reject("there is no option '--%s', did you mean '--%s'?", name, near);
    return onv_cli_reject("there is no option '--%s'", name);
}

/* Whether getopt_long took a word for an option that it only begins. */
static bool is_prefix(const char *word)
{
    char name[64];
    size_t length = strncmp(word, "--", 2) == 0 ? strcspn(word + 2, "=") : 0;
    if (length == 0 || length >= sizeof name) return false;
    memcpy(name, word + 2, length);
    name[length] = '\0';
    return onv_cli_row_named(name) == NULL;
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), n = strlen(end);
    return length >= n && strcmp(text + length - n, end) == 0;
}

/* After an option that takes a value: a word that is rather another value than a model. */
static bool is_value(const char *text, const onv_cli_row *row)
{
    if (strcmp(text, "-") == 0 || ends_with(text, ".onnx") || strchr(text, '*') != NULL)
        return false;
    /* --json report.json: of a run before, perhaps. */
    if (!onv_cli_takes_value(row) && (ends_with(text, ".json") || ends_with(text, ".csv")))
        return true;
    return strchr(text, '/') == NULL && access(text, F_OK) != 0;
}

/* A model; after an option with a value, what is not a file is likely meant as another value. */
static onv_cli_verdict add_model(onv_cli *cli, const char *text, const onv_cli_row *after)
{
    if (after == NULL || !onv_cli_may_take_value(after) || !is_value(text, after))
        return onv_cli_add_model(cli, text);
    if (!onv_cli_takes_value(after))
        return onv_cli_reject("'%s' is not a model; a value of --%s follows '=': --%s=%s", text,
                              after->name, after->name, text);
    if (strchr(after->arg, ',') != NULL || strcmp(after->arg, "LIST") == 0)
        return onv_cli_reject("'%s' is not a file; several values of --%s are one word with commas",
                              text, after->name);
    if (strstr(after->help, "repeatable") != NULL)
        return onv_cli_reject("'%s' is not a file, and --%s takes one value; repeat it: --%s %s",
                              text, after->name, after->name, text);
    return onv_cli_reject("'%s' is not a file, and --%s takes one value", text, after->name);
}

/* --- Parsing ----------------------------------------------------------------------------------- */

static onv_cli_verdict apply(onv_cli *cli, const onv_cli_row *row, const char *text)
{
    char *field = (char *)cli + row->at;
    if (row->read != NULL) return row->read(cli, text);
    if (row->arg == NULL || (row->output > 0 && row->at > 0)) *(bool *)field = true;
    if (row->arg == NULL) return ONV_CLI_RUN;
    if (row->most > 0) return onv_cli_set_number((void *)field, row, text);
    if (row->is_wide) return onv_cli_set_wide((void *)field, row, text);
    if (row->size != NULL) return onv_cli_set_size((void *)field, row, text);
    if (row->choices != NULL) return onv_cli_set_choice((void *)field, row, text);
    if (text == NULL) text = row->fallback;
    if (row->output > 0) return onv_cli_add_output(cli, (onv_format)(row->output - 1), text);
    if (row->count == 0) {
        memcpy(field, &text, sizeof text);
        return ONV_CLI_RUN;
    }
    const char **list;
    size_t *count = (void *)((char *)cli + row->count);
    memcpy(&list, field, sizeof list);
    list[(*count)++] = text;
    return ONV_CLI_RUN;
}

/* The table as getopt_long takes it. "-": what is not an option comes in its place. */
static void list_options(struct option *longs, char *shorts)
{
    static const int kinds[] = {no_argument, optional_argument, required_argument};
    shorts = stpcpy(shorts, "-:");
    for (size_t i = 0; i < onv_cli_n_rows; i++) {
        const onv_cli_row *row = &onv_cli_rows[i];
        int kind = kinds[onv_cli_may_take_value(row) + onv_cli_takes_value(row)];
        *longs++ = (struct option){row->name, kind, NULL, code_of(i)};
        for (size_t k = 0; k < onv_cli_n_spellings; k++)
            if (strcmp(onv_cli_spellings[k].name, row->name) == 0)
                *longs++ = (struct option){onv_cli_spellings[k].other, kind, NULL, code_of(i)};
        if (row->letter == 0) continue;
        *shorts++ = row->letter;
        if (kind == required_argument) *shorts++ = ':';
    }
    *shorts = '\0';
}

/* What getopt_long has made of a word. */
static onv_cli_verdict take(onv_cli *cli, int code, char **argv, const char *shorts,
                            const onv_cli_row **last)
{
    if (code == NO_OPTION) {
        const onv_cli_row *after = *last;
        *last = NULL;
        return add_model(cli, optarg, after);
    }
    if (code == ':') {
        const onv_cli_row *row = &onv_cli_rows[row_of(optopt)];
        return onv_cli_reject("option '%s' needs a value: --%s %s", argv[optind - 1], row->name,
                              row->arg);
    }
    if (code == '?' && optopt > 0 && optopt < FIRST_LONG && strchr(shorts, optopt) == NULL)
        return onv_cli_reject("there is no option '-%c'", optopt);
    if (code == '?') return refuse(argv[optind - 1]);
    const char *word = argv[optarg != NULL && optarg == argv[optind - 1] ? optind - 2 : optind - 1];
    if (is_prefix(word)) return refuse(word);
    size_t row = row_of(code);
    cli->given[row] = true;
    *last = &onv_cli_rows[row];
    return apply(cli, *last, optarg);
}

/* What the command brings along. */
static onv_cli_verdict bring(onv_cli *cli)
{
    for (size_t i = 0; cli->command->brings[i][0] != NULL; i++) {
        const onv_cli_row *row = onv_cli_row_named(cli->command->brings[i][0]);
        size_t place = (size_t)(row - onv_cli_rows);
        if (cli->given[place]) continue;
        cli->given[place] = cli->brought[place] = true;
        if (apply(cli, row, cli->command->brings[i][1]) != ONV_CLI_RUN) return ONV_CLI_USAGE;
    }
    return ONV_CLI_RUN;
}

/* argv[0] is the command's name, or the program's. */
static onv_cli_verdict parse(onv_cli *cli, int argc, char **argv)
{
    struct option longs[MOST_NAMES + 1] = {{0}};
    char shorts[2 * ONV_CLI_MAX_ROWS + 3];
    list_options(longs, shorts);
    const onv_cli_row *last = NULL; /* whose value has just been read */
    cli->is_diff = cli->command->check == onv_cli_check_diff;
    cli->is_compare = cli->command->check == onv_cli_check_compare;
    opterr = 0;
    optind = 1;
    for (int code; (code = getopt_long(argc, argv, shorts, longs, NULL)) != -1;) {
        onv_cli_verdict verdict = take(cli, code, argv, shorts, &last);
        if (verdict != ONV_CLI_RUN) return verdict;
    }
    for (int i = optind; i < argc; i++)
        if (onv_cli_add_model(cli, argv[i]) != ONV_CLI_RUN) return ONV_CLI_USAGE;
    if (bring(cli) != ONV_CLI_RUN) return ONV_CLI_USAGE;
    return onv_cli_check(cli);
}

void onv_cli_fit_terminal(onv_cli *cli)
{
    bool terminal = isatty(STDOUT_FILENO);
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    bool colorless =
        (no_color != NULL && no_color[0] != '\0') || (term != NULL && strcmp(term, "dumb") == 0);
    cli->report.color =
        cli->color == ONV_COLOR_ALWAYS || (cli->color == ONV_COLOR_AUTO && terminal && !colorless);
    cli->report.unicode = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    struct winsize size;
    if (terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        cli->report.width = size.ws_col < 120 ? size.ws_col : 120;
}

/* For pages, which are the same however many models are analysed at once. */
static void keep_words(onv_cli *cli, int argc, char *const *argv)
{
    size_t n = 0;
    cli->words[n++] = cli->command->name;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--jobs") == 0)
            i++;
        else if (strncmp(argv[i], "--jobs=", strlen("--jobs=")) != 0)
            cli->words[n++] = argv[i];
    }
    cli->report.command = cli->words;
    cli->report.n_command = n;
}

/* The arrays of onv_cli that grow with the command line, and what an element of them takes. */
static const struct {
    size_t at, bytes;
} lists[] = {
#define LIST_OF(field)                                                                             \
    {                                                                                              \
        offsetof(onv_cli, field), sizeof *((onv_cli *)0)->field                                    \
    }
    LIST_OF(words),      LIST_OF(models),  LIST_OF(instances),    LIST_OF(dims),
    LIST_OF(dims_found), LIST_OF(shapes),  LIST_OF(input_values), LIST_OF(freeze),
    LIST_OF(train_only), LIST_OF(inplace), LIST_OF(ort),          LIST_OF(failed),
#undef LIST_OF
};

/* No list is longer than the command line. */
static bool make_lists(onv_cli *cli, size_t most)
{
    bool good = true;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        void *list = calloc(most, lists[i].bytes);
        memcpy((char *)cli + lists[i].at, &list, sizeof list);
        good = good && list != NULL;
    }
    cli->failures.at = cli->failed;
    return good;
}

static void free_lists(const onv_cli *cli)
{
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        void *list;
        memcpy(&list, (const char *)cli + lists[i].at, sizeof list);
        free(list);
    }
}

onv_cli_verdict onv_cli_parse(onv_cli *cli, const onv_cli_command *command, int argc, char **argv)
{
    *cli = (onv_cli){.command = command};
    cli->analysis = onv_options_default();
    cli->limits = onv_limits_default();
    cli->analysis.limits = &cli->limits;
    cli->report = onv_report_options_default();
    cli->report.failed = &cli->failures;
    onv_cli_verdict verdict;
    if (!make_lists(cli, (size_t)argc + 1)) {
        verdict = onv_cli_reject("out of memory");
    } else {
        keep_words(cli, argc, argv);
        verdict = parse(cli, argc, argv);
    }
    cli->analysis.budgets = cli->budgets;
    cli->analysis.dims = cli->dims;
    if (cli->n_models > 1) cli->analysis.dims_found = cli->dims_found;
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
    free(cli->page);
    onv_cli_drop_input(&cli->input);
    free_lists(cli);
}
