/* The member "timelines" of a model's object: what was executed, for who draws it.
 *
 * Lists are columns, one number for each step, buffer or segment, as differences: the first number,
 * then what each adds to the one before. A column of nothing but its usual value (0; -1 for what refers to
 * a row) is left out; one that an earlier execution has alike is the number of that execution. Text stands once: a name is the index of a row of "tensors", or, counted on from
 * there, of "labels".
 */
#include <string.h>

#include "base/strings.h"
#include "report/modules.h"
#include "report/sections.h"

enum { NONE = -1 };

typedef struct naming {
    const onv_view *view; /* whose tensors and nodes are named */
    uint32_t *of_value;   /* by value: its row in "tensors"; UINT32_MAX: none */
    uint32_t *step_of;    /* by row: the step that makes it; UINT32_MAX: none */
    uint32_t n_tensors;
    ONV_VEC(const char *) text; /* of all names, tensors first */
    onv_arena arena;
    onv_strings strings;
    ONV_VEC(uint32_t) first; /* by string: the first name that is it */
    bool failed;
} naming;

/* --- Names ------------------------------------------------------------------------------------- */

/* A name more; where its text is new it is the one that stands for it. */
static void add_name(naming *n, const char *text)
{
    const char *interned = onv_intern(&n->strings, text);
    n->failed |= interned == NULL || !onv_vec_push(&n->text, interned);
    if (!n->failed && onv_string_number(interned) == n->first.count)
        n->failed = !onv_vec_push(&n->first, (uint32_t)n->text.count - 1);
}

/* The index of a name that is there; NONE: it is not. */
static int64_t find_name(const naming *n, const char *text)
{
    const char *interned = n->failed ? NULL : onv_interned(&n->strings, text);
    return interned != NULL ? (int64_t)n->first.at[onv_string_number(interned)] : NONE;
}

/* The index of a name, which is new where it was not there; NONE without text or memory. */
static int64_t name_of(naming *n, const char *text)
{
    if (text == NULL) return NONE;
    int64_t found = find_name(n, text);
    if (found == NONE) add_name(n, text);
    return found != NONE || n->failed ? found : (int64_t)n->text.count - 1;
}

/* Tensors have their rows as indices, also where two share a name. */
static void name_tensors(naming *n, const onv_view *view)
{
    const onv_model *model = &view->model;
    size_t n_values = model->values.count;
    n->view = view;
    onv_arena_init(&n->arena, SIZE_MAX);
    n->of_value = ONV_ARENA_ARRAY(&n->arena, uint32_t, n_values + 1);
    n->step_of = ONV_ARENA_ARRAY(&n->arena, uint32_t, n_values + 1);
    n->failed = n->arena.failed;
    onv_strings_init(&n->strings, &n->arena);
    for (uint32_t i = 0; i < n_values && !n->failed; i++) {
        n->of_value[i] = UINT32_MAX;
        n->step_of[i] = UINT32_MAX;
        if (!onv_view_is_there(view, (onv_value_id){i})) continue;
        n->of_value[i] = (uint32_t)n->text.count;
        add_name(n, model->values.at[i].name);
    }
    n->n_tensors = (uint32_t)n->text.count;
    const onv_timeline *t = &view->live.timeline;
    for (uint32_t s = 0; s < t->steps.count && !n->failed; s++) {
        const onv_node *node = onv_model_node(model, t->steps.at[s].node);
        for (uint32_t i = 0; i < node->n_outputs; i++) {
            if (!onv_is_value(node->outputs[i])) continue;
            uint32_t row = n->of_value[node->outputs[i].index];
            if (row != UINT32_MAX) n->step_of[row] = s;
        }
    }
}

static void cleanup(naming *n)
{
    onv_vec_cleanup(&n->text);
    onv_vec_cleanup(&n->first);
    onv_strings_cleanup(&n->strings);
    onv_arena_cleanup(&n->arena);
}

/* The row of "nodes" that a node of this model, an example's or a rewritten one is or stands for: the one
 * that makes the same value. */
