/* Rewritten samples against what ONNX Runtime saved: tests/truth/ort_graphs.json, by
 * scripts/export/ort_graphs.py. At each level: how often each operator stands there, how often on the CPU, and
 * the bytes of the initializers. */
#include <jansson.h>
#include <unistd.h>

#include "infer/infer.h"
#include "ir/check.h"
#include "load/load.h"
#include "rewrite/rewrite.h"
#include "support/test.h"

static const struct level {
    const char *name;
    onv_rewrite_level level;
} levels[] = {{"disabled", ONV_REWRITE_DISABLED},
              {"basic", ONV_REWRITE_BASIC},
              {"extended", ONV_REWRITE_EXTENDED},
              {"all", ONV_REWRITE_ALL}};

/* Where they differ. A row that no longer does has to go. */
static const struct difference {
    const char *model, *level, *why;
} differences[] = {
    {"fasterrcnn", "basic", "two Gathers of shapes fewer"},
    {"fasterrcnn", "extended", "as in basic"},
    {"fasterrcnn", "all", "as in basic"},
};

enum { MOST_BYTES_OFF = 100 }; /* one part in so many */

typedef struct comparison {
    const char *model;
    const struct level *level;
    const onv_model *ours;
    bool differs;
    char text[512]; /* the first differences */
} comparison;

static void differ(comparison *c, const char *what, const char *op, long ours, long theirs)
{
    size_t length = strlen(c->text);
    c->differs = true;
    snprintf(c->text + length, sizeof c->text - length, " %s%s %ld for %ld;", what, op, ours,
             theirs);
}

/* --- Operators --------------------------------------------------------------------------------- */

static json_t *count_operators(const onv_model *model, bool on_cpu)
{
    json_t *counts = json_object();
    for (size_t i = 0; i < model->nodes.count; i++) {
        const onv_node *node = &model->nodes.at[i];
        char name[160];
        bool is_full = !on_cpu && node->domain[0] != '\0';
        if (on_cpu && node->provider != ONV_PROVIDER_CPU) continue;
        snprintf(name, sizeof name, "%s%s%s", is_full ? node->domain : "", is_full ? "." : "",
                 node->op_type);
        json_int_t n = json_integer_value(json_object_get(counts, name));
        json_object_set_new(counts, name, json_integer(n + 1));
    }
    return counts;
}

static void compare_operators(comparison *c, json_t *theirs, bool on_cpu)
{
    json_t *ours = count_operators(c->ours, on_cpu), *value;
    const char *op, *what = on_cpu ? "CPU " : "";
    json_object_foreach(theirs, op, value) {
        long n = (long)json_integer_value(json_object_get(ours, op));
        if (n != json_integer_value(value)) differ(c, what, op, n, (long)json_integer_value(value));
    }
    json_object_foreach(ours, op, value)
        if (json_object_get(theirs, op) == NULL)
            differ(c, what, op, (long)json_integer_value(value), 0);
    json_decref(ours);
}

/* --- Initializers ------------------------------------------------------------------------------ */

static void compare_bytes(comparison *c, json_t *row)
{
    uint64_t ours = 0,
             theirs = (uint64_t)json_integer_value(json_object_get(row, "initializer_bytes"));
    for (size_t i = 0; i < c->ours->values.count; i++) {
        const onv_value *value = &c->ours->values.at[i];
        if (onv_value_is_weight(value) && value->tensor != NULL) ours += value->tensor->bytes;
    }
    uint64_t off = ours > theirs ? ours - theirs : theirs - ours;
    if (off > theirs / MOST_BYTES_OFF) differ(c, "", "initializer bytes", (long)ours, (long)theirs);
}

/* --- All samples ------------------------------------------------------------------------------- */

static const char *known_difference(const comparison *c)
{
    for (size_t i = 0; i < sizeof differences / sizeof differences[0]; i++)
        if (strcmp(differences[i].model, c->model) == 0 &&
            strcmp(differences[i].level, c->level->name) == 0)
            return differences[i].why;
    return NULL;
}

static bool check_level(const onv_model *model, const char *name, const struct level *level,
                        json_t *row)
{
    onv_rewritten r;
    onv_error err = {0};
    comparison c = {.model = name, .level = level};
    if (json_object_get(row, "operators") == NULL) return true; /* refused by ONNX Runtime */
    if (onv_rewrite_model(model, ONV_PROVIDER_CUDA, level->level, &r, &err) != ONV_OK)
        fail_msg("%s: %s", name, err.message);
    c.ours = &r.model;
    compare_operators(&c, json_object_get(row, "operators"), false);
    compare_operators(&c, json_object_get(row, "cpu_operators"), true);
    compare_bytes(&c, row);
    for (uint32_t i = 0; i < r.n_counts; i++)
        if (r.counts[i].is_not_modelled)
            differ(&c, "named as not modelled: ", r.counts[i].name, (long)r.counts[i].count, 0);
    onv_rewritten_cleanup(&r);
    const char *why = known_difference(&c);
    if (why == NULL && c.differs) print_error("%s, %s:%s\n", name, level->name, c.text);
    if (why != NULL && !c.differs) print_error("%s, %s: equal by now\n", name, level->name);
    return c.differs == (why != NULL);
}

static int check_sample(const char *name, json_t *rows)
{
    char path[512];
    onv_model model;
    onv_error err = {0};
    onv_infer_info info;
    onv_options options = onv_options_default();
    int failed = 0;
    snprintf(path, sizeof path, ONV_SOURCE_DIR "/samples/%s.onnx", name);
    if (onv_load(path, NULL, &model, &err) != ONV_OK || onv_graph_check(&model, &err) != ONV_OK ||
        onv_infer(&model, &options, &info, &err) != ONV_OK)
        fail_msg("%s: %s", name, err.message);
    onv_infer_info_cleanup(&info);
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++)
        failed += !check_level(&model, name, &levels[i], json_object_get(rows, levels[i].name));
    onv_model_cleanup(&model);
    return failed;
}

TEST(samples_become_what_onnx_runtime_runs)
{
    json_error_t error;
    json_t *truth = json_load_file(ONV_SOURCE_DIR "/tests/truth/ort_graphs.json", 0, &error), *rows;
    const char *name;
    int failed = 0;
    if (truth == NULL) fail_msg("%s", error.text);
    json_object_foreach(json_object_get(truth, "models"), name, rows)
        failed += check_sample(name, rows);
    json_decref(truth);
    assert_int_equal(failed, 0);
}
