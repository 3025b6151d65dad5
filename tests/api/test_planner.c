/* Plans, simulations and orders of what is in memory: the same as the program makes of files, and as analyses make
 * of models; wrong input is named, and work has its limits. */
#include <inttypes.h>

#include "api/analysis.h"
#include "onnxvram/onnxvram.h"
#include "support/capture.h"
#include "support/folder.h"
#include "support/test.h"

static uint32_t random_below(uint64_t *state, uint32_t below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((*state >> 33) % below);
}

/* Standard output of the program. Free it. */
static char *run(const char *arguments)
{
    char command[1200], *text = malloc(1 << 20);
    snprintf(command, sizeof command, "%s/onnxvram %s 2>/dev/null", ONV_BUILD_DIR, arguments);
    FILE *pipe = popen(command, "r");
    assert_true(text != NULL && pipe != NULL);
    size_t n = fread(text, 1, (1 << 20) - 1, pipe);
    text[n] = '\0';
    pclose(pipe);
    return text;
}

/* --- Intervals --------------------------------------------------------------------------------- */

enum { N_INTERVALS = 300, N_STEPS = 80 };

static void make_intervals(onv_interval *intervals, uint64_t seed)
{
    FILE *file = fopen("intervals.csv", "w");
    assert_non_null(file);
    fputs("id,lower,upper,size\n", file);
    for (size_t i = 0; i < N_INTERVALS; i++) {
        uint64_t lower = random_below(&seed, N_STEPS), size = 1 + random_below(&seed, 5000);
        uint64_t upper = lower + 1 + random_below(&seed, 12);
        intervals[i] = (onv_interval){lower, upper, size};
        fprintf(file, "%zu,%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", i, lower, upper, size);
    }
    assert_int_equal(fclose(file), 0);
}

static void expect_offsets(const char *text, const uint64_t *offsets)
{
    const char *line = strchr(text, '\n');
    for (size_t i = 0; i < N_INTERVALS; i++) {
        unsigned long long id, lower, upper, size, offset;
        assert_non_null(line);
        assert_int_equal(
            sscanf(line + 1, "%llu,%llu,%llu,%llu,%llu", &id, &lower, &upper, &size, &offset), 5);
        assert_int_equal(id, i);
        assert_int_equal(offset, offsets[i]);
        line = strchr(line + 1, '\n');
    }
}

TEST(a_plan_is_that_of_the_program)
{
    static const struct {
        uint64_t alignment, effort;
        const char *arguments;
    } rows[] = {{0, 0, "plan intervals.csv"},
                {256, 0, "plan intervals.csv --align 256"},
                {0, 100000, "plan intervals.csv --effort 100000"}};
    onv_interval intervals[N_INTERVALS];
    uint64_t offsets[N_INTERVALS];
    onv_plan_info info;
    onv_error error = {0};
    for (uint64_t seed = 1; seed <= 3; seed++) {
        make_intervals(intervals, seed);
        onv_planner_options options = onv_planner_options_default();
        options.alignment = rows[seed - 1].alignment;
        options.effort = rows[seed - 1].effort;
        assert_int_equal(
            onv_plan_intervals(intervals, N_INTERVALS, &options, offsets, &info, &error), ONV_OK);
        uint64_t height = 0;
        for (size_t i = 0; i < N_INTERVALS; i++) {
            if (options.alignment > 0) assert_int_equal(offsets[i] % options.alignment, 0);
            if (offsets[i] + intervals[i].size > height) height = offsets[i] + intervals[i].size;
            for (size_t k = 0; k < i; k++)
                assert_true(intervals[i].upper <= intervals[k].lower ||
                            intervals[k].upper <= intervals[i].lower ||
                            offsets[i] + intervals[i].size <= offsets[k] ||
                            offsets[k] + intervals[k].size <= offsets[i]);
        }
        assert_true(info.height >= height && info.height < height + 256 && info.fits);
        assert_int_equal(info.optimal, info.height == info.lower_bound);
        OWNED_TEXT text = run(rows[seed - 1].arguments);
        expect_offsets(text, offsets);
    }
}

