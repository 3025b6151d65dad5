/* Offset planning on given and generated instances: a table of what is reached, and how fast.
 *
 *     bench-plan [--effort N] [--capacity BYTES] [--each] [--perfect SEED] [FILE.csv...]
 *
 * Without files the generated instances are planned; `--perfect` plans perfect packings instead. `--each` runs every strategy alone.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "plan/instances.h"
#include "plan/part.h"
#include "plan/plan.h"

static double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int failures;

static void run(const char *name, const onv_plan_buffer *buffers, size_t count,
                const onv_plan_options *options)
{
    onv_plan plan;
    onv_error err = {0};
    double start = cpu_seconds();
    onv_status status = onv_plan_compute(buffers, count, options, &plan, &err);
    double seconds = cpu_seconds() - start;
    if (status == ONV_OK) status = onv_plan_check(buffers, count, options, &plan, &err);
    if (status != ONV_OK) {
        printf("%-24s %s\n", name, err.message);
        failures++;
    } else {
        printf("%-24s %6zu %14llu %14llu %8.4f %% %-7s %-12s %9llu %7.1f %8.3f\n", name, count,
               (unsigned long long)plan.height, (unsigned long long)plan.lower_bound,
               plan.lower_bound == 0
                   ? 0.0
                   : 100.0 * (double)(plan.height - plan.lower_bound) / (double)plan.lower_bound,
               plan.optimal ? "yes" : "no", plan.strategy, (unsigned long long)plan.nodes,
               (double)plan.work / 1e6, seconds);
    }
    onv_plan_cleanup(&plan);
}

static void run_all(const char *name, const onv_plan_buffer *buffers, size_t count,
                    const onv_plan_options *options, bool each)
{
    if (!each) {
        run(name, buffers, count, options);
        return;
    }
    for (size_t i = 0; i < onv_n_planners; i++) {
        onv_plan_options one = *options;
        one.strategy = onv_planners[i].name;
        run(name, buffers, count, &one);
    }
}

static void run_file(const char *path, const onv_plan_options *options, bool each)
{
    onv_plan_table table;
    onv_error err = {0};
    const char *name = strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path;
    if (onv_plan_csv_read(path, &table, &err) != ONV_OK) {
        printf("%-24s %s\n", name, err.message);
        failures++;
        return;
    }
    run_all(name, table.buffers, table.count, options, each);
    onv_plan_table_cleanup(&table);
}

static void run_generated(const onv_plan_options *options, bool each)
{
    static const uint32_t training[][2] = {{1000, 1},  {5000, 1},  {20000, 1},  {30000, 1},
                                           {2000, 10}, {6000, 30}, {20000, 20}, {20000, 100}};
    char name[64];
    for (int convnet = 0; convnet < 2; convnet++) {
        for (size_t i = 0; i < sizeof training / sizeof training[0]; i++) {
            instance made = {0};
            make_training(&made, 1, training[i][0], training[i][1], convnet != 0);
            snprintf(name, sizeof name, "%s-%u-%u", convnet != 0 ? "convnet" : "transformer",
                     training[i][0], training[i][1]);
            run_all(name, made.at, made.count, options, each);
            onv_vec_cleanup(&made);
        }
    }
    for (uint32_t n = 100; n <= 400; n += 100) {
        instance made = {0};
        make_jigsaw(&made, n, n, n, 1000);
        snprintf(name, sizeof name, "jigsaw-%u", n);
        run_all(name, made.at, made.count, options, each);
        onv_vec_cleanup(&made);
        make_full(&made, n, n / 4, 100);
        snprintf(name, sizeof name, "full-%u", n / 4);
        run_all(name, made.at, made.count, options, each);
        onv_vec_cleanup(&made);
        make_uniform(&made, n, n * 10, n * 5, 40, 1000);
        snprintf(name, sizeof name, "uniform-%u", n * 10);
        run_all(name, made.at, made.count, options, each);
        onv_vec_cleanup(&made);
    }
}

/* Perfect packings: buffers that are known to fill a rectangle without a gap. */
static void run_perfect(uint64_t seed, const onv_plan_options *options, bool each)
{
    static const uint32_t sizes[] = {50, 100, 200, 300, 500, 700, 1000};
    char name[64];
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (uint32_t kind = 0; kind < 4; kind++) {
            instance made = {0};
            bool fine = kind % 2 == 1; /* many steps: hardly any two buffers end at the same one */
            uint32_t steps = fine ? 100 * sizes[i] : sizes[i], capacity = fine ? 1 << 20 : 1000;
            if (kind < 2)
                make_jigsaw(&made, seed, sizes[i], steps, capacity);
            else
                make_pinwheels(&made, seed, sizes[i], steps, capacity);
            snprintf(name, sizeof name, "%s%s-%u", fine ? "fine-" : "",
                     kind < 2 ? "guillotine" : "pinwheel", sizes[i]);
            run_all(name, made.at, made.count, options, each);
            onv_vec_cleanup(&made);
        }
    }
}

int main(int argc, char **argv)
{
    onv_plan_options options = {0};
    bool each = false;
    int files = 0;
    printf("%-24s %6s %14s %14s %10s %-7s %-12s %9s %7s %8s\n", "instance", "n", "height",
           "lower bound", "gap", "optimal", "strategy", "nodes", "M units", "seconds");
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--effort") == 0 && i + 1 < argc)
            options.effort = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--capacity") == 0 && i + 1 < argc)
            options.capacity = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--perfect") == 0 && i + 1 < argc)
            run_perfect(strtoull(argv[++i], NULL, 10), &options, each), files++;
        else if (strcmp(argv[i], "--each") == 0)
            each = true;
        else
            run_file(argv[i], &options, each), files++;
    }
    if (files == 0) run_generated(&options, each);
    return failures == 0 ? 0 : 1;
}
