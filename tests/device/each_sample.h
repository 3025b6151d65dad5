/* Replays of all samples. Their sizes are those of the truth files (tests/truth), the smallest of
 * each sample: NAME.batch1_sequence16.truth.json. */
#ifndef ONV_TESTS_EACH_SAMPLE_H
#define ONV_TESTS_EACH_SAMPLE_H

#include "device/replay.h"

typedef enum each_what {
    EACH_RUNTIME,  /* inference, as every runtime does it */
    EACH_TRAINING, /* training with momentum, without checkpoints and with two plans, in each mode */
} each_what;

typedef void (*each_use)(const onv_replay *replay, const char *file, void *context);

/* Calls `use` for every replay of every sample. Unless ONV_ALL_REPLAYS is set in the environment,
 * large samples are tried less: of one whose weights have more than `most` bytes a single replay is
 * used, another one with each sample, and one of more than `limit` bytes is left out. Returns the
 * number of samples. */
int each_sample(each_what what, uint64_t most, uint64_t limit, each_use use, void *context);

#endif
