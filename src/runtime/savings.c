#include "runtime/savings.h"

#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/heap.h"
#include "graph/storage.h"

enum {
    MOST_CANDIDATES = 12, /* values of the peak set */
    MOST_USES = 8,        /* of a value behind the peak */
    LEAST_SHARE = 100,    /* of the peak: what is smaller is no news */
    MOST_WORK = 2000000   /* steps and buffers that all trials look at */
};

typedef struct seeker {
    onv_model *model; /* as it was behind every trial */
    const onv_node_id *order;
    const onv_live *live;
    onv_savings *savings;
    uint64_t work_left;
} seeker;

/* An order to try, and what is needed for it. */
typedef struct trial {
    onv_arena arena;
    onv_node_id *order;
    uint32_t n_order;
} trial;

const char *onv_saving_name(onv_saving_kind kind)
{
    static const char *const names[ONV_N_SAVINGS] = {
        [ONV_SAVING_HALF] = "16-bit",         [ONV_SAVING_INPLACE] = "in-place",
        [ONV_SAVING_RECOMPUTE] = "recompute", [ONV_SAVING_LATER] = "later",
        [ONV_SAVING_EARLIER] = "earlier",     [ONV_SAVING_BATCH] = "split-batch"};
    return names[kind];
}

void onv_savings_add(onv_savings *savings, const onv_live *live, const onv_saving *saving)
{
    if (saving->peak_bytes >= live->peak_bytes) return;
    onv_saving row = *saving;
    row.saved_bytes = live->peak_bytes - row.peak_bytes;
    if (row.saved_bytes < live->peak_bytes / LEAST_SHARE) return;
    uint32_t at = savings->count;
    while (at > 0 && savings->of[at - 1].saved_bytes < row.saved_bytes) at--;
    if (at == ONV_MOST_SAVINGS) return;
    if (savings->count < ONV_MOST_SAVINGS) savings->count++;
    memmove(&savings->of[at + 1], &savings->of[at],
            (savings->count - 1 - at) * sizeof *savings->of);
    savings->of[at] = row;
}

/* --- Trials ------------------------------------------------------------------------------------ */

/* False where enough has been tried. */
static bool may_try(seeker *k)
{
    uint64_t work = k->live->timeline.steps.count + k->live->timeline.buffers.count;
    if (k->work_left < work) return false;
    k->work_left -= work;
    return true;
}

/* With room for one node more. */
static onv_status begin(const seeker *k, trial *t, onv_error *err)
{
    const onv_graph *graph = onv_model_graph(k->model, (onv_graph_id){0});
    onv_arena_init(&t->arena, k->model->arena.limit_bytes);
    t->n_order = graph->n_nodes;
    t->order = ONV_ARENA_ARRAY(&t->arena, onv_node_id, (size_t)graph->n_nodes + 1);
    if (t->order == NULL) {
        onv_arena_cleanup(&t->arena);
        return onv_fail_memory(err);
    }
    memcpy(t->order, k->order != NULL ? k->order : graph->nodes, graph->n_nodes * sizeof *t->order);
    return ONV_OK;
}

/* The lifetimes of the model in that order, and the peak of them. */
static onv_status finish(seeker *k, onv_model *model, trial *t, onv_saving *saving, onv_error *err)
{
    onv_live live;
    onv_status status = onv_live_compute_in(&t->arena, model, t->order, &live, err);
    if (status == ONV_OK) saving->peak_bytes = live.peak_bytes;
    onv_arena_cleanup(&t->arena);
    if (status == ONV_OK) onv_savings_add(k->savings, k->live, saving);
    return status;
}

/* Puts the node at `from` of the order to `to`, before what stands there. */
static void move(trial *t, uint32_t from, uint32_t to)
{
    onv_node_id node = t->order[from];
    if (from < to) {
        memmove(&t->order[from], &t->order[from + 1], (to - 1 - from) * sizeof *t->order);
        t->order[to - 1] = node;
    } else {
        memmove(&t->order[to + 1], &t->order[to], (from - to) * sizeof *t->order);
        t->order[to] = node;
    }
}

static uint32_t place_of(const trial *t, onv_node_id node)
{
    uint32_t at = 0;
    while (at < t->n_order && t->order[at].index != node.index) at++;
    return at;
}

/* --- Values ------------------------------------------------------------------------------------ */

