/* Every sample, as every runtime holds it, on host memory: what is held is what was predicted, to
 * the byte, and every buffer keeps what was written to it. */
#include "device/each_sample.h"
#include "support/alike.h"
#include "support/held.h"
#include "support/test.h"

static void try_one(const onv_replay *replay, const char *file, void *context)
{
    onv_error err = {0};
    uint64_t n_buffers = 0;
    for (size_t i = 0; i < replay->timeline.buffers.count; i++)
        n_buffers += onv_buffer_has_content(&replay->timeline, &replay->timeline.buffers.at[i]);
    if (placement_check(&replay->placement, &replay->timeline, &err) != ONV_OK)
        fail_msg("%s %s: %s", file, replay->runtime, err.message);
    onv_replay_result r;
    if (onv_replay_run(replay, context, NULL, &r, &err) != ONV_OK)
        fail_msg("%s %s: %s", file, replay->runtime, err.message);
    if (!r.agrees) fail_msg("%s %s: %s", file, replay->runtime, r.faults[0].text);
    assert_int_equal(r.predicted_bytes, r.measured_bytes);
    assert_int_equal(r.predicted_live_bytes, r.measured_live_bytes);
    assert_int_equal(r.checked_buffers, n_buffers);
    assert_int_equal(r.device_free.before, r.device_free.after);
    assert_int_equal(r.foreign_bytes, 0);
    assert_memory_equal(r.predicted_held_at, r.measured_held_at, r.n_steps * sizeof(uint64_t));
    assert_memory_equal(r.predicted_live_at, r.measured_live_at, r.n_steps * sizeof(uint64_t));
    if (r.has_pool) assert_int_equal(r.pool.used_peak_bytes, r.predicted_bytes);
    onv_replay_result_cleanup(&r);
}

/* Larger samples are the same code on more bytes; all of them: ONV_ALL_REPLAYS=1. */
enum { MOST_MIB = 60 / OF_ALIKE + 20, ALL_MODES_MIB = 20 / OF_ALIKE + 4 };

static void try_all(each_what what, const char *kind, uint64_t most_mib, uint64_t limit_mib,
                    int least)
{
    onv_error err = {0};
    onv_device device;
    if (onv_device_open(&device, onv_device_kind_find(kind), 0, &err) != ONV_OK)
        fail_msg("%s", err.message);
    int samples = each_sample(what, most_mib << 20, limit_mib << 20, try_one, &device);
    if (samples < least) fail_msg("only %d samples were replayed", samples);
    onv_device_close(&device);
}

TEST(inference_holds_what_was_predicted)
{
    try_all(EACH_RUNTIME, "host", ALL_MODES_MIB, MOST_MIB, 12);
}

TEST(training_holds_what_was_predicted)
{
    try_all(EACH_TRAINING, "host", 14, MOST_MIB / 2, 8);
}

/* The driver's way: with copies instead of plain memory, and the driver's own counts. */
TEST(a_driver_shows_the_same)
{
    setenv("ONNXVRAM_CUDA_DRIVER", ONV_BUILD_DIR "/tests/libonnxvram_fake_cuda.so", 1);
    try_all(EACH_RUNTIME, "cuda", 14, MOST_MIB / 2, 8);
    try_all(EACH_TRAINING, "cuda", 6, 32, 10);
}
