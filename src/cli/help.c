/* Help: of the program in a screen, of a command, of a topic (a group of options, or a list of names), of an option, or
 * all of it. */
#include <string.h>

#include "cli/commands.h"
#include "cli/values.h"

enum { WIDTH = 80, LEFT = 30 };

/* From a column on, in lines of WIDTH; words are not cut. */
static void print_wrapped(const char *text, size_t at, size_t column)
{
    while (*text != '\0') {
        size_t length = strcspn(text, " ");
        if (at > column && at + 1 + length > WIDTH) {
            printf("\n%*s", (int)column, "");
            at = column;
        }
        at += (size_t)printf("%s%.*s", at > column ? " " : "", (int)length, text);
        text += length + (text[length] == ' ');
    }
    printf("\n");
}

/* A name and what it is about, in two columns; what does not fit the first one gets a line of its own. */
static void print_pair(const char *name, const char *about, size_t column)
{
    size_t length = strlen(name);
    if (length + 4 > column)
        printf("  %s\n%*s", name, (int)column, "");
    else
        printf("  %-*s", (int)column - 2, name);
    print_wrapped(about, column, column);
}

/* What the value of an option is chosen from: names alone in lines, or a line each with what it is about. */
static void print_list(const onv_cli_row *row)
{
    enum { MOST_LEFT = LEFT + 12 };
    onv_cli_item item;
    char names[1024] = "";
    size_t longest = 0, used = 0;
    bool says = false;
    for (size_t i = 0; onv_cli_item_at(row, i, &item); i++) {
        size_t length = strlen(item.name) + (item.argument != NULL ? strlen(item.argument) : 0);
        if (length > longest) longest = length;
        says |= item.about[0] != '\0';
        if (used < sizeof names)
            used += (size_t)snprintf(names + used, sizeof names - used, " %s", item.name);
    }
    if (longest == 0) return;
    printf("\n--%s:\n", row->name);
    if (!says) printf("  ");
    if (!says) print_wrapped(names + 1, 2, 2);
    for (size_t i = 0; says && onv_cli_item_at(row, i, &item); i++) {
        char shown[128];
        snprintf(shown, sizeof shown, "%s%s", item.name,
                 item.argument != NULL ? item.argument : "");
        print_pair(shown, item.about, longest + 4 < MOST_LEFT ? longest + 4 : MOST_LEFT);
    }
}

/* --- Options ----------------------------------------------------------------------------------- */

static void print_row(const onv_cli_row *row)
{
    char left[64];
    const char *arg = row->arg != NULL ? row->arg : "";
    const char *gap = onv_cli_takes_value(row) ? " " : "";
    if (row->letter != 0)
        snprintf(left, sizeof left, "-%c, --%s%s%s", row->letter, row->name, gap, arg);
    else
        snprintf(left, sizeof left, "    --%s%s%s", row->name, gap, arg);
    print_pair(left, row->help, LEFT + 2);
}

/* The group that begins with a row, and the lists of its options: GPUs have a command for theirs. */
static void print_group(size_t first)
{
    size_t end = first + 1;
    while (end < onv_cli_n_rows && onv_cli_rows[end].topic == NULL) end++;
    printf("%s:\n", onv_cli_heading(&onv_cli_rows[first]));
    for (size_t i = first; i < end; i++) print_row(&onv_cli_rows[i]);
    for (size_t i = first; i < end; i++)
        if (onv_cli_rows[i].list != ONV_LIST_GPUS && onv_cli_rows[i].list != ONV_LIST_NONE)
            print_list(&onv_cli_rows[i]);
}

/* --- Commands ---------------------------------------------------------------------------------- */

static void print_commands(void)
{
    for (size_t i = 0; i < onv_cli_n_commands; i++)
        if (!onv_cli_commands[i].is_other)
            print_pair(onv_cli_commands[i].name, onv_cli_commands[i].summary, 14);
}

static void print_topics(void)
{
    char text[256] = "";
    size_t used = 0;
    for (size_t i = 0; i < onv_cli_n_rows && used < sizeof text; i++)
        if (onv_cli_rows[i].topic != NULL)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s ", onv_cli_rows[i].topic);
    snprintf(text + used, used < sizeof text ? sizeof text - used : 0, "status");
    printf("  ");
    print_wrapped(text, 2, 2);
}

