/* The library's functions that Python's package calls through cffi, with arrays, numbers, texts and sizes of structs that an input
 * chooses: each call is a byte that says which, and its arguments, until the input ends. */
#include <limits.h>
#include <string.h>

#include "fuzz/hold.h"
#include "fuzz/message.h"
#include "onnxvram/onnxvram.h"

enum { MOST_CALLS = 24, MOST_ROWS = 48, MOST_TEXT = 64, MOST_REPORT = 1 << 22, LARGEST_INFO = 256 };

typedef struct input {
    const uint8_t *at;
    size_t left;
} input;

static uint8_t byte(input *in)
{
    if (in->left == 0) return 0;
    in->left--;
    return *in->at++;
}

/* Small ones, and some at the edges. */
static uint64_t number(input *in)
{
    static const uint64_t edges[] = {UINT64_MAX, INT64_MAX,         (uint64_t)INT64_MAX + 1,
                                     UINT32_MAX, UINT64_C(1) << 32, UINT64_C(1) << 61};
    uint64_t value = byte(in);
    if (value < 0xc0) return value;
    if (value < 0xc6) return edges[value - 0xc0];
    for (unsigned i = 0; i < (value & 7); i++) value = value << 8 | byte(in);
    return value;
}

static char *text(input *in)
{
    size_t length = byte(in) % MOST_TEXT;
    char *made = calloc(1, MOST_TEXT); /* of which a sanitizer knows the end */
    hold(made != NULL);
    for (size_t i = 0; i < length; i++) made[i] = (char)byte(in);
    return made;
}

/* A struct of a caller whose header is older or newer: all of `size` bytes may be written, and no other. */
static void *info_of(input *in, size_t current, size_t *size)
{
    *size = byte(in) % 4 == 0 ? number(in) % LARGEST_INFO : current;
    void *made = malloc(*size > 0 ? *size : 1);
    hold(made != NULL);
    return made;
}

static bool drop(void *context, const char *data, size_t bytes)
{
    size_t *written = context;
    for (size_t i = 0; i < bytes; i += 512) (void)*(volatile const char *)&data[i];
    return (*written += bytes) < MOST_REPORT;
}

static bool cancelled(void *context)
{
    unsigned *asked = context;
    return *asked > 0 && --*asked == 0;
}

/* --- Without a model ---------------------------------------------------------------------------- */

typedef struct planner {
    onv_planner_options options;
    onv_limits limits;
    unsigned asked;
} planner;

static void draw_limits(input *in, onv_limits *limits)
{
    onv_limits_init(limits, sizeof *limits);
    limits->seconds = 10;
    limits->arena_bytes = (uint64_t)64 << 20;
    limits->work = UINT64_C(1) << 24;
    for (unsigned n = byte(in) % 3; n > 0; n--) {
        char *name = text(in);
        const char *known = onv_limit_name(byte(in) % 16, NULL, NULL);
        uint64_t value = number(in);
        bool is_set = onv_limits_set(limits, known != NULL ? known : name, value);
        hold(known == NULL || is_set || value > UINT32_MAX);
        free(name);
    }
    if (limits->work == 0 || limits->work > UINT64_C(1) << 24) limits->work = UINT64_C(1) << 24;
    if (limits->arena_bytes == 0 || limits->arena_bytes > (uint64_t)64 << 20)
        limits->arena_bytes = (uint64_t)64 << 20;
}

/* `of`: what the function takes; now and then all of it. */
enum { TAKES_CAPACITY = 1, TAKES_ALIGNMENT = 2, TAKES_SEGMENTS = 4, TAKES_ORDER = 8 };

static void draw_planner(input *in, planner *p, unsigned of)
{
    static const char *const orders[] = {NULL, "greedy", "optimal", "nothing"};
    onv_planner_options_init(&p->options, sizeof p->options);
    draw_limits(in, &p->limits);
    p->options.limits = &p->limits;
    p->options.effort = 1 + number(in) % 20000;
    if (byte(in) % 16 == 0) of = UINT_MAX;
    if (of & TAKES_CAPACITY && byte(in) % 2 == 0) p->options.capacity = number(in);
    if (of & TAKES_ALIGNMENT && byte(in) % 2 == 0)
        p->options.alignment = byte(in) % 4 == 0 ? number(in) : UINT64_C(1) << byte(in) % 64;
    if (of & TAKES_SEGMENTS) p->options.expandable_segments = byte(in) % 2;
    if (of & TAKES_ORDER) p->options.order = orders[byte(in) % 4];
    p->asked = byte(in) % 32;
    p->options.cancelled = p->asked < 8 ? cancelled : NULL;
    p->options.cancel_context = &p->asked;
}

