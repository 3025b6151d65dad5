/* The table of options: one row says how an option is written, how its value is read, and what it
 * needs to have an effect. Parsing, --help and the checks read it. */
#ifndef ONV_CLI_TABLE_H
#define ONV_CLI_TABLE_H

#include <string.h>

#include "cli/options.h"

/* What an option of the program alone needs (check.c); those of analyses are the library's (onv_option_missing). */
typedef enum onv_cli_needs {
    ONV_NEEDS_NOTHING_HERE,
    ONV_NEEDS_CHECKPOINTS,
    ONV_NEEDS_BASELINE, /* or a diff */
    ONV_NEEDS_PAGE,     /* the report for people */
} onv_cli_needs;

/* Lists of names with a line on each. */
typedef enum onv_cli_list {
    ONV_LIST_NONE,
    ONV_LIST_GPUS,
    ONV_LIST_LIMITS,
    ONV_LIST_PLANS,
    ONV_LIST_ALLOCATORS,
    ONV_LIST_NAMES, /* and onv_names: that list of the library */
} onv_cli_list;

/* What `offsets`, `simulate` and `attach` are given. */
typedef struct onv_cli_tool {
    const char *files[2];
    size_t n_files; /* that were given, which may be more */
    const char *output, *runtimes;
    uint64_t capacity, effort, alignment;
    bool summary, header, expandable_segments;
} onv_cli_tool;

/* What a value is, and the field that it goes into. */
typedef enum onv_cli_kind {
    ONV_CLI_TEXT,    /* const char *, or a list of them */
    ONV_CLI_COUNT,   /* unsigned: a number from `least` to `most`; so are the following two */
    ONV_CLI_PERCENT, /* with or without its sign */
    ONV_CLI_CHOICE,  /* `least` and the place in `words`; without a field the place alone counts */
    ONV_CLI_WIDE,    /* uint64_t: a number of at least 1 */
    ONV_CLI_POWER,   /* uint64_t: a power of two */
    ONV_CLI_SIZE,    /* uint64_t: a size above `least` */
    ONV_CLI_SHARE,   /* double: from 0 to 1 */
    ONV_CLI_PART,    /* double: from 0 to below 1 */
} onv_cli_kind;

typedef struct onv_cli_row {
    const char *name;
    const char *arg; /* as --help shows it: NULL: takes none; "[=...]": may be left out */
    const char *help;
    /* How it is read: by a function; else by its kind into the field of onv_cli at `at` (0: none). An option without a value
     * sets a flag, or `constant`. Text is appended to a list where `count` is not 0. */
    onv_cli_verdict (*read)(onv_cli *cli, const char *text);
    uint16_t at, count;
    uint16_t flag;   /* another field, which becomes true; 0: none */
    char letter;     /* 0: none */
    int8_t constant; /* of an option without a value; 0: it is a flag */
    uint8_t kind;    /* onv_cli_kind */
    uint8_t output;  /* 1 + the format that is written to the file */
    uint8_t needs;   /* onv_cli_needs */
    uint8_t list;    /* onv_cli_list: names that the value is chosen from */
    unsigned least, most;
    const char *words;         /* the same, a list with spaces */
    const onv_format *formats; /* of a choice: what the field becomes, in place of numbers */
    const onv_format *outputs; /* written to standard output; of a choice by its place */
    const char *takes;         /* what a value is, where a message refuses another one */
    const char *fallback;      /* for text that was left out */
    const char *like;          /* the option of analyses whose needs it has, too */
    /* Of help: it begins a group of options, with what follows its end above it. */
    const char *topic;
} onv_cli_row;

static inline const char *onv_cli_heading(const onv_cli_row *row)
{
    return row->topic + strlen(row->topic) + 1;
}

extern const onv_cli_row onv_cli_rows[];
extern const size_t onv_cli_n_rows;

bool onv_cli_takes_value(const onv_cli_row *row); /* one that may not be left out */
bool onv_cli_may_take_value(const onv_cli_row *row);

/* Something that the value of an option is chosen from. */
typedef struct onv_cli_item {
    char name[64];        /* as it is typed: a GPU is one word; "every=" where a value follows */
    const char *argument; /* what follows then: "K"; NULL: it is anything, or nothing */
    char about[256];      /* "" where there is nothing to say */
} onv_cli_item;

/* False behind the last one. */
bool onv_cli_item_at(const onv_cli_row *row, size_t index, onv_cli_item *item);

/* Another name of an option: other programs', or one that it had before. */
typedef struct onv_cli_spelling {
    const char *other, *name;
} onv_cli_spelling;

extern const onv_cli_spelling onv_cli_spellings[];
extern const size_t onv_cli_n_spellings;

struct onv_cli_command;

/* Whether a command takes the options of analyses; others have those of their list. */
bool onv_cli_has_table(const struct onv_cli_command *command);

/* The options of a command; NULL: there are no more. And the one that has this name; NULL: none has. */
const onv_cli_row *onv_cli_row_at(const struct onv_cli_command *command, size_t index);
const onv_cli_row *onv_cli_row_named(const struct onv_cli_command *command, const char *name);

/* Word `index` of a list with spaces. */
bool onv_cli_word_at(const char *words, size_t index, char word[static 64]);

/* What the words of a command are read into. */
typedef struct onv_cli_reading {
    const struct onv_cli_command *command;
    void *into; /* of the rows' places: an onv_cli, or an onv_cli_tool */
    /* A word that is not an option; `after`: the option before it, or NULL. */
    onv_cli_verdict (*add)(void *into, const char *word, const onv_cli_row *after);
    bool *given; /* by row of the table; NULL: not kept */
} onv_cli_reading;

/* argv[0] is the command's name. */
onv_cli_verdict onv_cli_read_words(const onv_cli_reading *reading, int argc, char **argv);

/* What does the work of an option of other programs or commands that this one does not have; NULL: nothing is known. */
const char *onv_cli_hint(const char *option);

#endif
