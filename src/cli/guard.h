/* Files that change under the program.
 *
 * Large files are mapped. Where one shrinks, or its disk fails, while it is read, the kernel sends
 * SIGBUS; the program then ends like after any other file that cannot be used: with one line on
 * standard error and EXIT_UNUSABLE.
 */
#ifndef ONV_CLI_GUARD_H
#define ONV_CLI_GUARD_H

#include <stdbool.h>

/* Signals that end the program remove the file at `path`, which is being written, until the next
 * call; NULL: none. The text stays the caller's. */
void onv_cli_guard_temporary(const char *path);

/* Until the next call, `path` is the file that is read. */
void onv_cli_guard(const char *path);

/* A replay holds memory of a device, which has to go back: from now on SIGINT, SIGTERM and SIGHUP only
 * raise a flag, which onv_cli_is_stopped tells (its argument is not looked at). */
void onv_cli_catch_stop(void);
bool onv_cli_is_stopped(void *unused);

/* Dies of the signal that came, if one did. */
void onv_cli_die_if_stopped(void);

#endif