static int64_t node_of(naming *n, const onv_model *model, onv_node_id id)
{
    if (!onv_is_node(id)) return NONE;
    const onv_node *node = onv_model_node(model, id);
    for (uint32_t i = 0; i < node->n_outputs; i++) {
        if (!onv_is_value(node->outputs[i])) continue;
        uint32_t row = UINT32_MAX;
        if (model == &n->view->model) {
            row = n->of_value[node->outputs[i].index];
        } else {
            int64_t name = find_name(n, onv_model_value(model, node->outputs[i])->name);
            if (name != NONE && name < n->n_tensors) row = (uint32_t)name;
        }
        if (row != UINT32_MAX && n->step_of[row] != UINT32_MAX) return n->step_of[row];
    }
    return NONE;
}

/* --- Columns ----------------------------------------------------------------------------------- */

typedef struct drawing {
    onv_json *json;
    naming *names;
    const onv_kept_execution *kept;
    uint64_t *live;                         /* by step */
    int64_t *nodes, *labels, *buffer_names; /* by step, by step, by buffer */
    onv_peak peak;
    const struct drawing *all; /* in their order, those before this one are written */
    size_t index;
} drawing;

/* One column of a table: its key, its most frequent value, and a function that returns its value in row `i`. */
typedef struct column {
    const char *key;
    int64_t usual;
    int64_t (*cell)(const onv_timeline *t, const onv_placement *p, const drawing *d, size_t i);
} column;

/* Steps, buffers or segments of an execution. */
typedef struct table {
    const char *key;
    const column *columns;
    size_t n_columns;
} table;

static int64_t row_or_none(uint32_t row, uint32_t none)
{
    return row == none ? NONE : (int64_t)row;
}

#define STEPS(COLUMN)                                                                              \
    COLUMN(step, node, NONE, d->nodes[i])                                                          \
    COLUMN(step, label, NONE, d->labels[i])                                                        \
    COLUMN(step, phase, 0, t->steps.at[i].phase)                                                   \
    COLUMN(step, iteration, 0, t->steps.at[i].iteration)                                           \
    COLUMN(step, recompute, 0, t->steps.at[i].is_recompute)                                        \
    COLUMN(step, live_bytes, 0, d->live[i])                                                        \
    COLUMN(step, allocated_bytes, 0, p->allocated_at[i])                                           \
    COLUMN(step, reserved_bytes, 0, p->reserved_at[i])

#define BUFFERS(COLUMN)                                                                            \
    COLUMN(buffer, name, NONE, d->buffer_names[i])                                                 \
    COLUMN(buffer, kind, 0, t->buffers.at[i].kind)                                                 \
    COLUMN(buffer, bytes, 0, t->buffers.at[i].bytes)                                               \
    COLUMN(buffer, first, 0, t->buffers.at[i].first)                                               \
    COLUMN(buffer, steps, 0, t->buffers.at[i].last - t->buffers.at[i].first)                       \
    COLUMN(buffer, within, NONE, row_or_none(t->buffers.at[i].within, ONV_NO_BUFFER))              \
    COLUMN(buffer, transient, 0, t->buffers.at[i].is_transient)                                    \
    COLUMN(buffer, segment, NONE, row_or_none(p->places.at[i].segment, ONV_NO_SEGMENT))            \
    COLUMN(buffer, offset, 0, p->places.at[i].offset)

#define SEGMENTS(COLUMN)                                                                           \
    COLUMN(segment, bytes, 0, p->segments.at[i].bytes)                                             \
    COLUMN(segment, first, 0, onv_placement_step_of(p, p->segments.at[i].taken))                   \
    COLUMN(segment, end, 0, onv_placement_step_of(p, p->segments.at[i].returned))

#define CELL(of, key, usual, value)                                                                \
    static int64_t of##_##key(const onv_timeline *t, const onv_placement *p, const drawing *d,     \
                              size_t i)                                                            \
    {                                                                                              \
        (void)t, (void)p, (void)d;                                                                 \
        return (int64_t)(value);                                                                   \
    }
#define ROW(of, key, usual, value) {#key, usual, of##_##key},

STEPS(CELL)
BUFFERS(CELL)
SEGMENTS(CELL)

#define COLUMNS(list) list, sizeof list / sizeof list[0]

static const column step_columns[] = {STEPS(ROW)};
static const column buffer_columns[] = {BUFFERS(ROW)};
static const column segment_columns[] = {SEGMENTS(ROW)};

enum { N_TABLES = 3 };

