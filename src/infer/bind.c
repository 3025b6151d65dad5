/* Bindings: the options become dims of the graph inputs. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/fail.h"
#include "base/nearest.h"
#include "infer/driver.h"
#include "ir/dim.h"
#include "load/limits.h"
#include "load/load.h"

static onv_graph *main_graph(const onv_driver *driver)
{
    return onv_model_graph(driver->model, (onv_graph_id){0});
}

static onv_value *input_at(const onv_driver *driver, uint32_t i)
{
    return onv_model_value(driver->model, main_graph(driver)->inputs[i]);
}

static onv_dim bind_symbols(onv_driver *driver, onv_dim d)
{
    if (!onv_dim_is_expr(d)) return d;
    /* Declared types may name symbols that came after the inputs; those stay free. */
    if (onv_dim_is_symbol(&driver->model->dims, d) &&
        onv_dim_symbol_index(&driver->model->dims, d) >= driver->n_symbol_values)
        return d;
    return onv_dim_eval(&driver->model->dims, d, driver->symbol_values);
}

onv_status onv_bind_type(onv_driver *driver, onv_type *type)
{
    if (!onv_type_has_rank(type)) return ONV_OK;
    bool changes = false;
    for (int i = 0; i < type->rank; i++) changes |= onv_dim_is_expr(type->dims[i]);
    if (!changes) return ONV_OK;
    onv_dim *dims = ONV_ARENA_ARRAY(&driver->model->arena, onv_dim, (size_t)type->rank);
    if (dims == NULL) return onv_fail_memory(driver->err);
    for (int i = 0; i < type->rank; i++) dims[i] = bind_symbols(driver, type->dims[i]);
    type->dims = dims;
    return ONV_OK;
}

static onv_status set_batch(onv_driver *driver, onv_value *input, onv_dim batch)
{
    bool is_set = onv_type_set_dim(&input->type, &driver->model->arena, 0, batch);
    return is_set ? ONV_OK : onv_fail_memory(driver->err);
}

/* --- Symbols ----------------------------------------------------------------------------------- */

static onv_status bind_symbol(onv_driver *driver, onv_dim symbol, int64_t size)
{
    onv_model *model = driver->model;
    onv_dim *slot = &driver->symbol_values[onv_dim_symbol_index(&model->dims, symbol)];
    const char *name = onv_dim_symbol_name(&model->dims, symbol);
    if (onv_dim_is_const(*slot)) {
        if (onv_dim_is(*slot, size)) return ONV_OK;
        return onv_fail(driver->err, ONV_ERR_USAGE, "dimension '%s' is bound to both %lld and %lld",
                        name, (long long)slot->raw, (long long)size);
    }
    *slot = onv_dim_const(size);
    onv_bound bound = {.name = name, .size = size};
    if (!onv_vec_push(&driver->info->bounds, bound)) return onv_fail_memory(driver->err);
    return ONV_OK;
}

/* The names in the shapes of the inputs, each once. Those that a file gives to other dims ("4*batch")
 * follow from them, mostly. */
static onv_status refuse_dim(const onv_driver *driver, const char *name)
{
    const onv_dims *dims = &driver->model->dims;
    bool *listed = ONV_ARENA_ARRAY(&driver->model->arena, bool, driver->n_symbol_values);
    const char **names =
        ONV_ARENA_ARRAY(&driver->model->arena, const char *, driver->n_symbol_values + 1);
    if (listed == NULL || names == NULL) return onv_fail_memory(driver->err);
    size_t n = 0;
    for (uint32_t i = 0; i < main_graph(driver)->n_inputs; i++) {
        const onv_type *type = &input_at(driver, i)->type;
        for (int k = 0; k < type->rank; k++) {
            if (!onv_dim_is_symbol(dims, type->dims[k])) continue;
            uint32_t symbol = onv_dim_symbol_index(dims, type->dims[k]);
            if (symbol >= driver->n_symbol_values || listed[symbol]) continue;
            listed[symbol] = true;
            names[n++] = onv_dim_symbol_name(dims, type->dims[k]);
        }
    }
    const char *searched = driver->options->max_dim;
    const char *option = searched != NULL && strcmp(searched, name) == 0 ? "--max-dim" : "--dim";
    if (n > 0) return onv_fail_choice(driver->err, option, name, strlen(name), onv_name_in, names);
    return onv_fail(
        driver->err, ONV_ERR_USAGE,
        "%s: '%s' is unknown; the inputs have no symbolic dimension: give a whole shape "
        "with --shape INPUT=AxBxC",
        option, name);
}

