/* Constants with the new batch, for the stages after inference.
 *
 * Where every reader of a constant reads the new contents, the constant takes them. Where some read the old
 * ones (two Reshapes may share an initializer), the others read a constant of their own.
 */
#include <inttypes.h>

#include "base/fail.h"
#include "base/heap.h"
#include "infer/rebatch.h"

static bool same_contents(const onv_known *a, const onv_known *b)
{
    if (a->count != b->count) return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (!onv_dim_same(a->elems[i].i, b->elems[i].i)) return false;
    return true;
}

static onv_value_id input_of(const onv_driver *driver, const onv_rewrite *rewrite)
{
    return driver->model->nodes.at[rewrite->node].inputs[rewrite->input];
}

typedef struct store {
    uint32_t *reads;            /* by value: the inputs of nodes that read it */
    uint32_t *changed;          /* by value: those that read new contents */
    const onv_known **contents; /* by value: the new contents, of the first of them */
    bool *is_stored;            /* by value: it has the new contents */
    onv_value_id *copies;       /* by value: the last constant made for one of them */
} store;

static void survey(const onv_driver *driver, store *s)
{
    for (size_t i = 0; i < driver->rebatch.rewrites.count; i++) {
        const onv_rewrite *rewrite = &driver->rebatch.rewrites.at[i];
        uint32_t value = input_of(driver, rewrite).index;
        if (s->contents[value] == NULL) s->contents[value] = rewrite->bound;
        s->changed[value]++;
    }
}

/* Whether the constant itself takes these contents: nobody reads the old ones. */
static bool is_in_place(const store *s, uint32_t value, const onv_known *contents)
{
    return s->changed[value] == s->reads[value] && same_contents(s->contents[value], contents);
}

/* The bytes of integers. */
static void *bytes_of(onv_arena *arena, onv_dtype dtype, const onv_known *contents)
{
    bool is_wide = dtype == ONV_INT64;
    int64_t *wide = is_wide ? ONV_ARENA_ARRAY(arena, int64_t, contents->count) : NULL;
    int32_t *narrow = is_wide ? NULL : ONV_ARENA_ARRAY(arena, int32_t, contents->count);
    for (uint32_t i = 0; i < contents->count; i++) {
        if (wide != NULL) wide[i] = contents->elems[i].i.raw;
        if (narrow != NULL) narrow[i] = (int32_t)contents->elems[i].i.raw;
    }
    return is_wide ? (void *)wide : (void *)narrow;
}

/* The payload follows the contents, which ONNX Runtime's rules compare. Shapes are int64 or int32. */
static onv_status set_contents(onv_driver *driver, onv_value *value, const onv_known *contents)
{
    onv_model *model = driver->model;
    onv_dtype dtype = (onv_dtype)value->type.dtype;
    value->known = contents;
    value->known_tried = true;
    if (!onv_value_is_weight(value) || (dtype != ONV_INT64 && dtype != ONV_INT32)) return ONV_OK;
    onv_tensor *tensor = ONV_ARENA_ARRAY(&model->arena, onv_tensor, 1);
    void *data = bytes_of(&model->arena, dtype, contents);
    if (tensor == NULL || data == NULL) return onv_fail_memory(driver->err);
    uint64_t bytes = (uint64_t)contents->count * onv_dtype_bits(dtype) / 8;
    *tensor = (onv_tensor){.name = value->name,
                           .type = value->type,
                           .payload = {.kind = ONV_PAYLOAD_RAW, .data = data, .bytes = bytes},
                           .bytes = bytes,
                           .elems = contents->count};
    return onv_rebatch_set_tensor(driver, value, tensor);
}