static void plan(input *in)
{
    planner p;
    onv_interval rows[MOST_ROWS];
    uint64_t *offsets = malloc(MOST_ROWS * sizeof *offsets);
    size_t n = byte(in) % MOST_ROWS, size;
    onv_error error = {0};
    hold(offsets != NULL);
    draw_planner(in, &p, TAKES_CAPACITY | TAKES_ALIGNMENT);
    for (size_t i = 0; i < n; i++) {
        uint64_t lower = number(in), upper = byte(in) % 8 == 0 ? number(in) : lower + byte(in);
        rows[i] = (onv_interval){lower, upper, number(in)};
    }
    onv_plan_info *info = info_of(in, sizeof *info, &size);
    onv_status status = onv_plan_get(rows, n, &p.options, offsets, info, size, &error);
    if (status != ONV_OK) check_failure(status, &error);
    for (size_t i = 0; status == ONV_OK && i < n; i++)
        for (size_t k = 0; k < i; k++) {
            bool meet = rows[i].lower < rows[k].upper && rows[k].lower < rows[i].upper;
            hold(!meet || rows[i].size == 0 || rows[k].size == 0 ||
                 offsets[i] + rows[i].size <= offsets[k] ||
                 offsets[k] + rows[k].size <= offsets[i]);
        }
    free(info);
    free(offsets);
}

static void simulate(input *in)
{
    planner p;
    onv_event events[MOST_ROWS];
    size_t n = byte(in) % MOST_ROWS, size, count = 0;
    onv_error error = {0};
    while (onv_name_at(ONV_NAMES_ALLOCATORS, count, NULL) != NULL) count++;
    const char *allocator = onv_name_at(ONV_NAMES_ALLOCATORS, byte(in) % (count + 1), NULL);
    draw_planner(in, &p, TAKES_CAPACITY | TAKES_SEGMENTS);
    for (size_t i = 0; i < n; i++) {
        size_t frees = byte(in) % 2 ? ONV_NO_INDEX : i > 0 ? byte(in) % i : number(in);
        events[i] = (onv_event){number(in), frees, byte(in) % 64 == 0 ? byte(in) : byte(in) % 4};
    }
    onv_simulated_info *info = info_of(in, sizeof *info, &size);
    onv_status status = onv_simulate_get(events, n, allocator != NULL ? allocator : "arena",
                                         &p.options, info, size, &error);
    if (status != ONV_OK) check_failure(status, &error);
    if (status == ONV_OK && size == sizeof *info)
        hold(info->allocated_end <= info->allocated_peak &&
             info->reserved_end <= info->reserved_peak);
    free(info);
}

/* One of so many, as a rule. */
static size_t node_of(input *in, size_t n, bool may_be_none)
{
    uint8_t drawn = byte(in);
    if (drawn == 0xff) return number(in);
    if (may_be_none && drawn >= 0xc0) return ONV_NO_INDEX;
    return n > 0 ? drawn % n : 0;
}