TEST(a_capacity_is_met_or_not)
{
    const onv_interval intervals[] = {{0, 2, 64}, {1, 3, 32}, {2, 4, 64}};
    uint64_t offsets[3] = {9, 9, 9};
    onv_plan_info info;
    onv_planner_options options = onv_planner_options_default();
    options.capacity = 96;
    assert_int_equal(onv_plan_intervals(intervals, 3, &options, offsets, &info, NULL), ONV_OK);
    assert_true(info.fits && info.height == 96 && info.optimal);
    assert_true(offsets[0] == offsets[2] && offsets[0] != offsets[1]);
    options.capacity = 95;
    assert_int_equal(onv_plan_intervals(intervals, 3, &options, offsets, &info, NULL), ONV_OK);
    assert_false(info.fits);
    assert_int_equal(onv_plan_intervals(NULL, 0, NULL, NULL, &info, NULL), ONV_OK);
    assert_int_equal(info.height, 0);
    assert_int_equal(onv_plan_intervals(intervals, 3, NULL, offsets, NULL, NULL), ONV_OK);
}

/* --- Events ------------------------------------------------------------------------------------ */

enum { N_EVENTS = 2000 };

static size_t make_events(onv_event *events, uint64_t seed)
{
    size_t live[N_EVENTS], n_live = 0;
    FILE *file = fopen("trace.csv", "w");
    assert_non_null(file);
    for (size_t i = 0; i < N_EVENTS; i++) {
        if (n_live > 0 && random_below(&seed, 100) < 45) {
            size_t at = random_below(&seed, (uint32_t)n_live);
            events[i] = (onv_event){.frees = live[at]};
            fprintf(file, "free,%zu\n", live[at]);
            live[at] = live[--n_live];
        } else {
            uint64_t bytes = (uint64_t)random_below(&seed, 1 << 12) << random_below(&seed, 14);
            events[i] = (onv_event){.bytes = bytes, .frees = ONV_NO_INDEX};
            fprintf(file, "alloc,%zu,%" PRIu64 "\n", i, bytes);
            live[n_live++] = i;
        }
    }
    assert_int_equal(fclose(file), 0);
    return N_EVENTS;
}

static void expect_row(const char *name, const onv_simulated_info *info, const char *arguments)
{
    char expected[200];
    snprintf(expected, sizeof expected,
             "%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", name,
             info->allocated_peak, info->reserved_peak, info->allocated_end, info->reserved_end,
             info->segments);
    OWNED_TEXT text = run(arguments);
    assert_string_equal(text, expected);
}

TEST(a_simulation_is_that_of_the_program)
{
    onv_event events[N_EVENTS];
    onv_simulated_info info;
    onv_error error = {0};
    char arguments[200];
    const char *name;
    size_t n = make_events(events, 7), i = 0;
    for (bool is_last = false; !is_last; i++) {
        name = onv_name_at(ONV_NAMES_ALLOCATORS, i, NULL);
        is_last = name == NULL;
        if (is_last) name = "arena";
        assert_int_equal(onv_simulate_events(events, n, name, NULL, &info, &error), ONV_OK);
        assert_false(info.out_of_memory);
        assert_true(info.requested_peak > 0 && info.reserved_peak >= info.requested_peak);
        snprintf(arguments, sizeof arguments, "simulate trace.csv --runtime %s", name);
        expect_row(name, &info, arguments);
    }
    assert_true(i > 5);
    onv_planner_options options = onv_planner_options_default();
    options.expandable_segments = true;
    assert_int_equal(onv_simulate_events(events, n, "torch", &options, &info, &error), ONV_OK);
    expect_row("torch", &info, "simulate trace.csv --runtime torch --expandable-segments");
    options = onv_planner_options_default();
    options.capacity = info.requested_peak / 2;
    assert_int_equal(onv_simulate_events(events, n, "torch", &options, &info, &error), ONV_OK);
    assert_true(info.out_of_memory && info.oom_event > 0 && info.oom_bytes > 0);
    assert_true(info.reserved_peak <= options.capacity);
    assert_int_equal(onv_simulate_events(events, n, "arena", &options, &info, &error), ONV_OK);
    assert_true(info.out_of_memory);
    assert_int_equal(onv_simulate_events(NULL, 0, "torch", NULL, &info, &error), ONV_OK);
    assert_int_equal(info.reserved_peak, 0);
}

/* --- Graphs ------------------------------------------------------------------------------------ */