/* Also as a part of what the name of another says. */
static bool stands_in_inputs(const onv_driver *driver, onv_dim symbol)
{
    const onv_dims *dims = &driver->model->dims;
    for (uint32_t i = 0; i < main_graph(driver)->n_inputs; i++) {
        const onv_type *type = &input_at(driver, i)->type;
        for (int k = 0; onv_type_has_rank(type) && k < type->rank; k++)
            if (onv_dim_contains(dims, type->dims[k], symbol)) return true;
    }
    for (uint32_t s = 0; s < driver->n_symbol_values; s++)
        if (onv_dim_is_known(driver->symbol_meanings[s]) &&
            onv_dim_contains(dims, driver->symbol_meanings[s], symbol))
            return true;
    return false;
}

/* The dim that is searched has no flag. */
bool onv_may_lack_dim(const onv_options *options, size_t i)
{
    return options->dims_found != NULL &&
           (options->max_dim == NULL || strcmp(options->dims[i].name, options->max_dim) != 0);
}

static onv_status bind_named_dims(onv_driver *driver)
{
    const onv_options *options = driver->options;
    for (size_t i = 0; i < options->n_dims; i++) {
        const onv_dim_binding *binding = &options->dims[i];
        if (binding->size < 0)
            return onv_fail(driver->err, ONV_ERR_USAGE, "dimension '%s' cannot be %lld",
                            binding->name, (long long)binding->size);
        const onv_dims *dims = &driver->model->dims;
        onv_dim found = onv_dim_symbol_named(dims, binding->name);
        if (onv_dim_is_known(found) && onv_dim_symbol_index(dims, found) >= driver->n_symbol_values)
            found = ONV_DIM_UNKNOWN;
        if (onv_dim_is_known(found) && onv_may_lack_dim(options, i)) options->dims_found[i] = true;
        if (!onv_dim_is_known(found) && strchr(binding->name, '#') != NULL) {
            /* Inference makes it, or it is refused then. */
            onv_dim_given given = {.name = binding->name, .size = binding->size};
            if (!onv_vec_push(&driver->given, given)) return onv_fail_memory(driver->err);
            continue;
        }
        if (!onv_dim_is_known(found)) {
            if (onv_dim_name_is_anonymous(binding->name))
                return onv_fail(
                    driver->err, ONV_ERR_USAGE,
                    "'%s' names no dimension: each axis that it stands on has a size of "
                    "its own; give the whole shape with --shape INPUT=AxBxC",
                    binding->name);
            if (onv_may_lack_dim(options, i)) continue;
            return refuse_dim(driver, binding->name);
        }
        ONV_TRY(bind_symbol(driver, found, binding->size));
        if (!stands_in_inputs(driver, found) && !onv_vec_push(&driver->declared_only, found))
            return onv_fail_memory(driver->err);
    }
    driver->model->dims.given = driver->given.at;
    driver->model->dims.n_given = (uint32_t)driver->given.count;
    return ONV_OK;
}

/* --- Whole shapes ------------------------------------------------------------------------------ */

static const char *input_name(const void *driver, size_t index)
{
    const onv_driver *of = driver;
    return index < main_graph(of)->n_inputs ? input_at(of, (uint32_t)index)->name : NULL;
}

/* The input that an option names. */
static onv_status find_input(const onv_driver *driver, const char *option, const char *name,
                             onv_value **input)
{
    const onv_graph *graph = main_graph(driver);
    for (uint32_t i = 0; i < graph->n_inputs; i++) {
        *input = input_at(driver, i);
        if (strcmp((*input)->name, name) == 0) return ONV_OK;
    }
    return onv_fail_choice(driver->err, option, name, strlen(name), input_name, driver);
}

