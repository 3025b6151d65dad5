/* From a node that does not fit the new batch to the constant that keeps the old one. */
#include <string.h>

#include "base/fail.h"
#include "base/heap.h"
#include "base/rules.h"
#include "infer/rebatch.h"

/* How far upstream of a mismatch is looked, in nodes. */
enum { MAX_SEARCH = 4096 };

/* Whether the result is itself part of a shape: integers that inference follows. */
static bool gives_shape(const onv_driver *driver, const onv_node *node)
{
    if (node->n_outputs == 0 || !onv_is_value(node->outputs[0])) return false;
    const onv_value *value = onv_model_value(driver->model, node->outputs[0]);
    return value->known != NULL && value->type.rank == 1 &&
           onv_dtype_is_integer((onv_dtype)value->type.dtype);
}

/* The input that gives the shape of the output, or of a shape a part: -1 none. */
static int shape_input(const onv_driver *driver, const onv_node *node)
{
    bool is_shape = gives_shape(driver, node);
    if (node->code == ONV_OP_Concat) return is_shape ? 0 : -1;
    if (node->code == ONV_OP_Where) return is_shape ? 2 : -1; /* Expand's -1 stand for 1 */
    if (node->code == ONV_OP_Resize) return 3;                /* sizes */
    if (is_shape) return -1;
    if (node->code == ONV_OP_Expand || node->code == ONV_OP_Tile) return 1;
    return node->code == ONV_OP_ConstantOfShape ? 0 : -1;
}

/* The entry that is the old batch; of a batch of one only the first is told from others. */
static uint32_t entry_of_batch(const onv_driver *driver, const onv_known *known)
{
    uint32_t end = driver->rebatch.old > 1 ? known->count : 1;
    for (uint32_t i = 0; i < end && i < known->count; i++)
        if (onv_dim_is(known->elems[i].i, driver->rebatch.old)) return i;
    return known->count;
}

static onv_status change_input(onv_driver *driver, uint32_t node, uint32_t k,
                               const onv_known *known, uint32_t entry)
{
    onv_known *copy = onv_rebatch_copy_known(driver->model, known);
    if (copy == NULL) return onv_fail_memory(driver->err);
    copy->elems[entry].i = driver->rebatch.symbol;
    onv_rewrite *rewrite = onv_rebatch_add(driver, node, k, copy);
    if (rewrite == NULL) return onv_fail_memory(driver->err);
    rewrite->is_upstream = true;
    return ONV_OK;
}

/* A Where compares the constant before it takes it. */
static onv_status change_comparison(onv_driver *driver, const onv_node *where,
                                    const onv_known *known, uint32_t entry)
{
    onv_value_id constant = where->inputs[2];
    if (!onv_is_value(where->inputs[0])) return ONV_OK;
    onv_node_id id = onv_model_value(driver->model, where->inputs[0])->producer;
    if (!onv_is_node(id)) return ONV_OK;
    const onv_node *equal = onv_model_node(driver->model, id);
    for (uint32_t k = 0; k < equal->n_inputs; k++)
        if (equal->inputs[k].index == constant.index &&
            onv_rebatch_find(&driver->rebatch, id.index, k) == NULL)
            ONV_TRY(change_input(driver, id.index, k, known, entry));
    return ONV_OK;
}

/* Changes the first entry of that input that is the old batch, if the input was not changed yet. */
static onv_status change_constant(onv_driver *driver, uint32_t index, bool *changed)
{
    const onv_node *node = &driver->model->nodes.at[index];
    int k = shape_input(driver, node);
    if (k < 0 || (uint32_t)k >= node->n_inputs || !onv_is_value(node->inputs[k])) return ONV_OK;
    if (onv_rebatch_find(&driver->rebatch, index, (uint32_t)k) != NULL) return ONV_OK;
    onv_value *value = onv_model_value(driver->model, node->inputs[k]);
    const onv_known *known = NULL;
    if (!onv_value_is_weight(value)) return ONV_OK;
    ONV_TRY(onv_driver_constant(driver, value, &known));
    if (known == NULL || !onv_dtype_is_integer((onv_dtype)known->dtype)) return ONV_OK;
    uint32_t entry = entry_of_batch(driver, known);
    if (entry >= known->count) return ONV_OK;
    *changed = true;
    if (node->code == ONV_OP_Where) ONV_TRY(change_comparison(driver, node, known, entry));
    return change_input(driver, index, (uint32_t)k, known, entry);
}

static onv_status change_node(onv_driver *driver, uint32_t index, bool *changed)
{
    onv_rewrite *reshape = onv_rebatch_find(&driver->rebatch, index, 1);
    if (reshape != NULL && onv_rebatch_read_otherwise(driver, reshape)) {
        onv_rebatch_forget_after(driver, reshape);
        *changed = true;
        return ONV_OK;
    }
    return driver->rebatch.is_unlikely ? ONV_OK : change_constant(driver, index, changed);
}

/* Every constant has one sample of a batch of one: only what does not fit tells. */
static bool may_resize_at(const onv_driver *driver, size_t at)
{
    const onv_rebatch *rebatch = &driver->rebatch;
    return rebatch->may_resize && !rebatch->is_unlikely && (rebatch->old > 1 || at == 0);
}

/* Breadth first from the node that failed, against the edges. */
onv_status onv_rebatch_change_upstream(onv_driver *driver, bool *changed)
{
    if (!onv_rule_is_on("infer.rebatch_search")) {
        *changed = false;
        return ONV_OK;
    }
    onv_model *model = driver->model;
    uint32_t *queue = onv_heap_alloc(MAX_SEARCH * sizeof *queue);
    bool *seen = onv_heap_calloc(model->nodes.count, sizeof *seen);
    onv_status status = queue != NULL && seen != NULL ? ONV_OK : onv_fail_memory(driver->err);
    size_t count = 0;
    *changed = false;
    if (status == ONV_OK) {
        queue[count++] = driver->failed_node.index;
        seen[driver->failed_node.index] = true;
    }
    for (size_t at = 0; at < count && status == ONV_OK && !*changed; at++) {
        status = change_node(driver, queue[at], changed);
        if (status == ONV_OK && !*changed && may_resize_at(driver, at))
            status = onv_rebatch_resize_input(driver, queue[at], changed);
        const onv_node *node = &model->nodes.at[queue[at]];
        for (uint32_t k = 0; k < node->n_inputs && count < MAX_SEARCH; k++) {
            if (!onv_is_value(node->inputs[k])) continue;
            onv_node_id producer = onv_model_value(model, node->inputs[k])->producer;
            if (!onv_is_node(producer) || seen[producer.index]) continue;
            seen[producer.index] = true;
            queue[count++] = producer.index;
        }
    }
    onv_heap_free(queue);
    onv_heap_free(seen);
    return status;
}
