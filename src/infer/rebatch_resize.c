/* Constants that an exporter computed, with a sample for each of the old batch: class tokens, masks, states.
 *
 * Where all samples are the same and a node does not fit the new batch because of them, the constant gets as many
 * as the new batch has. The tensor is one in the network, so every node that reads it reads the new size.
 */
#include <string.h>

#include "base/fail.h"
#include "base/heap.h"
#include "base/rules.h"
#include "infer/rebatch.h"
#include "load/load.h"

/* Contents that are compared, in all; and those that are made, for one constant. */
enum { MAX_COMPARED_BYTES = 1 << 28, MAX_MADE_BYTES = 1 << 24 };

/* --- Contents ---------------------------------------------------------------------------------- */

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
    return onv_rebatch_is_computed(driver, value);
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
    return onv_rebatch_set_tensor(driver, value, tensor);
}

onv_status onv_rebatch_store_constants(onv_driver *driver)
{
    for (size_t i = 0; i < driver->rebatch.resized.count; i++)
        ONV_TRY(store_resized(driver, &driver->rebatch.resized.at[i]));
    return ONV_OK;
}