static onv_status set_shape(onv_driver *driver, onv_value *input, const onv_shape_binding *binding)
{
    onv_dim *dims = ONV_ARENA_ARRAY(&driver->model->arena, onv_dim, binding->rank);
    if (dims == NULL) return onv_fail_memory(driver->err);
    for (size_t i = 0; i < binding->rank; i++) dims[i] = onv_dim_const(binding->dims[i]);
    input->type.kind = ONV_TYPE_TENSOR;
    input->type.dims = dims;
    input->type.rank = (int16_t)binding->rank;
    return ONV_OK;
}

/* The first half of --shape: what it says of symbols. The type of the input keeps them until the batch
 * has found its own among them. */
static onv_status bind_shape(onv_driver *driver, const onv_shape_binding *binding)
{
    onv_value *input;
    ONV_TRY(find_input(driver, "--shape", binding->name, &input));
    onv_type *type = &input->type;
    if (binding->rank > ONV_MAX_RANK)
        return onv_fail(driver->err, ONV_ERR_LIMIT, "input '%s': rank %zu is beyond %d",
                        input->name, binding->rank, ONV_MAX_RANK);
    if (type->kind != ONV_TYPE_TENSOR && type->kind != ONV_TYPE_UNKNOWN)
        return onv_fail(driver->err, ONV_ERR_USAGE, "input '%s' is not a tensor", input->name);
    if (type->rank >= 0 && (size_t)type->rank != binding->rank)
        return onv_fail(driver->err, ONV_ERR_USAGE, "input '%s' has rank %d, --shape gives %zu",
                        input->name, type->rank, binding->rank);
    for (size_t i = 0; i < binding->rank; i++) {
        onv_dim size = onv_dim_const(binding->dims[i]);
        if (binding->dims[i] < 0)
            return onv_fail(driver->err, ONV_ERR_USAGE, "input '%s': a dimension cannot be %lld",
                            input->name, (long long)binding->dims[i]);
        if (type->rank < 0) continue;
        if (onv_dim_is_symbol(&driver->model->dims, type->dims[i])) {
            ONV_TRY(bind_symbol(driver, type->dims[i], binding->dims[i]));
        } else if (!onv_dim_same(type->dims[i], size)) {
            driver->distrust_declared = true;
            driver->refixed = onv_arena_printf(
                &driver->model->arena, "'%s', which it has as %s", input->name,
                onv_type_shape_text(&driver->model->dims, &driver->model->arena, type));
        }
    }
    onv_bound bound = {.name = input->name, .size = -1};
    if (!onv_vec_push(&driver->info->bounds, bound)) return onv_fail_memory(driver->err);
    return type->rank < 0 ? set_shape(driver, input, binding) : ONV_OK;
}

/* The second half: the sizes themselves. Where --batch changes a batch that the export fixed, the axis
 * keeps the old one here, and the rest of the shape is what was given. */
static onv_status apply_shape(onv_driver *driver, const onv_shape_binding *binding)
{
    onv_value *input;
    ONV_TRY(find_input(driver, "--shape", binding->name, &input));
    int64_t old = driver->rebatch.old, batch = driver->options->batch;
    bool is_batch = old > 0 && input->type.rank > 0 && onv_dim_is(input->type.dims[0], old);
    if (is_batch && binding->dims[0] != old && binding->dims[0] != batch)
        return onv_fail(driver->err, ONV_ERR_USAGE,
                        "input '%s': --shape gives it a batch of %lld, and %s; leave one out",
                        input->name, (long long)binding->dims[0],
                        driver->options->max_batch ? "--max-batch is to choose it"
                                                   : "--batch another");
    ONV_TRY(set_shape(driver, input, binding));
    return is_batch ? set_batch(driver, input, onv_dim_const(old)) : ONV_OK;
}

/* --- The batch --------------------------------------------------------------------------------- */

