/* What the options say together. */
#ifndef ONV_CLI_CHECK_H
#define ONV_CLI_CHECK_H

#include "cli/options.h"

/* Refuses options that exclude or need each other, with a message; completes what follows from others: the
 * report where no other output is asked for, what --untrusted and diff bring with them. */
onv_cli_verdict onv_cli_check(onv_cli *cli);

#endif
