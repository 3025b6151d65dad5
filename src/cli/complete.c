/* What a word of a command line may become. The scripts of shells ask for it, so that they have no tables of their own. */
#include <string.h>

#include "cli/commands.h"
#include "cli/values.h"

/* One candidate: what the word has already, what follows, and what it means. */
static void offer(const char *word, size_t kept, const char *name, const char *about)
{
    const char *begun = word + kept;
    if (strncmp(name, begun, strlen(begun)) != 0) return;
    printf("%.*s%s\t%s\n", (int)kept, word, name, about);
}

/* The value of an option, from `kept` on; of a list the part behind the last comma. */
static void offer_values(const char *word, size_t kept, const onv_cli_row *row)
{
    const char *comma = strrchr(word + kept, ',');
    if (comma != NULL) kept = (size_t)(comma + 1 - word);
    onv_cli_item item;
    for (size_t i = 0; onv_cli_item_at(row, i, &item); i++)
        offer(word, kept, item.name, item.about);
}

static void offer_options(const char *word, const onv_cli_command *command)
{
    const onv_cli_row *row;
    for (size_t i = 0; (row = onv_cli_row_at(command, i)) != NULL; i++) {
        char text[64];
        snprintf(text, sizeof text, "--%s", row->name);
        offer(word, 0, text, row->help);
    }
}

/* The option of a word "--name=…" or "-x", and where its value begins; NULL: it is none. */
static const onv_cli_row *option_of(const onv_cli_command *command, const char *word, size_t *value)
{
    char name[64];
    const onv_cli_row *row;
    if (word[0] == '-' && word[1] != '-' && word[1] != '\0' && word[2] == '\0')
        for (size_t i = 0; (row = onv_cli_row_at(command, i)) != NULL; i++)
            if (row->letter == word[1]) return row;
    if (strncmp(word, "--", 2) != 0 || strlen(word) >= sizeof name) return NULL;
    size_t length = strcspn(word + 2, "=");
    memcpy(name, word + 2, length);
    name[length] = '\0';
    *value = 2 + length + (word[2 + length] == '=');
    return onv_cli_row_named(command, name);
}

static void offer_commands(const char *word)
{
    for (size_t i = 0; i < onv_cli_n_commands; i++)
        if (!onv_cli_commands[i].is_other)
            offer(word, 0, onv_cli_commands[i].name, onv_cli_commands[i].summary);
}

static void offer_topics(const char *word)
{
    offer_commands(word);
    for (size_t i = 0; i < onv_cli_n_rows; i++)
        if (onv_cli_rows[i].topic != NULL)
            offer(word, 0, onv_cli_rows[i].topic, onv_cli_heading(&onv_cli_rows[i]));
    offer(word, 0, "status", "");
    offer(word, 0, "all", "");
}

int onv_cli_run_complete(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[argc - 1] : "", *before = argc > 2 ? argv[argc - 2] : "";
    const onv_cli_command *command = argc > 2 ? onv_cli_command_named(argv[1]) : NULL;
    size_t value = 0;
    if (argc <= 2) offer_commands(word);
    if (command == NULL) command = &onv_cli_commands[0];
    const onv_cli_row *row = option_of(command, before, &value);
    if (command->run == onv_cli_run_help)
        offer_topics(word);
    else if (row != NULL && onv_cli_takes_value(row) && strchr(before, '=') == NULL)
        offer_values(word, 0, row);
    else if ((row = option_of(command, word, &value)) != NULL && word[value - 1] == '=')
        offer_values(word, value, row);
    else if (word[0] == '-')
        offer_options(word, command);
    return onv_cli_answered();
}
