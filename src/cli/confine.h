/* What the process may still do while it looks at files of strangers. */
#ifndef ONV_CLI_CONFINE_H
#define ONV_CLI_CONFINE_H

#include "cli/options.h"

/* Limits on resources (setrlimit: for so many analyses at once, and so many kept) and files (Landlock: the models and
 * what the options name to be read, the folders of outputs to be written), of this thread and those that it starts from
 * then on. For good. What this kernel lacks is told on standard error; false where the rest could not be set up. */
bool onv_cli_confine_files(const onv_cli *cli, size_t jobs, size_t kept);

/* Likewise system calls, of all threads (seccomp: no processes, no network). */
bool onv_cli_confine_calls(void);

#endif
