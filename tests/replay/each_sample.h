/* Scripts of all samples. Their sizes are those of the truth files (tests/truth), the smallest of
 * each sample: NAME.batch1_sequence16.truth.json. */
#ifndef ONV_TESTS_EACH_SAMPLE_H
#define ONV_TESTS_EACH_SAMPLE_H

#include "replay/replay.h"

typedef enum each_what {
    EACH_RUNTIME, /* inference, as every runtime does it */
} each_what;

typedef void (*each_use)(const onv_script *script, const char *file, void *context);

/* Calls `use` for every script of every sample; returns the number of samples. */
int each_sample(each_what what, each_use use, void *context);

#endif
