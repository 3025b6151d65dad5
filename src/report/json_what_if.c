/* What would be otherwise, for programs. */
#include "report/format.h"
#include "report/json.h"
#include "report/json_parts.h"

void onv_json_write_quantized(onv_json *json, const onv_view *view)
{
    const onv_quantized *q = &view->quantized;
    onv_json_put_string(json, "format", q->format->name);
    onv_json_put_u64(json, "matrices", q->n_matrices);
    ONV_JSON_FIELDS(json, q, bytes_before, bytes);
    onv_json_put_u64(json, "left_bytes", q->bytes_left);
    onv_json_put_u64(json, "left_table_bytes", q->bytes_tables);
    onv_json_put_u64(json, "left_convolution_bytes", q->bytes_convolutions);
}

static const char *name_of(const onv_model *model, onv_value_id id)
{
    return onv_is_value(id) ? onv_model_value(model, id)->name : NULL;
}

static void write_pair(onv_json *json, const onv_view *view, const onv_kv_pair *pair)
{
    const onv_model *model = &view->model;
    onv_json_put_string(json, "past", name_of(model, pair->past));
    onv_json_put_string(json, "present", name_of(model, pair->present));
    onv_json_put_known(json, "axis", pair->axis >= 0, (uint64_t)pair->axis);
    ONV_JSON_FIELDS(json, pair, past_bytes, present_bytes, token_bytes, in_place);
}

void onv_json_write_kv_cache(onv_json *json, const onv_view *view)
{
    const onv_kv_cache *cache = &view->cache;
    bool is_sized = cache->tokens > 0;
    onv_json_put_string(json, "mode", cache->mode == ONV_KV_SHARED ? "shared" : "copies");
    onv_json_put_u64(json, "layers", cache->n_layers);
    onv_json_put_known(json, "token_bytes", is_sized, cache->token_bytes);
    onv_json_put_known(json, "past_tokens", is_sized, (uint64_t)cache->past_tokens);
    onv_json_put_known(json, "tokens", is_sized, (uint64_t)cache->tokens);
    onv_json_put_known(json, "past_bytes", is_sized, cache->past_bytes);
    onv_json_put_known(json, "present_bytes", is_sized, cache->present_bytes);
    onv_json_put_known(json, "fixed_bytes", is_sized, cache->fixed_bytes);
    onv_json_put_known(json, "bytes", is_sized, onv_kv_cache_bytes(cache));
    if (cache->longest >= 0) onv_json_put_u64(json, "longest_context", (uint64_t)cache->longest);
    ONV_JSON_ROWS(json, "pairs", i, cache->n_pairs, INLINE)
        write_pair(json, view, &cache->pairs[i]);
}

void onv_json_write_savings(onv_json *json, const onv_view *view)
{
    const onv_savings *savings = &view->savings;
    const onv_model *model = &view->model;
    if (savings->count == 0) return;
    ONV_JSON_ROWS(json, "savings", i, savings->count, INLINE) {
        const onv_saving *s = &savings->of[i];
        onv_json_put_string(json, "kind", onv_saving_name((onv_saving_kind)s->kind));
        ONV_JSON_FIELDS(json, s, saved_bytes, peak_bytes);
        if (onv_is_value(s->value)) onv_json_put_string(json, "tensor", name_of(model, s->value));
        if (onv_is_node(s->node))
            onv_json_put_string(json, "node", onv_model_node(model, s->node)->name);
        if (s->is_everywhere) onv_json_put_bool(json, "everywhere", true);
        if (s->kind == ONV_SAVING_BATCH) {
            onv_json_put_u64(json, "parts", (uint64_t)s->parts);
            onv_json_put_u64(json, "batch", (uint64_t)s->part);
        }
        ONV_JSON_FIELDS(json, s, more_macs, more_nodes);
    }
}
