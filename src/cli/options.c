#include "cli/options.h"

#include <langinfo.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/table.h"
#include "cli/values.h"

/* --- What is wrong ----------------------------------------------------------------------------- */

/* The option that a word is likely meant to be. */
static const char *nearest_option(const onv_cli_command *command, const char *name)
{
    const char *names[ONV_CLI_MAX_ROWS + ONV_CLI_MAX_SPELLINGS + 1] = {NULL};
    const onv_cli_row *row;
    size_t n = 0;
    for (; (row = onv_cli_row_at(command, n)) != NULL; n++) names[n] = row->name;
    for (size_t i = 0; i < onv_cli_n_spellings && onv_cli_has_table(command); i++)
        names[n++] = onv_cli_spellings[i].other;
    return onv_nearest_name(name, names);
}

/* An option that is not one: it does not exist, or is the beginning of others, which would be another one as soon as
 * there are more. */
static onv_cli_verdict refuse(const onv_cli_command *command, const char *text, const char *name)
{
    char list[256] = "";
    size_t used = 0, n_like = 0;
    const onv_cli_row *row;
    const char *hint = onv_cli_has_table(command) ? onv_cli_hint(name) : NULL;
    const char *near = nearest_option(command, name);
    if (hint != NULL) return onv_cli_reject("there is no option '--%s': %s", name, hint);
    for (size_t i = 0; (row = onv_cli_row_at(command, i)) != NULL && used < sizeof list; i++)
        if (strncmp(row->name, name, strlen(name)) == 0)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s--%s",
                                     n_like++ > 0 ? ", " : "", row->name);
    if (n_like > 1)
        return onv_cli_reject("'%s' begins several options; write one of them out: %s", text, list);
    if (n_like > 0)
        return onv_cli_reject("'%s' is not a whole option; write it out: %s", text, list);
    if (near != NULL)
        return onv_cli_reject("there is no option '--%s', did you mean '--%s'?", name, near);
    if (onv_cli_row_named(&onv_cli_commands[0], name) != NULL)
        return onv_cli_reject("%s: '%s' is an option of an analysis, onnxvram MODEL.onnx: leave it "
                              "out",
                              command->name, text);
    return onv_cli_reject("there is no option '--%s'", name);
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
static onv_cli_verdict add_model(void *cli, const char *text, const onv_cli_row *after)
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

/* An option with its value; NULL where none follows. */
static onv_cli_verdict take(const onv_cli_reading *r, const onv_cli_row *row, const char *word,
                            const char *value)
{
    if (value == NULL && onv_cli_takes_value(row))
        return onv_cli_reject("option '%s' needs a value: --%s %s", word, row->name, row->arg);
    if (value != NULL && row->arg == NULL)
        return onv_cli_reject("--%s takes no value, and '%s' has one", row->name, word);
    if (row->read == onv_cli_say_help && value == NULL && r->command != &onv_cli_commands[0])
        value = r->command->name;
    if (r->given != NULL) r->given[row - onv_cli_rows] = true;
    return onv_cli_set(r->into, row, value);
}

static onv_cli_verdict take_long(const onv_cli_reading *r, char **argv, int *at,
                                 const onv_cli_row **last)
{
    char name[64];
    const char *word = argv[*at], *value = strchr(word, '=');
    size_t length = value != NULL ? (size_t)(value - word) - 2 : strlen(word) - 2;
    if (length >= sizeof name) return onv_cli_reject("option '%s' is unknown", word);
    memcpy(name, word + 2, length);
    name[length] = '\0';
    const onv_cli_row *row = onv_cli_row_named(r->command, name);
    if (row == NULL) return refuse(r->command, word, name);
    *last = row;
    if (value != NULL) return take(r, row, word, value + 1);
    if (onv_cli_takes_value(row)) ++*at;
    return take(r, row, word, onv_cli_takes_value(row) ? argv[*at] : NULL);
}

/* Letters of options; what follows one with a value is that, or the next word is. */
static onv_cli_verdict take_letters(const onv_cli_reading *r, char **argv, int *at,
                                    const onv_cli_row **last)
{
    const char *word = argv[*at];
    onv_cli_verdict verdict = ONV_CLI_RUN;
    for (const char *letter = word + 1; *letter != '\0' && verdict == ONV_CLI_RUN; letter++) {
        const onv_cli_row *row;
        for (size_t i = 0; (row = onv_cli_row_at(r->command, i)) != NULL; i++)
            if (row->letter == *letter) break;
        if (row == NULL) return onv_cli_reject("there is no option '-%c'", *letter);
        *last = row;
        if (!onv_cli_takes_value(row)) {
            verdict = take(r, row, word, NULL);
            continue;
        }
        return take(r, row, word, letter[1] != '\0' ? letter + 1 : argv[++*at]);
    }
    return verdict;
}

