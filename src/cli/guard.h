/* Files that change under the program, and files that must not outlive it.
 *
 * Large files are mapped. Where one shrinks, or its disk fails, while it is read, the kernel sends
 * SIGBUS; the program then ends like after any other file that cannot be used: with one line on
 * standard error and EXIT_UNUSABLE.
 */
#ifndef ONV_CLI_GUARD_H
#define ONV_CLI_GUARD_H

#include <stdbool.h>

enum { ONV_CLI_MAX_TEMPORARIES = 16 }; /* at once */

/* mkstemp, or the name for a file that has none (`unnamed`; -1: make one). Signals that end the program
 * remove the file, from its first moment to the call of onv_cli_release_temporary. The text stays the
 * caller's. -1: errno says why. */
int onv_cli_guarded_temporary(char *path, int unnamed);

/* Gives the file the name; false: errno says why. */
bool onv_cli_link(int unnamed, const char *path);
void onv_cli_release_temporary(const char *path);

/* In a process that was forked: the temporary files are those of the other one. */
void onv_cli_guard_own_process(void);

/* Until the next call, `path` is the file that is read. */
void onv_cli_guard(const char *path);

/* A replay holds memory of a device, which has to go back: from now on SIGINT, SIGTERM and SIGHUP only
 * raise a flag, which onv_cli_is_stopped tells (its argument is not looked at). */
void onv_cli_catch_stop(void);
bool onv_cli_is_stopped(void *unused);

/* The reader of an output has gone: nothing is said of it, and the program ends as if SIGPIPE had ended it. */
void onv_cli_note_closed_pipe(void);
bool onv_cli_is_pipe_closed(void);

/* Dies of the signal that came, if one did. */
void onv_cli_die_if_stopped(void);

#endif
