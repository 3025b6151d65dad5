/* Programs of PyTorch: files of any form through the whole of an analysis; sizes as sympy writes them. */
#include <inttypes.h>

#include "api/analysis.h"
#include "base/strings.h"
#include "fuzz/hold.h"
#include "ir/dim.h"
#include "support/program_check.h"

static bool swallow(void *context, const char *text, size_t bytes)
{
    (void)text;
    *(size_t *)context += bytes;
    return true;
}

/* What was read holds together, also once its sizes are bound; and it can be shown. */
static void use(const onv_analysis *analysis)
{
    static const onv_format formats[] = {ONV_FORMAT_DUMP_PROGRAM, ONV_FORMAT_DUMP_GRAPH,
                                         ONV_FORMAT_JSON, ONV_FORMAT_TEXT};
    const onv_program *program = analysis->model.program;
    if (program == NULL) return;
    onv_error error = {0};
    hold(program_check(program, &error) == ONV_OK); /* the reader refuses all else */
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        size_t bytes = 0;
        onv_status status = onv_report(&analysis, 1, formats[i], NULL, swallow, &bytes, &error);
        if (status != ONV_OK) check_failure(status, &error);
    }
}

void fuzz_run_archive(const uint8_t *data, size_t size)
{
    uint64_t drawn = onv_hash_u64(size);
    for (size_t i = 0; i < size; i += 1 + size / 64) drawn = onv_hash_u64(drawn ^ data[i]);
    onv_limits limits = onv_limits_default();
    onv_options options = onv_options_default();
    limits.seconds = 20;
    limits.arena_bytes = 64 << 20;
    options.limits = &limits;
    options.batch = (int64_t)(drawn & 3);
    options.train = (drawn & 4) != 0 ? "adamw" : NULL;
    options.checkpoint = (drawn & 12) == 12 ? "blocks" : NULL;
    options.precision = (drawn & 16) != 0 ? ONV_PRECISION_BF16 : ONV_PRECISION_AS_EXPORTED;
    onv_analysis *analysis;
    onv_error error;
    onv_status status = onv_analysis_new_from_memory(data, size, NULL, &options, &analysis, &error);
    if (status != ONV_OK) {
        check_failure(status, &error);
        return;
    }
    use(analysis);
    onv_analysis_destroy(analysis);
}

/* A size has one value, whether its symbols are bound at once or one by one. */
void fuzz_run_expression(const uint8_t *data, size_t size)
{
    onv_arena arena;
    onv_strings strings;
    onv_dims dims;
    onv_dim dim = ONV_DIM_UNKNOWN;
    onv_error error = {0};
    const char *unread = NULL;
    if (size > 4096) return;
    char *text = malloc(size + 1);
    hold(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    onv_arena_init(&arena, (size_t)64 << 20);
    onv_strings_init(&strings, &arena);
    onv_dims_init(&dims, &arena);
    onv_status status = onv_dim_read(text, &dims, &strings, &dim, &unread, &error);
    if (status != ONV_OK) {
        check_failure(status, &error);
    } else {
        hold(onv_dim_text(&dims, &arena, dim) != NULL || arena.failed);
        hold(onv_dim_is_known(dim) || unread != NULL);
        uint32_t n = dims.n_symbols;
        onv_dim *values = calloc(n + 1, sizeof *values), stepwise = dim;
        hold(values != NULL);
        for (uint32_t i = 0; i < n; i++) values[i] = onv_dim_const(2 * (int64_t)i + 3);
        onv_dim whole = onv_dim_eval(&dims, dim, values);
        for (uint32_t i = 0; i < n; i++)
            stepwise = onv_dim_substitute(&dims, stepwise, onv_dim_symbol_at(&dims, i), values[i]);
        if (onv_dim_is_const(whole) && onv_dim_is_const(stepwise)) hold(whole.raw == stepwise.raw);
        free(values);
    }
    free(text);
    onv_dims_cleanup(&dims);
    onv_strings_cleanup(&strings);
    onv_arena_cleanup(&arena);
}
