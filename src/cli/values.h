/* The values of options: each of these reads its text into the command line, or says what is wrong with it. */
#ifndef ONV_CLI_VALUES_H
#define ONV_CLI_VALUES_H

#include "cli/message.h"
#include "cli/options.h"
#include "cli/table.h"

/* Writes the message and gives the verdict that goes with it. */
#define onv_cli_reject(...) (onv_cli_usage(__VA_ARGS__), ONV_CLI_USAGE)

/* A number of decimal digits, and what follows it. */
bool onv_cli_parse_count(const char *text, int64_t *value, const char **end);

/* A path, or PATH*N where no file has that very name. */
onv_cli_verdict onv_cli_add_model(onv_cli *cli, const char *text);

/* One of these writes to a file; "-" or NULL: standard output. */
onv_cli_verdict onv_cli_add_output(onv_cli *cli, onv_format format, const char *file);

/* Reads the text into the row's field: `into` is an onv_cli, or an onv_cli_tool. */
onv_cli_verdict onv_cli_set(void *into, const onv_cli_row *row, const char *text);

/* For the table: NULL where an optional value was left out. */
typedef onv_cli_verdict onv_cli_reader(onv_cli *cli, const char *text);
onv_cli_reader onv_cli_add_dim, onv_cli_add_shape, onv_cli_add_profile, onv_cli_add_input_value,
    onv_cli_set_batch, onv_cli_set_limit, onv_cli_set_budget, onv_cli_set_gpu, onv_cli_list_gpus,
    onv_cli_set_max_growth, onv_cli_set_plan_out, onv_cli_say_version, onv_cli_say_help;

/* The name of a GPU as a word of a command line: without spaces. */
const char *onv_cli_gpu_word(const char *name, char room[static 64]);

#endif
