/* Several models, each in a process that analyses it and writes its part of each report. The parts are handed over in the
 * order of the command line. */
#include "cli/work.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "cli/guard.h"
#include "cli/progress.h"

bool onv_cli_can_stream(const onv_cli *cli)
{
    bool can = onv_cli_is_isolated(cli) && cli->n_models > 1 && !cli->together && !cli->is_diff &&
               !cli->is_compare;
    for (size_t i = 0; i < cli->n_outputs; i++)
        can = can && onv_report_can_stream(cli->outputs[i].format);
    return can;
}

/* --- Processes --------------------------------------------------------------------------------- */

/* Up to --jobs processes work at once, and run ahead of what is handed over. */
typedef struct jobs {
    onv_cli *cli;
    const onv_cli_baseline *baseline;
    onv_cli_process *slots; /* model i has slot i % n_slots */
    size_t n_slots, at_once;
    size_t started, running, given; /* models */
} jobs;

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

static bool start_next(jobs *j)
{
    onv_cli_task task = {.cli = j->cli, .first = j->started, .count = 1, .baseline = j->baseline};
    onv_cli_process *slot = &j->slots[j->started % j->n_slots];
    if (!onv_cli_process_start(slot, j->cli, j->started, 1, false, onv_cli_work, &task))
        return false;
    j->started++;
    j->running++;
    return true;
}

/* Starts what may run. One that cannot be started waits until another has ended; false: none runs that could end. */
static bool start_all(jobs *j)
{
    while (j->running < j->at_once && j->started < j->cli->n_models &&
           j->started < j->given + j->n_slots)
        if (!start_next(j)) return j->started > j->given;
    return true;
}

/* The process of the next model, which has ended. NULL with a message where it could not be started. */
static onv_cli_process *wait_for_next(jobs *j)
{
    onv_cli_process *slot = &j->slots[j->given % j->n_slots];
    bool good = start_all(j);
    while (good && !slot->has_ended) {
        good = onv_cli_process_wait(j->slots, j->n_slots);
        j->running -= good;
        good = good && start_all(j);
    }
    if (good) return slot;
    fprintf(stderr, "onnxvram: no process for another model could be started: %s\n",
            strerror(errno));
    return NULL;
}

/* --- Reports ----------------------------------------------------------------------------------- */

/* Where something goes wrong, nothing more is written, and what was begun vanishes. */
typedef struct stream {
    onv_cli_sink sink;
    onv_report_stream *report; /* NULL: nothing more is written */
    bool is_open;
} stream;

/* Nothing more is written, as the part of a model is missing. */
static void give_up(stream *s)
{
    onv_report_end(s->report, NULL);
    s->report = NULL;
}

static int fail(stream *s, onv_error *error)
{
    onv_cli_explain(&s->sink, error);
    int status = onv_cli_complain(s->sink.file, error);
    give_up(s);
    return status;
}

static int open_stream(stream *s, const onv_cli *cli, const onv_cli_output *output)
{
    onv_error error = {0};
    s->is_open = onv_cli_open(&s->sink, output->file);
    if (!s->is_open || !onv_cli_hold(&s->sink)) return EXIT_UNUSABLE;
    if (onv_report_begin(output->format, cli->n_models, &cli->report, onv_cli_write, &s->sink,
                         &s->report, &error) == ONV_OK)
        return EXIT_DONE;
    return fail(s, &error);
}

/* Adds what onv_report_part wrote of a model. What goes to standard output, to devices and pipes waits until it `may_show`. */
static int add_part(stream *s, const void *part, size_t bytes, bool may_show)
{
    onv_error error = {0};
    if (s->report == NULL) return EXIT_DONE;
    if (may_show && !onv_cli_let_go(&s->sink)) {
        give_up(s);
        return EXIT_UNUSABLE;
    }
    if (onv_report_add_part(s->report, part, bytes, &error) != ONV_OK) return fail(s, &error);
    /* A reader that has gone is noticed here, before the next model. */
    if (fflush(s->sink.stream) != 0 && errno == EPIPE) onv_cli_note_closed_pipe();
    return EXIT_DONE;
}

static int close_stream(stream *s, bool keep)
{
    onv_error error = {0};
    if (!s->is_open) return EXIT_DONE;
    bool is_whole = s->report != NULL;
    int status = EXIT_DONE;
    if (is_whole && keep && !onv_cli_let_go(&s->sink)) is_whole = false;
    if (onv_report_end(s->report, &error) != ONV_OK && is_whole) {
        is_whole = false;
        onv_cli_explain(&s->sink, &error);
        status = onv_cli_complain(s->sink.file, &error);
    }
    bool kept = onv_cli_close(&s->sink, is_whole && keep);
    return status == EXIT_DONE && !kept && keep ? EXIT_UNUSABLE : status;
}

/* --- All of it --------------------------------------------------------------------------------- */

