/* The two callbacks of a long call: it is told what it works on, and asked to end, replays included. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "onnxvram/onnxvram.h"

#define SAMPLE ONV_SOURCE_DIR "/samples/mobilenet_v3_small.onnx"

typedef struct asked {
    size_t calls, most; /* the call after `most` ends it */
} asked;

static bool ask(void *context)
{
    asked *a = context;
    return a->calls++ >= a->most;
}

static onv_status run(asked *a, const char *replay, onv_error *error)
{
    onv_options options = onv_options_default();
    onv_analysis *analysis = NULL;
    options.batch = 1;
    options.runtimes = "ideal,arena";
    options.replay = replay;
    options.cancelled = ask;
    options.cancel_context = a;
    onv_status status = onv_analysis_new(SAMPLE, &options, &analysis, error);
    assert_int_equal(analysis == NULL, status != ONV_OK);
    onv_analysis_destroy(analysis);
    return status;
}

static void a_replay_asks_the_same_callback(void **state)
{
    (void)state;
    onv_error error = {0};
    asked without = {.most = SIZE_MAX}, with = {.most = SIZE_MAX};
    assert_int_equal(run(&without, NULL, &error), ONV_OK);
    assert_int_equal(run(&with, "host", &error), ONV_OK);
    assert_true(with.calls > without.calls + 10);
    asked ends = {.most = (without.calls + with.calls) / 2};
    assert_int_equal(run(&ends, "host", &error), ONV_ERR_CANCELLED);
    assert_int_equal(error.code, ONV_ERR_CANCELLED);
    assert_true(error.message[0] != '\0');
    assert_int_equal(ends.calls, ends.most + 1);
}

static void hear(void *context, const char *stage)
{
    if (strstr(stage, "replay") != NULL) *(bool *)context = true;
}

static void a_replay_is_told(void **state)
{
    (void)state;
    onv_error error = {0};
    onv_options options = onv_options_default();
    onv_analysis *analysis;
    bool heard = false;
    options.batch = 1;
    options.runtimes = "arena";
    options.progress = hear;
    options.progress_context = &heard;
    assert_int_equal(onv_analysis_new(SAMPLE, &options, &analysis, &error), ONV_OK);
    onv_analysis_destroy(analysis);
    assert_false(heard);
    options.replay = "host";
    assert_int_equal(onv_analysis_new(SAMPLE, &options, &analysis, &error), ONV_OK);
    onv_analysis_destroy(analysis);
    assert_true(heard);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_replay_asks_the_same_callback),
        cmocka_unit_test(a_replay_is_told),
    };
    return cmocka_run_group_tests_name("watch", tests, NULL, NULL);
}
