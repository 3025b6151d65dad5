/* Replays for tests. */
#ifndef ONV_TESTS_MAKE_REPLAY_H
#define ONV_TESTS_MAKE_REPLAY_H

#include "device/replay.h"
#include "support/flow.h"

/* Of that runtime's inference; the flow is in its order. */
onv_status make_replay(flow *f, const char *runtime, onv_replay *replay, onv_error *err);

/* Of buffers over that many steps, at planned offsets. */
void make_planned(const onv_buffer *buffers, size_t count, size_t n_steps, onv_replay *replay);

#endif
