#include "cli/tools.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/files.h"
#include "cli/guard.h"
#include "cli/input.h"
#include "cli/message.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/values.h"

enum { MOST_OPTIONS = 16 };

/* The option that getopt_long stumbled over. */
int onv_cli_wrong_option(char **argv, int code, const struct option *longs)
{
    const char *names[MOST_OPTIONS + 1] = {NULL}, *text = argv[optind - 1];
    char name[64] = "";
    if (code == ':') return onv_cli_usage("%s: option '%s' needs a value", argv[0], text);
    if (strncmp(text, "--", 2) == 0)
        snprintf(name, sizeof name, "%.*s", (int)strcspn(text + 2, "="), text + 2);
    for (size_t i = 0; i < onv_cli_n_rows; i++)
        if (strcmp(onv_cli_rows[i].name, name) == 0 && strcmp(name, "help") != 0)
            return onv_cli_usage("%s: '%s' is an option of an analysis, onnxvram MODEL.onnx: "
                                 "leave it out",
                                 argv[0], text);
    for (size_t i = 0; i < MOST_OPTIONS && longs[i].name != NULL; i++) names[i] = longs[i].name;
    const char *near = onv_nearest_name(name, names);
    return onv_cli_usage("%s: option '%s' is unknown or takes no value%s%s%s", argv[0], text,
                         near != NULL ? ", did you mean '--" : "", near != NULL ? near : "",
                         near != NULL ? "'?" : "");
}

/* The one file that a command takes. */
static int wrong_count(const char *command, int count, const char *example)
{
    return onv_cli_usage("%s takes one file, not %d, as in onnxvram %s", command, count, example);
}

/* --- plan -------------------------------------------------------------------------------------- */

typedef struct plan_arguments {
    const char *input, *output;
    uint64_t capacity, effort, alignment;
} plan_arguments;

static int run_plan(const plan_arguments *a)
{
    onv_cli_sink sink;
    onv_plan_info info;
    onv_error error = {0};
    if (!onv_cli_spares_input(a->output, a->input)) return EXIT_USAGE;
    if (!onv_cli_open(&sink, a->output)) return EXIT_UNUSABLE;
    onv_cli_progress_start(false);
    onv_cli_progress_begin(a->input, 0, 1);
    onv_status status = onv_plan_file(onv_cli_input_path(a->input, false), a->capacity, a->effort,
                                      a->alignment, onv_cli_write, &sink, &info, &error);
    onv_cli_progress_end();
    bool kept = onv_cli_close(&sink, status == ONV_OK);
    if (status != ONV_OK) return onv_cli_complain(a->input, &error);
    if (!kept) return EXIT_UNUSABLE;
    fprintf(stderr, "height %" PRIu64 ", lower bound %" PRIu64 "%s\n", info.height,
            info.lower_bound, info.optimal ? ": optimal" : "");
    if (info.fits) return EXIT_DONE;
    fprintf(stderr, "onnxvram: no plan within the capacity of %" PRIu64 " bytes was found\n",
            a->capacity);
    return EXIT_NO_FIT;
}

