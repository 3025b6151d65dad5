/* Models and tables from standard input, which is written "-". */
#ifndef ONV_CLI_INPUT_H
#define ONV_CLI_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ONV_CLI_INPUT "-"

typedef struct onv_cli_input {
    unsigned char *data;
    size_t bytes;
} onv_cli_input;

bool onv_cli_is_input(const char *path);

/* Reads all of it, up to `most_bytes` (0: 4 GiB). False with a message. */
bool onv_cli_read_input(onv_cli_input *input, uint64_t most_bytes);
void onv_cli_drop_input(onv_cli_input *input);

/* A path under which it can be opened, where `path` is "-"; any other path is itself. Where it is read more
 * than once, a copy in memory: NULL with a message where that could not be made. */
const char *onv_cli_input_path(const char *path, bool more_than_once);

#endif
