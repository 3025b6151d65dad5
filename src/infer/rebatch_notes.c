/* What an export with a fixed batch leaves open: diagnostics.
 *
 * A size that equals the old batch and does not depend on it may be the
 * batch. An input that does not begin with the batch may hold it elsewhere.
 */
#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "infer/rebatch.h"

static onv_status add_note(onv_driver *driver, const char *node, const char *message)
{
    onv_diag note = {ONV_WARNING, "batch", node, message};
    if (message == NULL || !onv_vec_push(&driver->rebatch.notes, note))
        return onv_fail_memory(driver->err);
    return ONV_OK;
}

void onv_rebatch_tell(onv_driver *driver)
{
    for (size_t i = 0; i < driver->rebatch.notes.count; i++) {
        const onv_diag *note = &driver->rebatch.notes.at[i];
        onv_model_diag(driver->model, note->severity, note->code, note->node, "%s", note->message);
    }
}

/* --- Inputs ------------------------------------------------------------------------------------ */

static bool may_hold_batch(const onv_driver *driver, const onv_type *type)
{
    for (int axis = 0; onv_type_has_rank(type) && axis < type->rank; axis++)
        if (onv_dim_is_const(type->dims[axis]) && type->dims[axis].raw > 0 &&
            type->dims[axis].raw % driver->rebatch.old == 0)
            return true;
    return false;
}

static onv_status note_inputs(onv_driver *driver)
{
    onv_model *model = driver->model;
    const onv_graph *graph = onv_model_graph(model, (onv_graph_id){0});
    for (uint32_t i = 0; i < graph->n_inputs; i++) {
        const onv_value *input = onv_model_value(model, graph->inputs[i]);
        if (driver->rebatch.has_batch[i] || !may_hold_batch(driver, &input->type)) continue;
        ONV_TRY(add_note(
            driver, NULL,
            onv_arena_printf(&model->arena,
                             "input '%s' keeps its shape, as its first dimension is not the batch "
                             "of the export, %" PRId64 "; where it holds the batch, give its shape "
                             "with --shape %s=...",
                             input->name, driver->rebatch.old, input->name)));
    }
    return ONV_OK;
}

/* --- Sizes that equal the old batch ------------------------------------------------------------ */

static onv_status note_cut(onv_driver *driver, const onv_node *node)
{
    if (driver->rebatch.old < 2 || node->n_inputs == 0 || node->n_outputs == 0 ||
        !ONV_IS_ANY(node, ONV_OP_Slice, ONV_OP_TopK, ONV_OP_OneHot) ||
        !onv_is_value(node->inputs[0]) || !onv_is_value(node->outputs[0]))
        return ONV_OK;
    const onv_type *in = &onv_model_value(driver->model, node->inputs[0])->type;
    const onv_type *out = &onv_model_value(driver->model, node->outputs[0])->type;
    if (!onv_rebatch_carries(driver, out)) return ONV_OK;
    for (int axis = 0; axis < out->rank; axis++) {
        bool is_cut = axis >= in->rank || !onv_dim_same(in->dims[axis], out->dims[axis]);
        if (!is_cut || !onv_dim_is(out->dims[axis], driver->rebatch.old)) continue;
        return add_note(driver, node->name,
                        onv_arena_printf(&driver->model->arena,
                                         "dimension %d of its result, %" PRId64
                                         ", equals the batch of the export and is kept; if it is "
                                         "the batch, export with %s",
                                         axis, driver->rebatch.old, onv_rebatch_remedy(driver)));
    }
    return ONV_OK;
}

/* Parameters and buffers have the shape that the network gives them; what has no name in the network was
 * computed by the exporter. */
bool onv_rebatch_is_computed(const onv_driver *driver, const onv_value *value)
{
    if (value->kind == ONV_VALUE_CONSTANT) return true;
    if (value->role != ONV_ROLE_NOT_NOTED) return false;
    return driver->rebatch.has_roles || strstr(value->name, "::") != NULL;
}

/* Anew for each run. */
onv_status onv_rebatch_note(onv_driver *driver)
{
    const onv_graph *graph = onv_model_graph(driver->model, (onv_graph_id){0});
    driver->rebatch.notes.count = 0;
    ONV_TRY(note_inputs(driver));
    for (uint32_t i = 0; i < graph->n_nodes; i++)
        ONV_TRY(note_cut(driver, onv_model_node(driver->model, graph->nodes[i])));
    return ONV_OK;
}
