/* Example sizes for a model whose dims are free, so that its report is not empty. */
#include <string.h>

#include "api/analysis.h"
#include "base/fail.h"
#include "infer/infer.h"

/* Usual sizes by words in the names of dims, the first one that fits. */
static const struct {
    const char *word;
    int64_t size;
} usual[] = {
    {"batch", 1},    {"past", 128},  {"cache", 128}, {"seq", 128},      {"length", 128},
    {"len", 128},    {"token", 128}, {"text", 128},  {"frame", 128},    {"time", 128},
    {"height", 224}, {"width", 224}, {"channel", 3}, {"sample", 16000},
};

enum { OTHER = 16, IMAGE = 224, SEQUENCE = 128 };

/* Free dims of a model that gets an example. Real ones have some tens; each costs a look at the inputs. */
enum { MOST_DIMS = 1000 };

/* By where the axis stands in its input: a batch first, an image's height and width last. */
static int64_t size_by_place(const onv_model *model, const onv_free_dim *dim)
{
    const onv_graph *graph = onv_model_graph(model, (onv_graph_id){0});
    if (dim->axis == 0) return 1;
    for (uint32_t i = 0; dim->input != NULL && i < graph->n_inputs; i++) {
        const onv_value *input = onv_model_value(model, graph->inputs[i]);
        if (strcmp(input->name, dim->input) != 0 || !onv_type_has_rank(&input->type)) continue;
        if (input->type.rank == 4 && dim->axis >= 2) return IMAGE;
        if (input->type.rank <= 3 && dim->axis == 1) return SEQUENCE;
    }
    return OTHER;
}

static int64_t size_of(const onv_model *model, const onv_free_dim *dim)
{
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++)
        if (onv_infer_name_holds(dim->name, usual[i].word)) return usual[i].size;
    return size_by_place(model, dim);
}

static int64_t size_given(const onv_options *options, const onv_infer_info *infer,
                          const onv_dim_binding *dims, const char *name)
{
    for (size_t i = 0; i < options->n_dims; i++)
        if (strcmp(options->dims[i].name, name) == 0) return options->dims[i].size;
    for (size_t i = 0; i < infer->free_dims.count; i++)
        if (strcmp(dims[i].name, name) == 0) return dims[i].size;
    return 0;
}

static void add_totals(const onv_options *options, const onv_infer_info *infer,
                       onv_dim_binding *dims)
{
    const char *past, *sequence;
    for (size_t i = 0; i < infer->free_dims.count; i++)
        if (onv_infer_is_total(infer, dims[i].name, &past, &sequence))
            dims[i].size =
                size_given(options, infer, dims, past) + size_given(options, infer, dims, sequence);
}

/* The same with every size but the batch: some models ask for sizes that agree. */
static bool make_equal(const onv_infer_info *infer, onv_dim_binding *dims, int64_t size)
{
    bool changed = false;
    for (size_t i = 0; i < infer->free_dims.count; i++) {
        if (infer->free_dims.at[i].axis == 0) continue;
        changed |= dims[i].size != size;
        dims[i].size = size;
    }
    return changed;
}

static onv_status analyse(const onv_request *from, onv_options how, const onv_dim_binding *dims,
                          size_t n, onv_analysis *analysis, onv_error *err)
{
    onv_arena *arena = &analysis->making->arena;
    onv_dim_binding *all = onv_own_dims(&how, n, analysis);
    bool *found = ONV_ARENA_ARRAY(arena, bool, how.n_dims + n);
    if (all == NULL || found == NULL) return onv_fail_memory(err);
    memcpy(all + how.n_dims, dims, n * sizeof *all);
    if (how.dims_found != NULL) how.dims_found = found;
    how.n_dims += n;
    onv_status status = onv_analysis_create(from, &how, &analysis->example, err);
    if (status != ONV_OK || analysis->example->live.unknown == 0) return status;
    onv_analysis_destroy(analysis->example);
    analysis->example = NULL;
    return onv_fail(err, ONV_ERR_MODEL, "some sizes depend on more than the dims of the inputs");
}