static bool is_batch_name(const char *name)
{
    static const char *const names[] = {"n", "b", "bs", "bsz", "nb"};
    if (strcasestr(name, "batch") != NULL) return true;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcasecmp(name, names[i]) == 0) return true;
    return false;
}

/* By symbol, whether it stands anywhere but first in an input's shape: then it is a length that some
 * input merely begins with. NULL when memory is short. */
static const bool *symbols_inside(onv_driver *driver)
{
    const onv_graph *graph = main_graph(driver);
    const onv_dims *dims = &driver->model->dims;
    bool *inside = ONV_ARENA_ARRAY(&driver->scratch, bool, dims->n_symbols + 1);
    for (uint32_t i = 0; inside != NULL && i < graph->n_inputs; i++) {
        const onv_type *type = &input_at(driver, i)->type;
        for (int axis = 1; onv_type_has_rank(type) && axis < type->rank; axis++)
            if (onv_dim_is_symbol(dims, type->dims[axis]))
                inside[onv_dim_symbol_index(dims, type->dims[axis])] = true;
    }
    return inside;
}

static onv_status bind_batch_symbol(onv_driver *driver, onv_dim symbol)
{
    const onv_dim *slot =
        &driver->symbol_values[onv_dim_symbol_index(&driver->model->dims, symbol)];
    if (driver->options->max_batch && onv_dim_is_const(*slot) &&
        !onv_dim_is(*slot, driver->options->batch))
        return onv_fail(driver->err, ONV_ERR_USAGE,
                        "dimension '%s' is bound to %lld, but --max-batch is to choose it",
                        onv_dim_symbol_name(&driver->model->dims, symbol), (long long)slot->raw);
    return bind_symbol(driver, symbol, driver->options->batch);
}

/* Binds the symbols that are a batch: those named so anywhere in the inputs, else the first dim of
 * the first input that has a symbolic one and every other first dim that is not used as a length. */
static onv_status bind_symbolic_batch(onv_driver *driver, bool *any)
{
    const onv_graph *graph = main_graph(driver);
    const onv_dims *dims = &driver->model->dims;
    const bool *inside = symbols_inside(driver);
    if (inside == NULL) return onv_fail_memory(driver->err);
    for (int pass = 0; pass < 2 && !*any; pass++) {
        for (uint32_t i = 0; i < graph->n_inputs; i++) {
            const onv_type *type = &input_at(driver, i)->type;
            if (!onv_type_has_rank(type) || type->rank == 0) continue;
            for (int axis = 0; axis < (pass == 0 ? type->rank : 1); axis++) {
                onv_dim d = type->dims[axis];
                if (!onv_dim_is_symbol(dims, d)) continue;
                bool is_batch = pass == 0 ? is_batch_name(onv_dim_symbol_name(dims, d))
                                          : !*any || !inside[onv_dim_symbol_index(dims, d)];
                if (!is_batch) continue;
                ONV_TRY(bind_batch_symbol(driver, d));
                *any = true;
            }
        }
    }
    return ONV_OK;
}

static onv_status bind_fixed_batch(onv_driver *driver)
{
    const onv_graph *graph = main_graph(driver);
    int64_t batch = driver->options->batch, old = -1;
    for (uint32_t i = 0; i < graph->n_inputs; i++) {
        const onv_type *type = &input_at(driver, i)->type;
        if (!onv_type_has_rank(type) || type->rank == 0 || !onv_dim_is_const(type->dims[0]))
            continue;
        if (old < 0) old = type->dims[0].raw;
    }
    if (old < 0)
        return onv_fail(driver->err, ONV_ERR_USAGE,
                        "--batch: no input has a first dimension that could be the batch");
    onv_bound bound = {.name = "batch", .size = batch};
    if (!onv_vec_push(&driver->info->bounds, bound)) return onv_fail_memory(driver->err);
    driver->rebatch.old = old;
    if (old == batch) return ONV_OK;
    if (old == 0)
        return onv_fail(driver->err, ONV_ERR_USAGE, "--batch: the export has an empty batch");
    driver->distrust_declared = true;
    driver->rebatch.needed = true;
    driver->rebatch.symbol = onv_dim_symbol(&driver->model->dims, "batch");
    if (!onv_dim_is_known(driver->rebatch.symbol)) return onv_fail_memory(driver->err);
    return ONV_OK;
}

