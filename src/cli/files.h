/* The files of a command: those that it reads, and those that it writes. */
#ifndef ONV_CLI_FILES_H
#define ONV_CLI_FILES_H

#include "cli/options.h"

/* Calls `each` with the files that options name to be read, and those of `count` models from `first`, until it says
 * false; false then. Files that a model names are not among them. */
bool onv_cli_each_input(const onv_cli *cli, size_t first, size_t count,
                        bool (*each)(void *context, const char *file), void *context);

/* Whether no output is a file that is read, or that another output is, by any name. False with a message. */
bool onv_cli_spares_inputs(const onv_cli *cli);

/* The same for one output of one input. */
bool onv_cli_spares_input(const char *output, const char *input);

/* The same for the files that the model was read from, once it is known which. */
bool onv_cli_spares_weights(const onv_analysis *analysis, const char *output);

/* --- Where a model may be written: names of the files with its weights are relative to its folder --- */

/* Whether `file` may hold the model at `model` once more. False with a message. */
bool onv_cli_is_beside_weights(const onv_analysis *analysis, const char *model, const char *file);

#endif