onv_status onv_rebatch_set_tensor(onv_driver *driver, onv_value *value, const onv_tensor *tensor)
{
    onv_model *model = driver->model;
    value->tensor = tensor;
    if (!onv_is_node(value->producer)) return ONV_OK;
    onv_node *node = onv_model_node(model, value->producer);
    onv_attr *attrs =
        onv_arena_copy(&model->arena, node->attrs, node->n_attrs * sizeof *node->attrs);
    if (attrs == NULL) return onv_fail_memory(driver->err);
    for (uint32_t k = 0; k < node->n_attrs; k++)
        if (attrs[k].kind == ONV_ATTR_TENSOR) attrs[k].tensor = tensor;
    node->attrs = attrs;
    return ONV_OK;
}

static onv_status add_copy(onv_driver *driver, onv_value_id *id, const onv_known *contents)
{
    onv_model *model = driver->model;
    onv_value copy = *onv_model_value(model, *id);
    copy.name =
        onv_arena_printf(&model->arena, "%s.batch%" PRId64, copy.name, driver->options->batch);
    if (copy.name == NULL) return onv_fail_memory(driver->err);
    copy.kind = ONV_VALUE_INITIALIZER;
    copy.is_output = false;
    copy.producer = ONV_NO_NODE;
    copy.output_index = 0;
    ONV_TRY(set_contents(driver, &copy, contents));
    driver->decider_stamps = NULL; /* they are as many as the values */
    *id = (onv_value_id){(uint32_t)model->values.count};
    return onv_vec_push(&model->values, copy) ? ONV_OK : onv_fail_memory(driver->err);
}

static onv_status store_one(onv_driver *driver, store *s, const onv_rewrite *rewrite)
{
    onv_model *model = driver->model;
    onv_value_id id = input_of(driver, rewrite), copy = s->copies[id.index];
    if (is_in_place(s, id.index, rewrite->bound)) {
        if (s->is_stored[id.index]) return ONV_OK;
        s->is_stored[id.index] = true;
        return set_contents(driver, onv_model_value(model, id), rewrite->bound);
    }
    if (!onv_is_value(copy) ||
        !same_contents(onv_model_value(model, copy)->known, rewrite->bound)) {
        copy = id;
        ONV_TRY(add_copy(driver, &copy, rewrite->bound));
        s->copies[id.index] = copy;
    }
    model->nodes.at[rewrite->node].inputs[rewrite->input] = copy;
    return ONV_OK;
}

static onv_status store_all(onv_driver *driver, store *s)
{
    const onv_model *model = driver->model;
    size_t n_values = model->values.count;
    for (size_t i = 0; i < n_values; i++) s->copies[i] = ONV_NO_VALUE;
    for (size_t i = 0; i < model->nodes.count; i++) {
        const onv_node *node = &model->nodes.at[i];
        for (uint32_t k = 0; k < node->n_inputs; k++)
            if (onv_is_value(node->inputs[k])) s->reads[node->inputs[k].index]++;
    }
    survey(driver, s);
    for (size_t i = 0; i < driver->rebatch.rewrites.count; i++) {
        const onv_rewrite *rewrite = &driver->rebatch.rewrites.at[i];
        ONV_TRY(store_one(driver, s, rewrite));
    }
    return ONV_OK;
}

onv_status onv_rebatch_store(onv_driver *driver)
{
    size_t n = driver->model->values.count;
    store s = {.reads = onv_heap_calloc(n, sizeof *s.reads),
               .changed = onv_heap_calloc(n, sizeof *s.changed),
               .contents = onv_heap_calloc(n, sizeof *s.contents),
               .is_stored = onv_heap_calloc(n, sizeof *s.is_stored),
               .copies = onv_heap_calloc(n, sizeof *s.copies)};
    bool is_made = s.reads != NULL && s.changed != NULL && s.contents != NULL &&
                   s.is_stored != NULL && s.copies != NULL;
    onv_status status = is_made ? store_all(driver, &s) : onv_fail_memory(driver->err);
    if (status == ONV_OK) status = onv_rebatch_store_constants(driver);
    onv_heap_free(s.reads);
    onv_heap_free(s.changed);
    onv_heap_free(s.contents);
    onv_heap_free(s.is_stored);
    onv_heap_free(s.copies);
    return status;
}
