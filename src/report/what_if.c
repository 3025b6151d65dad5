/* What would be otherwise: weights in fewer bits, the key-value cache, single changes that save memory. */
#include "report/sections.h"

/* --- Weights ----------------------------------------------------------------------------------- */

void onv_write_quantized(const onv_view *view, const onv_page *page)
{
    const onv_quantized *q = &view->quantized;
    if (q->format == NULL) return;
    onv_page_title(page, onv_page_print(page, "Weights in %s", q->format->name));
    onv_table table = onv_table_of("", ">", "~");
    onv_table_fact(&table, page,
                   onv_page_print(page, "%s %s of products", onv_label_count(q->n_matrices).text,
                                  q->n_matrices == 1 ? "matrix" : "matrices"),
                   q->bytes,
                   onv_page_print(page, "%s before; %s", onv_label_bytes(q->bytes_before).text,
                                  q->format->summary));
    if (q->bytes_tables > 0)
        onv_table_fact(&table, page, "tables", q->bytes_tables, "as they were: Gather reads them");
    if (q->bytes_convolutions > 0)
        onv_table_fact(&table, page, "convolutions", q->bytes_convolutions, "as they were");
    uint64_t others = q->bytes_left - q->bytes_tables - q->bytes_convolutions;
    if (others > 0) onv_table_fact(&table, page, "others", others, "as they were: norms, biases");
    onv_table_finish(&table, page);
    onv_page_say(
        page, "torch: as bitsandbytes has linear layers but the last one; ort: %s in blocks of %lu",
        q->format->ort_op, (unsigned long)q->format->ort_block);
}

/* --- The cache --------------------------------------------------------------------------------- */

static const char *tokens_text(const onv_page *page, int64_t tokens)
{
    return onv_page_print(page, "%s %s", onv_label_count((uint64_t)tokens).text,
                          tokens == 1 ? "token" : "tokens");
}

static void write_longest(const onv_view *view, const onv_page *page)
{
    const onv_kv_cache *cache = &view->cache;
    if (cache->longest < 0) return;
    onv_page_item(page);
    onv_write_format(page->out, "The longest context that the budget has memory for: %s.\n",
                     cache->longest == 0               ? "none"
                     : cache->longest >= ONV_MAX_BATCH ? "no limit found"
                                                       : tokens_text(page, cache->longest));
}

void onv_write_kv_cache(const onv_view *view, const onv_page *page)
{
    const onv_kv_cache *cache = &view->cache;
    if (cache->mode == ONV_KV_NOT_ASKED || cache->tokens == 0) return;
    bool shared = cache->mode == ONV_KV_SHARED;
    onv_page_title(page, shared ? "Key-value cache, one buffer for each layer"
                                : "Key-value cache, as copies");
    onv_table table = onv_table_of("", ">", "~");
    onv_table_fact(&table, page, "a token", cache->token_bytes,
                   onv_page_print(page, "%s %s, %s each", onv_label_count(cache->n_layers).text,
                                  cache->n_layers == 1 ? "layer" : "layers",
                                  onv_label_bytes(cache->token_bytes / cache->n_layers).text));
    onv_table_fact(&table, page, "past", cache->past_bytes, tokens_text(page, cache->past_tokens));
    onv_table_fact(&table, page, "present", cache->present_bytes, tokens_text(page, cache->tokens));
    if (cache->fixed_bytes > 0)
        onv_table_fact(&table, page, "fixed", cache->fixed_bytes,
                       "of a cross-attention: it does not grow");
    uint64_t copies = cache->past_bytes + cache->present_bytes;
    uint64_t one = cache->present_bytes;
    onv_table_fact(
        &table, page, "together", (shared ? one : copies) + cache->fixed_bytes,
        onv_page_print(page, shared ? "as copies %s" : "past and present; with one buffer %s",
                       onv_label_bytes((shared ? copies : one) + cache->fixed_bytes).text));
    onv_table_finish(&table, page);
    if (shared && cache->n_in_place < cache->n_growing)
        onv_page_sentence(
            page, "This graph makes the present anew (Concat): to fill one buffer it needs an "
                  "attention that writes in place, like GroupQueryAttention or StaticCache.");
    write_longest(view, page);
}

/* --- Savings ----------------------------------------------------------------------------------- */

