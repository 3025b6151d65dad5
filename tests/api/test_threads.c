/* Different analyses run on different threads at once and say what they say alone: there is no state
 * between them. ThreadSanitizer sees more than the comparison does; see scripts/fuzz --threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "onnxvram/onnxvram.h"

enum { THREADS = 4, ROUNDS = 3 };

typedef struct text {
    char *at;
    size_t size;
    bool failed;
} text;

static bool keep(void *context, const char *data, size_t bytes)
{
    text *t = context;
    char *grown = realloc(t->at, t->size + bytes + 1);
    if (grown == NULL) return false;
    memcpy(grown + t->size, data, bytes);
    t->at = grown;
    t->size += bytes;
    return true;
}

static const char *const models[THREADS] = {
    ONV_SOURCE_DIR "/samples/resnet18.onnx",
    ONV_SOURCE_DIR "/samples/bert-dynamo.onnx",
    ONV_SOURCE_DIR "/samples/control-flow.onnx",
    ONV_SOURCE_DIR "/samples/resnet18.onnx",
};

/* All runtimes, plans and searches of one model, as JSON. */
static text report(const char *path)
{
    text t = {0};
    onv_options options = onv_options_default();
    options.batch = 4;
    options.order = "greedy";
    options.budget = (uint64_t)1 << 34;
    const onv_dim_binding sequence = {"sequence", 16};
    options.dims = &sequence;
    options.n_dims = strstr(path, "bert") != NULL;
    onv_analysis *analysis;
    if (onv_analysis_new(path, &options, &analysis, NULL) != ONV_OK) {
        t.failed = true;
        return t;
    }
    const onv_analysis *const all[] = {analysis};
    t.failed = onv_report(all, 1, ONV_FORMAT_JSON, NULL, keep, &t, NULL) != ONV_OK;
    onv_analysis_destroy(analysis);
    return t;
}

typedef struct job {
    const char *path;
    const text *alone;
    bool differs;
} job;

static void *work(void *context)
{
    job *j = context;
    for (int i = 0; i < ROUNDS; i++) {
        text t = report(j->path);
        if (t.failed || t.size != j->alone->size || memcmp(t.at, j->alone->at, t.size) != 0)
            j->differs = true;
        free(t.at);
    }
    return NULL;
}

static void analyses_do_not_disturb_each_other(void **state)
{
    (void)state;
    text alone[THREADS];
    job jobs[THREADS];
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        alone[i] = report(models[i]);
        assert_false(alone[i].failed);
        jobs[i] = (job){models[i], &alone[i], false};
    }
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &jobs[i]), 0);
    for (size_t i = 0; i < THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (size_t i = 0; i < THREADS; i++) {
        if (jobs[i].differs) fail_msg("%s: another report beside other threads", jobs[i].path);
        free(alone[i].at);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(analyses_do_not_disturb_each_other)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
