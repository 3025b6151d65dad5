/* What the process may still do while it looks at files of strangers. */
#ifndef ONV_CLI_CONFINE_H
#define ONV_CLI_CONFINE_H

#include "cli/options.h"

/* Limits on resources (setrlimit), files (Landlock: the models and what the options name to be read,
 * the folders of outputs to be written), and system calls (seccomp: no processes, no network). For
 * good. What this kernel lacks is told on standard error; false where the rest could not be set up. */
bool onv_cli_confine(const onv_cli *cli);

#endif
