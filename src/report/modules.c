#include "report/modules.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "ir/origin.h"

/* --- The tree ---------------------------------------------------------------------------------- */

/* What a child is interned under; NULL without memory. */
static const char *key_of(onv_modules *modules, uint32_t parent, const char *name, size_t length)
{
    enum { PARENT = 16 };
    modules->key.count = 0;
    if (!onv_vec_reserve(&modules->key, PARENT + length)) return NULL;
    int n = snprintf(modules->key.at, PARENT, "%lu/", (unsigned long)parent);
    memcpy(modules->key.at + n, name, length);
    modules->key.at[(size_t)n + length] = '\0';
    return modules->key.at;
}

static uint32_t add_module(onv_modules *modules, uint32_t parent, const char *name)
{
    uint32_t index = (uint32_t)modules->list.count;
    onv_module module = {
        .name = name,
        .parent = parent,
        .first_child = ONV_NO_MODULE,
        .last_child = ONV_NO_MODULE,
        .next = ONV_NO_MODULE,
        .macs_known = true,
    };
    if (parent != ONV_NO_MODULE) module.depth = modules->list.at[parent].depth + 1;
    if (index == ONV_NO_MODULE - 1 || !onv_vec_push(&modules->list, module)) return ONV_NO_MODULE;
    if (parent == ONV_NO_MODULE) return index;
    onv_module *above = &modules->list.at[parent];
    if (above->first_child == ONV_NO_MODULE)
        above->first_child = index;
    else
        modules->list.at[above->last_child].next = index;
    above->last_child = index;
    return index;
}

/* The child of that name, made if new; ONV_NO_MODULE without memory. */
static uint32_t find_child(onv_modules *modules, uint32_t parent, const char *name, size_t length)
{
    const char *key = key_of(modules, parent, name, length);
    size_t before = modules->keys.count;
    if (key == NULL || (key = onv_intern(&modules->keys, key)) == NULL) return ONV_NO_MODULE;
    if (modules->keys.count == before) return onv_string_number(key) + 1;
    return add_module(modules, parent, strchr(key, '/') + 1);
}

static const char *part_end(const char *part, const char *end, char separator)
{
    const char *found = memchr(part, separator, (size_t)(end - part));
    return found != NULL ? found : end;
}

static bool is_number(const char *part, const char *end)
{
    return part < end && strspn(part, "0123456789") >= (size_t)(end - part);
}

/* The module at the end of a path, whose empty parts are skipped. In a path with dots a number is named together with what
 * stands before it. */
static uint32_t find_path(onv_modules *modules, const onv_origin *origin, unsigned max_depth)
{
    uint32_t at = 0;
    const char separator = origin->separator, *path = origin->path, *end = path + origin->length;
    const char *begin = path; /* of what names the next module */
    bool joins = separator == '.';
    while (path < end && at != ONV_NO_MODULE && modules->list.at[at].depth < max_depth) {
        const char *stop = part_end(path, end, separator);
        /* list.0 without the list, where slashes have named it so. */
        const char *next = stop < end ? part_end(stop + 1, end, separator) : end;
        if (joins && stop < end && is_number(stop + 1, next)) {
            const char *key = key_of(modules, at, begin, (size_t)(next - begin));
            if (key == NULL) return ONV_NO_MODULE;
            if (onv_interned(&modules->keys, key) != NULL) stop = next;
        }
        if (stop > begin) at = find_child(modules, at, begin, (size_t)(stop - begin));
        path = stop < end ? stop + 1 : end;
        bool goes_on = joins && path < end && is_number(path, part_end(path, end, separator));
        if (!goes_on) begin = path;
    }
    return at;
}

static uint32_t common_ancestor(const onv_modules *modules, uint32_t a, uint32_t b)
{
    while (a != b) {
        /* A parent has the smaller index. */
        if (a > b)
            a = modules->list.at[a].parent;
        else
            b = modules->list.at[b].parent;
    }
    return a;
}

/* --- Which module a step belongs to ------------------------------------------------------------ */

/* What stands around a module; around the model there is only itself. */
static uint32_t around(const onv_modules *modules, uint32_t module)
{
    return module == 0 ? 0 : modules->list.at[module].parent;
}

/* Steps whose names tell nothing. A module before or behind them that is a leaf has ended or not
 * begun, so they belong to what is around it. */
