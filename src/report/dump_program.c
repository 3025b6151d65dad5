/* The program of PyTorch, one call per line:
 *
 *     program of PyTorch 2.15.0, an archive, traced in training mode
 *       symbol s77: dimension 0 of x, from 2
 *       parameter conv.weight: float32[8, 3, 3, 3]
 *     graph (x: float32[s77, 3, 16, 16]) -> (relu_)
 *           0  conv2d: float32[s77, 8, 16, 16] = aten.conv2d.default(input=x, weight=conv.weight, stride=[1, 1])  # conv
 *
 * Strides are shown where a tensor is not contiguous; of a recording, when a storage is freed. */
#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "program/program.h"
#include "report/format.h"

enum { MAX_LIST = 16 }; /* elements of an argument that are shown */

typedef struct dump {
    const onv_page *page;
    const onv_model *model;
    const onv_program *program;
    onv_dims *products; /* a pool of its own for what the dims make */
} dump;

static const char *dim_text(const dump *d, onv_dim dim)
{
    return onv_page_kept(onv_dim_text(&d->model->dims, d->page->arena, dim));
}

static void put_dims(const dump *d, const char *before, const onv_dim *dims, uint32_t n)
{
    onv_page_format(d->page, "%s[", before);
    for (uint32_t i = 0; i < n; i++)
        onv_page_format(d->page, "%s%s", i > 0 ? ", " : "", dim_text(d, dims[i]));
    onv_page_put(d->page, "]");
}

/* --- Values -------------------------------------------------------------------------------------- */

/* Whether the strides are what the dims say. Of a dim of 1 any is. */
static bool is_contiguous(const dump *d, const onv_program_value *value)
{
    onv_dim expected = onv_dim_const(1);
    bool is_same = true;
    for (uint32_t i = value->rank; value->strides != NULL && i-- > 0 && is_same;) {
        is_same = onv_dim_is(value->dims[i], 1) || onv_dim_same(value->strides[i], expected);
        expected = onv_dim_mul(d->products, expected, value->dims[i]);
    }
    return is_same;
}

static const char *name_of(const dump *d, uint32_t id)
{
    if (id == ONV_NO_PROGRAM_VALUE) return "None";
    const onv_program_value *value = &d->program->values.at[id];
    return value->fqn != NULL ? value->fqn : value->name;
}

static void put_type(const dump *d, const onv_program_value *value)
{
    put_dims(d, onv_dtype_name((onv_dtype)value->dtype), value->dims, value->rank);
    if (!is_contiguous(d, value)) put_dims(d, " strides ", value->strides, value->rank);
    if (!onv_dim_is(value->offset, 0))
        onv_page_format(d->page, " offset %s", dim_text(d, value->offset));
}

static void put_lifetime(const dump *d, const onv_program_value *value)
{
    if (value->storage == ONV_NO_STORAGE) return;
    onv_page_format(d->page, " storage %" PRIu32 "%s", value->storage,
                    value->is_kept ? " kept" : "");
    if (value->freed_after != ONV_NO_CALL_INDEX)
        onv_page_format(d->page, " freed after %s", d->program->calls.at[value->freed_after].name);
}

static void put_values(const dump *d, const uint32_t *ids, uint32_t n, bool with_type)
{
    for (uint32_t i = 0; i < n; i++) {
        onv_page_format(d->page, "%s%s", i > 0 ? ", " : "", name_of(d, ids[i]));
        if (!with_type || ids[i] == ONV_NO_PROGRAM_VALUE) continue;
        onv_page_put(d->page, ": ");
        put_type(d, &d->program->values.at[ids[i]]);
        put_lifetime(d, &d->program->values.at[ids[i]]);
        onv_end_element(d->page->arena);
    }
}

/* --- Calls --------------------------------------------------------------------------------------- */

/* An argument, or an element of one that is a list. */
static const char *element_text(const dump *d, const onv_argument *a, uint32_t i)
{
    switch ((onv_argument_kind)a->kind) {
    case ONV_ARGUMENT_NONE: return "None";
    case ONV_ARGUMENT_TENSOR: return name_of(d, a->value);
    case ONV_ARGUMENT_TENSORS: return name_of(d, a->values[i]);
    case ONV_ARGUMENT_INT: return dim_text(d, a->number);
    case ONV_ARGUMENT_INTS: return dim_text(d, a->numbers[i]);
    case ONV_ARGUMENT_FLOAT: return onv_page_print(d->page, "%g", a->real);
    case ONV_ARGUMENT_FLOATS: return onv_page_print(d->page, "%g", a->reals[i]);
    case ONV_ARGUMENT_BOOL: return a->flag ? "True" : "False";
    case ONV_ARGUMENT_BOOLS: return a->flags[i] ? "True" : "False";
    case ONV_ARGUMENT_STRING:
    case ONV_ARGUMENT_FORMAT:
    case ONV_ARGUMENT_DEVICE: return a->text;
    case ONV_ARGUMENT_STRINGS: return a->texts[i];
    case ONV_ARGUMENT_DTYPE: return onv_dtype_name((onv_dtype)a->dtype);
    case ONV_ARGUMENT_GRAPH: return d->program->graphs.at[a->graph].name;
    case ONV_ARGUMENT_OTHER: break;
    }
    return "...";
}

static bool is_list(const onv_argument *a)
{
    return a->kind == ONV_ARGUMENT_TENSORS || a->kind == ONV_ARGUMENT_INTS ||
           a->kind == ONV_ARGUMENT_FLOATS || a->kind == ONV_ARGUMENT_BOOLS ||
           a->kind == ONV_ARGUMENT_STRINGS;
}