static const table tables[N_TABLES] = {{"steps", COLUMNS(step_columns)},
                                       {"buffers", COLUMNS(buffer_columns)},
                                       {"segments", COLUMNS(segment_columns)}};

static size_t count_rows(const drawing *d, size_t of)
{
    const onv_execution *made = &d->kept->made;
    const size_t counts[N_TABLES] = {made->timeline.steps.count, made->timeline.buffers.count,
                                     made->placement.segments.count};
    return counts[of];
}

static int64_t cell(const drawing *d, const column *c, size_t i)
{
    return c->cell(&d->kept->made.timeline, &d->kept->made.placement, d, i);
}

static bool is_alike(const drawing *d, const drawing *other, size_t n, const column *c)
{
    size_t i = 0;
    while (i < n && cell(d, c, i) == cell(other, c, i)) i++;
    return i == n;
}

static void put_column(const drawing *d, size_t of, size_t n, const column *c)
{
    size_t i = 0;
    while (i < n && cell(d, c, i) == c->usual) i++;
    if (i == n) return;
    onv_json_key(d->json, c->key);
    /* Of many plans only neighbours are compared. */
    for (size_t k = 0; k < d->index; k++) {
        bool is_far = d->all[k].kept->plan != ONV_NO_PLAN && k + 1 < d->index;
        if (is_far || count_rows(&d->all[k], of) != n || !is_alike(d, &d->all[k], n, c)) continue;
        onv_json_u64(d->json, k);
        return;
    }
    int64_t before = 0;
    onv_json_open(d->json, '[', ONV_JSON_DENSE);
    for (i = 0; i < n && !d->json->out->failed; i++) {
        int64_t value = cell(d, c, i);
        onv_json_i64(d->json, (int64_t)((uint64_t)value - (uint64_t)before));
        before = value;
    }
    onv_json_close(d->json);
}

/* --- Executions -------------------------------------------------------------------------------- */

static void write_execution(const drawing *d)
{
    onv_json *json = d->json;
    const onv_held_figures *figures = &d->kept->made.placement.figures;
    uint32_t measured_from = d->kept->made.timeline.measured_from;
    onv_json_put_string(json, "runtime", d->kept->runtime);
    if (d->kept->plan != ONV_NO_PLAN) onv_json_put_u64(json, "plan", d->kept->plan);
    onv_json_put_u64(json, "peak_bytes", d->peak.bytes);
    onv_json_put_u64(json, "peak_step", d->peak.step);
    onv_json_put_u64(json, "allocated_peak_bytes", figures->allocated_peak);
    onv_json_put_u64(json, "reserved_peak_bytes", figures->reserved_peak);
    if (measured_from > 0) onv_json_put_u64(json, "measured_from", measured_from);
    for (size_t i = 0; i < N_TABLES; i++) {
        const size_t n = count_rows(d, i);
        ONV_JSON_PART(json, tables[i].key, LINES) {
            onv_json_put_u64(json, "count", n);
            for (size_t k = 0; k < tables[i].n_columns; k++)
                put_column(d, i, n, &tables[i].columns[k]);
        }
    }
}

static void name_rows(drawing *d)
{
    const onv_timeline *t = &d->kept->made.timeline;
    const onv_model *model = d->kept->model;
    for (size_t i = 0; i < t->steps.count; i++) {
        const onv_step *step = &t->steps.at[i];
        const char *label = step->label;
        if (label == NULL && onv_is_node(step->node))
            label = onv_model_node(model, step->node)->op_type;
        d->nodes[i] = node_of(d->names, model, step->node);
        d->labels[i] = name_of(d->names, label);
    }
    for (size_t i = 0; i < t->buffers.count; i++)
        d->buffer_names[i] = name_of(d->names, t->buffers.at[i].label);
}

/* The sums were checked when the figures were made, so all that can fail is memory. */
static bool prepare(drawing *d)
{
    const onv_timeline *t = &d->kept->made.timeline;
    onv_arena *arena = &d->names->arena;
    d->live = ONV_ARENA_ARRAY(arena, uint64_t, t->steps.count + 1);
    d->nodes = ONV_ARENA_ARRAY(arena, int64_t, t->steps.count + 1);
    d->labels = ONV_ARENA_ARRAY(arena, int64_t, t->steps.count + 1);
    d->buffer_names = ONV_ARENA_ARRAY(arena, int64_t, t->buffers.count + 1);
    if (arena->failed || onv_timeline_peak(t, &d->peak, d->live, NULL) != ONV_OK) return false;
    name_rows(d);
    return !d->names->failed;
}

