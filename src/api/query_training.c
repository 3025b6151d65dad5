/* What can be asked of training: figures, plans, torch.compile. */
#include "api/ask.h"
#include "program/view.h"

bool onv_analysis_training_get(const onv_analysis *analysis, onv_training_info *info, size_t size)
{
    const onv_training *t = &analysis->training;
    if (t->optimizer == NULL) return false;
    const onv_training_figures *f = &t->figures;
    const onv_train_parts *parts = &f->parts;
    onv_training_info full = {
        .optimizer = t->optimizer->name,
        .loss = t->loss,
        .evidence = onv_program_evidence(t->model),
        .parameter_bytes = f->parameter_bytes,
        .gradient_bytes = f->gradient_bytes,
        .optimizer_bytes = f->optimizer_bytes,
        .saved_activation_bytes = f->saved_activation_bytes,
        .peak_bytes = f->peak_bytes,
        .allocated_peak_bytes = f->allocated_peak_bytes,
        .reserved_peak_bytes = f->reserved_peak_bytes,
        .buffer_bytes = f->buffer_bytes,
        .requested_peak_bytes = f->requested_peak_bytes,
        .driver_bytes = f->driver_bytes,
        .first_iteration_peak_bytes = f->first_peak_bytes,
        .released_bytes = f->release.returned_bytes,
        .unbounded_reserved_bytes = f->release.suffices ? f->reserved_peak_bytes : 0,
        .forward_macs = f->forward_macs,
        .bucket_bytes = parts->bucket_bytes,
        .gathered_bytes = parts->gathered_bytes,
        .reduce_bytes = parts->reduce_bytes,
        .master_bytes = parts->master_bytes,
        .ema_bytes = parts->ema_bytes,
        .host_bytes = parts->host_bytes,
        .quantized_bytes = parts->quantized_bytes,
        .dequantized_bytes = parts->dequantized_bytes,
        .units = t->n_units,
    };
    return onv_give(info, size, &full, sizeof full);
}

bool onv_analysis_checkpoint_get(const onv_analysis *analysis, size_t index,
                                 onv_checkpoint_info *info, size_t size)
{
    const onv_training *t = &analysis->training;
    if (index >= t->n_plans) return false;
    const onv_training_plan *plan = &t->plans[index];
    onv_checkpoint_info full = {.name = plan->name,
                                .peak_bytes = plan->figures.peak_bytes,
                                .saved_activation_bytes = plan->figures.saved_activation_bytes,
                                .allocated_peak_bytes = plan->figures.allocated_peak_bytes,
                                .reserved_peak_bytes = plan->figures.reserved_peak_bytes,
                                .recompute_macs = plan->recomputed_macs,
                                .pass_macs = plan->pass_macs,
                                .segments = plan->n_segments,
                                .chosen = index == t->chosen,
                                .offloaded_bytes = plan->figures.offloaded_bytes,
                                .returned_bytes = plan->figures.returned_bytes,
                                .host_bytes = plan->figures.pinned_bytes,
                                .offloads = plan->saves_on_cpu || plan->offload_until > 0,
                                .max_batch = plan->max_batch,
                                .max_batch_by_release = plan->max_batch_by_release,
                                .by_hand = plan->n_by_hand,
                                .kept = plan->n_kept_ops,
                                .compiles = plan->compiles,
                                .memory_budget = plan->memory_budget};
    return onv_give(info, size, &full, sizeof full);
}

bool onv_analysis_checkpoint_segment_get(const onv_analysis *analysis, size_t plan, size_t index,
                                         onv_segment_info *info, size_t size)
{
    const onv_training *t = &analysis->training;
    if (plan >= t->n_plans || index >= t->plans[plan].n_segments) return false;
    const onv_segment_names *names = &t->plans[plan].names[index];
    onv_segment_info full = {names->first, names->last};
    return onv_give(info, size, &full, sizeof full);
}

const char *onv_analysis_checkpoint_kept(const onv_analysis *analysis, size_t plan, size_t index)
{
    const onv_training *t = &analysis->training;
    if (plan >= t->n_plans || index >= t->plans[plan].n_kept_ops) return NULL;
    return t->plans[plan].kept[index];
}