int onv_cli_plan(int argc, char **argv)
{
    static const struct option longs[] = {{"capacity", required_argument, NULL, 'c'},
                                          {"effort", required_argument, NULL, 'e'},
                                          {"align", required_argument, NULL, 'a'},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
    plan_arguments a = {.output = "-"};
    opterr = 0;
    optind = 1;
    for (int code; (code = getopt_long(argc, argv, ":o:h", longs, NULL)) != -1;) {
        switch (code) {
        case 'c':
            if (!onv_size_parse(optarg, &a.capacity) || a.capacity == 0)
                return onv_cli_usage("plan: --capacity takes a size above 0 like 64MiB, not '%s'",
                                     optarg);
            break;
        case 'e':
            if (!onv_size_parse(optarg, &a.effort) || a.effort == 0)
                return onv_cli_usage("plan: --effort takes a number of at least 1, not '%s'",
                                     optarg);
            break;
        case 'a':
            if (onv_cli_set_align(&a.alignment, "align", optarg) != ONV_CLI_RUN) return EXIT_USAGE;
            break;
        case 'o': a.output = optarg; break;
        case 'h':
            puts("Usage: onnxvram plan INTERVALS.csv [--capacity BYTES] [--effort N]\n"
                 "                     [--align N] [-o OUT.csv]\n"
                 "\n"
                 "Finds an offset for every buffer: reads id,lower,upper,size and adds offset.\n"
                 "With --align, offsets are multiples of N bytes, a power of two.\n"
                 "Exit status 3: no plan within the capacity was found.");
            return onv_cli_answered();
        default: return onv_cli_wrong_option(argv, code, longs);
        }
    }
    if (optind + 1 != argc) return wrong_count("plan", argc - optind, "plan intervals.csv");
    a.input = argv[optind];
    return run_plan(&a);
}

/* --- simulate ---------------------------------------------------------------------------------- */

static void simulate_help(void)
{
    puts("Usage: onnxvram simulate TRACE.csv --runtime NAME[,NAME...] [--summary] [--header]\n"
         "                         [--expandable-segments] [--capacity BYTES]\n"
         "\n"
         "Runs a trace of allocations through an allocator and prints\n"
         "runtime,allocated_peak,reserved_peak,allocated_end,reserved_end,segments\n"
         "Exit status 3: there was no room in the capacity.\n"
         "\n"
         "Runtimes:");
    const char *summary;
    for (size_t i = 0; onv_name_at(ONV_NAMES_ALLOCATORS, i, &summary) != NULL; i++)
        printf("  %-18s %s\n", onv_name_at(ONV_NAMES_ALLOCATORS, i, NULL), summary);
    printf("  %-18s %s\n", "arena", "the whole trace at planned offsets in one block");
}

static int run_simulate(const char *input, const char *runtimes,
                        const onv_simulate_options *options)
{
    onv_cli_sink sink;
    onv_error error = {0};
    const char *path = onv_cli_input_path(input, strchr(runtimes, ',') != NULL);
    if (path == NULL || !onv_cli_open(&sink, "-")) return EXIT_UNUSABLE;
    onv_cli_guard(input);
    onv_cli_progress_start(false);
    onv_cli_progress_begin(input, 0, 1);
    onv_status status = onv_simulate_file(path, runtimes, options, onv_cli_write, &sink, &error);
    onv_cli_progress_end();
    bool kept = onv_cli_close(&sink, true);
    if (status != ONV_OK) {
        int verdict = onv_cli_complain(input, &error);
        return status == ONV_ERR_DEVICE ? EXIT_NO_FIT : verdict;
    }
    return kept ? EXIT_DONE : EXIT_UNUSABLE;
}

int onv_cli_simulate(int argc, char **argv)
{
    static const struct option longs[] = {{"runtime", required_argument, NULL, 'r'},
                                          {"capacity", required_argument, NULL, 'c'},
                                          {"summary", no_argument, NULL, 's'},
                                          {"header", no_argument, NULL, 'H'},
                                          {"expandable-segments", no_argument, NULL, 'e'},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
    onv_simulate_options options = {.struct_size = sizeof options};
    const char *runtimes = NULL;
    opterr = 0;
    optind = 1;
    for (int code; (code = getopt_long(argc, argv, ":r:h", longs, NULL)) != -1;) {
        switch (code) {
        case 'r': runtimes = optarg; break;
        case 'c':
            if (!onv_size_parse(optarg, &options.capacity) || options.capacity == 0)
                return onv_cli_usage(
                    "simulate: --capacity takes a size above 0 like 16GiB, not '%s'", optarg);
            break;
        case 's': options.summary = true; break;
        case 'H': options.header = true; break;
        case 'e': options.expandable_segments = true; break;
        case 'h': simulate_help(); return onv_cli_answered();
        default: return onv_cli_wrong_option(argv, code, longs);
        }
    }
    if (optind + 1 != argc)
        return wrong_count("simulate", argc - optind, "simulate trace.csv --runtime torch");
    if (runtimes == NULL)
        return onv_cli_usage(
            "simulate needs an allocator: add --runtime NAME, as in --runtime torch");
    return run_simulate(argv[optind], runtimes, &options);
}