static onv_status bind_batch(onv_driver *driver)
{
    if (driver->options->batch == 0) return ONV_OK;
    if (driver->options->batch < 0)
        return onv_fail(driver->err, ONV_ERR_USAGE, "--batch cannot be %lld",
                        (long long)driver->options->batch);
    bool any = false;
    ONV_TRY(bind_symbolic_batch(driver, &any));
    return any ? ONV_OK : bind_fixed_batch(driver);
}

/* --- Contents of inputs ------------------------------------------------------------------------ */

static onv_status known_from_numbers(onv_driver *driver, const onv_value *input,
                                     const onv_input_value *given, const onv_known **result)
{
    onv_model *model = driver->model;
    if (given->count > model->most_known)
        return onv_fail(driver->err, ONV_ERR_LIMIT,
                        "input '%s': more than %u numbers, the limit" ONV_RAISE("known-elems"),
                        given->name, model->most_known);
    onv_known *known = ONV_ARENA_ARRAY(&model->arena, onv_known, 1);
    onv_scalar *elems = ONV_ARENA_ARRAY(&model->arena, onv_scalar, given->count);
    int64_t *dims = ONV_ARENA_ARRAY(&model->arena, int64_t, ONV_MAX_RANK);
    if (known == NULL || elems == NULL || dims == NULL) return onv_fail_memory(driver->err);
    bool is_float = onv_dtype_is_float((onv_dtype)input->type.dtype);
    for (size_t i = 0; i < given->count; i++) {
        double number = given->numbers[i];
        if (is_float) {
            elems[i] = onv_scalar_real(number);
        } else if (number != floor(number) || fabs(number) > 9007199254740992.0) {
            return onv_fail(driver->err, ONV_ERR_USAGE, "input '%s' takes integers", given->name);
        } else {
            elems[i] = onv_scalar_int(onv_dim_const((int64_t)number));
        }
    }
    *known = (onv_known){.dtype = input->type.dtype, .count = (uint32_t)given->count};
    known->dims = dims;
    known->elems = elems;
    /* The input's own shape where it is known, else a vector. */
    known->rank = 1;
    if (onv_type_has_rank(&input->type)) known->rank = input->type.rank;
    for (int i = 0; i < known->rank; i++)
        dims[i] = onv_type_has_rank(&input->type) && onv_dim_is_const(input->type.dims[i])
                      ? input->type.dims[i].raw
                      : (int64_t)given->count;
    *result = known;
    return ONV_OK;
}

/* The contents fix the shape: free dims of the input take the sizes of the contents. */
static onv_status adopt_shape(onv_driver *driver, onv_value *input, const onv_known *known)
{
    int64_t elems = 1;
    if (onv_type_has_rank(&input->type) && input->type.rank != known->rank)
        return onv_fail(driver->err, ONV_ERR_USAGE, "input '%s' has rank %d, its value %d",
                        input->name, input->type.rank, known->rank);
    onv_dim *dims = ONV_ARENA_ARRAY(&driver->model->arena, onv_dim, (size_t)known->rank);
    if (dims == NULL) return onv_fail_memory(driver->err);
    for (int i = 0; i < known->rank; i++) {
        if (onv_type_has_rank(&input->type)) {
            onv_dim own = input->type.dims[i];
            if (onv_dim_is_symbol(&driver->model->dims, own))
                ONV_TRY(bind_symbol(driver, own, known->dims[i]));
            else if (onv_dim_is_const(own) && own.raw != known->dims[i])
                return onv_fail(driver->err, ONV_ERR_USAGE,
                                "input '%s': dimension %d is %lld, its value has %lld", input->name,
                                i, (long long)own.raw, (long long)known->dims[i]);
        }
        dims[i] = onv_dim_const(known->dims[i]);
        if (__builtin_mul_overflow(elems, known->dims[i], &elems)) elems = -1;
    }
    if (elems != (int64_t)known->count)
        return onv_fail(driver->err, ONV_ERR_USAGE, "input '%s' takes %lld numbers, not %u",
                        input->name, (long long)elems, known->count);
    input->type.kind = ONV_TYPE_TENSOR;
    input->type.dtype = known->dtype;
    input->type.rank = known->rank;
    input->type.dims = dims;
    input->known = known;
    return ONV_OK;
}