static void order(input *in)
{
    planner p;
    uint64_t extra[MOST_ROWS];
    onv_graph_value values[MOST_ROWS];
    onv_graph_read reads[MOST_ROWS];
    onv_size_graph graph = {.struct_size = sizeof graph, .values = values, .reads = reads};
    size_t size, place[MOST_ROWS], *found;
    onv_error error = {0};
    graph.n_nodes = byte(in) % MOST_ROWS;
    graph.n_values = byte(in) % MOST_ROWS;
    graph.n_reads = byte(in) % MOST_ROWS;
    graph.extra_bytes = byte(in) % 2 ? extra : NULL;
    draw_planner(in, &p, TAKES_ORDER);
    for (size_t i = 0; i < MOST_ROWS; i++) extra[i] = number(in);
    for (size_t i = 0; i < graph.n_values; i++)
        values[i] =
            (onv_graph_value){number(in), byte(in) % 3 ? number(in) : ONV_NO_INDEX, byte(in) % 2};
    for (size_t i = 0; i < graph.n_reads; i++)
        reads[i] =
            (onv_graph_read){node_of(in, graph.n_nodes, false), node_of(in, graph.n_values, false)};
    found = malloc((graph.n_nodes > 0 ? graph.n_nodes : 1) * sizeof *found);
    hold(found != NULL);
    onv_graph_order_info *info = info_of(in, sizeof *info, &size);
    onv_status status = onv_order_graph_get(&graph, &p.options, found, info, size, &error);
    if (status != ONV_OK) check_failure(status, &error);
    for (size_t i = 0; status == ONV_OK && i < graph.n_nodes; i++) {
        hold(found[i] < graph.n_nodes);
        place[found[i]] = i;
    }
    for (size_t i = 0; status == ONV_OK && i < graph.n_reads; i++) {
        size_t writer = values[reads[i].value].writer;
        hold(writer == ONV_NO_INDEX || place[writer] < place[reads[i].node]);
    }
    free(info);
    free(found);
}

static void look_up(input *in)
{
    char *name = text(in), shown[MOST_TEXT * 4];
    size_t room = number(in) % sizeof shown, size;
    char *out = malloc(room > 0 ? room : 1);
    hold(out != NULL);
    (void)onv_printable(name, out, room);
    uint64_t bytes;
    (void)onv_size_parse(name, &bytes);
    (void)onv_is_called(name, "torch");
    hold(room == 0 || memchr(out, '\0', room) != NULL);
    size = byte(in) % 4 == 0 ? number(in) % LARGEST_INFO : sizeof(onv_gpu_info);
    size_t capacity = byte(in) % 9;
    char *found = malloc(capacity * size + 1);
    hold(found != NULL && onv_version() != NULL);
    (void)onv_gpu_by_name_get(name, (onv_gpu_info *)(void *)found, capacity, size);
    free(found);
    free(out);
    free(name);
}

/* --- A model ------------------------------------------------------------------------------------- */

/* float32[n, 8] (or [8, 8]). */
static void put_value(message *graph, unsigned field, const char *name, bool is_free)
{
    static message part, dim, type;
    for (unsigned i = 0; i < 2; i++) {
        if (i == 0 && is_free)
            put_text(&dim, 2, "n");
        else
            put_number(&dim, 1, 8);
        put_part(&type, 1, &dim);
    }
    put_number(&part, 1, 1);
    put_part(&part, 2, &type);
    put_part(&type, 1, &part);
    put_text(&part, 1, name);
    put_part(&part, 2, &type);
    put_part(graph, field, &part);
}

static void put_node(message *graph, const char *op, const char *name, const char *const names[3])
{
    static message node;
    for (unsigned i = 0; i < 2 && names[i] != NULL; i++) put_text(&node, 1, names[i]);
    put_text(&node, 2, names[2]);
    put_text(&node, 3, name);
    put_text(&node, 4, op);
    put_part(graph, 1, &node);
}

/* y = relu(x w) w, with w as an input: modules have names. */
static const message *model(void)
{
    static message graph, made, opset;
    if (made.size > 0) return &made;
    put_node(&graph, "MatMul", "/layer/first/MatMul", (const char *const[]){"x", "w", "h"});
    put_node(&graph, "Relu", "/layer/Relu", (const char *const[]){"h", NULL, "r"});
    put_node(&graph, "MatMul", "/second/MatMul", (const char *const[]){"r", "w", "y"});
    put_value(&graph, 11, "x", true);
    put_value(&graph, 11, "w", false);
    put_value(&graph, 12, "y", true);
    put_number(&made, 1, 8);
    put_number(&opset, 2, 17);
    put_part(&made, 8, &opset);
    put_part(&made, 7, &graph);
    return &made;
}