/* The graph of a model; weights need no memory of their own. */
static void copy_graph(const onv_analysis *a, onv_size_graph *g, onv_graph_value *values,
                       onv_graph_read *reads)
{
    onv_tensor_info t;
    const onv_timeline *timeline = &a->live.timeline;
    *g = (onv_size_graph){.struct_size = sizeof *g, .values = values, .reads = reads};
    for (; onv_analysis_tensor(a, g->n_values, &t); g->n_values++)
        values[g->n_values] =
            (onv_graph_value){t.live ? t.bytes : 0, ONV_NO_INDEX, t.kind == ONV_TENSOR_OUTPUT};
    for (; g->n_nodes < timeline->steps.count; g->n_nodes++) {
        const onv_node *node = onv_model_node(&a->model, timeline->steps.at[g->n_nodes].node);
        for (size_t i = 0; i < node->n_inputs; i++)
            if (onv_is_value(node->inputs[i]))
                reads[g->n_reads++] = (onv_graph_read){g->n_nodes, node->inputs[i].index};
        for (size_t i = 0; i < node->n_outputs; i++)
            if (onv_is_value(node->outputs[i])) values[node->outputs[i].index].writer = g->n_nodes;
    }
}

enum { MOST_VALUES = 4000, MOST_READS = 8000, MOST_NODES = 2000 };

TEST(an_order_is_that_of_an_analysis)
{
    static const char *const samples[] = {"resnet18", "densenet201", "unet-train", "swin_t-dynamo"};
    static const char *const orders[] = {"greedy", "optimal"};
    static onv_graph_value values[MOST_VALUES];
    static onv_graph_read reads[MOST_READS];
    static size_t order[MOST_NODES];
    for (size_t i = 0; i < 8; i++) {
        char path[600];
        onv_options options = onv_options_default();
        const onv_dim_binding dims[] = {{"batch", 2}, {"height", 64}, {"width", 64}};
        bool found[3];
        options.dims = dims;
        options.dims_found = found;
        options.n_dims = 3;
        options.runtimes = "ideal";
        onv_analysis *a, *ordered;
        onv_summary sums;
        onv_error error = {0};
        snprintf(path, sizeof path, "%s/samples/%s.onnx", ONV_SOURCE_DIR, samples[i / 2]);
        assert_int_equal(onv_analysis_new(path, &options, &a, &error), ONV_OK);
        options.order = orders[i % 2];
        assert_int_equal(onv_analysis_new(path, &options, &ordered, &error), ONV_OK);
        onv_analysis_summary(ordered, &sums);
        onv_size_graph graph;
        copy_graph(a, &graph, values, reads);
        assert_true(graph.n_values < MOST_VALUES && graph.n_nodes < MOST_NODES &&
                    graph.n_reads < MOST_READS);
        onv_planner_options how = onv_planner_options_default();
        onv_graph_order_info info;
        how.order = orders[i % 2];
        assert_int_equal(onv_order_graph(&graph, &how, order, &info, &error), ONV_OK);
        assert_int_equal(info.peak_bytes, sums.peak_bytes);
        assert_int_equal(info.lower_bound_bytes, ordered->order.lower_bound_bytes);
        assert_int_equal(info.proven, ordered->order.proven);
        onv_analysis_destroy(a);
        onv_analysis_destroy(ordered);
    }
}

/* Two chains that end large: one after the other needs less than side by side. Numbers run against the order. */
TEST(an_order_is_found_from_any_numbers)
{
    const onv_graph_value values[] = {
        {100, 3, false}, {1, 2, false}, {100, 1, false}, {1, 0, true}};
    const onv_graph_read reads[] = {{2, 0}, {0, 1}, {0, 2}};
    const uint64_t extra[] = {0, 0, 5, 0};
    const onv_size_graph graph = {.struct_size = sizeof graph,
                                  .n_nodes = 4,
                                  .extra_bytes = extra,
                                  .values = values,
                                  .n_values = 4,
                                  .reads = reads,
                                  .n_reads = 3};
    size_t order[4];
    onv_graph_order_info info;
    assert_int_equal(onv_order_graph(&graph, NULL, order, &info, NULL), ONV_OK);
    const size_t expected[] = {3, 2, 1, 0};
    assert_memory_equal(order, expected, sizeof order);
    assert_int_equal(info.peak_bytes, 106);
    assert_true(info.proven && info.lower_bound_bytes == 106);
    const onv_size_graph empty = {.struct_size = sizeof empty};
    assert_int_equal(onv_order_graph(&empty, NULL, NULL, &info, NULL), ONV_OK);
    assert_int_equal(info.peak_bytes, 0);
}

/* --- What is refused --------------------------------------------------------------------------- */

