#include "cli/jobs.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "cli/guard.h"
#include "cli/progress.h"

enum { STACK_BYTES = 8 << 20 };

typedef struct slot {
    onv_cli_result result;
    bool is_done;
    bool *dims_found; /* of this model */
} slot;

struct onv_cli_jobs {
    const onv_cli *cli;
    const onv_cli_baseline *baseline;
    slot *slots; /* model i has slot i % n_slots */
    size_t n_slots;
    pthread_t *threads;
    size_t n_threads;
    atomic_bool stopping;
    pthread_mutex_t lock; /* of what follows, and of is_done */
    pthread_cond_t changed;
    size_t n_started, taken, given;
    bool may_begin;
};

static size_t count_cores(void)
{
#ifdef __linux__
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return n > 0 ? (size_t)n : 1;
#else
    return 1;
#endif
}

size_t onv_cli_n_jobs(const onv_cli *cli)
{
    /* A replay has the device to itself, and what a diff allows to grow is measured from the first model. */
    if (cli->analysis.replay != NULL || (cli->is_diff && cli->analysis.has_max_growth)) return 1;
    size_t n = cli->jobs > 0 ? cli->jobs : count_cores();
    return n < cli->n_models ? n : cli->n_models;
}

size_t onv_cli_n_waiting(const onv_cli *cli, bool kept)
{
    size_t n = 2 * onv_cli_n_jobs(cli);
    return kept || n > cli->n_models ? cli->n_models : n;
}

onv_status onv_cli_analyse(const onv_cli *cli, size_t model, const onv_options *options,
                           onv_analysis **result, onv_error *error)
{
    const char *path = cli->models[model];
    if (!onv_cli_is_input(path)) return onv_analysis_new(path, options, result, error);
    return onv_analysis_new_from_memory(cli->input.data, cli->input.bytes, path, options, result,
                                        error);
}

static bool is_stopping(void *jobs)
{
    return atomic_load(&((onv_cli_jobs *)jobs)->stopping);
}

static void work(onv_cli_jobs *jobs, size_t model)
{
    const onv_cli *cli = jobs->cli;
    slot *s = &jobs->slots[model % jobs->n_slots];
    onv_cli_result *r = &s->result;
    onv_options options = cli->analysis;
    onv_cli_figures figures = {0};
    *r = (onv_cli_result){.about = cli->models[model]};
    onv_cli_guard(cli->models[model]);
    if (jobs->n_threads > 0) {
        options.progress = NULL;
        options.cancelled = is_stopping;
        options.cancel_context = jobs;
    }
    if (options.dims_found != NULL) options.dims_found = s->dims_found;
    for (size_t i = 0; i < options.n_dims; i++) s->dims_found[i] = false;
    if (jobs->baseline != NULL) {
        options.baseline = &figures.baseline;
        r->ends = !onv_cli_baseline_of(jobs->baseline, cli->models[model], &figures, &r->error);
        if (r->ends) r->about = cli->baseline;
    }
    options.has_max_growth &= options.baseline != NULL; /* the first model of a diff has none */
    if (!r->ends) {
        onv_cli_analyse(cli, model, &options, &r->analysis, &r->error);
        r->ends = r->analysis == NULL && r->error.code == ONV_ERR_CANCELLED;
    }
    free(figures.bindings);
}

static void *run_thread(void *context)
{
    onv_cli_jobs *jobs = context;
    pthread_mutex_lock(&jobs->lock);
    jobs->n_started++;
    pthread_cond_broadcast(&jobs->changed);
    while (!atomic_load(&jobs->stopping) && jobs->taken < jobs->cli->n_models) {
        if (!jobs->may_begin || jobs->taken >= jobs->given + jobs->n_slots) {
            pthread_cond_wait(&jobs->changed, &jobs->lock);
            continue;
        }
        size_t model = jobs->taken++;
        pthread_mutex_unlock(&jobs->lock);
        work(jobs, model);
        pthread_mutex_lock(&jobs->lock);
        jobs->slots[model % jobs->n_slots].is_done = true;
        pthread_cond_broadcast(&jobs->changed);
    }
    pthread_mutex_unlock(&jobs->lock);
    return NULL;
}

