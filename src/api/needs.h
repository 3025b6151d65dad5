/* Options that would change nothing: what each needs beside it. One table for analyses and for the program, whose
 * names it has. Those that only say how a report looks are always taken, limits and work limits too: scripts pass
 * them along. */
#ifndef ONV_API_NEEDS_H
#define ONV_API_NEEDS_H

#include "onnxvram/options.h"

/* ONV_ERR_USAGE where an option that differs from its default needs what is not there. The struct is complete. */
onv_status onv_check_needs(const onv_options *options, onv_error *err);

#endif