bool onv_analysis_compiled_get(const onv_analysis *analysis, onv_compiled_info *info, size_t size)
{
    const onv_compiled *c = analysis->training.compiled;
    if (c == NULL) return false;
    onv_compiled_info full = {.budget = c->budget,
                              .saved_activation_bytes = c->saved_activation_bytes,
                              .peak_bytes = c->peak_bytes,
                              .recompute_macs = c->recomputed_macs,
                              .pass_macs = c->pass_macs,
                              .saved = c->n_saved};
    return onv_give(info, size, &full, sizeof full);
}

bool onv_analysis_compiled_tensor_get(const onv_analysis *analysis, size_t index,
                                      onv_compiled_tensor_info *info, size_t size)
{
    const onv_compiled *c = analysis->training.compiled;
    if (c == NULL || index >= c->n_saved) return false;
    const onv_compiled_tensor *t = &c->saved[index];
    bool is_own = analysis->training.model == &analysis->model;
    onv_compiled_tensor_info full = {is_own ? onv_ask_value(t->value) : ONV_NO_INDEX,
                                     onv_ask_node(analysis->training.model, t->node), t->operation,
                                     t->bytes};
    return onv_give(info, size, &full, sizeof full);
}

/* --- What plans are made of -------------------------------------------------------------------- */

bool onv_analysis_chain_get(const onv_analysis *analysis, onv_chain_info *info, size_t size)
{
    const onv_unit_list *list = analysis->training.units;
    if (list == NULL) return false;
    onv_chain_info full = {list->chain.n_units, list->chain.n_tensors,
                           list->chain.turn_bytes[list->chain.n_units]};
    return onv_give(info, size, &full, sizeof full);
}

size_t onv_analysis_chain_unit_count(const onv_analysis *analysis)
{
    const onv_unit_list *list = analysis->training.units;
    return list != NULL ? list->chain.n_units : 0;
}

bool onv_analysis_chain_unit_get(const onv_analysis *analysis, size_t index,
                                 onv_chain_unit_info *info, size_t size)
{
    const onv_unit_list *list = analysis->training.units;
    if (index >= onv_analysis_chain_unit_count(analysis)) return false;
    const onv_chain_unit *unit = &list->chain.units[index];
    onv_chain_unit_info full = {.node =
                                    onv_ask_node(analysis->training.model, list->units[index].node),
                                .operation = list->units[index].operation,
                                .macs = list->units[index].macs,
                                .forward_bytes = unit->forward_bytes,
                                .passing_bytes = unit->passing_bytes,
                                .own_bytes = unit->own_bytes,
                                .backward_bytes = unit->backward_bytes,
                                .beside_bytes = list->chain.turn_bytes[index]};
    return onv_give(info, size, &full, sizeof full);
}

size_t onv_analysis_chain_tensor_count(const onv_analysis *analysis)
{
    const onv_unit_list *list = analysis->training.units;
    return list != NULL ? list->chain.n_tensors : 0;
}

bool onv_analysis_chain_tensor_get(const onv_analysis *analysis, size_t index,
                                   onv_chain_tensor_info *info, size_t size)
{
    if (index >= onv_analysis_chain_tensor_count(analysis)) return false;
    const onv_chain_tensor *tensor = &analysis->training.units->chain.tensors[index];
    onv_chain_tensor_info full = {tensor->bytes, tensor->maker, tensor->saved_by_maker,
                                  tensor->n_readers};
    return onv_give(info, size, &full, sizeof full);
}

bool onv_analysis_chain_reader_get(const onv_analysis *analysis, size_t tensor, size_t index,
                                   onv_chain_reader_info *info, size_t size)
{
    if (tensor >= onv_analysis_chain_tensor_count(analysis)) return false;
    const onv_chain_tensor *of = &analysis->training.units->chain.tensors[tensor];
    if (index >= of->n_readers) return false;
    onv_chain_reader_info full = {of->readers[index].unit, of->readers[index].saves};
    return onv_give(info, size, &full, sizeof full);
}