static onv_analysis *analyse(input *in)
{
    static const char *const trains[] = {NULL, NULL, "sgd", "adamw"};
    char *words[4] = {text(in), text(in), text(in), text(in)};
    onv_limits limits;
    onv_options options;
    onv_analysis *analysis;
    onv_error error = {0};
    draw_limits(in, &limits);
    onv_options_init(&options, sizeof options);
    options.limits = &limits;
    options.batch = (int64_t)number(in);
    options.train = trains[byte(in) % 4];
    options.timelines = byte(in) % 2;
    options.budget = number(in);
    options.example = byte(in) % 2;
    uint8_t given = byte(in);
    if (given & 1) options.runtimes = words[0];
    if (given & 2) options.order = words[1];
    if (given & 4) options.checkpoint = words[2];
    if (given & 8) options.max_dim = words[3];
    onv_dim_binding dim = {given & 16 ? "n" : words[3], (int64_t)number(in)};
    options.dims = &dim;
    options.n_dims = given >> 5 & 1;
    onv_status status = onv_analysis_new_from_memory(model()->at, model()->size, words[0], &options,
                                                     &analysis, &error);
    hold((status == ONV_OK) == (analysis != NULL));
    if (status != ONV_OK) check_failure(status, &error);
    for (size_t i = 0; i < 4; i++) free(words[i]);
    return analysis;
}

static void read_rows(input *in, const onv_analysis *analysis)
{
    size_t size, index = number(in), count = onv_analysis_tensor_count(analysis);
    onv_module_table *table;
    onv_error error = {0};
    onv_tensor_info *tensor = info_of(in, sizeof *tensor, &size);
    hold(onv_analysis_tensor_get(analysis, index, tensor, size) == (index < count));
    free(tensor);
    onv_module_info *module = info_of(in, sizeof *module, &size);
    onv_status status = onv_module_table_new(analysis, (unsigned)number(in), &table, &error);
    if (status == ONV_OK)
        (void)onv_module_table_get(table, number(in), module, size);
    else
        check_failure(status, &error);
    onv_module_table_destroy(table);
    free(module);
}

static void report(input *in, onv_analysis *const *analyses, size_t count)
{
    onv_report_options options;
    onv_together_info *together;
    unsigned instances[3];
    size_t size, written = 0, of = byte(in) % (count + 1);
    onv_error error = {0};
    for (size_t i = 0; i < 3; i++) instances[i] = (unsigned)number(in);
    together = info_of(in, sizeof *together, &size);
    onv_status status = onv_together_get(analyses, instances, of, together, size, &error);
    if (status != ONV_OK) check_failure(status, &error);
    onv_report_options_init(&options, sizeof options);
    options.color = byte(in) % 2;
    options.unicode = byte(in) % 2;
    options.width = (unsigned)number(in);
    options.top = (unsigned)number(in);
    options.layer_depth = (unsigned)number(in);
    options.verbosity = (int)(byte(in) % 4) - 1;
    if (status == ONV_OK && size == sizeof *together) options.together = together;
    error = (onv_error){0};
    status = onv_report((const onv_analysis *const *)analyses, of, (onv_format)(byte(in) % 30),
                        &options, drop, &written, &error);
    if (status != ONV_OK) check_failure(status, &error);
    free(together);
}

/* An analysis, what is asked of it, and of it together with another one. */
static void use_model(input *in)
{
    onv_analysis *analyses[3] = {analyse(in)};
    size_t count = analyses[0] != NULL;
    if (count > 0) read_rows(in, analyses[0]);
    if (count > 0 && byte(in) % 4 == 0 && (analyses[count] = analyse(in)) != NULL) count++;
    if (count > 0) report(in, analyses, count);
    for (size_t i = 0; i < count; i++) onv_analysis_destroy(analyses[i]);
}

static void use_path(input *in)
{
    char *path = text(in);
    onv_analysis *analysis;
    onv_error error = {0};
    for (char *c = path; *c != '\0'; c++)
        if (*c == '/') *c = '.'; /* no file of the machine */
    onv_status status = onv_analysis_new(path, NULL, &analysis, &error);
    hold(status != ONV_OK || analysis != NULL);
    if (status != ONV_OK) check_failure(status, &error);
    onv_analysis_destroy(analysis);
    free(path);
}

void fuzz_run_library(const uint8_t *data, size_t size)
{
    static void (*const calls[])(input *) = {plan, simulate, order, look_up, use_model, use_path};
    input in = {data, size};
    for (unsigned n = 0; n < MOST_CALLS && in.left > 0; n++)
        calls[byte(&in) % (sizeof calls / sizeof calls[0])](&in);
}