static onv_status bind_input_values(onv_driver *driver)
{
    const onv_options *options = driver->options;
    for (size_t i = 0; i < options->n_input_values; i++) {
        const onv_input_value *given = &options->input_values[i];
        onv_value *input;
        const onv_known *known = NULL;
        ONV_TRY(find_input(driver, "--input-value", given->name, &input));
        if (given->file != NULL)
            ONV_TRY(onv_load_tensor_file(driver->model, given->file, &known, driver->err));
        else
            ONV_TRY(known_from_numbers(driver, input, given, &known));
        if (known == NULL)
            return onv_fail(driver->err, ONV_ERR_LIMIT,
                            "input '%s': the value is too large, or not of numbers", given->name);
        ONV_TRY(adopt_shape(driver, input, known));
    }
    return ONV_OK;
}

/* --- All together ------------------------------------------------------------------------------ */

/* Collects the symbols that stay free, each with the first place where it stands. */
typedef struct free_list {
    onv_driver *driver;
    bool *noted; /* by symbol */
    onv_free_dim at;
    bool failed;
} free_list;

static void note_symbol(void *context, onv_dim symbol)
{
    free_list *list = context;
    const onv_dims *dims = &list->driver->model->dims;
    uint32_t s = onv_dim_symbol_index(dims, symbol);
    if (s >= list->driver->n_symbol_values || list->noted[s]) return;
    list->noted[s] = true;
    list->at.name = onv_dim_symbol_name(dims, symbol);
    list->failed |= !onv_vec_push(&list->driver->info->free_dims, list->at);
}

static onv_status note_free_dims(onv_driver *driver)
{
    const onv_graph *graph = main_graph(driver);
    free_list list = {.driver = driver};
    list.noted = ONV_ARENA_ARRAY(&driver->scratch, bool, driver->n_symbol_values);
    if (list.noted == NULL) return onv_fail_memory(driver->err);
    for (uint32_t i = 0; i < graph->n_inputs; i++) {
        const onv_value *input = input_at(driver, i);
        for (int axis = 0; onv_type_has_rank(&input->type) && axis < input->type.rank; axis++) {
            list.at = (onv_free_dim){NULL, input->name, axis};
            onv_dim_each_symbol(&driver->model->dims, input->type.dims[axis], note_symbol, &list);
        }
    }
    return list.failed ? onv_fail_memory(driver->err) : ONV_OK;
}

/* What the name of a symbol says where it is an expression of others: PyTorch's dynamo exporter names a dim "past + sequence"
 * or "2*s0 // 3", so that binding the parts binds the whole. Parts that no dim has alone become symbols. Unknown: a plain name. */
static onv_dim meaning_of(onv_driver *driver, const char *name)
{
    onv_model *model = driver->model;
    const char *unread;
    onv_dim meaning;
    if (strpbrk(name, "+*/%(") == NULL && strstr(name, " - ") == NULL) return ONV_DIM_UNKNOWN;
    bool is_read =
        onv_dim_read(name, &model->dims, &model->strings, &meaning, &unread, NULL) == ONV_OK;
    return is_read && !onv_dim_is_infinite(meaning) ? meaning : ONV_DIM_UNKNOWN;
}

