/* What a process may still do while it looks at untrusted files. For good; what this kernel lacks is reported on standard
 * error, and false is returned with a message where the rest cannot be set up. */
#ifndef ONV_CLI_CONFINE_H
#define ONV_CLI_CONFINE_H

#include "cli/options.h"

/* This process, and those that it starts: files (Landlock: the models and what the options name may be read, the
 * folders of outputs written). */
bool onv_cli_confine_files(const onv_cli *cli);

/* The process that analyses `count` models from `first`: it may read them and what the options name, and write the files
 * that are open (Landlock); limits on its memory and processor time (setrlimit); no other processes, no network
 * (seccomp). */
bool onv_cli_confine(const onv_cli *cli, size_t first, size_t count);

/* How long such a process may take, in seconds of a processor and of the clock: its analyses and reports have the limit
 * `seconds` each, and this is for their mistakes. */
uint64_t onv_cli_confined_seconds(const onv_cli *cli, size_t count);

#endif