/* The parts of a model. */
static void add_parts(onv_cli *cli, stream *streams, const onv_cli_process *process,
                      onv_cli_outcome *o)
{
    const onv_cli_record *r = process->record;
    size_t bytes;
    const char *text = onv_cli_process_output(process, &bytes);
    for (size_t k = 0, from = 0; k < cli->n_outputs; k++) {
        size_t until = r->kept[k] && r->until[k] <= bytes ? (size_t)r->until[k] : 0;
        if (o->n_analysed == 0)
            onv_cli_worsen(&o->worst, open_stream(&streams[k], cli, &cli->outputs[k]));
        if (until > from)
            onv_cli_worsen(&o->worst, add_part(&streams[k], text + from, until - from,
                                               onv_cli_lost_dim(cli) == NULL));
        else
            give_up(&streams[k]);
        from = until > from ? until : from;
    }
    onv_cli_process_drop(text, bytes);
    o->n_analysed++;
}

/* What a process says of its model; it may be anything. */
static void keep_failure(onv_cli *cli, const onv_cli_record *r, size_t model)
{
    onv_error why = r->failed;
    if (why.code <= ONV_OK || why.code > ONV_ERR_CANCELLED) return;
    why.message[sizeof why.message - 1] = why.node[sizeof why.node - 1] = '\0';
    why.op_type[sizeof why.op_type - 1] = '\0';
    cli->failed[cli->failures.count++] = (onv_failed_file){cli->models[model], why};
}

/* What became of a model; false: no further one is to be looked at. */
static bool take(onv_cli *cli, stream *streams, const onv_cli_process *process, size_t model,
                 onv_cli_outcome *o)
{
    const onv_cli_record *r = process->record;
    onv_error why;
    bool is_good = onv_cli_process_is_good(process, cli, &why);
    onv_cli_progress_end();
    for (size_t k = 0; k < cli->analysis.n_dims && is_good; k++)
        cli->dims_found[k] |= r->dims_found[k] != 0;
    if (is_good && r->n_analysed > 0 && !r->ends) add_parts(cli, streams, process, o);
    for (size_t k = 0; is_good && r->n_analysed > 0 && r->ends && k < cli->n_outputs; k++)
        give_up(&streams[k]); /* one of them would overwrite what this model is read from */
    onv_cli_process_repeat(process);
    onv_cli_worsen(&o->worst, is_good ? r->worst : onv_cli_fail_model(cli, model, &why));
    if (is_good && r->n_analysed == 0) keep_failure(cli, r, model);
    if (is_good) o->verdict = onv_cli_worse(o->verdict, r->verdict);
    return !is_good || !r->ends;
}

/* Where no model has all dims, one more process says what the first one has. */
static int check_dims(onv_cli *cli)
{
    onv_cli_task task = {.cli = cli, .count = 1};
    onv_cli_process process;
    onv_error why;
    if (onv_cli_lost_dim(cli) == NULL) return EXIT_DONE;
    if (!onv_cli_process_start(&process, cli, 0, 1, false, onv_cli_work_on_dims, &task) ||
        !onv_cli_process_wait(&process, 1))
        return onv_cli_usage("not all dims of the command line are dims of a model");
    bool is_good = onv_cli_process_is_good(&process, cli, &why);
    onv_cli_process_repeat(&process);
    int status = is_good ? process.record->worst : onv_cli_complain(cli->models[0], &why);
    onv_cli_process_end(&process, cli);
    return status;
}

void onv_cli_stream_all(onv_cli *cli, const onv_cli_baseline *baseline, onv_cli_outcome *o)
{
    stream streams[ONV_CLI_MAX_OUTPUTS] = {{.is_open = false}};
    size_t n = count_at_once(cli);
    jobs j = {.cli = cli, .baseline = baseline, .n_slots = 2 * n, .at_once = n};
    j.slots = calloc(j.n_slots, sizeof *j.slots);
    bool goes_on = j.slots != NULL;
    if (!goes_on) onv_cli_worsen(&o->worst, onv_cli_usage("out of memory"));
    while (goes_on && j.given < cli->n_models && !onv_cli_is_pipe_closed()) {
        onv_cli_progress_begin(cli->models[j.given], j.given, cli->n_models);
        onv_cli_process *process = wait_for_next(&j);
        goes_on = process != NULL && take(cli, streams, process, j.given, o);
        if (process == NULL) {
            onv_cli_worsen(&o->worst, EXIT_UNUSABLE);
            break;
        }
        onv_cli_process_end(process, cli);
        j.given++;
    }
    onv_cli_progress_end();
    for (; j.given < j.started; j.given++) onv_cli_process_end(&j.slots[j.given % j.n_slots], cli);
    free(j.slots);
    /* Of models that all failed JSON alone has something to say. */
    for (size_t k = 0; o->n_analysed == 0 && o->worst != EXIT_USAGE && k < cli->n_outputs; k++)
        if (cli->outputs[k].format == ONV_FORMAT_JSON && cli->failures.count > 0)
            onv_cli_worsen(&o->worst, open_stream(&streams[k], cli, &cli->outputs[k]));
    int lacks = o->n_analysed > 0 ? check_dims(cli) : EXIT_DONE;
    for (size_t k = 0; k < cli->n_outputs; k++)
        onv_cli_worsen(&o->worst, close_stream(&streams[k], lacks == EXIT_DONE));
    if (lacks != EXIT_DONE) o->worst = lacks;
}
