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
#include "report/clean.h"
#include "report/format.h"

enum { MAX_LIST = 16 }; /* elements of an argument that are shown */

typedef struct dump {
    const onv_report_job *job;
    const onv_model *model;
    const onv_program *program;
    onv_dims *products; /* a pool of its own for what the dims make */
    onv_clean_mode mode;
} dump;

static void put(const dump *d, const char *text)
{
    onv_write_clean(d->job->out, text != NULL ? text : "?", d->mode);
}

static void put_dim(const dump *d, onv_dim dim)
{
    if (onv_dim_is_const(dim))
        onv_write_format(d->job->out, "%" PRId64, dim.raw);
    else
        put(d, onv_dim_text(&d->model->dims, d->job->arena, dim));
}

static void put_dims(const dump *d, const onv_dim *dims, uint32_t n)
{
    onv_write_char(d->job->out, '[');
    for (uint32_t i = 0; i < n; i++) {
        if (i > 0) onv_write_text(d->job->out, ", ");
        put_dim(d, dims[i]);
    }
    onv_write_char(d->job->out, ']');
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

static void put_name(const dump *d, uint32_t id)
{
    if (id == ONV_NO_PROGRAM_VALUE) {
        onv_write_text(d->job->out, "None");
        return;
    }
    const onv_program_value *value = &d->program->values.at[id];
    put(d, value->fqn != NULL ? value->fqn : value->name);
}

static void put_type(const dump *d, const onv_program_value *value)
{
    put(d, onv_dtype_name((onv_dtype)value->dtype));
    put_dims(d, value->dims, value->rank);
    if (!is_contiguous(d, value)) {
        onv_write_text(d->job->out, " strides ");
        put_dims(d, value->strides, value->rank);
    }
    if (!onv_dim_is(value->offset, 0)) {
        onv_write_text(d->job->out, " offset ");
        put_dim(d, value->offset);
    }
}

static void put_lifetime(const dump *d, const onv_program_value *value)
{
    if (value->storage == ONV_NO_STORAGE) return;
    onv_write_format(d->job->out, " storage %" PRIu32, value->storage);
    if (value->is_kept) onv_write_text(d->job->out, " kept");
    if (value->freed_after == ONV_NO_CALL_INDEX) return;
    onv_write_text(d->job->out, " freed after ");
    put(d, d->program->calls.at[value->freed_after].name);
}

static void put_value(const dump *d, uint32_t id)
{
    put_name(d, id);
    if (id == ONV_NO_PROGRAM_VALUE) return;
    onv_write_text(d->job->out, ": ");
    put_type(d, &d->program->values.at[id]);
    put_lifetime(d, &d->program->values.at[id]);
}

static void put_each(const dump *d, const uint32_t *ids, uint32_t n,
                     void put_one(const dump *d, uint32_t id))
{
    for (uint32_t i = 0; i < n; i++) {
        if (i > 0) onv_write_text(d->job->out, ", ");
        put_one(d, ids[i]);
    }
}

/* --- Calls --------------------------------------------------------------------------------------- */

static void put_element(const dump *d, const onv_argument *a, uint32_t i)
{
    onv_writer *out = d->job->out;
    switch ((onv_argument_kind)a->kind) {
    case ONV_ARGUMENT_TENSORS: put_name(d, a->values[i]); return;
    case ONV_ARGUMENT_INTS: put_dim(d, a->numbers[i]); return;
    case ONV_ARGUMENT_FLOATS: onv_write_format(out, "%g", a->reals[i]); return;
    case ONV_ARGUMENT_BOOLS: onv_write_text(out, a->flags[i] ? "True" : "False"); return;
    case ONV_ARGUMENT_STRINGS: put(d, a->texts[i]); return;
    default: return;
    }
}

static void put_argument(const dump *d, const onv_argument *a)
{
    onv_writer *out = d->job->out;
    if (a->name[0] != '\0') {
        put(d, a->name);
        onv_write_char(out, '=');
    }
    switch ((onv_argument_kind)a->kind) {
    case ONV_ARGUMENT_NONE: onv_write_text(out, "None"); return;
    case ONV_ARGUMENT_TENSOR: put_name(d, a->value); return;
    case ONV_ARGUMENT_INT: put_dim(d, a->number); return;
    case ONV_ARGUMENT_FLOAT: onv_write_format(out, "%g", a->real); return;
    case ONV_ARGUMENT_BOOL: onv_write_text(out, a->flag ? "True" : "False"); return;
    case ONV_ARGUMENT_STRING:
    case ONV_ARGUMENT_FORMAT:
    case ONV_ARGUMENT_DEVICE: put(d, a->text); return;
    case ONV_ARGUMENT_DTYPE: put(d, onv_dtype_name((onv_dtype)a->dtype)); return;
    case ONV_ARGUMENT_GRAPH: put(d, d->program->graphs.at[a->graph].name); return;
    case ONV_ARGUMENT_OTHER: onv_write_text(out, "..."); return;
    default: break;
    }
    onv_write_char(out, '[');
    for (uint32_t i = 0; i < a->count && i < MAX_LIST; i++) {
        if (i > 0) onv_write_text(out, ", ");
        put_element(d, a, i);
    }
    onv_write_text(out, a->count > MAX_LIST ? ", ...]" : "]");
}

static void put_call(const dump *d, uint32_t index)
{
    onv_writer *out = d->job->out;
    const onv_program_call *call = &d->program->calls.at[index];
    onv_write_format(out, "%5" PRIu32 "  ", index);
    put_each(d, call->results, call->n_results, put_value);
    onv_write_text(out, call->n_results > 0 ? " = " : "");
    put(d, call->op_name);
    onv_write_char(out, '(');
    for (uint32_t i = 0; i < call->n_arguments; i++) {
        if (i > 0) onv_write_text(out, ", ");
        put_argument(d, &call->arguments[i]);
    }
    onv_write_char(out, ')');
    if (call->module != UINT32_MAX && d->program->modules.at[call->module].path[0] != '\0') {
        onv_write_text(out, "  # ");
        put(d, d->program->modules.at[call->module].path);
    }
    onv_write_char(out, '\n');
}

/* --- Programs ------------------------------------------------------------------------------------ */

static void put_symbol(const dump *d, const onv_program_symbol *symbol)
{
    onv_writer *out = d->job->out;
    onv_write_text(out, "  symbol ");
    put(d, symbol->name);
    if (symbol->input != UINT32_MAX) {
        onv_write_format(out, ": dimension %" PRIu32 " of ", symbol->axis);
        put_name(d, d->program->graphs.at[0].inputs[symbol->input]);
    } else {
        onv_write_text(out, symbol->is_made ? ": known when it runs" : ": not a dimension");
    }
    onv_write_format(out, ", from %" PRId64, symbol->low);
    if (symbol->high != INT64_MAX) onv_write_format(out, " to %" PRId64, symbol->high);
    onv_write_char(out, '\n');
}

static void put_member(const dump *d, const onv_program_value *value)
{
    static const char *const kinds[] = {[ONV_PROGRAM_PARAMETER] = "parameter",
                                        [ONV_PROGRAM_BUFFER] = "buffer",
                                        [ONV_PROGRAM_CONSTANT] = "constant"};
    onv_writer *out = d->job->out;
    if (value->fqn == NULL) return;
    onv_write_format(out, "  %s ", kinds[value->kind]);
    put(d, value->fqn);
    onv_write_text(out, ": ");
    put_type(d, value);
    if (value->kind == ONV_PROGRAM_PARAMETER && !value->requires_grad)
        onv_write_text(out, ", not trained");
    if (value->same_as != ONV_NO_PROGRAM_VALUE) {
        onv_write_text(out, ", the tensor of ");
        put_name(d, value->same_as);
    }
    if (value->kind == ONV_PROGRAM_BUFFER && !value->is_persistent)
        onv_write_text(out, ", not in the state_dict");
    onv_write_char(out, '\n');
}

static void put_graph(const dump *d, const onv_program_graph *graph)
{
    onv_writer *out = d->job->out;
    onv_write_text(out, "graph ");
    if (graph->call != ONV_NO_CALL_INDEX) {
        put(d, graph->name);
        onv_write_format(out, " of call %" PRIu32 " ", graph->call);
    }
    onv_write_char(out, '(');
    put_each(d, graph->inputs, graph->n_inputs, put_value);
    onv_write_text(out, ") -> (");
    put_each(d, graph->outputs, graph->n_outputs, put_name);
    onv_write_text(out, ")\n");
}

static void put_head(const dump *d)
{
    onv_writer *out = d->job->out;
    const onv_program *p = d->program;
    onv_write_text(out, "program of PyTorch ");
    put(d, p->torch_version);
    onv_write_text(out, onv_program_is_recorded(p) ? ", a recording" : ", an archive");
    onv_write_text(out, p->is_training ? ", traced in training mode\n" : "\n");
    for (size_t i = 0; i < p->symbols.count; i++) put_symbol(d, &p->symbols.at[i]);
}

static onv_status put_program(const dump *d)
{
    const onv_report_job *job = d->job;
    put_head(d);
    for (size_t i = 0; i < d->program->values.count && !job->out->failed; i++) {
        put_member(d, &d->program->values.at[i]);
        onv_arena_reset(job->arena);
    }
    for (size_t g = 0; g < d->program->graphs.count; g++) {
        const onv_program_graph *graph = &d->program->graphs.at[g];
        put_graph(d, graph);
        for (uint32_t i = 0; i < graph->n_calls && !job->out->failed; i++) {
            put_call(d, graph->first_call + i);
            if (job->arena->failed || d->products->failed) return onv_fail_memory(job->err);
            onv_arena_reset(job->arena);
        }
    }
    return ONV_OK;
}

onv_status onv_format_dump_program_add(const onv_report_job *job)
{
    const onv_model *model = &job->views[0]->model;
    dump d = {.job = job, .model = model, .program = model->program};
    d.mode = job->options->unicode ? ONV_CLEAN_UNICODE : ONV_CLEAN_ASCII;
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
    onv_status status = onv_fail_memory(NULL);
    if (onv_dims_copy(&model->dims, &arena, &products)) {
        d.products = &products;
        status = put_program(&d);
        onv_dims_cleanup(&products);
    }
    onv_arena_cleanup(&arena);
    return status == ONV_ERR_MEMORY ? onv_fail_memory(job->err) : status;
}
