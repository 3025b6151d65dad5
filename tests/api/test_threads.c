/* Different analyses run on different threads at once and say what they say alone: there is no state
 * between them. ThreadSanitizer sees more than the comparison does; see scripts/fuzz --threads. */
#include <pthread.h>

#include "onnxvram/onnxvram.h"
#include "support/test.h"

enum { THREADS = 5, ROUNDS = 3 };

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

/* What a thread analyses, and how. */
typedef struct question {
    const char *path;
    const char *train, *replay;
} question;

#define SAMPLE(name) ONV_SOURCE_DIR "/samples/" name ".onnx"

static const question questions[THREADS] = {
    {.path = SAMPLE("resnet18")},
    {.path = SAMPLE("bert-dynamo")},
    {.path = SAMPLE("control-flow")},
    {.path = SAMPLE("resnet18"), .train = "adamw"},
    {.path = ONV_SOURCE_DIR "/tests/fuzz/corpus/models/residual.onnx", .replay = "host"},
};

/* All runtimes, plans and searches of one model, as JSON; of a replay what it does, for what it
 * measures may change. */
static text report(const question *q)
{
    text t = {0};
    onv_options options = onv_options_default();
    options.batch = 4;
    options.order = "greedy";
    options.budget = (uint64_t)1 << 34;
    options.train = q->train;
    options.checkpoint = q->train != NULL ? "all" : NULL;
    options.replay = q->replay;
    const onv_dim_binding sequence = {"sequence", 16};
    options.dims = &sequence;
    options.n_dims = strstr(q->path, "bert") != NULL;
    onv_analysis *analysis;
    if (onv_analysis_new(q->path, &options, &analysis, NULL) != ONV_OK) {
        t.failed = true;
        return t;
    }
    const onv_analysis *const all[] = {analysis};
    onv_format format = q->replay != NULL ? ONV_FORMAT_DUMP_REPLAY : ONV_FORMAT_JSON;
    t.failed = onv_report(all, 1, format, NULL, keep, &t, NULL) != ONV_OK;
    onv_analysis_destroy(analysis);
    return t;
}

typedef struct job {
    const question *question;
    const text *alone;
    bool differs;
} job;

static void *work(void *context)
{
    job *j = context;
    for (int i = 0; i < ROUNDS; i++) {
        text t = report(j->question);
        if (t.failed || t.size != j->alone->size || memcmp(t.at, j->alone->at, t.size) != 0)
            j->differs = true;
        free(t.at);
    }
    return NULL;
}

static void analyses_do_not_disturb_each_other(void **state)
{
    text alone[THREADS];
    job jobs[THREADS];
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        alone[i] = report(&questions[i]);
        assert_false(alone[i].failed);
        jobs[i] = (job){&questions[i], &alone[i], false};
    }
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &jobs[i]), 0);
    for (size_t i = 0; i < THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (size_t i = 0; i < THREADS; i++) {
        if (jobs[i].differs)
            fail_msg("%s: another report beside other threads", jobs[i].question->path);
        free(alone[i].at);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(analyses_do_not_disturb_each_other)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
