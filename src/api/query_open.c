/* What can be asked while dims are free, and of what would be otherwise. */
#include "api/ask.h"
#include "infer/total_dims.h"
#include "report/formula.h"

size_t onv_analysis_free_dim_count(const onv_analysis *analysis)
{
    return analysis->infer.free_dims.count;
}

bool onv_analysis_free_dim_get(const onv_analysis *analysis, size_t index, onv_free_dim_info *info,
                               size_t size)
{
    if (index >= analysis->infer.free_dims.count) return false;
    const onv_free_dim *dim = &analysis->infer.free_dims.at[index];
    const char *past, *sequence;
    bool is_total = onv_infer_is_total(&analysis->infer, dim->name, &past, &sequence);
    onv_free_dim_info full = {
        .past = is_total ? past : NULL,
        .sequence = is_total ? sequence : NULL,
        .name = dim->name,
        .input = dim->input,
        .axis = dim->axis,
        .option = onv_ask_keep(analysis, onv_binding_option(&analysis->asked->scratch, dim, -1)),
    };
    return full.option != NULL && onv_give(info, size, &full, sizeof full);
}

static bool has_formula(const onv_analysis *analysis)
{
    return analysis->infer.free_dims.count > 0 && analysis->live.unknown > 0;
}

bool onv_analysis_formula_get(const onv_analysis *analysis, onv_formula_info *info, size_t size)
{
    const onv_formula *f = &analysis->formula;
    if (!has_formula(analysis)) return false;
    onv_formula_info full = {.weight_bytes = analysis->live.weight_bytes, .why_not = f->why_not};
    return onv_ask_dim(analysis, f->input_bytes, &full.input_bytes) &&
           onv_ask_dim(analysis, f->output_bytes, &full.output_bytes) &&
           onv_ask_dim(analysis, f->activation_bytes, &full.activation_bytes) &&
           onv_ask_dim(analysis, f->macs, &full.macs) && onv_give(info, size, &full, sizeof full);
}

size_t onv_analysis_piece_count(const onv_analysis *analysis)
{
    return has_formula(analysis) ? analysis->formula.n_pieces : 0;
}

bool onv_analysis_piece_get(const onv_analysis *analysis, size_t index, onv_piece_info *info,
                            size_t size)
{
    if (index >= onv_analysis_piece_count(analysis)) return false;
    const onv_piece *piece = &analysis->formula.pieces[index];
    bool is_decided = onv_dim_is_known(piece->decided_by);
    onv_piece_info full = {.step = piece->step,
                           .from = is_decided ? piece->from : 0,
                           .until = is_decided ? piece->until : INT64_MAX};
    return onv_ask_dim(analysis, piece->bytes, &full.bytes) &&
           onv_ask_dim(analysis, piece->decided_by, &full.decided_by) &&
           onv_give(info, size, &full, sizeof full);
}

const onv_analysis *onv_analysis_example(const onv_analysis *analysis)
{
    return analysis->example;
}

/* --- What would be otherwise ------------------------------------------------------------------- */

bool onv_analysis_quantized_get(const onv_analysis *analysis, onv_quantized_info *info, size_t size)
{
    const onv_quantized *q = &analysis->quantized;
    if (q->format == NULL) return false;
    onv_quantized_info full = {.format = q->format->name,
                               .matrices = q->n_matrices,
                               .bytes_before = q->bytes_before,
                               .bytes = q->bytes,
                               .left_bytes = q->bytes_left,
                               .left_table_bytes = q->bytes_tables,
                               .left_convolution_bytes = q->bytes_convolutions};
    return onv_give(info, size, &full, sizeof full);
}

bool onv_analysis_kv_cache_get(const onv_analysis *analysis, onv_kv_cache_info *info, size_t size)
{
    const onv_kv_cache *cache = &analysis->cache;
    if (cache->mode == ONV_KV_NOT_ASKED) return false;
    onv_kv_cache_info full = {.mode = cache->mode == ONV_KV_SHARED ? "shared" : "copies",
                              .layers = cache->n_layers,
                              .is_sized = cache->tokens > 0,
                              .longest_context = cache->longest >= 0 ? cache->longest : -1,
                              .pairs = cache->n_pairs};
    if (full.is_sized) {
        full.token_bytes = cache->token_bytes;
        full.past_tokens = (uint64_t)cache->past_tokens;
        full.tokens = (uint64_t)cache->tokens;
        full.past_bytes = cache->past_bytes;
        full.present_bytes = cache->present_bytes;
        full.fixed_bytes = cache->fixed_bytes;
        full.bytes = onv_kv_cache_bytes(cache);
    }
    return onv_give(info, size, &full, sizeof full);
}

size_t onv_analysis_kv_pair_count(const onv_analysis *analysis)
{
    return analysis->cache.mode == ONV_KV_NOT_ASKED ? 0 : analysis->cache.n_pairs;
}

bool onv_analysis_kv_pair_get(const onv_analysis *analysis, size_t index, onv_kv_pair_info *info,
                              size_t size)
{
    if (index >= onv_analysis_kv_pair_count(analysis)) return false;
    const onv_kv_pair *pair = &analysis->cache.pairs[index];
    onv_kv_pair_info full = {.past = onv_ask_value(pair->past),
                             .present = onv_ask_value(pair->present),
                             .axis = pair->axis >= 0 ? pair->axis : -1,
                             .past_bytes = pair->past_bytes,
                             .present_bytes = pair->present_bytes,
                             .token_bytes = pair->token_bytes,
                             .in_place = pair->in_place};
    return onv_give(info, size, &full, sizeof full);
}

size_t onv_analysis_saving_count(const onv_analysis *analysis)
{
    return analysis->savings.count;
}

bool onv_analysis_saving_get(const onv_analysis *analysis, size_t index, onv_saving_info *info,
                             size_t size)
{
    if (index >= analysis->savings.count) return false;
    const onv_saving *s = &analysis->savings.of[index];
    bool is_batch = s->kind == ONV_SAVING_BATCH;
    onv_saving_info full = {.kind = onv_saving_name((onv_saving_kind)s->kind),
                            .saved_bytes = s->saved_bytes,
                            .peak_bytes = s->peak_bytes,
                            .tensor = onv_ask_value(s->value),
                            .node = onv_ask_node(&analysis->model, s->node),
                            .everywhere = s->is_everywhere,
                            .parts = is_batch ? (uint64_t)s->parts : 0,
                            .batch = is_batch ? (uint64_t)s->part : 0,
                            .more_macs = s->more_macs,
                            .more_nodes = s->more_nodes};
    return onv_give(info, size, &full, sizeof full);
}