/* Symbols stand for themselves; those whose name is an expression stand for it. */
static onv_status read_symbol_names(onv_driver *driver)
{
    onv_dims *dims = &driver->model->dims;
    uint32_t given = dims->n_symbols;
    onv_dim *meaning = ONV_ARENA_ARRAY(&driver->scratch, onv_dim, given);
    if (meaning == NULL) return onv_fail_memory(driver->err);
    for (uint32_t s = 0; s < given; s++)
        meaning[s] = meaning_of(driver, onv_dim_symbol_name(dims, onv_dim_symbol_at(dims, s)));
    driver->n_symbol_values = dims->n_symbols;
    driver->symbol_values = ONV_ARENA_ARRAY(&driver->model->arena, onv_dim, dims->n_symbols);
    driver->symbol_meanings = ONV_ARENA_ARRAY(&driver->model->arena, onv_dim, dims->n_symbols);
    if (driver->symbol_values == NULL || driver->symbol_meanings == NULL)
        return onv_fail_memory(driver->err);
    for (uint32_t s = 0; s < dims->n_symbols; s++) {
        driver->symbol_values[s] = onv_dim_symbol_at(dims, s);
        driver->symbol_meanings[s] = s < given ? meaning[s] : ONV_DIM_UNKNOWN;
    }
    return ONV_OK;
}

/* Once the options are applied: what follows from them for symbols that are expressions. */
static onv_status bind_meanings(onv_driver *driver)
{
    onv_dims *dims = &driver->model->dims;
    onv_dim *values = onv_arena_copy(&driver->scratch, driver->symbol_values,
                                     driver->n_symbol_values * sizeof *values);
    if (values == NULL) return onv_fail_memory(driver->err);
    for (uint32_t s = 0; s < driver->n_symbol_values; s++) {
        onv_dim meaning = driver->symbol_meanings[s];
        if (!onv_dim_is_known(meaning)) continue;
        onv_dim value = onv_dim_eval(dims, meaning, values);
        onv_dim given = driver->symbol_values[s];
        if (onv_dim_is_const(given) && onv_dim_is_const(value) && !onv_dim_same(given, value))
            return onv_fail(driver->err, ONV_ERR_USAGE,
                            "dimension '%s' is bound to %lld, but is %lld",
                            onv_dim_symbol_name(dims, onv_dim_symbol_at(dims, s)),
                            (long long)given.raw, (long long)value.raw);
        if (!onv_dim_is_const(given) && onv_dim_is_known(value)) driver->symbol_values[s] = value;
    }
    return ONV_OK;
}

/* As the file has them: what a runtime sees that is not told the sizes before it runs. */
static onv_status keep_declared(onv_driver *driver)
{
    const onv_graph *graph = main_graph(driver);
    for (uint32_t i = 0; i < graph->n_inputs; i++) {
        onv_value *input = input_at(driver, i);
        if (input->declared == NULL)
            input->declared =
                onv_arena_copy(&driver->model->arena, &input->type, sizeof input->type);
        if (input->declared == NULL) return onv_fail_memory(driver->err);
    }
    return ONV_OK;
}

onv_status onv_bind_inputs(onv_driver *driver)
{
    const onv_graph *graph = main_graph(driver);
    ONV_TRY(read_symbol_names(driver));
    ONV_TRY(keep_declared(driver));
    ONV_TRY(bind_named_dims(driver));
    for (size_t i = 0; i < driver->options->n_shapes; i++)
        ONV_TRY(bind_shape(driver, &driver->options->shapes[i]));
    ONV_TRY(bind_batch(driver));
    for (size_t i = 0; i < driver->options->n_shapes; i++)
        ONV_TRY(apply_shape(driver, &driver->options->shapes[i]));
    ONV_TRY(bind_input_values(driver));
    ONV_TRY(bind_meanings(driver));

    for (uint32_t i = 0; i < graph->n_inputs; i++) {
        onv_value *input = input_at(driver, i);
        ONV_TRY(onv_bind_type(driver, &input->type));
        if (driver->rebatch.needed && onv_type_has_rank(&input->type) && input->type.rank > 0 &&
            onv_dim_is(input->type.dims[0], driver->rebatch.old))
            ONV_TRY(set_batch(driver, input, driver->rebatch.symbol));
    }
    return note_free_dims(driver);
}