static void expect_error(onv_status found, onv_status expected, const onv_error *error,
                         const char *part)
{
    assert_int_equal(found, expected);
    assert_int_equal(error->code, expected);
    if (strstr(error->message, part) == NULL)
        fail_msg("'%s' does not say '%s'", error->message, part);
}

TEST(wrong_intervals_are_named)
{
    const onv_interval one = {3, 5, 8};
    static const struct {
        onv_interval interval;
        onv_status status;
        const char *part;
    } rows[] = {{{5, 5, 1}, ONV_ERR_USAGE, "number 1 is [5, 5)"},
                {{6, 5, 1}, ONV_ERR_USAGE, "number 1 is [6, 5)"},
                {{0, 1, UINT64_MAX}, ONV_ERR_OVERFLOW, "number 1 has 18446744073709551615"},
                {{0, UINT64_MAX, 1}, ONV_ERR_OVERFLOW, "63 bits"}};
    uint64_t offsets[2];
    onv_error error;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const onv_interval both[] = {one, rows[i].interval};
        expect_error(onv_plan_intervals(both, 2, NULL, offsets, NULL, &error), rows[i].status,
                     &error, rows[i].part);
    }
    const onv_interval large[] = {{0, 1, INT64_MAX}, {0, 1, INT64_MAX}, {0, 1, INT64_MAX}};
    uint64_t three[3];
    expect_error(onv_plan_intervals(large, 3, NULL, three, NULL, &error), ONV_ERR_OVERFLOW, &error,
                 "");
    expect_error(onv_plan_intervals(&one, 1, NULL, NULL, NULL, &error), ONV_ERR_USAGE, &error,
                 "offsets is NULL");
    expect_error(onv_plan_intervals(&one, (size_t)1 << 40, NULL, offsets, NULL, &error),
                 ONV_ERR_LIMIT, &error, "at most 4194304 intervals");
    onv_planner_options options = onv_planner_options_default();
    options.alignment = 12;
    expect_error(onv_plan_intervals(&one, 1, &options, offsets, NULL, &error), ONV_ERR_USAGE,
                 &error, "not 12");
    options = onv_planner_options_default();
    options.order = "greedy";
    expect_error(onv_plan_intervals(&one, 1, &options, offsets, NULL, &error), ONV_ERR_USAGE,
                 &error, "order has no effect");
}

TEST(wrong_events_are_named)
{
    const onv_event one = {.bytes = 512, .frees = ONV_NO_INDEX}, end = {.frees = 0};
    static const struct {
        onv_event event;
        onv_status status;
        const char *part;
    } rows[] = {
        {{.frees = 0}, ONV_ERR_USAGE, "event 2 frees what event 0 allocated, but that was freed"},
        {{.frees = 1}, ONV_ERR_USAGE, "is a free"},
        {{.frees = 2}, ONV_ERR_USAGE, "comes later"},
        {{.frees = 9}, ONV_ERR_USAGE, "comes later"},
        {{.bytes = UINT64_MAX, .frees = ONV_NO_INDEX}, ONV_ERR_LIMIT, "event 2 asks for"},
        {{.bytes = 1, .frees = ONV_NO_INDEX, .stream = 4}, ONV_ERR_USAGE, "streams are 0 to 3"}};
    static const char *const names[] = {"torch", "bfc", "arena"};
    onv_simulated_info info;
    onv_error error;
    for (size_t i = 0; i < 3 * sizeof rows / sizeof rows[0]; i++) {
        const onv_event all[] = {one, end, rows[i / 3].event};
        expect_error(onv_simulate_events(all, 3, names[i % 3], NULL, &info, &error),
                     rows[i / 3].status, &error, rows[i / 3].part);
    }
    expect_error(onv_simulate_events(&one, 1, "trch", NULL, &info, &error), ONV_ERR_USAGE, &error,
                 "did you mean 'torch'");
    expect_error(onv_simulate_events(&one, 1, NULL, NULL, &info, &error), ONV_ERR_USAGE, &error,
                 "none is named");
    expect_error(onv_simulate_events(&one, (size_t)1 << 40, "torch", NULL, &info, &error),
                 ONV_ERR_LIMIT, &error, "at most 33554432 events");
    onv_planner_options options = onv_planner_options_default();
    options.expandable_segments = true;
    expect_error(onv_simulate_events(&one, 1, "bfc", &options, &info, &error), ONV_ERR_USAGE,
                 &error, "expandable_segments has no effect");
}

