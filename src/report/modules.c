#include "report/modules.h"

#include <string.h>

#include "base/checked.h"

/* --- The tree ---------------------------------------------------------------------------------- */

static uint64_t hash_child(uint32_t parent, const char *name, size_t length)
{
    return onv_hash_bytes(name, length, onv_hash_u64(parent + 1));
}

static bool grow_slots(onv_modules *modules)
{
    size_t n = modules->n_slots == 0 ? 256 : modules->n_slots * 4;
    uint32_t *slots = ONV_ARENA_ARRAY(modules->arena, uint32_t, n);
    if (slots == NULL) return false;
    for (size_t i = 1; i < modules->list.count; i++) {
        const onv_module *module = &modules->list.at[i];
        uint64_t slot = hash_child(module->parent, module->name, strlen(module->name)) & (n - 1);
        while (slots[slot] != 0) slot = (slot + 1) & (n - 1);
        slots[slot] = (uint32_t)i + 1;
    }
    modules->slots = slots;
    modules->n_slots = n;
    return true;
}

static uint32_t add_module(onv_modules *modules, uint32_t parent, const char *name, size_t length)
{
    uint32_t index = (uint32_t)modules->list.count;
    onv_module module = {
        .name = onv_arena_strndup(modules->arena, name, length),
        .parent = parent,
        .first_child = ONV_NO_MODULE,
        .last_child = ONV_NO_MODULE,
        .next = ONV_NO_MODULE,
        .macs_known = true,
    };
    if (parent != ONV_NO_MODULE) module.depth = modules->list.at[parent].depth + 1;
    if (module.name == NULL || index == ONV_NO_MODULE - 1 || !onv_vec_push(&modules->list, module))
        return ONV_NO_MODULE;
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
    if (modules->list.count * 2 >= modules->n_slots && !grow_slots(modules)) return ONV_NO_MODULE;
    uint64_t slot = hash_child(parent, name, length) & (modules->n_slots - 1);
    for (; modules->slots[slot] != 0; slot = (slot + 1) & (modules->n_slots - 1)) {
        const onv_module *module = &modules->list.at[modules->slots[slot] - 1];
        if (module->parent == parent && strncmp(module->name, name, length) == 0 &&
            module->name[length] == '\0')
            return modules->slots[slot] - 1;
    }
    uint32_t index = add_module(modules, parent, name, length);
    if (index != ONV_NO_MODULE) modules->slots[slot] = index + 1;
    return index;
}