static void place_between(const onv_modules *modules, uint32_t *module_of, uint32_t n_steps)
{
    uint32_t before = 0;
    for (uint32_t s = 0; s < n_steps;) {
        if (module_of[s] != ONV_NO_MODULE) {
            before = around(modules, module_of[s++]);
            continue;
        }
        uint32_t end = s;
        while (end < n_steps && module_of[end] == ONV_NO_MODULE) end++;
        uint32_t behind = end < n_steps ? around(modules, module_of[end]) : 0;
        uint32_t shared = common_ancestor(modules, before, behind);
        while (s < end) module_of[s++] = shared;
    }
}

/* Fills module_of by step; names with slashes first, they know best which modules there are. */
static bool place_by_scope(onv_modules *modules, const onv_view *view, unsigned max_depth,
                           uint32_t *module_of)
{
    static const char separators[] = {'/', '.'};
    const onv_live *live = &view->live;
    for (uint32_t s = 0; s < live->timeline.steps.count; s++) module_of[s] = ONV_NO_MODULE;
    for (size_t way = 0; way < sizeof separators; way++)
        for (uint32_t s = 0; s < live->timeline.steps.count; s++) {
            const onv_node *node = onv_model_node(&view->model, live->timeline.steps.at[s].node);
            onv_origin origin = onv_node_origin(&view->model, node);
            if (origin.path == NULL || origin.separator != separators[way]) continue;
            module_of[s] = find_path(modules, &origin, max_depth);
            if (module_of[s] == ONV_NO_MODULE) return false;
        }
    place_between(modules, module_of, live->timeline.steps.count);
    return true;
}

static bool place_by_operator(onv_modules *modules, const onv_view *view, uint32_t *module_of)
{
    for (uint32_t s = 0; s < view->live.timeline.steps.count; s++) {
        const onv_node *node = onv_model_node(&view->model, view->live.timeline.steps.at[s].node);
        module_of[s] = find_child(modules, 0, node->op_type, strlen(node->op_type));
        if (module_of[s] == ONV_NO_MODULE) return false;
    }
    return true;
}

/* --- Sums -------------------------------------------------------------------------------------- */

/* Each weight counts once, where it is used first. */
static void add_params(onv_module *module, const onv_model *model, const onv_node *node,
                       bool *is_counted, uint64_t *counted)
{
    for (uint32_t i = 0; i < node->n_inputs; i++) {
        onv_value_id id = node->inputs[i];
        if (!onv_is_value(id) || is_counted[id.index]) continue;
        const onv_value *value = onv_model_value(model, id);
        if (!onv_value_is_held(value)) continue;
        is_counted[id.index] = true;
        module->params += value->tensor->elems;
        *counted += value->tensor->elems;
    }
}

static void add_activation(onv_amount *amount, const onv_view *view, const onv_footprint *footprint,
                           uint32_t row)
{
    amount->fixed += view->live.timeline.buffers.at[row].bytes;
    if (footprint->measure == ONV_MEASURE_UNITS) amount->units += footprint->rows[row];
}

static void add_step(onv_module *module, const onv_view *view, const onv_footprint *footprint,
                     uint32_t step)
{
    const onv_node *node = onv_model_node(&view->model, view->live.timeline.steps.at[step].node);
    module->own_steps++;
    module->last_step = step;
    uint64_t macs = view->live.timeline.steps.at[step].macs;
    module->macs += macs;
    if (macs == 0 && !onv_dim_is(onv_live_macs(&view->model, &view->live, step), 0))
        module->macs_known = false;
    for (uint32_t i = 0; i < node->n_outputs; i++) {
        if (!onv_is_value(node->outputs[i])) continue;
        uint32_t row = view->live.of_value[node->outputs[i].index];
        /* What a branch or a body hands out counts as the output that it becomes. */
        if (row != UINT32_MAX && view->live.timeline.buffers.at[row].becomes == ONV_NO_BUFFER)
            add_activation(&module->activation, view, footprint, row);
    }
}

/* Sums fit: liveness has added up the same numbers, checked. */
static void add_to_parents(onv_modules *modules)
{
    for (size_t i = modules->list.count; i-- > 1;) {
        const onv_module *module = &modules->list.at[i];
        onv_module *parent = &modules->list.at[module->parent];
        parent->params += module->params;
        parent->macs += module->macs;
        parent->activation.fixed += module->activation.fixed;
        parent->activation.units += module->activation.units;
        parent->macs_known = parent->macs_known && module->macs_known;
        if (module->last_step > parent->last_step) parent->last_step = module->last_step;
    }
}