static void put_argument(const dump *d, const onv_argument *a)
{
    onv_page_format(d->page, "%s%s", a->name, a->name[0] != '\0' ? "=" : "");
    if (!is_list(a)) {
        onv_page_format(d->page, "%s", element_text(d, a, 0));
        return;
    }
    onv_page_put(d->page, "[");
    for (uint32_t i = 0; i < a->count && i < MAX_LIST; i++)
        onv_page_format(d->page, "%s%s", i > 0 ? ", " : "", element_text(d, a, i));
    onv_page_put(d->page, a->count > MAX_LIST ? ", ...]" : "]");
}

static void put_call(const dump *d, uint32_t index)
{
    const onv_program_call *call = &d->program->calls.at[index];
    const char *module =
        call->module != UINT32_MAX ? d->program->modules.at[call->module].path : "";
    onv_page_format(d->page, "%5" PRIu32 "  ", index);
    put_values(d, call->results, call->n_results, true);
    onv_page_format(d->page, "%s%s(", call->n_results > 0 ? " = " : "", call->op_name);
    for (uint32_t i = 0; i < call->n_arguments; i++) {
        onv_page_put(d->page, i > 0 ? ", " : "");
        put_argument(d, &call->arguments[i]);
    }
    onv_page_format(d->page, ")%s%s", module[0] != '\0' ? "  # " : "", module);
    onv_page_line(d->page);
}

/* --- Programs ------------------------------------------------------------------------------------ */

static void put_symbol(const dump *d, const onv_program_symbol *symbol)
{
    onv_page_format(d->page, "  symbol %s: ", symbol->name);
    if (symbol->input != UINT32_MAX)
        onv_page_format(d->page, "dimension %" PRIu32 " of %s", symbol->axis,
                        name_of(d, d->program->graphs.at[0].inputs[symbol->input]));
    else
        onv_page_put(d->page, symbol->is_made ? "known when it runs" : "not a dimension");
    onv_page_format(d->page, ", from %" PRId64, symbol->low);
    if (symbol->high != INT64_MAX) onv_page_format(d->page, " to %" PRId64, symbol->high);
    onv_page_line(d->page);
}

static void put_member(const dump *d, const onv_program_value *value)
{
    static const char *const kinds[] = {[ONV_PROGRAM_PARAMETER] = "parameter",
                                        [ONV_PROGRAM_BUFFER] = "buffer",
                                        [ONV_PROGRAM_CONSTANT] = "constant"};
    if (value->fqn == NULL) return;
    onv_page_format(d->page, "  %s %s: ", kinds[value->kind], value->fqn);
    put_type(d, value);
    if (value->kind == ONV_PROGRAM_PARAMETER && !value->requires_grad)
        onv_page_put(d->page, ", not trained");
    if (value->same_as != ONV_NO_PROGRAM_VALUE)
        onv_page_format(d->page, ", the tensor of %s", name_of(d, value->same_as));
    if (value->kind == ONV_PROGRAM_BUFFER && !value->is_persistent)
        onv_page_put(d->page, ", not in the state_dict");
    onv_page_line(d->page);
}

static void put_graph(const dump *d, const onv_program_graph *graph)
{
    onv_page_put(d->page, "graph ");
    if (graph->call != ONV_NO_CALL_INDEX)
        onv_page_format(d->page, "%s of call %" PRIu32 " ", graph->name, graph->call);
    onv_page_put(d->page, "(");
    put_values(d, graph->inputs, graph->n_inputs, true);
    onv_page_put(d->page, ") -> (");
    put_values(d, graph->outputs, graph->n_outputs, false);
    onv_page_put(d->page, ")");
    onv_page_line(d->page);
}

static void put_program(const dump *d)
{
    const onv_program *p = d->program;
    const onv_writer *out = d->page->out;
    onv_page_format(d->page, "program of PyTorch %s, %s%s", p->torch_version,
                    onv_program_is_recorded(p) ? "a recording" : "an archive",
                    p->is_training ? ", traced in training mode" : "");
    onv_page_line(d->page);
    for (size_t i = 0; i < p->symbols.count; i++) put_symbol(d, &p->symbols.at[i]);
    for (size_t i = 0; i < p->values.count && !out->failed; i++) {
        put_member(d, &p->values.at[i]);
        onv_end_element(d->page->arena);
    }
    for (size_t g = 0; g < p->graphs.count; g++) {
        const onv_program_graph *graph = &p->graphs.at[g];
        put_graph(d, graph);
        for (uint32_t i = 0; i < graph->n_calls && !out->failed; i++) {
            put_call(d, graph->first_call + i);
            onv_end_element(d->page->arena);
        }
    }
}

onv_status onv_format_dump_program_add(onv_report_job *job)
{
    const onv_model *model = &job->views[0]->model;
    dump d = {.page = &job->page, .model = model, .program = model->program};
    if (d.program == NULL)
        return onv_fail(
            job->err, ONV_ERR_USAGE,
            "--dump=program: expected a program of PyTorch, found none with '%.200s': give its "
            "archive (torch.export.save) as the file",
            model->path);
    onv_write_between(job, "\n");
    onv_arena arena;
    onv_dims products;
    onv_arena_init(&arena, SIZE_MAX);
    bool is_made = onv_dims_copy(&model->dims, &arena, &products);
    if (is_made) {
        d.products = &products;
        put_program(&d);
        is_made = !products.failed;
        onv_dims_cleanup(&products);
    }
    onv_arena_cleanup(&arena);
    return is_made ? ONV_OK : onv_fail_memory(job->err);
}