/* The pieces of the formula, the largest at the sizes of the example first. */
static void rank_pieces(onv_analysis *analysis)
{
    onv_dims *dims = &analysis->model.dims;
    const onv_infer_info *infer = &analysis->example->infer;
    onv_formula *f = analysis->formula;
    onv_dim *values = ONV_ARENA_ARRAY(&analysis->model.arena, onv_dim, dims->n_symbols);
    if (values == NULL) return; /* an order is no figure */
    for (uint32_t i = 0; i < dims->n_symbols; i++) {
        values[i] = ONV_DIM_UNKNOWN;
        for (size_t k = 0; k < infer->bounds.count; k++)
            if (strcmp(infer->bounds.at[k].name,
                       onv_dim_symbol_name(dims, onv_dim_symbol_at(dims, i))) == 0)
                values[i] = onv_dim_const(infer->bounds.at[k].size);
    }
    int64_t bytes[ONV_MAX_PIECES];
    for (uint32_t i = 0; i < f->n_pieces; i++) {
        onv_piece piece = f->pieces[i];
        int64_t here = onv_dim_eval(dims, piece.bytes, values).raw; /* unknown: below all */
        uint32_t at = i;
        for (; at > 0 && bytes[at - 1] < here; at--) {
            bytes[at] = bytes[at - 1];
            f->pieces[at] = f->pieces[at - 1];
        }
        bytes[at] = here;
        f->pieces[at] = piece;
    }
}

onv_status onv_analysis_formula(const onv_analysis *analysis, onv_error *err)
{
    onv_analysis *of = &analysis->making->analysis;
    if (of->formula != NULL) return ONV_OK;
    onv_formula *formula = ONV_ARENA_ARRAY(&of->model.arena, onv_formula, 1);
    if (formula == NULL) return onv_fail_memory(err);
    ONV_TRY(onv_formula_compute(&of->model, &of->live, formula, err));
    of->formula = formula;
    return ONV_OK;
}

onv_status onv_analysis_add_example(const onv_request *from, const onv_options *options,
                                    onv_analysis *analysis, onv_error *err)
{
    const onv_infer_info *infer = &analysis->infer;
    size_t n = infer->free_dims.count;
    if (!(options->example || options->formulas) || analysis->live.unknown == 0 || n == 0)
        return ONV_OK;
    if (n > MOST_DIMS) {
        onv_model_diag(&analysis->model, ONV_NOTE, "no-example", NULL,
                       "%zu dims are free; an example is made for up to %d", n, MOST_DIMS);
        return ONV_OK;
    }
    ONV_TRY(onv_analysis_formula(analysis, err)); /* while there is room for it */
    onv_dim_binding *dims = ONV_ARENA_ARRAY(&analysis->making->arena, onv_dim_binding, n);
    if (dims == NULL) return onv_fail_memory(err);
    for (size_t i = 0; i < n; i++)
        dims[i] = (onv_dim_binding){infer->free_dims.at[i].name,
                                    size_of(&analysis->model, &infer->free_dims.at[i])};
    add_totals(options, infer, dims);
    static const int64_t others[] = {128, 64, 1};
    onv_error why = {0}, ignored;
    onv_status status = analyse(from, *options, dims, n, analysis, &why);
    for (size_t k = 0; k < sizeof others / sizeof others[0]; k++) {
        bool may_differ = status == ONV_ERR_MODEL || status == ONV_ERR_USAGE;
        if (!may_differ || !make_equal(infer, dims, others[k])) continue;
        status = analyse(from, *options, dims, n, analysis, &ignored);
    }
    if (status == ONV_OK) rank_pieces(analysis);
    if (status == ONV_ERR_LIMIT && onv_watch_forgive_memory(from->watch)) {
        onv_model_diag(&analysis->model, ONV_NOTE, "no-example", NULL,
                       "no example of sizes is computed: %s", why.message);
        return ONV_OK;
    }
    if (status != ONV_ERR_MODEL && status != ONV_ERR_USAGE) {
        if (status != ONV_OK && err != NULL) *err = why;
        return status;
    }
    const char *node = onv_arena_printf(&analysis->model.arena, "%s", why.node);
    onv_model_diag(&analysis->model, ONV_NOTE, "no-example", node,
                   "no usual sizes of the free dims fit this model: %s", why.message);
    return ONV_OK;
}
