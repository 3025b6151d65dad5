/* Bindings of sizes that only inference knows: those it makes itself ("range#7"), and those that the
 * file names in the types it declares for outputs and intermediate values. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "infer/driver.h"

/* What the places where the file declares a name turned out to be. */
typedef struct places {
    bool agrees;            /* one of them has the size asked for */
    const onv_value *other; /* one that does not: its dim is `dim` of axis `axis` */
    onv_dim dim;
    int axis;
    onv_dim made; /* a symbol that inference made there, unknown where there is none */
} places;

static bool is_result(const onv_driver *driver, const onv_value *value)
{
    return value->is_output && !onv_is_node(onv_model_graph(driver->model, value->graph)->owner);
}

static void look_at(const onv_driver *driver, const onv_value *value, onv_dim symbol, int64_t size,
                    places *found)
{
    const onv_type *declared = value->declared, *type = &value->type;
    if (declared == NULL || !onv_type_has_rank(declared) || !onv_type_has_rank(type) ||
        declared->rank != type->rank)
        return;
    for (int i = 0; i < type->rank; i++) {
        onv_dim dim = type->dims[i];
        if (!onv_dim_same(declared->dims[i], symbol) || onv_dim_same(dim, symbol)) continue;
        if (onv_dim_is(dim, size)) {
            found->agrees = true;
        } else if (onv_dim_is_bindable(&driver->model->dims, dim) &&
                   !onv_dim_is_known(found->made)) {
            found->made = dim;
        } else if (found->other == NULL || is_result(driver, value)) {
            found->other = value;
            found->dim = dim;
            found->axis = i;
        }
    }
}

static bool is_given(const onv_driver *driver, const char *name)
{
    for (size_t i = 0; i < driver->given.count; i++)
        if (strcmp(driver->given.at[i].name, name) == 0) return true;
    return false;
}

static onv_status give(onv_driver *driver, const char *name, int64_t size)
{
    onv_dim_given given = {.name = name, .size = size};
    if (!onv_vec_push(&driver->given, given)) return onv_fail_memory(driver->err);
    driver->model->dims.given = driver->given.at;
    driver->model->dims.n_given = (uint32_t)driver->given.count;
    return ONV_OK;
}

static onv_status bind_declared(onv_driver *driver, onv_dim symbol, bool *again)
{
    onv_model *model = driver->model;
    const char *name = onv_dim_symbol_name(&model->dims, symbol);
    int64_t size = driver->symbol_values[onv_dim_symbol_index(&model->dims, symbol)].raw;
    places found = {.made = ONV_DIM_UNKNOWN};
    for (size_t i = 0; i < model->values.count; i++) {
        const onv_value *value = &model->values.at[i];
        const onv_graph *graph = onv_model_graph(model, value->graph);
        if (!graph->never_runs) look_at(driver, value, symbol, size, &found);
    }
    const char *made = onv_dim_symbol_name(&model->dims, found.made);
    if (made != NULL && !is_given(driver, made)) {
        *again = true;
        return give(driver, made, size);
    }
    if (found.agrees && (found.other == NULL || !is_result(driver, found.other))) return ONV_OK;
    if (found.other == NULL)
        return onv_fail(driver->err, ONV_ERR_USAGE,
                        "dimension '%s' stands in no input, and nothing that is computed has it",
                        name);
    const char *text = onv_dim_text(&model->dims, &model->arena, found.dim);
    return onv_fail(driver->err, ONV_ERR_USAGE,
                    "dimension '%s' cannot be %" PRId64
                    ": it is declared for axis %d of '%s', which is %s; bind what that depends on",
                    name, size, found.axis, found.other->name, text != NULL ? text : "?");
}

/* The names of what inference made, each once. */
static void list_made(const onv_driver *driver, char *text, size_t size)
{
    const onv_dims *dims = &driver->model->dims;
    size_t length = 0;
    text[0] = '\0';
    for (uint32_t s = 0; s < dims->n_symbols && length < size; s++) {
        onv_dim symbol = onv_dim_symbol_at(dims, s);
        if (!onv_dim_is_bindable(dims, symbol)) continue;
        const char *name = onv_dim_symbol_name(dims, symbol);
        bool listed = false;
        for (uint32_t t = s > 256 ? s - 256 : 0; t < s && !listed; t++)
            listed = strcmp(onv_dim_symbol_name(dims, onv_dim_symbol_at(dims, t)), name) == 0;
        if (listed) continue;
        length +=
            (size_t)snprintf(text + length, size - length, "%s%s", length > 0 ? ", " : "", name);
    }
    if (text[0] == '\0') snprintf(text, size, "none");
}

static onv_status check_given(onv_driver *driver, const onv_dim_given *given)
{
    onv_model *model = driver->model;
    for (size_t i = 0; i < driver->options->n_dims; i++) {
        if (strcmp(driver->options->dims[i].name, given->name) != 0 ||
            !onv_may_lack_dim(driver->options, i))
            continue;
        if (!given->used) return ONV_OK; /* another model may have it */
        driver->options->dims_found[i] = true;
    }
    if (!given->used) {
        char names[256];
        list_made(driver, names, sizeof names);
        return onv_fail(driver->err, ONV_ERR_USAGE,
                        "--dim: '%s' is unknown; data-dependent sizes are %s", given->name, names);
    }
    if (given->too_large) {
        const char *bound = onv_dim_text(&model->dims, &model->arena, given->bound);
        return onv_fail(driver->err, ONV_ERR_USAGE,
                        "dimension '%s' cannot be %" PRId64 ": it is at most %s", given->name,
                        given->size, bound != NULL ? bound : "?");
    }
    for (size_t i = 0; i < driver->options->n_dims; i++)
        if (strcmp(driver->options->dims[i].name, given->name) == 0) {
            onv_bound bound = {.name = given->name, .size = given->size};
            if (!onv_vec_push(&driver->info->bounds, bound)) return onv_fail_memory(driver->err);
        }
    return ONV_OK;
}

onv_status onv_bind_made(onv_driver *driver, bool *again)
{
    *again = false;
    for (size_t i = 0; i < driver->declared_only.count; i++)
        ONV_TRY(bind_declared(driver, driver->declared_only.at[i], again));
    if (*again) return ONV_OK;
    for (size_t i = 0; i < driver->given.count; i++)
        ONV_TRY(check_given(driver, &driver->given.at[i]));
    return ONV_OK;
}
