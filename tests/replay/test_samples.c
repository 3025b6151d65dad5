/* Every sample, as every runtime holds it, on host memory: what is held is what was predicted, to
 * the byte, and every buffer keeps what was written to it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "replay/each_sample.h"

static void replay(const onv_script *script, const char *file, void *context)
{
    onv_error err = {0};
    onv_replay_result r;
    if (onv_replay_run(script, context, NULL, &r, &err) != ONV_OK)
        fail_msg("%s %s: %s", file, script->runtime, err.message);
    if (!r.agrees) fail_msg("%s %s: %s", file, script->runtime, r.faults[0].text);
    assert_int_equal(r.predicted_bytes, r.measured_bytes);
    assert_int_equal(r.predicted_live, r.measured_live);
    assert_int_equal(r.n_checked, script->buffers.count);
    assert_int_equal(r.free_before, r.free_after);
    assert_int_equal(r.foreign_bytes, 0);
    assert_memory_equal(r.predicted_held_at, r.measured_held_at, r.n_steps * sizeof(uint64_t));
    assert_memory_equal(r.predicted_live_at, r.measured_live_at, r.n_steps * sizeof(uint64_t));
    if (r.has_pool) assert_int_equal(r.pool_used, r.predicted_bytes);
    onv_replay_cleanup(&r);
}

static void inference_holds_what_was_predicted(void **state)
{
    (void)state;
    onv_error err = {0};
    onv_device device;
    if (onv_device_open(&device, onv_device_kind_find("host"), NULL, &err) != ONV_OK)
        fail_msg("%s", err.message);
    assert_true(each_sample(EACH_RUNTIME, replay, &device) >= 30);
    onv_device_close(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(inference_holds_what_was_predicted)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