TEST(wrong_graphs_are_named)
{
    onv_graph_value values[] = {{8, 0, false}, {8, 1, true}};
    onv_graph_read reads[] = {{1, 0}, {0, 1}};
    onv_size_graph graph = {.struct_size = sizeof graph,
                            .n_nodes = 2,
                            .values = values,
                            .n_values = 2,
                            .reads = reads,
                            .n_reads = 2};
    size_t order[2];
    onv_error error;
    expect_error(onv_order_graph(&graph, NULL, order, NULL, &error), ONV_ERR_USAGE, &error,
                 "node 0 waits for itself");
    reads[1].node = 2;
    expect_error(onv_order_graph(&graph, NULL, order, NULL, &error), ONV_ERR_USAGE, &error,
                 "refers to node 2");
    reads[1] = (onv_graph_read){0, 7};
    expect_error(onv_order_graph(&graph, NULL, order, NULL, &error), ONV_ERR_USAGE, &error,
                 "refers to value 7");
    graph.n_reads = 1;
    values[1].writer = 5;
    expect_error(onv_order_graph(&graph, NULL, order, NULL, &error), ONV_ERR_USAGE, &error,
                 "value number 1");
    values[1].writer = 1;
    graph.n_nodes = 0;
    expect_error(onv_order_graph(&graph, NULL, NULL, NULL, &error), ONV_ERR_USAGE, &error,
                 "there are 0");
    graph.n_nodes = 2;
    values[0].bytes = values[1].bytes = UINT64_MAX / 2;
    expect_error(onv_order_graph(&graph, NULL, order, NULL, &error), ONV_ERR_OVERFLOW, &error, "");
    values[0].bytes = values[1].bytes = 8;
    expect_error(onv_order_graph(&graph, NULL, NULL, NULL, &error), ONV_ERR_USAGE, &error,
                 "room for their order");
    onv_planner_options options = onv_planner_options_default();
    options.order = "model";
    expect_error(onv_order_graph(&graph, &options, order, NULL, &error), ONV_ERR_USAGE, &error,
                 "not 'model'");
    onv_limits limits = onv_limits_default();
    options = onv_planner_options_default();
    options.limits = &limits;
    limits.nodes = 1;
    expect_error(onv_order_graph(&graph, &options, order, NULL, &error), ONV_ERR_LIMIT, &error,
                 "--limit nodes=N");
    limits.nodes = 0;
    limits.arena_bytes = 64;
    expect_error(onv_order_graph(&graph, &options, order, NULL, &error), ONV_ERR_LIMIT, &error,
                 "memory");
}

static bool at_once(void *context)
{
    ++*(size_t *)context;
    return true;
}

TEST(a_callback_ends_them)
{
    static onv_event events[1 << 16];
    onv_interval intervals[N_INTERVALS];
    uint64_t offsets[N_INTERVALS];
    onv_planner_options options = onv_planner_options_default();
    onv_simulated_info info;
    onv_error error;
    size_t asked = 0;
    options.cancelled = at_once;
    options.cancel_context = &asked;
    make_intervals(intervals, 11);
    options.effort = (uint64_t)1 << 40;
    expect_error(onv_plan_intervals(intervals, N_INTERVALS, &options, offsets, NULL, &error),
                 ONV_ERR_CANCELLED, &error, "cancelled");
    assert_true(asked > 0);
    options.effort = asked = 0;
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++)
        events[i] = (onv_event){.bytes = 512, .frees = ONV_NO_INDEX};
    expect_error(onv_simulate_events(events, sizeof events / sizeof events[0], "torch", &options,
                                     &info, &error),
                 ONV_ERR_CANCELLED, &error, "cancelled");
    assert_true(asked > 0);
}

/* A program that was compiled when options ended before `alignment`. */
TEST(shorter_options_are_those_of_older_headers)
{
    const onv_interval one = {0, 1, 8};
    uint64_t offset;
    onv_plan_info info = {.nodes = 77};
    onv_planner_options options = onv_planner_options_default();
    options.alignment = 12;
    options.struct_size = offsetof(onv_planner_options, alignment);
    assert_int_equal(
        onv_plan_get(&one, 1, &options, &offset, &info, offsetof(onv_plan_info, nodes), NULL),
        ONV_OK);
    assert_int_equal(info.height, 8);
    assert_int_equal(info.nodes, 77);
}

TEST_GROUP(folder_enter, folder_leave)
