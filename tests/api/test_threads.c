/* Different analyses run on different threads at once and say what they say alone: there is no state
 * between them. ThreadSanitizer sees more than the comparison does; see scripts/fuzz --threads. */
#include <pthread.h>

#include "onnxvram/onnxvram.h"
#include "support/capture.h"
#include "support/test.h"

enum { THREADS = 5, ROUNDS = 3 };

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
 * measures may change. Empty: it failed. */
static capture report(const question *q)
{
    capture t = {0};
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
    if (onv_analysis_new(q->path, &options, &analysis, NULL) != ONV_OK) return t;
    const onv_analysis *const all[] = {analysis};
    onv_format format = q->replay != NULL ? ONV_FORMAT_DUMP_REPLAY : ONV_FORMAT_JSON;
    if (onv_report(all, 1, format, NULL, capture_write, &t, NULL) != ONV_OK) t.length = 0;
    onv_analysis_destroy(analysis);
    return t;
}

typedef struct job {
    const question *question;
    const capture *alone;
    bool differs;
} job;

static void *work(void *context)
{
    job *j = context;
    for (int i = 0; i < ROUNDS; i++) {
        OWNED_CAPTURE t = report(j->question);
        j->differs |= t.length != j->alone->length || memcmp(t.text, j->alone->text, t.length) != 0;
    }
    return NULL;
}

TEST(analyses_do_not_disturb_each_other)
{
    capture alone[THREADS];
    job jobs[THREADS];
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        alone[i] = report(&questions[i]);
        assert_true(alone[i].length > 0);
        jobs[i] = (job){&questions[i], &alone[i], false};
    }
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &jobs[i]), 0);
    for (size_t i = 0; i < THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (size_t i = 0; i < THREADS; i++) {
        if (jobs[i].differs)
            fail_msg("%s: another report beside other threads", jobs[i].question->path);
        capture_free(&alone[i]);
    }
}