/* Who reads a value behind the peak: nodes of the main graph, by step. */
typedef struct later_uses {
    uint32_t steps[MOST_USES];
    uint32_t count;
    bool at_peak;    /* the node of the peak reads or makes it */
    bool is_special; /* read in inner graphs, or by too many, or handed out */
} later_uses;

static later_uses find_uses(const seeker *k, onv_value_id id)
{
    const onv_timeline *t = &k->live->timeline;
    const onv_value *value = onv_model_value(k->model, id);
    const onv_buffer *row = &t->buffers.at[k->live->of_value[id.index]];
    later_uses uses = {.is_special = value->graph.index != 0 || value->is_output ||
                                     row->within != ONV_NO_BUFFER || row->becomes != ONV_NO_BUFFER,
                       .at_peak = row->first == k->live->peak_step};
    for (uint32_t s = row->first; s <= row->last && !uses.is_special; s++) {
        const onv_node *node = onv_model_node(k->model, t->steps.at[s].node);
        bool reads = false;
        for (uint32_t i = 0; i < node->n_inputs; i++) reads |= node->inputs[i].index == id.index;
        if (!reads) continue;
        uses.is_special |= node->graph.index != 0;
        uses.at_peak |= s == k->live->peak_step;
        if (s <= k->live->peak_step) continue;
        if (uses.count == MOST_USES)
            uses.is_special = true;
        else
            uses.steps[uses.count++] = s;
    }
    /* An inner graph reads it through its owner. */
    uses.is_special |= uses.count == 0 || uses.steps[uses.count - 1] != row->last;
    return uses;
}

static bool has_inner_graph(const onv_node *node)
{
    for (uint32_t i = 0; i < node->n_attrs; i++)
        if (node->attrs[i].kind == ONV_ATTR_GRAPH || node->attrs[i].kind == ONV_ATTR_GRAPHS)
            return true;
    return false;
}

/* --- Changes ----------------------------------------------------------------------------------- */

static bool is_wide(const onv_value *value)
{
    return value->type.kind == ONV_TYPE_TENSOR &&
           (value->type.dtype == ONV_FLOAT || value->type.dtype == ONV_DOUBLE);
}

static bool is_made_by(const onv_model *model, const onv_value *value, const char *op)
{
    return onv_is_node(value->producer) && !onv_value_is_weight(value) &&
           strcmp(onv_model_node(model, value->producer)->op_type, op) == 0;
}

static bool is_halved(const onv_model *model, onv_value_id at, onv_value_id id, const char *op)
{
    const onv_value *value = onv_model_value(model, at);
    bool is_all = !onv_is_value(id) && op == NULL;
    return at.index == id.index ||
           (is_wide(value) && (is_all || (op != NULL && is_made_by(model, value, op))));
}

/* The peak with 16 bits for that value, for what `op` makes, or, without both (ONV_NO_VALUE, NULL), for all of float32 and
 * float64; lives are as they are. */
static onv_status halve_peak(const onv_model *model, const onv_live *live, onv_value_id id,
                             const char *op, uint64_t *peak, onv_error *err)
{
    onv_timeline changed = live->timeline;
    const size_t n = changed.buffers.count;
    onv_peak found = {0};
    changed.buffers.at = onv_heap_copy(changed.buffers.at, n * sizeof *changed.buffers.at);
    if (changed.buffers.at == NULL) return onv_fail_memory(err);
    for (size_t i = 0; i < n; i++) {
        onv_buffer *row = &changed.buffers.at[i];
        if (!is_halved(model, row->value, id, op)) continue;
        row->bytes /= onv_model_value(model, row->value)->type.dtype == ONV_DOUBLE ? 4 : 2;
    }
    onv_status status = onv_timeline_peak(&changed, &found, NULL, err);
    onv_heap_free(changed.buffers.at);
    *peak = found.bytes;
    return status;
}

/* Without inner graphs and outputs that continue inputs lives do not depend on sizes; else the types of values are others for
 * the time of the trial. */