static const char *what_text(const onv_view *view, const onv_page *page, const onv_saving *s)
{
    const char *op =
        onv_is_node(s->node) ? onv_model_node(&view->model, s->node)->op_type : "input";
    if (s->is_everywhere) op = onv_page_print(page, "every %s", op);
    switch ((onv_saving_kind)s->kind) {
    case ONV_SAVING_HALF: return onv_page_print(page, "%s in 16 bits", op);
    case ONV_SAVING_INPLACE: return onv_page_print(page, "%s in place of its input", op);
    case ONV_SAVING_RECOMPUTE: return onv_page_print(page, "%s computed again", op);
    case ONV_SAVING_LATER: return onv_page_print(page, "%s just before it is read", op);
    case ONV_SAVING_EARLIER: return onv_page_print(page, "%s as soon as it can run", op);
    case ONV_SAVING_BATCH:
        return onv_page_print(page, "batch as %lld parts of %lld", (long long)s->parts,
                              (long long)s->part);
    case ONV_N_SAVINGS: break;
    }
    return "";
}

/* The price, or what it is done to. */
static const char *name_text(const onv_view *view, const onv_page *page, const onv_saving *s)
{
    if (s->kind == ONV_SAVING_BATCH)
        return onv_page_print(page, "%s more runs of nodes", onv_label_count(s->more_nodes).text);
    if (s->is_everywhere) return "";
    if (s->kind == ONV_SAVING_EARLIER)
        return onv_view_node_name(view, onv_model_node(&view->model, s->node));
    const char *name = onv_model_value(&view->model, s->value)->name;
    if (s->kind != ONV_SAVING_RECOMPUTE || s->more_macs == 0) return name;
    return onv_page_print(page, "%s MACs: %s", onv_label_scaled(s->more_macs).text, name);
}

void onv_write_savings(const onv_view *view, const onv_page *page)
{
    const onv_savings *savings = &view->savings;
    if (savings->count == 0) return;
    onv_page_title(page, "Possible savings of the graph's own peak, each by itself");
    onv_table table = onv_table_of(">", ">~", "", "12");
    for (uint32_t i = 0; i < savings->count; i++) {
        const onv_saving *s = &savings->of[i];
        onv_table_row(&table, onv_page_print(page, "-%s", onv_label_bytes(s->saved_bytes).text),
                      onv_page_percent(page, s->saved_bytes, view->live.peak_bytes),
                      what_text(view, page, s), name_text(view, page, s));
    }
    onv_table_finish(&table, page);
}

/* --- Of the whole graph --------------------------------------------------------------------------- */

static const char *const global_names[ONV_N_GLOBAL_SAVINGS] = {
    [ONV_GLOBAL_SAVING_VIEWS] = "views that share memory (Reshape and its like)",
    [ONV_GLOBAL_SAVING_INPLACE] = "views, and elementwise operators in place",
    [ONV_GLOBAL_SAVING_ORDER] = "another order of execution (--order optimal)",
    [ONV_GLOBAL_SAVING_HALF] = "16-bit floats (--precision fp16 or bf16)",
};

/* Below a hundredth of the total a saving is not worth a line. */
enum { LEAST_SHARE = 100 };

void onv_write_global_savings(const onv_view *view, const onv_page *page)
{
    uint64_t total = view->live.weight_bytes + view->live.peak_bytes;
    onv_ranked found[ONV_N_GLOBAL_SAVINGS];
    size_t n = 0;
    if (view->n_runtimes == 0 || onv_view_trains(view)) return;
    for (size_t k = 0; k < ONV_N_GLOBAL_SAVINGS; k++) {
        uint64_t saved = view->global_savings.of[k].saved_bytes;
        if (saved > 0 && saved >= total / LEAST_SHARE) found[n++] = (onv_ranked){saved, k};
    }
    if (n == 0) return;
    onv_rank(found, n);
    onv_page_title(page, "Possible savings of the graph's lower bound, weights and peak");
    onv_table table = onv_table_of("", ">", ">~");
    for (size_t i = 0; i < n; i++)
        onv_table_row(&table, global_names[found[i].index],
                      onv_page_print(page, "saves %s", onv_label_bytes(found[i].size).text),
                      onv_page_percent(page, found[i].size, total));
    onv_table_finish(&table, page);
}

/* --- JSON -------------------------------------------------------------------------------------- */

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

static void put_pair(onv_json *json, const onv_view *view, const onv_kv_pair *pair)
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
    ONV_JSON_ROWS(json, "pairs", i, cache->n_pairs, INLINE) put_pair(json, view, &cache->pairs[i]);
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