onv_cli_verdict onv_cli_read_words(const onv_cli_reading *r, int argc, char **argv)
{
    const onv_cli_row *last = NULL; /* whose value has just been read */
    bool has_options = true;
    for (int i = 1; i < argc; i++) {
        onv_cli_verdict verdict;
        bool is_option = has_options && argv[i][0] == '-' && argv[i][1] != '\0';
        if (is_option && strcmp(argv[i], "--") == 0) {
            has_options = false;
            last = NULL;
            continue;
        }
        if (is_option) {
            verdict = (argv[i][1] == '-' ? take_long : take_letters)(r, argv, &i, &last);
        } else {
            verdict = r->add(r->into, argv[i], last);
            last = NULL;
        }
        if (verdict != ONV_CLI_RUN) return verdict;
    }
    return ONV_CLI_RUN;
}

/* What the command brings along. */
static onv_cli_verdict bring(onv_cli *cli)
{
    for (size_t i = 0; cli->command->brings[i][0] != NULL; i++) {
        const onv_cli_row *row = onv_cli_row_named(cli->command, cli->command->brings[i][0]);
        size_t place = (size_t)(row - onv_cli_rows);
        if (cli->given[place]) continue;
        cli->given[place] = cli->brought[place] = true;
        if (onv_cli_set(cli, row, cli->command->brings[i][1]) != ONV_CLI_RUN) return ONV_CLI_USAGE;
    }
    return ONV_CLI_RUN;
}

/* argv[0] is the command's name, or the program's. */
static onv_cli_verdict parse(onv_cli *cli, int argc, char **argv)
{
    const onv_cli_reading reading = {cli->command, cli, add_model, cli->given};
    cli->is_diff = cli->command->check == onv_cli_check_diff;
    cli->is_compare = cli->command->check == onv_cli_check_compare;
    onv_cli_verdict verdict = onv_cli_read_words(&reading, argc, argv);
    if (verdict != ONV_CLI_RUN) return verdict;
    return bring(cli) == ONV_CLI_RUN ? onv_cli_check(cli) : ONV_CLI_USAGE;
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
    LIST_OF(profiles),
#undef LIST_OF
};

/* No list is longer than the command line. */
static bool make_lists(onv_cli *cli, size_t most)
{
    bool good = true;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        void *list = onv_cli_alloc(cli, most * lists[i].bytes);
        memcpy((char *)cli + lists[i].at, &list, sizeof list);
        good = good && list != NULL;
    }
    cli->failures.at = cli->failed;
    return good;
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
    if (cli->n_models > 1 || cli->triton != NULL) cli->analysis.dims_found = cli->dims_found;
    cli->analysis.shapes = cli->shapes;
    cli->analysis.input_values = cli->input_values;
    cli->analysis.freeze = cli->freeze;
    cli->analysis.train_only = cli->train_only;
    cli->analysis.inplace = cli->inplace;
    cli->analysis.ort = cli->ort;
    return verdict;
}

/* --- Memory ------------------------------------------------------------------------------------ */

struct onv_cli_kept {
    struct onv_cli_kept *next;
    max_align_t memory[];
};

void *onv_cli_alloc(onv_cli *cli, size_t bytes)
{
    struct onv_cli_kept *kept = calloc(1, sizeof *kept + bytes);
    if (kept == NULL) return NULL;
    kept->next = cli->kept;
    cli->kept = kept;
    return kept->memory;
}

char *onv_cli_copy(onv_cli *cli, const char *text, size_t length)
{
    char *copy = onv_cli_alloc(cli, length + 1);
    return copy != NULL ? memcpy(copy, text, length) : NULL;
}

void onv_cli_cleanup(onv_cli *cli)
{
    for (struct onv_cli_kept *kept = cli->kept, *next; kept != NULL; kept = next) {
        next = kept->next;
        free(kept);
    }
    onv_cli_drop_input(&cli->input);
}
