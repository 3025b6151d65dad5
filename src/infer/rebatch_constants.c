/* Constants: which get another size, and how all take the new batch for the stages after inference.
 *
 * An exporter computes constants with a sample for each of the old batch: class tokens, masks, states. Where all samples are the
 * same and a node does not fit the new batch because of them, the constant gets as many as the new batch has. The tensor is
 * one in the network, so every node that reads it reads the new size.
 *
 * Where every reader of a constant that decides a shape reads the new contents, the constant takes them. Where some read the
 * old ones (two Reshapes may share an initializer), the others read a constant of their own.
 */
#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/heap.h"
#include "base/rules.h"
#include "infer/driver.h"
#include "load/load.h"

/* Contents that are compared, in all; and those that are made, for one constant. */
enum { MAX_COMPARED_BYTES = 1 << 28, MAX_MADE_BYTES = 1 << 24 };

/* How its elements lie around an axis: `outer` times `count` blocks of `inner` bytes. */
typedef struct blocks {
    size_t outer, count, inner;
} blocks;

static blocks blocks_of(const onv_tensor *tensor, int axis)
{
    blocks b = {1, (size_t)tensor->type.dims[axis].raw, 0};
    for (int i = 0; i < axis; i++) b.outer *= (size_t)tensor->type.dims[i].raw;
    b.inner = (size_t)tensor->bytes / (b.outer * b.count);
    return b;
}

static bool is_same_along(const unsigned char *data, blocks b)
{
    for (size_t o = 0; o < b.outer; o++) {
        const unsigned char *first = data + o * b.count * b.inner;
        for (size_t i = 1; i < b.count; i++)
            if (memcmp(first, first + i * b.inner, b.inner) != 0) return false;
    }
    return true;
}

/* --- Which ------------------------------------------------------------------------------------- */

/* Parameters and buffers have the shape that the network gives them; what has no name in the network was
 * computed by the exporter. */
static bool is_computed(const onv_driver *driver, const onv_value *value)
{
    if (value->kind == ONV_VALUE_CONSTANT) return true;
    if (value->role != ONV_ROLE_NOT_NOTED) return false;
    return driver->rebatch.has_roles || strstr(value->name, "::") != NULL;
}

/* Numbers that inference asked for, as they decide shapes: the bounds of a Slice, sizes of parts. */
static bool is_bound(const onv_value *value)
{
    return value->known_tried && value->type.rank <= 1 &&
           onv_dtype_is_integer((onv_dtype)value->type.dtype);
}

static bool may_resize(const onv_driver *driver, const onv_value *value)
{
    const onv_tensor *tensor = value->tensor;
    if (!onv_value_is_weight(value) || is_bound(value) || value->overridable || tensor == NULL ||
        tensor->type.kind != ONV_TYPE_TENSOR || tensor->elems == 0 ||
        tensor->bytes > MAX_COMPARED_BYTES - driver->rebatch.compared_bytes ||
        onv_dtype_bits((onv_dtype)tensor->type.dtype) % 8 != 0)
        return false;
    return is_computed(driver, value);
}

/* The axes that may be the batch, the first ones first. */
static onv_status find_axes(onv_driver *driver, const onv_tensor *tensor, onv_resized *r)
{
    uint32_t n_old = 0;
    for (int axis = 0; axis < tensor->type.rank; axis++)
        n_old += onv_dim_is(tensor->type.dims[axis], driver->rebatch.old);
    if (n_old == 0) return ONV_OK;
    const unsigned char *data = NULL;
    unsigned char *buffer = NULL;
    driver->rebatch.compared_bytes += tensor->bytes;
    /* A single sample is like all others, and need not be read. */
    bool is_alone = driver->rebatch.old == 1 && tensor->payload.kind == ONV_PAYLOAD_RAW &&
                    tensor->payload.bytes >= tensor->bytes;
    if (!is_alone)
        ONV_TRY(onv_load_head(driver->model, tensor, (size_t)tensor->bytes, &data, &buffer,
                              driver->err));
    for (int axis = 0; (is_alone || data != NULL) && axis < tensor->type.rank; axis++)
        if (onv_dim_is(tensor->type.dims[axis], driver->rebatch.old) &&
            (is_alone || is_same_along(data, blocks_of(tensor, axis))))
            r->candidates[r->n_candidates++] = (uint8_t)axis;
    onv_heap_free(buffer);
    return ONV_OK;
}

/* --- Resizing ---------------------------------------------------------------------------------- */

static onv_status set_size(onv_driver *driver, const onv_resized *r, onv_dim batch)
{
    onv_value *value = onv_model_value(driver->model, r->value);
    value->type.dims = value->tensor->type.dims;
    if (!onv_type_set_dim(&value->type, &driver->model->arena, r->candidates[r->tried], batch))
        return onv_fail_memory(driver->err);
    value->known = NULL;
    value->known_tried = true;
    return ONV_OK;
}

static onv_resized *find_resized(const onv_rebatch *rebatch, onv_value_id id)
{
    for (size_t i = 0; i < rebatch->resized.count; i++)
        if (rebatch->resized.at[i].value.index == id.index) return &rebatch->resized.at[i];
    return NULL;
}