/* Those that cannot be started are done without. */
static void start_threads(onv_cli_jobs *jobs, size_t n)
{
    pthread_attr_t how;
    if (pthread_attr_init(&how) != 0) return;
    pthread_attr_setstacksize(&how, STACK_BYTES);
    while (jobs->n_threads < n &&
           pthread_create(&jobs->threads[jobs->n_threads], &how, run_thread, jobs) == 0)
        jobs->n_threads++;
    pthread_attr_destroy(&how);
    /* What a thread does to begin is not among the system calls of a confined process. */
    pthread_mutex_lock(&jobs->lock);
    while (jobs->n_started < jobs->n_threads) pthread_cond_wait(&jobs->changed, &jobs->lock);
    pthread_mutex_unlock(&jobs->lock);
}

onv_cli_jobs *onv_cli_jobs_start(const onv_cli *cli, bool kept)
{
    size_t n = onv_cli_n_jobs(cli), n_slots = onv_cli_n_waiting(cli, kept);
    onv_cli_jobs *jobs = calloc(1, sizeof *jobs);
    bool good = jobs != NULL;
    if (good) {
        jobs->cli = cli;
        pthread_mutex_init(&jobs->lock, NULL);
        pthread_cond_init(&jobs->changed, NULL);
        jobs->slots = calloc(n_slots, sizeof *jobs->slots);
        jobs->threads = calloc(n, sizeof *jobs->threads);
        good = jobs->slots != NULL && jobs->threads != NULL;
    }
    for (; good && jobs->n_slots < n_slots; jobs->n_slots++) {
        bool **found = &jobs->slots[jobs->n_slots].dims_found;
        good = (*found = calloc(cli->analysis.n_dims + 1, sizeof **found)) != NULL;
    }
    if (good && n > 1) start_threads(jobs, n);
    if (good) return jobs;
    fputs("onnxvram: out of memory\n", stderr);
    onv_cli_jobs_stop(jobs);
    return NULL;
}

void onv_cli_jobs_begin(onv_cli_jobs *jobs, const onv_cli_baseline *baseline)
{
    pthread_mutex_lock(&jobs->lock);
    jobs->baseline = baseline;
    jobs->may_begin = true;
    pthread_cond_broadcast(&jobs->changed);
    pthread_mutex_unlock(&jobs->lock);
}

onv_cli_result onv_cli_jobs_next(onv_cli_jobs *jobs)
{
    const onv_cli *cli = jobs->cli;
    size_t model = jobs->given;
    slot *s = &jobs->slots[model % jobs->n_slots];
    onv_cli_progress_begin(cli->models[model], model, cli->n_models);
    if (jobs->n_threads == 0) {
        jobs->taken++;
        work(jobs, model);
    }
    pthread_mutex_lock(&jobs->lock);
    while (jobs->n_threads > 0 && !s->is_done) pthread_cond_wait(&jobs->changed, &jobs->lock);
    onv_cli_result result = s->result;
    for (size_t i = 0; i < cli->analysis.n_dims && cli->analysis.dims_found != NULL; i++)
        cli->analysis.dims_found[i] |= s->dims_found[i];
    s->result.analysis = NULL;
    s->is_done = false;
    jobs->given++;
    pthread_cond_broadcast(&jobs->changed);
    pthread_mutex_unlock(&jobs->lock);
    return result;
}

void onv_cli_jobs_stop(onv_cli_jobs *jobs)
{
    if (jobs == NULL) return;
    pthread_mutex_lock(&jobs->lock);
    atomic_store(&jobs->stopping, true);
    pthread_cond_broadcast(&jobs->changed);
    pthread_mutex_unlock(&jobs->lock);
    for (size_t i = 0; i < jobs->n_threads; i++) pthread_join(jobs->threads[i], NULL);
    for (size_t i = 0; i < jobs->n_slots; i++) {
        onv_analysis_destroy(jobs->slots[i].result.analysis);
        free(jobs->slots[i].dims_found);
    }
    pthread_cond_destroy(&jobs->changed);
    pthread_mutex_destroy(&jobs->lock);
    free(jobs->slots);
    free(jobs->threads);
    free(jobs);
}