static void write_executions(onv_json *json, naming *names, const onv_executions *kept)
{
    drawing *all = ONV_ARENA_ARRAY(&names->arena, drawing, kept->list.count);
    if (all == NULL) names->failed = true;
    ONV_JSON_LIST(json, "executions", LINES)
        for (size_t i = 0; i < kept->list.count && !names->failed && !json->out->failed; i++) {
            all[i] = (drawing){
                .json = json, .names = names, .kept = &kept->list.at[i], .all = all, .index = i};
            if (prepare(&all[i]))
                ONV_JSON_ROW(json, LINES) write_execution(&all[i]);
            else
                names->failed = true;
        }
}

/* --- Modules ----------------------------------------------------------------------------------- */

static void put_of_node(onv_json *json, naming *names, const onv_view *view,
                        const onv_modules *modules)
{
    size_t n = names->view->live.timeline.steps.count;
    uint32_t *of_node = ONV_ARENA_ARRAY(&names->arena, uint32_t, n + 1);
    if (of_node == NULL) names->failed = true;
    for (uint32_t s = 0; s < view->live.timeline.steps.count && of_node != NULL; s++) {
        int64_t node = node_of(names, &view->model, view->live.timeline.steps.at[s].node);
        if (node != NONE) of_node[node] = modules->of_step[s];
    }
    uint32_t before = 0;
    ONV_JSON_LIST(json, "of_node", DENSE)
        for (size_t i = 0; i < n && of_node != NULL; i++) {
            onv_json_i64(json, (int64_t)of_node[i] - before);
            before = of_node[i];
        }
}

/* As --layers has them, all of them with what is inside. */
static void write_modules(onv_json *json, naming *names, const onv_view *view)
{
    const onv_report_options options = onv_report_options_default();
    onv_arena arena;
    onv_modules modules;
    onv_arena_init(&arena, SIZE_MAX);
    onv_page page = onv_page_make(json->out, &arena, &options);
    if (!onv_modules_init(&modules, view, &page, 0)) {
        names->failed = true;
    } else {
        ONV_JSON_PART(json, "modules", LINES) {
            ONV_JSON_ROWS(json, "list", i, modules.list.count, INLINE) {
                const onv_module *m = &modules.list.at[i];
                onv_json_put_string(json, "name", m->name);
                onv_json_put_known(json, "parent", i > 0, m->parent);
                onv_json_put_u64(json, "parameters", m->params);
                onv_json_put_u64(json, "activation_bytes", m->activation.fixed);
                onv_json_put_known(json, "macs", m->macs_known, m->macs);
            }
            put_of_node(json, names, view, &modules);
        }
    }
    onv_modules_cleanup(&modules);
    onv_arena_cleanup(&arena);
}

/* --- All of it --------------------------------------------------------------------------------- */

void onv_json_write_timelines(onv_json *json, const onv_view *view, const onv_view *named)
{
    const onv_executions *executions = &view->executions;
    if (executions->list.count == 0) return;
    const char *kinds[ONV_N_BUFFER_KINDS], *phases[ONV_N_PHASES];
    for (int i = 0; i < ONV_N_PHASES; i++) phases[i] = onv_phase_name((onv_phase)i);
    for (int i = 0; i < ONV_N_BUFFER_KINDS; i++)
        kinds[i] = onv_buffer_kind_name((onv_buffer_kind)i);
    naming names = {0};
    name_tensors(&names, named);
    onv_json_put_open(json, "timelines", '{', ONV_JSON_LINES);
    onv_json_put_texts(json, "phases", phases, ONV_N_PHASES);
    onv_json_put_texts(json, "kinds", kinds, ONV_N_BUFFER_KINDS);
    if (!names.failed) write_modules(json, &names, view);
    if (!names.failed) write_executions(json, &names, executions);
    ONV_JSON_LIST(json, "labels", LINES)
        for (size_t i = names.n_tensors; i < names.text.count; i++)
            onv_json_string(json, names.text.at[i]);
    onv_json_close(json);
    json->scratch->failed |= names.failed;
    cleanup(&names);
}