onv_status onv_rebatch_resize_input(onv_driver *driver, uint32_t index, bool *changed)
{
    if (!onv_rule_is_on("infer.rebatch_resize")) return ONV_OK;
    onv_rebatch *rebatch = &driver->rebatch;
    const onv_node *node = &driver->model->nodes.at[index];
    for (uint32_t k = 0; k < node->n_inputs && !*changed; k++) {
        if (!onv_is_value(node->inputs[k])) continue;
        onv_value *value = onv_model_value(driver->model, node->inputs[k]);
        onv_resized *known = find_resized(rebatch, node->inputs[k]);
        onv_resized found = {.value = node->inputs[k]};
        if (known != NULL) {
            if (known->tried + 1 >= known->n_candidates) continue;
            known->tried++;
            found = *known;
        } else {
            if (!may_resize(driver, value)) continue;
            ONV_TRY(find_axes(driver, value->tensor, &found));
            if (found.n_candidates == 0) continue;
            if (!onv_vec_push(&rebatch->resized, found)) return onv_fail_memory(driver->err);
        }
        *changed = true;
        ONV_TRY(set_size(driver, &found, rebatch->symbol));
    }
    return ONV_OK;
}

onv_status onv_rebatch_size_constants(onv_driver *driver, onv_dim batch)
{
    for (size_t i = 0; i < driver->rebatch.resized.count; i++)
        ONV_TRY(set_size(driver, &driver->rebatch.resized.at[i], batch));
    return ONV_OK;
}

void onv_rebatch_restore_constants(onv_driver *driver)
{
    for (size_t i = 0; i < driver->rebatch.resized.count; i++) {
        onv_value *value = onv_model_value(driver->model, driver->rebatch.resized.at[i].value);
        value->type = value->tensor->type;
        value->known_tried = false;
    }
    driver->rebatch.resized.count = 0;
}

/* --- Storing ----------------------------------------------------------------------------------- */

/* The tensor of a constant, for the stages after inference. */
static onv_status set_tensor(onv_driver *driver, onv_value *value, const onv_tensor *tensor)
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

/* The samples of `from`, as many as `to` has; without contents where they are many, as nobody reads them. */
static onv_status copy_samples(onv_driver *driver, const onv_tensor *from, int axis, onv_tensor *to)
{
    const unsigned char *data;
    unsigned char *buffer;
    to->payload = (onv_payload){.kind = ONV_PAYLOAD_NONE};
    if (to->bytes > MAX_MADE_BYTES) return ONV_OK;
    ONV_TRY(onv_load_head(driver->model, from, (size_t)from->bytes, &data, &buffer, driver->err));
    unsigned char *made = onv_arena_alloc(&driver->model->arena, (size_t)to->bytes);
    blocks b = blocks_of(from, axis), n = blocks_of(to, axis);
    for (size_t o = 0; made != NULL && data != NULL && o < n.outer; o++)
        for (size_t i = 0; i < n.count; i++)
            memcpy(made + (o * n.count + i) * n.inner, data + o * b.count * b.inner, n.inner);
    if (made != NULL && data != NULL)
        to->payload = (onv_payload){.kind = ONV_PAYLOAD_RAW, .data = made, .bytes = to->bytes};
    onv_heap_free(buffer);
    return made != NULL ? ONV_OK : onv_fail_memory(driver->err);
}

static onv_status store_resized(onv_driver *driver, const onv_resized *r)
{
    onv_value *value = onv_model_value(driver->model, r->value);
    onv_tensor *tensor = onv_arena_copy(&driver->model->arena, value->tensor, sizeof *tensor);
    if (tensor == NULL) return onv_fail_memory(driver->err);
    uint64_t sample = tensor->elems / (uint64_t)driver->rebatch.old;
    tensor->type = value->type;
    if (__builtin_mul_overflow(sample, (uint64_t)driver->options->batch, &tensor->elems) ||
        !onv_dtype_bytes((onv_dtype)tensor->type.dtype, tensor->elems, &tensor->bytes))
        return onv_fail(driver->err, ONV_ERR_OVERFLOW, "the bytes of '%s' do not fit 64 bits",
                        value->name);
    ONV_TRY(copy_samples(driver, value->tensor, r->candidates[r->tried], tensor));
    value->known_tried = tensor->payload.kind == ONV_PAYLOAD_NONE;
    return set_tensor(driver, value, tensor);
}

/* --- Contents that decide shapes ---------------------------------------------------------------- */

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
    return set_tensor(driver, value, tensor);
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
    onv_arena *scratch = &driver->scratch;
    store s = {.reads = ONV_ARENA_ARRAY(scratch, uint32_t, n),
               .changed = ONV_ARENA_ARRAY(scratch, uint32_t, n),
               .contents = ONV_ARENA_ARRAY(scratch, const onv_known *, n),
               .is_stored = ONV_ARENA_ARRAY(scratch, bool, n),
               .copies = ONV_ARENA_ARRAY(scratch, onv_value_id, n)};
    if (scratch->failed) return onv_fail_memory(driver->err);
    ONV_TRY(store_all(driver, &s));
    onv_arena_reset(scratch);
    for (size_t i = 0; i < driver->rebatch.resized.count; i++)
        ONV_TRY(store_resized(driver, &driver->rebatch.resized.at[i]));
    return ONV_OK;
}