/* The module at the end of a path; empty parts are skipped. */
static uint32_t find_path(onv_modules *modules, const char *path, size_t length, char separator,
                          unsigned max_depth)
{
    uint32_t at = 0;
    const char *end = path + length;
    while (path < end && at != ONV_NO_MODULE && modules->list.at[at].depth < max_depth) {
        const char *stop = memchr(path, separator, (size_t)(end - path));
        if (stop == NULL) stop = end;
        if (stop > path) at = find_child(modules, at, path, (size_t)(stop - path));
        path = stop < end ? stop + 1 : end;
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

typedef struct scope {
    const char *path; /* NULL: the names tell nothing */
    size_t length;
    char separator;
} scope;

static scope scope_before(const char *name, char separator)
{
    const char *last = strrchr(name, separator);
    if (last == NULL) return (scope){0};
    return (scope){name, (size_t)(last - name), separator};
}

static scope node_scope(const onv_model *model, const onv_node *node)
{
    const char *name = node->name != NULL ? node->name : "";
    scope found = scope_before(name, '/');
    for (uint32_t i = 0; i < node->n_inputs && found.path == NULL; i++) {
        if (!onv_is_value(node->inputs[i])) continue;
        const onv_value *value = onv_model_value(model, node->inputs[i]);
        if (value->kind == ONV_VALUE_INITIALIZER) found = scope_before(value->name, '.');
    }
    return found.path != NULL ? found : scope_before(name, '.');
}

/* Fills module_of by step. */
static bool place_by_scope(onv_modules *modules, const onv_view *view, unsigned max_depth,
                           uint32_t *module_of)
{
    const onv_live *live = view->live;
    for (uint32_t s = 0; s < live->n_steps; s++) {
        const onv_node *node = onv_model_node(view->model, live->steps[s]);
        scope found = node_scope(view->model, node);
        module_of[s] = ONV_NO_MODULE;
        if (found.path == NULL) continue;
        module_of[s] = find_path(modules, found.path, found.length, found.separator, max_depth);
        if (module_of[s] == ONV_NO_MODULE) return false;
    }
    /* Steps without a module, from the back: `before` is found by a second index moving ahead. */
    uint32_t before = 0;
    for (uint32_t s = 0; s < live->n_steps;) {
        if (module_of[s] != ONV_NO_MODULE) {
            before = module_of[s++];
            continue;
        }
        uint32_t end = s;
        while (end < live->n_steps && module_of[end] == ONV_NO_MODULE) end++;
        uint32_t behind = end < live->n_steps ? module_of[end] : 0;
        uint32_t shared = common_ancestor(modules, before, behind);
        while (s < end) module_of[s++] = shared;
    }
    return true;
}

static bool place_by_operator(onv_modules *modules, const onv_view *view, uint32_t *module_of)
{
    for (uint32_t s = 0; s < view->live->n_steps; s++) {
        const onv_node *node = onv_model_node(view->model, view->live->steps[s]);
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
        if (value->kind != ONV_VALUE_INITIALIZER || value->tensor == NULL) continue;
        is_counted[id.index] = true;
        module->params += value->tensor->elems;
        *counted += value->tensor->elems;
    }
}

static void add_step(onv_module *module, const onv_view *view, const onv_footprint *footprint,
                     uint32_t step)
{
    const onv_node *node = onv_model_node(view->model, view->live->steps[step]);
    module->own_steps++;
    module->last_step = step;
    onv_dim macs = onv_view_dim(view, node->macs);
    if (onv_dim_is_const(macs) && macs.raw >= 0)
        module->macs += (uint64_t)macs.raw;
    else
        module->macs_known = false;
    for (uint32_t i = 0; i < node->n_outputs; i++) {
        if (!onv_is_value(node->outputs[i])) continue;
        uint32_t row = view->live->of_value[node->outputs[i].index];
        if (row != UINT32_MAX) module->activation += footprint->rows[row];
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
        parent->activation += module->activation;
        parent->macs_known = parent->macs_known && module->macs_known;
        if (module->last_step > parent->last_step) parent->last_step = module->last_step;
    }
}

bool onv_modules_init(onv_modules *modules, const onv_view *view, const onv_footprint *footprint,
                      unsigned max_depth, onv_arena *arena)
{
    const onv_live *live = view->live;
    *modules = (onv_modules){.arena = arena};
    if (max_depth == 0 || max_depth > ONV_MODULE_MAX_DEPTH) max_depth = ONV_MODULE_MAX_DEPTH;
    uint32_t *module_of = ONV_ARENA_ARRAY(arena, uint32_t, live->n_steps);
    bool *is_counted = ONV_ARENA_ARRAY(arena, bool, view->model->values.count);
    if (module_of == NULL || is_counted == NULL) return false;
    if (add_module(modules, ONV_NO_MODULE, "", 0) == ONV_NO_MODULE) return false;
    if (!place_by_scope(modules, view, max_depth, module_of)) return false;
    if (modules->list.count == 1 && !place_by_operator(modules, view, module_of)) return false;
    uint64_t counted = 0;
    for (uint32_t s = 0; s < live->n_steps; s++) {
        onv_module *module = &modules->list.at[module_of[s]];
        const onv_node *node = onv_model_node(view->model, live->steps[s]);
        add_params(module, view->model, node, is_counted, &counted);
        add_step(module, view, footprint, s);
    }
    modules->unused_params = live->weight_elems > counted ? live->weight_elems - counted : 0;
    add_to_parents(modules);
    return true;
}

void onv_modules_cleanup(onv_modules *modules)
{
    onv_vec_cleanup(&modules->list);
}