static onv_status try_half(seeker *k, onv_value_id id, const char *op, onv_error *err)
{
    onv_model *model = k->model;
    const onv_value *value = onv_model_value(model, id);
    trial t;
    onv_saving saving = {
        .kind = ONV_SAVING_HALF, .value = id, .node = value->producer, .is_everywhere = op != NULL};
    if (!is_wide(value) || !may_try(k)) return ONV_OK;
    if (model->graphs.count == 1 && model->n_shared == 0) {
        ONV_TRY(halve_peak(model, k->live, id, op, &saving.peak_bytes, err));
        onv_savings_add(k->savings, k->live, &saving);
        return ONV_OK;
    }
    uint8_t *before = onv_heap_alloc(model->values.count);
    if (before == NULL) return onv_fail_memory(err);
    for (size_t i = 0; i < model->values.count; i++) {
        onv_value *other = &model->values.at[i];
        before[i] = other->type.dtype;
        if (is_halved(model, (onv_value_id){(uint32_t)i}, id, op)) other->type.dtype = ONV_FLOAT16;
    }
    onv_status status = begin(k, &t, err);
    if (status == ONV_OK) status = finish(k, model, &t, &saving, err);
    for (size_t i = 0; i < model->values.count; i++) model->values.at[i].type.dtype = before[i];
    onv_heap_free(before);
    return status;
}

/* The same lifetimes with this node, or all like it, sharing what they may. */
static onv_status try_inplace(seeker *k, onv_value_id id, const char *op, onv_error *err)
{
    const onv_value *value = onv_model_value(k->model, id);
    onv_saving saving = {.kind = ONV_SAVING_INPLACE,
                         .value = id,
                         .node = value->producer,
                         .is_everywhere = op != NULL};
    if (!onv_is_node(value->producer) || value->output_index != 0) return ONV_OK;
    const onv_node *node = onv_model_node(k->model, value->producer);
    if ((node->traits.inplace == 0 && node->traits.view_of == 0) || !may_try(k)) return ONV_OK;
    onv_arena arena;
    onv_storages storages = {0};
    onv_storage_rules rules = {
        .views = true, .inplace = true, .only = op == NULL ? node : NULL, .only_op = op};
    onv_arena_init(&arena, k->model->arena.limit_bytes);
    onv_status status = onv_storages_compute(&arena, k->model, k->live, &rules, &storages, err);
    saving.peak_bytes = status == ONV_OK ? storages.peak.bytes : 0;
    onv_arena_cleanup(&arena);
    if (status == ONV_OK) onv_savings_add(k->savings, k->live, &saving);
    return status;
}

/* A second node makes the value once more, for the readers behind the peak; *node is that. */
static onv_status make_again(const seeker *k, onv_model *model, onv_value_id id,
                             const later_uses *uses, onv_node_id *node, onv_error *err)
{
    onv_value again = *onv_model_value(model, id);
    onv_node made = *onv_model_node(model, again.producer);
    const onv_value_id value = {(uint32_t)model->values.count};
    *node = (onv_node_id){(uint32_t)model->nodes.count};
    again.producer = *node;
    made.outputs = onv_arena_copy(&model->arena, &value, sizeof value);
    if (made.outputs == NULL || !onv_vec_push(&model->values, again) ||
        !onv_vec_push(&model->nodes, made))
        return onv_fail_memory(err);
    for (uint32_t i = 0; i < uses->count; i++) {
        onv_node *reader = onv_model_node(model, k->live->timeline.steps.at[uses->steps[i]].node);
        for (uint32_t j = 0; j < reader->n_inputs; j++)
            if (reader->inputs[j].index == id.index) reader->inputs[j] = value;
    }
    return ONV_OK;
}

/* It is freed at the peak, and made once more just before it is read. */
static onv_status recompute(seeker *k, onv_value_id id, const later_uses *uses, onv_model *model,
                            onv_saving *saving, onv_error *err)
{
    trial t;
    onv_node_id node;
    onv_graph *graph = onv_model_graph(model, (onv_graph_id){0});
    ONV_TRY(make_again(k, model, id, uses, &node, err));
    ONV_TRY(begin(k, &t, err));
    uint32_t at = place_of(&t, k->live->timeline.steps.at[uses->steps[0]].node);
    t.order[t.n_order++] = node;
    graph->nodes = t.order;
    graph->n_nodes = t.n_order;
    move(&t, t.n_order - 1, at);
    return finish(k, model, &t, saving, err);
}

