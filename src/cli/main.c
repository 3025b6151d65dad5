/* The program: options in, analyses, reports out. It uses the public header only. */
#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/confine.h"
#include "cli/deploy.h"
#include "cli/files.h"
#include "cli/guard.h"
#include "cli/input.h"
#include "cli/progress.h"
#include "cli/work.h"

/* --- All at once ------------------------------------------------------------------------------- */

static onv_cli_work_fn *work_of(const onv_cli *cli)
{
    return cli->genai != NULL || cli->triton != NULL ? onv_cli_deploy : onv_cli_work;
}

/* One process does all the work. A model at which it crashes is left out in the next one. Its record stays. */
static bool work_apart(const onv_cli_task *task, onv_cli_process *process)
{
    onv_cli *cli = task->cli;
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): the way to shed a const */
    onv_error *lost = (onv_error *)(uintptr_t)task->lost, why;
    for (;;) {
        if (!onv_cli_process_start(process, cli, task->first, task->count, true, work_of(cli),
                                   /* NOLINTNEXTLINE(performance-no-int-to-ptr): likewise */
                                   (void *)(uintptr_t)task)) {
            fprintf(stderr, "onnxvram: no process for the models could be started: %s\n",
                    strerror(errno));
            return false;
        }
        onv_cli_process_wait(process, 1);
        if (onv_cli_process_is_good(process, cli, &why)) return true;
        size_t model = (size_t)process->record->model;
        bool is_new = model < cli->n_models && lost[model].code == ONV_OK && cli->n_models > 1;
        onv_cli_process_repeat(process);
        if (!is_new) onv_cli_complain(cli->models[model < cli->n_models ? model : 0], &why);
        if (!is_new) return false;
        lost[model] = why;
        onv_cli_process_end(process, cli);
        for (size_t k = 0; k < cli->n_outputs; k++) onv_cli_rewind(&task->sinks[k]);
    }
}

/* What the process wrote to standard output. */
static bool copy_output(const onv_cli_process *process, onv_cli_sink *sink)
{
    size_t bytes;
    const char *text = onv_cli_process_output(process, &bytes);
    bool good = bytes == 0 || (text != NULL && onv_cli_write(sink, text, bytes));
    onv_cli_process_drop(text, bytes);
    return good;
}

/* Closes the outputs: what was written of them becomes files. */
static void keep_outputs(const onv_cli *cli, onv_cli_sink *sinks, const onv_cli_process *process,
                         onv_cli_outcome *o)
{
    const onv_cli_record *r = process->record;
    for (size_t k = 0; k < cli->n_outputs; k++) {
        if (sinks[k].stream == NULL) continue;
        bool kept = r != NULL && r->kept[k];
        if (kept && sinks[k].stream == stdout && process->pid > 0)
            kept = copy_output(process, &sinks[k]);
        bool closed = onv_cli_close(&sinks[k], kept);
        if (r != NULL && r->kept[k] && !closed) onv_cli_worsen(&o->worst, EXIT_UNUSABLE);
    }
}

static void work_at_once(onv_cli *cli, const onv_cli_baseline *baseline, onv_cli_outcome *o)
{
    onv_cli_sink sinks[ONV_CLI_MAX_OUTPUTS] = {{.stream = NULL}};
    onv_error *lost = calloc(cli->n_models, sizeof *lost);
    onv_cli_task task = {
        .cli = cli, .count = cli->n_models, .baseline = baseline, .sinks = sinks, .lost = lost};
    onv_cli_process process = {.out = -1, .said = -1};
    for (size_t k = 0; k < cli->n_outputs; k++)
        if (!onv_cli_open(&sinks[k], cli->outputs[k].file))
            onv_cli_worsen(&o->worst, EXIT_UNUSABLE);
    onv_cli_progress_begin(cli->models[0], 0, cli->n_models);
    bool good = lost != NULL;
    if (good && onv_cli_is_isolated(cli))
        good = work_apart(&task, &process);
    else if (good && (good = (process.record = onv_cli_record_new(cli)) != NULL))
        work_of(cli)(&task, process.record);
    onv_cli_progress_end();
    if (good) {
        const onv_cli_record *r = process.record;
        o->n_analysed = (size_t)r->n_analysed;
        onv_cli_worsen(&o->worst, r->worst);
        o->verdict = onv_cli_worse(o->verdict, r->verdict);
        if (r->pipe_closed) onv_cli_note_closed_pipe();
    }
    if (!good) onv_cli_worsen(&o->worst, EXIT_UNUSABLE);
    keep_outputs(cli, sinks, &process, o);
    if (process.pid > 0 && good) onv_cli_process_repeat(&process);
    onv_cli_process_end(&process, cli);
    free(lost);
}

