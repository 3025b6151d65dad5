/* Twice the model takes about twice the work and the memory: for each family of models, less than 2.5 times.
 *
 *     api.doubling [NODES]               nodes of the larger model of each family (4000); prints the ten that grow most
 *     api.doubling --write FAMILY NODES FILE
 *     api.doubling --list
 *
 * No clock takes part. Work is what the quota counts; in a build that reports every basic block that runs
 * (ONV_COUNT_BLOCKS; scripts/doubling makes one) it is their number, so that a loop
 * that forgets to count is seen, too.
 */
#include "api/analysis.h"
#include "support/families.h"
#include "support/test.h"

static uint64_t blocks;

void __sanitizer_cov_trace_pc(void);

#if defined __GNUC__ && !defined __clang__
__attribute__((no_sanitize_coverage))
#elif defined __clang__
__attribute__((no_sanitize("coverage")))
#endif
void __sanitizer_cov_trace_pc(void)
{
    blocks++;
}

static unsigned most_nodes = 4000;

typedef struct cost {
    uint64_t work, memory, output;
} cost;

typedef struct written {
    model *m;   /* NULL: a program */
    char *text; /* of that */
    const void *data;
    size_t bytes;
} written;

static written write_family(const family *f, unsigned n)
{
    written w = {0};
    if (f->write != NULL) {
        w.data = w.text = f->write(n);
        w.bytes = strlen(w.text);
        return w;
    }
    w.m = family_model(f, n);
    w.data = model_bytes(w.m, &w.bytes);
    return w;
}

static void free_written(written *w)
{
    if (w->m != NULL) model_free(w->m);
    free(w->text);
}

static bool count(void *context, const char *text, size_t bytes)
{
    (void)text;
    *(uint64_t *)context += bytes;
    return true;
}

/* The analysis with its reports. What a limit refuses costs what it cost until then. */
static cost measure(const family *f, unsigned n, bool trains)
{
    cost c = {0};
    onv_analysis *analysis;
    onv_error error = {0};
    onv_options options = onv_options_default();
    /* Searches end by their effort, which is that of a large graph from some size on: the same for both here. */
    options.effort = 10000000;
    options.example = true; /* as the program asks */
    if (trains) {
        options.batch = 2;
        options.train = "adam";
        options.checkpoint = "sqrt,blocks";
    }
    if (f->write != NULL) options.batch = 0; /* theirs is fixed */
    written w = write_family(f, n);
    uint64_t before = blocks;
    if (onv_analysis_new_from_memory(w.data, w.bytes, w.m != NULL ? "test.onnx" : NULL, &options,
                                     &analysis, &error) != ONV_OK)
        fail_msg("%s, %u nodes: %s", f->name, n, error.message);
    static const onv_format formats[] = {ONV_FORMAT_TEXT, ONV_FORMAT_JSON, ONV_FORMAT_CSV,
                                         ONV_FORMAT_LAYERS};
    /* Modules are shown with one plan. */
    for (size_t i = 0; i < sizeof formats / sizeof formats[0] - trains; i++) {
        uint64_t bytes = 0;
        if (onv_report((const onv_analysis *const *)&analysis, 1, formats[i], NULL, count, &bytes,
                       &error) != ONV_OK)
            fail_msg("%s, %u nodes: %s", f->name, n, error.message);
        assert_true(bytes <= 200 * w.bytes + (1 << 20));
        c.output += bytes;
    }
    c.work = blocks > before ? blocks - before : analysis->making->watch.quota.work;
    c.memory = analysis->making->watch.quota.most;
    onv_analysis_destroy(analysis);
    free_written(&w);
    return c;
}

/* What grows fastest, sorted. */
typedef struct growth {
    char name[64];
    double of[3], most; /* work, memory, output */
} growth;

enum { N_WORST = 10 };
static growth worst[N_WORST];

static growth growth_of(const family *f, unsigned nodes, bool trains)
{
    cost one = measure(f, nodes / 2, trains), two = measure(f, nodes, trains);
    growth g = {.of = {(double)two.work / (double)one.work, (double)two.memory / (double)one.memory,
                       (double)two.output / (double)one.output}};
    snprintf(g.name, sizeof g.name, "%s%s", f->name, trains ? ", training" : "");
    for (int k = 0; k < 3; k++)
        if (g.of[k] > g.most) g.most = g.of[k];
    return g;
}

static void take(const growth *g)
{
    size_t i = N_WORST;
    if (g->most <= worst[N_WORST - 1].most) return;
    for (; i > 1 && worst[i - 2].most < g->most; i--) worst[i - 1] = worst[i - 2];
    worst[i - 1] = *g;
}

static void print_worst(void)
{
    puts("| family | work | memory | output |\n|---|--:|--:|--:|");
    for (size_t i = 0; i < N_WORST && worst[i].most > 0; i++)
        printf("| %s | %.2f | %.2f | %.2f |\n", worst[i].name, worst[i].of[0], worst[i].of[1],
               worst[i].of[2]);
}

static void twice_the_model_costs_about_twice(void **state)
{
    unsigned failures = 0;
    const family *f;
    for (unsigned i = 0; (f = family_at(i)) != NULL; i++) {
        unsigned nodes = f->most > 0 && f->most < most_nodes ? f->most : most_nodes;
        for (int trains = 0; trains <= f->is_trained; trains++) {
            growth g = growth_of(f, nodes, trains);
            /* A search that proves its answer at one size, and ends by its effort at the other, makes a step: what grows too
             * fast does so at half the size as well. */
            if (g.most >= 2.5) g = growth_of(f, nodes / 2, trains);
            failures += g.most >= 2.5;
            take(&g);
        }
    }
    print_worst();
    assert_int_equal(failures, 0); /* those of 2.5 and more, at either size, are above */
}

static int write_model(const char *name, unsigned n, const char *path)
{
    const family *f;
    for (unsigned i = 0; (f = family_at(i)) != NULL; i++) {
        if (strcmp(f->name, name) != 0) continue;
        written w = write_family(f, n);
        FILE *file = fopen(path, "wb");
        bool done = file != NULL && fwrite(w.data, 1, w.bytes, file) == w.bytes;
        done = file != NULL && fclose(file) == 0 && done;
        free_written(&w);
        return done ? 0 : 1;
    }
    return 2;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(twice_the_model_costs_about_twice)};
    if (argc == 5 && strcmp(argv[1], "--write") == 0)
        return write_model(argv[2], (unsigned)strtoul(argv[3], NULL, 10), argv[4]);
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (unsigned i = 0; family_at(i) != NULL; i++) puts(family_at(i)->name);
        return 0;
    }
    if (argc == 2) most_nodes = (unsigned)strtoul(argv[1], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
