#include "cli/jobs.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

struct onv_cli_jobs {
    onv_cli *cli;
    const onv_cli_baseline *baseline;
    onv_cli_process *slots; /* model i has slot i % n_slots */
    size_t n_slots, at_once;
    size_t started, running, given; /* models */
    bool has_given;                 /* the slot of the last one is not free yet */
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

/* A replay has the device to itself. */
static size_t count_at_once(const onv_cli *cli)
{
    if (cli->analysis.replay != NULL) return 1;
    size_t n = cli->jobs > 0 ? cli->jobs : count_cores();
    return n < cli->n_models ? n : cli->n_models;
}

onv_cli_jobs *onv_cli_jobs_new(onv_cli *cli, const onv_cli_baseline *baseline)
{
    onv_cli_jobs *jobs = calloc(1, sizeof *jobs);
    size_t n = count_at_once(cli);
    if (jobs != NULL) {
        *jobs = (onv_cli_jobs){.cli = cli, .baseline = baseline, .n_slots = 2 * n, .at_once = n};
        jobs->slots = calloc(jobs->n_slots, sizeof *jobs->slots);
    }
    if (jobs != NULL && jobs->slots != NULL) return jobs;
    fputs("onnxvram: out of memory\n", stderr);
    free(jobs);
    return NULL;
}

static bool start_next(onv_cli_jobs *jobs)
{
    onv_cli_task task = {
        .cli = jobs->cli, .first = jobs->started, .count = 1, .baseline = jobs->baseline};
    onv_cli_process *slot = &jobs->slots[jobs->started % jobs->n_slots];
    if (!onv_cli_process_start(slot, jobs->cli, jobs->started, 1, false, onv_cli_work, &task))
        return false;
    jobs->started++;
    jobs->running++;
    return true;
}

/* Starts what may run. One that cannot be started waits until another has ended; false: none runs that could end. */
static bool start_all(onv_cli_jobs *jobs)
{
    while (jobs->running < jobs->at_once && jobs->started < jobs->cli->n_models &&
           jobs->started < jobs->given + jobs->n_slots)
        if (!start_next(jobs)) return jobs->started > jobs->given;
    return true;
}

static void free_given(onv_cli_jobs *jobs)
{
    if (!jobs->has_given) return;
    onv_cli_process_end(&jobs->slots[jobs->given % jobs->n_slots], jobs->cli);
    jobs->has_given = false;
    jobs->given++;
}

const onv_cli_process *onv_cli_jobs_next(onv_cli_jobs *jobs)
{
    free_given(jobs);
    if (jobs->given == jobs->cli->n_models) return NULL;
    onv_cli_process *slot = &jobs->slots[jobs->given % jobs->n_slots];
    bool good = start_all(jobs);
    while (good && !slot->has_ended) {
        good = onv_cli_process_wait(jobs->slots, jobs->n_slots);
        jobs->running -= good;
        good = good && start_all(jobs);
    }
    jobs->has_given = good;
    if (good) return slot;
    fprintf(stderr, "onnxvram: no process for another model could be started: %s\n",
            strerror(errno));
    return NULL;
}

void onv_cli_jobs_destroy(onv_cli_jobs *jobs)
{
    if (jobs == NULL) return;
    free_given(jobs);
    for (; jobs->given < jobs->started; jobs->given++)
        onv_cli_process_end(&jobs->slots[jobs->given % jobs->n_slots], jobs->cli);
    free(jobs->slots);
    free(jobs);
}