static bool reads_input(const onv_cli *cli)
{
    for (size_t i = 0; i < cli->n_models; i++)
        if (onv_cli_is_input(cli->models[i])) return true;
    return false;
}

static int run(onv_cli *cli)
{
    onv_cli_progress_start(cli->report.verbosity < 0);
    cli->analysis.progress = onv_cli_progress_stage;
    if (!onv_cli_spares_inputs(cli)) return EXIT_USAGE;
    if (reads_input(cli)) {
        onv_cli_progress_begin("standard input", 0, 1);
        if (!onv_cli_read_input(&cli->input, cli->limits.file_bytes)) return EXIT_UNUSABLE;
    }
    onv_cli_baseline *baseline = NULL;
    if ((cli->untrusted && !onv_cli_confine_files(cli)) ||
        (cli->baseline != NULL && (baseline = onv_cli_open_baseline(cli->baseline)) == NULL))
        return EXIT_UNUSABLE;
    onv_cli_outcome o = {0};
    if (onv_cli_can_stream(cli))
        onv_cli_stream_all(cli, baseline, &o);
    else
        work_at_once(cli, baseline, &o);
    onv_cli_close_baseline(baseline);
    return o.worst != EXIT_DONE ? o.worst : o.verdict;
}

/* What is freed goes back to the system, so that the process holds little more than what --limit memory counts: the C
 * library raises its threshold for that by itself otherwise. In searches all of it is spare: thousands of programs, or many
 * analyses, of one size follow each other, and the system would clear their pages for each. */
static void return_memory(bool searches)
{
#ifdef __GLIBC__
    const int least_mapped = searches ? 32 << 20 : 256 << 10;
    const int most_spare = searches ? INT_MAX : 1 << 20;
    mallopt(M_MMAP_THRESHOLD, least_mapped);
    mallopt(M_TRIM_THRESHOLD, most_spare);
#else
    (void)searches;
#endif
}

static int analyse_models(const onv_cli_command *command, int argc, char **argv)
{
    onv_cli cli;
    int status = EXIT_USAGE;
    switch (onv_cli_parse(&cli, command, argc, argv)) {
    case ONV_CLI_RUN:
        onv_cli_fit_terminal(&cli);
        return_memory(cli.analysis.checkpoint != NULL || cli.analysis.max_batch ||
                      cli.analysis.max_dim != NULL);
        if (cli.analysis.replay != NULL) {
            onv_cli_catch_stop();
            cli.analysis.cancelled = onv_cli_is_stopped;
        }
        status = run(&cli);
        break;
    case ONV_CLI_DONE: status = onv_cli_answered(); break;
    case ONV_CLI_USAGE: break;
    }
    onv_cli_cleanup(&cli);
    return status;
}

int main(int argc, char **argv)
{
    return_memory(false);
    setlocale(LC_CTYPE, "");
    /* A closed pipe and a file that may not grow are write errors. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    const onv_cli_command *command = argc > 1 ? onv_cli_command_named(argv[1]) : NULL;
    bool is_named = command != NULL;
    if (!is_named) command = &onv_cli_commands[0];
    int status = command->run != NULL ? command->run(argc - 1, argv + 1)
                                      : analyse_models(command, argc - is_named, argv + is_named);
    onv_cli_die_if_stopped();
    return status;
}