static onv_status try_recompute(seeker *k, onv_value_id id, const later_uses *uses, onv_error *err)
{
    const onv_value *value = onv_model_value(k->model, id);
    const onv_node *node = onv_model_node(k->model, value->producer);
    const onv_timeline *timeline = &k->live->timeline;
    const uint32_t first = timeline->buffers.at[k->live->of_value[id.index]].first;
    onv_saving saving = {.kind = ONV_SAVING_RECOMPUTE,
                         .value = id,
                         .node = value->producer,
                         .more_macs = timeline->steps.at[first].macs,
                         .more_nodes = 1};
    onv_model model;
    if (node->n_outputs != 1 || has_inner_graph(node) || !may_try(k)) return ONV_OK;
    ONV_TRY(onv_model_copy(k->model, &model, err));
    onv_status status = recompute(k, id, uses, &model, &saving, err);
    onv_model_cleanup(&model);
    return status;
}

/* Its node runs just before the first reader; nobody reads it before the peak. */
static onv_status try_later(seeker *k, onv_value_id id, const later_uses *uses, onv_error *err)
{
    const onv_value *value = onv_model_value(k->model, id);
    const onv_node *node = onv_model_node(k->model, value->producer);
    const onv_buffer *row = &k->live->timeline.buffers.at[k->live->of_value[id.index]];
    trial t;
    onv_saving saving = {.kind = ONV_SAVING_LATER, .value = id, .node = value->producer};
    for (uint32_t s = row->first + 1; s < uses->steps[0]; s++) {
        const onv_node *other = onv_model_node(k->model, k->live->timeline.steps.at[s].node);
        for (uint32_t i = 0; i < other->n_inputs; i++)
            for (uint32_t o = 0; o < node->n_outputs; o++)
                if (onv_is_value(other->inputs[i]) &&
                    other->inputs[i].index == node->outputs[o].index)
                    return ONV_OK;
    }
    if (has_inner_graph(node) || !may_try(k)) return ONV_OK;
    ONV_TRY(begin(k, &t, err));
    move(&t, place_of(&t, value->producer),
         place_of(&t, k->live->timeline.steps.at[uses->steps[0]].node));
    return finish(k, k->model, &t, &saving, err);
}

/* The step behind which all that a node reads is there. */
static uint32_t ready_at(const seeker *k, const onv_node *node)
{
    uint32_t ready = 0;
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        if (!onv_is_value(node->inputs[i])) continue;
        uint32_t row = k->live->of_value[node->inputs[i].index];
        const onv_value *value = onv_model_value(k->model, node->inputs[i]);
        if (row == UINT32_MAX || !onv_is_node(value->producer)) continue;
        uint32_t made = k->live->timeline.buffers.at[row].first + 1;
        if (made > ready) ready = made;
    }
    return ready;
}

/* Its one reader behind the peak runs before the peak, as soon as what it reads is there. */
static onv_status try_earlier(seeker *k, onv_value_id id, const later_uses *uses, onv_error *err)
{
    const onv_timeline *timeline = &k->live->timeline;
    if (uses->count != 1) return ONV_OK;
    onv_node_id reader = timeline->steps.at[uses->steps[0]].node;
    const onv_node *node = onv_model_node(k->model, reader);
    uint32_t ready = ready_at(k, node);
    trial t;
    onv_saving saving = {.kind = ONV_SAVING_EARLIER, .value = id, .node = reader};
    if (has_inner_graph(node) || ready > k->live->peak_step || !may_try(k)) return ONV_OK;
    /* Inner graphs have steps of their own: the place is that of a node of the main graph. */
    while (ready < timeline->steps.count &&
           onv_model_node(k->model, timeline->steps.at[ready].node)->graph.index != 0)
        ready++;
    if (ready >= uses->steps[0]) return ONV_OK;
    ONV_TRY(begin(k, &t, err));
    move(&t, place_of(&t, reader), place_of(&t, timeline->steps.at[ready].node));
    return finish(k, k->model, &t, &saving, err);
}

/* The first of the peak set that its operator made. */
static bool is_new_operator(const seeker *k, const onv_value *value)
{
    const char *op = onv_model_node(k->model, value->producer)->op_type;
    for (uint32_t i = 0; i < k->live->n_peak_set; i++) {
        onv_value_id id = k->live->timeline.buffers.at[k->live->peak_set[i]].value;
        const onv_value *other = onv_model_value(k->model, id);
        if (other == value) break;
        if (onv_is_node(other->producer) &&
            strcmp(onv_model_node(k->model, other->producer)->op_type, op) == 0)
            return false;
    }
    return true;
}