static void print_overview(void)
{
    puts("Usage: onnxvram [COMMAND] [OPTION...] MODEL.onnx...     (-: standard input)\n"
         "Says how much GPU memory an exported ONNX model needs, and why.\n"
         "Commands, each with --help:");
    print_commands();
    puts("\nonnxvram help all, or help and a command, an option (--batch) or a topic:");
    print_topics();
}

static void print_command(const onv_cli_command *command)
{
    printf("Usage: onnxvram %s [OPTION...] %s\n", command->name, command->arguments);
    print_wrapped(command->summary, 0, 0);
    for (size_t i = 0; command->brings[i][0] != NULL; i++) {
        const char *value = command->brings[i][1];
        printf("%s --%s%s%s", i == 0 ? "Has, unless given:" : "", command->brings[i][0],
               value != NULL ? " " : "", value != NULL ? value : "");
        if (command->brings[i + 1][0] == NULL) printf("\n");
    }
    bool has_table = onv_cli_has_table(command);
    printf("\nOptions%s:\n", has_table ? " (all: 'onnxvram help all')" : "");
    char name[64];
    for (size_t i = 0; onv_cli_word_at(command->options, i, name); i++)
        print_row(onv_cli_row_named(command, name));
    for (size_t i = 0; !has_table && onv_cli_word_at(command->options, i, name); i++)
        print_list(onv_cli_row_named(command, name));
    if (command->more != NULL) printf("\n%s\n", command->more);
}

/* --- Topics ------------------------------------------------------------------------------------ */

static void print_status(void)
{
    puts("Exit status:");
    static const char *const texts[] = {
        "done",
        "a model, a file or the device could not be used",
        "wrong usage",
        "the model does not fit the budget, or grew",
        "a replay or a measurement contradicts the prediction",
        "there are warnings: with --strict, where the status would be 0"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        print_pair((const char[2]){(char)('0' + i), '\0'}, texts[i], 6);
}

static void print_all(void)
{
    print_overview();
    for (size_t i = 0; i < onv_cli_n_rows; i++) {
        if (onv_cli_rows[i].topic == NULL) continue;
        printf("\n");
        print_group(i);
    }
    printf("\n");
    print_status();
}

static bool print_topic(const char *topic)
{
    const onv_cli_command *command = onv_cli_command_named(topic);
    const char *name = strncmp(topic, "--", 2) == 0 ? topic + 2 : topic;
    const onv_cli_row *row = onv_cli_row_named(&onv_cli_commands[0], name);
    if (strcmp(topic, "all") == 0) return print_all(), true;
    if (strcmp(topic, "status") == 0) return print_status(), true;
    if (command != NULL && name == topic) return print_command(command), true;
    for (size_t i = 0; i < onv_cli_n_rows && name == topic; i++) {
        if (onv_cli_rows[i].topic == NULL || strcmp(onv_cli_rows[i].topic, topic) != 0) continue;
        print_group(i);
        return true;
    }
    if (row == NULL) return false;
    print_row(row);
    print_list(row);
    return true;
}

/* The topic that a word is likely meant to be. */
static const char *nearest_topic(const char *word)
{
    const char *names[2 * ONV_CLI_MAX_ROWS + ONV_CLI_MAX_COMMANDS + 2] = {"all", "status"};
    size_t n = 2;
    for (size_t i = 0; i < onv_cli_n_commands; i++) names[n++] = onv_cli_commands[i].name;
    for (size_t i = 0; i < onv_cli_n_rows; i++) {
        if (onv_cli_rows[i].topic != NULL) names[n++] = onv_cli_rows[i].topic;
        names[n++] = onv_cli_rows[i].name;
    }
    names[n] = NULL;
    return onv_nearest_name(word, names);
}

bool onv_cli_help(const char *topic)
{
    if (topic == NULL) print_overview();
    if (topic == NULL || print_topic(topic)) return true;
    const char *near = nearest_topic(strncmp(topic, "--", 2) == 0 ? topic + 2 : topic);
    onv_cli_usage("help: expected a command, a topic or an option, found '%s'%s%s%s", topic,
                  near != NULL ? "; did you mean '" : "", near != NULL ? near : "",
                  near != NULL ? "'?" : "");
    return false;
}

int onv_cli_run_help(int argc, char **argv)
{
    if (argc > 2) return onv_cli_usage("help takes one topic, found '%s' too", argv[2]);
    bool asks_itself = argc > 1 && strcmp(argv[1], "--help") == 0;
    return onv_cli_help(argc > 1 && !asks_itself ? argv[1] : NULL) ? onv_cli_answered()
                                                                   : EXIT_USAGE;
}