/* The module of a node, as its step in the graph tells; the model itself for what is not a node of the main graph. */
static uint32_t *modules_of_nodes(const onv_modules *modules, const onv_view *view)
{
    const onv_timeline *t = &view->live.timeline;
    uint32_t *of = ONV_ARENA_ARRAY(modules->arena, uint32_t, view->model.nodes.count);
    for (uint32_t s = 0; of != NULL && s < t->steps.count; s++)
        of[t->steps.at[s].node.index] = modules->of_step[s];
    return of;
}

/* What a forward pass makes and a backward pass reads; weights and their like live through both. */
static bool is_saved(const onv_timeline *t, const onv_buffer *b)
{
    const onv_step *first = &t->steps.at[b->first], *last = &t->steps.at[b->last];
    bool is_tensor = b->kind == ONV_BUFFER_ACTIVATION || b->kind == ONV_BUFFER_INPUT ||
                     b->kind == ONV_BUFFER_OUTPUT;
    return is_tensor && b->within == ONV_NO_BUFFER && b->first >= t->measured_from &&
           first->iteration == t->steps.at[t->measured_from].iteration &&
           first->iteration == last->iteration && first->phase == ONV_PHASE_FORWARD &&
           last->phase == ONV_PHASE_BACKWARD && !first->is_recompute;
}

bool onv_modules_take_saved(onv_modules *modules, const onv_view *view)
{
    const onv_timeline *t = &view->training.timeline;
    const uint32_t *of = modules_of_nodes(modules, view);
    if (of == NULL) return false;
    for (size_t i = 0; i < modules->list.count; i++)
        modules->list.at[i].activation = (onv_amount){.fixed = 0};
    for (uint32_t i = 0; i < t->buffers.count; i++) {
        const onv_buffer *b = &t->buffers.at[i];
        if (!is_saved(t, b)) continue;
        onv_node_id node = t->steps.at[b->first].node;
        modules->list.at[onv_is_node(node) ? of[node.index] : 0].activation.fixed += b->bytes;
    }
    for (size_t i = modules->list.count; i-- > 1;)
        modules->list.at[modules->list.at[i].parent].activation.fixed +=
            modules->list.at[i].activation.fixed;
    /* The batch, and what the loss keeps, are made by no module. */
    uint64_t *whole = &modules->list.at[0].activation.fixed;
    uint64_t all = view->training.figures.saved_activation_bytes;
    if (all > *whole) *whole = all;
    return true;
}

bool onv_modules_init(onv_modules *modules, const onv_view *view, const onv_page *page,
                      unsigned max_depth)
{
    const onv_live *live = &view->live;
    onv_arena *arena = page->arena;
    *modules = (onv_modules){.arena = arena};
    onv_strings_init(&modules->keys, arena);
    if (!onv_footprint_make(&modules->footprint, view, page)) return false;
    if (max_depth == 0 || max_depth > ONV_MODULE_MAX_DEPTH) max_depth = ONV_MODULE_MAX_DEPTH;
    uint32_t *module_of = ONV_ARENA_ARRAY(arena, uint32_t, live->timeline.steps.count);
    bool *is_counted = ONV_ARENA_ARRAY(arena, bool, view->model.values.count);
    if (module_of == NULL || is_counted == NULL) return false;
    if (add_module(modules, ONV_NO_MODULE, "") == ONV_NO_MODULE) return false;
    if (!place_by_scope(modules, view, max_depth, module_of)) return false;
    if (modules->list.count == 1 && !place_by_operator(modules, view, module_of)) return false;
    modules->of_step = module_of;
    uint64_t counted = 0;
    for (uint32_t s = 0; s < live->timeline.steps.count; s++) {
        onv_module *module = &modules->list.at[module_of[s]];
        const onv_node *node = onv_model_node(&view->model, live->timeline.steps.at[s].node);
        add_params(module, &view->model, node, is_counted, &counted);
        add_step(module, view, &modules->footprint, s);
    }
    modules->unused_params = live->weight_elems > counted ? live->weight_elems - counted : 0;
    add_to_parents(modules);
    return true;
}

void onv_modules_cleanup(onv_modules *modules)
{
    onv_vec_cleanup(&modules->list);
    onv_vec_cleanup(&modules->key);
    onv_strings_cleanup(&modules->keys);
}