static onv_status try_value(seeker *k, onv_value_id id, onv_error *err)
{
    const onv_value *value = onv_model_value(k->model, id);
    ONV_TRY(try_half(k, id, NULL, err));
    ONV_TRY(try_inplace(k, id, NULL, err));
    if (!onv_is_node(value->producer)) return ONV_OK;
    if (is_new_operator(k, value)) {
        const char *op = onv_model_node(k->model, value->producer)->op_type;
        ONV_TRY(try_half(k, id, op, err));
        ONV_TRY(try_inplace(k, id, op, err));
    }
    later_uses uses = find_uses(k, id);
    if (uses.is_special || uses.at_peak) return ONV_OK;
    ONV_TRY(try_recompute(k, id, &uses, err));
    ONV_TRY(try_later(k, id, &uses, err));
    return try_earlier(k, id, &uses, err);
}

onv_status onv_savings_find(onv_model *model, const onv_node_id *order, const onv_live *live,
                            onv_savings *savings, onv_error *err)
{
    seeker k = {
        .model = model, .order = order, .live = live, .savings = savings, .work_left = MOST_WORK};
    *savings = (onv_savings){0};
    for (uint32_t i = 0; i < live->n_peak_set && i < MOST_CANDIDATES; i++) {
        const onv_buffer *row = &live->timeline.buffers.at[live->peak_set[i]];
        if (row->bytes < live->peak_bytes / LEAST_SHARE || row->bytes == 0) break;
        ONV_TRY(try_value(&k, row->value, err));
    }
    return ONV_OK;
}

/* --- Of the whole graph ------------------------------------------------------------------------ */

static void set(onv_global_saving *saving, const onv_live *live, uint64_t weights, uint64_t peak)
{
    uint64_t before = live->weight_bytes + live->peak_bytes; /* both sums were checked */
    saving->known = true;
    saving->peak_bytes = peak;
    saving->weight_bytes = weights;
    saving->saved_bytes = weights + peak < before ? before - weights - peak : 0;
}

static onv_status share(onv_arena *arena, const onv_model *model, const onv_live *live,
                        const onv_storage_rules *rules, onv_storages *storages,
                        onv_global_saving *saving, onv_error *err)
{
    ONV_TRY(onv_storages_compute(arena, model, live, rules, storages, err));
    set(saving, live, live->weight_bytes, storages->peak.bytes);
    return ONV_OK;
}

/* Float types of more than 16 bits become half as large, or a quarter. */
static uint64_t halved(onv_dtype dtype, uint64_t bytes)
{
    return dtype == ONV_FLOAT ? bytes / 2 : dtype == ONV_DOUBLE ? bytes / 4 : bytes;
}

static onv_status halve(const onv_model *model, const onv_live *live, onv_global_saving *saving,
                        onv_error *err)
{
    uint64_t weights = 0, peak;
    for (size_t i = 0; i < model->values.count; i++) {
        const onv_value *value = &model->values.at[i];
        if (onv_value_is_held(value))
            weights += value->is_packed
                           ? value->tensor->bytes
                           : halved((onv_dtype)value->tensor->type.dtype, value->tensor->bytes);
    }
    ONV_TRY(halve_peak(model, live, ONV_NO_VALUE, NULL, &peak, err));
    set(saving, live, weights, peak);
    return ONV_OK;
}

static onv_status compute_global(onv_arena *arena, const onv_model *model, const onv_live *live,
                                 onv_global_savings *savings, onv_error *err)
{
    static const onv_storage_rules views = {.views = true};
    static const onv_storage_rules inplace = {.views = true, .inplace = true};
    onv_storages storages = {0};
    onv_global_saving *of = savings->of;
    ONV_TRY(share(arena, model, live, &views, &storages, &of[ONV_GLOBAL_SAVING_VIEWS], err));
    ONV_TRY(share(arena, model, live, &inplace, &storages, &of[ONV_GLOBAL_SAVING_INPLACE], err));
    return halve(model, live, &of[ONV_GLOBAL_SAVING_HALF], err);
}

onv_status onv_global_savings_compute(const onv_model *model, const onv_live *live,
                                      uint64_t order_peak, onv_global_savings *savings,
                                      onv_error *err)
{
    onv_arena arena;
    onv_arena_init(&arena, model->arena.limit_bytes);
    *savings = (onv_global_savings){0};
    if (order_peak != UINT64_MAX)
        set(&savings->of[ONV_GLOBAL_SAVING_ORDER], live, live->weight_bytes, order_peak);
    onv_status status = compute_global(&arena, model, live, savings, err);
    onv_arena_cleanup(&arena);
    return status;
}
