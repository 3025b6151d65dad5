#include "ops/op.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <threads.h>

#include "ops/op_shapes.h"

#define FAMILY(name) extern const onv_op_family onv_ops_##name;
#include "ops/families.def"
#undef FAMILY

const onv_op_family *const onv_op_families[] = {
#define FAMILY(name) &onv_ops_##name,
#include "ops/families.def"
#undef FAMILY
};

const size_t onv_n_op_families = sizeof onv_op_families / sizeof onv_op_families[0];

/* --- Index ------------------------------------------------------------------------------------- */

/* Of all rows, once in a process. Rows are in chains by the first letter and the length of their names; places in chains are 1 + a
 * row's number, 0: none. */
static const onv_op *all_rows[ONV_OP_MAX_ROWS];
static const char *all_domains[ONV_OP_MAX_ROWS];
static uint16_t chains[256], next_rows[ONV_OP_MAX_ROWS];
static once_flag all_once = ONCE_FLAG_INIT;

static uint16_t *chain_of(const char *name)
{
    return &chains[((unsigned char)*name + 8 * strlen(name)) % 256];
}

static void list_all(void)
{
    uint16_t n = 0;
    for (size_t f = 0; f < onv_n_op_families; f++) {
        const onv_op_family *family = onv_op_families[f];
        for (size_t r = 0; r < family->n_rows; r++) {
            uint16_t *chain = chain_of(family->rows[r].name);
            all_rows[n] = &family->rows[r];
            all_domains[n] = family->domain;
            next_rows[n] = *chain;
            *chain = ++n;
        }
    }
}

bool onv_op_index_init(onv_op_index *index, onv_arena *arena)
{
    call_once(&all_once, list_all);
    index->rows = onv_arena_copy(arena, all_rows, sizeof all_rows);
    index->arena = arena;
    return index->rows != NULL;
}

/* Where the row lies; NULL: there is none. */
static const onv_op **find_place(const onv_op **rows, const char *domain, const char *name,
                                 int32_t version)
{
    const onv_op **best = NULL;
    for (uint16_t place = *chain_of(name); place > 0; place = next_rows[place - 1]) {
        const onv_op *row = rows[place - 1];
        if (row->since > version || (best != NULL && (*best)->since >= row->since)) continue;
        if (strcmp(row->name, name) == 0 && strcmp(all_domains[place - 1], domain) == 0)
            best = &rows[place - 1];
    }
    return best;
}

const onv_op *onv_op_find(const onv_op_index *index, const char *domain, const char *name,
                          int32_t version)
{
    onv_error err = {0};
    const onv_op **best = find_place(index->rows, domain, name, version);
    if (best == NULL) return NULL;
    /* The arena remembers that it is short of memory. */
    if ((*best)->says && onv_op_shapes_compile(*best, index->arena, best, &err) != ONV_OK)
        return NULL;
    return *best;
}

const onv_op *onv_op_of_onnx(const char *name, int32_t version)
{
    const onv_op **place = find_place(all_rows, "", name, version);
    return place != NULL ? *place : NULL;
}

/* --- Inputs ------------------------------------------------------------------------------------ */

static const onv_type unknown_type = {.kind = ONV_TYPE_UNKNOWN, .rank = -1};

bool onv_op_has_in(const onv_op_ctx *c, uint32_t k)
{
    return k < c->n_in && c->in_present[k];
}

bool onv_op_has_out(const onv_op_ctx *c, uint32_t k)
{
    return k < c->n_out && onv_is_value(c->node->outputs[k]);
}

const onv_type *onv_op_in(const onv_op_ctx *c, uint32_t k)
{
    return onv_op_has_in(c, k) ? &c->in[k].type : &unknown_type;
}

onv_dtype onv_op_in_dtype(const onv_op_ctx *c, uint32_t k)
{
    return (onv_dtype)onv_op_in(c, k)->dtype;
}

int onv_op_in_rank(const onv_op_ctx *c, uint32_t k)
{
    const onv_type *type = onv_op_in(c, k);
    return onv_type_has_rank(type) ? type->rank : -1;
}

onv_dim onv_op_in_dim(const onv_op_ctx *c, uint32_t k, int axis)
{
    const onv_type *type = onv_op_in(c, k);
    if (!onv_type_has_rank(type)) return ONV_DIM_UNKNOWN;
    if (axis < 0) axis += type->rank;
    if (axis < 0 || axis >= type->rank) return ONV_DIM_UNKNOWN;
    return type->dims[axis];
}

int onv_op_in_dims(const onv_op_ctx *c, uint32_t k, onv_dim *dims)
{
    int rank = onv_op_in_rank(c, k);
    for (int i = 0; i < rank; i++) dims[i] = c->in[k].type.dims[i];
    return rank;
}

onv_dim onv_op_in_elems(const onv_op_ctx *c, uint32_t k)
{
    return onv_type_elems(c->dims, onv_op_in(c, k));
}

onv_dim onv_op_in_product(const onv_op_ctx *c, uint32_t k, int first, int end)
{
    onv_type part = *onv_op_in(c, k);
    if (!onv_type_has_rank(&part)) return ONV_DIM_UNKNOWN;
    if (end < 0) end += part.rank;
    if (end > part.rank) end = part.rank;
    part.rank = (int16_t)(end > first ? end - first : 0);
    if (part.rank > 0) part.dims += first;
    return onv_type_elems(c->dims, &part);
}

const onv_known *onv_op_in_known(onv_op_ctx *c, uint32_t k)
{
    if (!onv_op_has_in(c, k)) return NULL;
    if (c->in[k].known == NULL && c->load_known != NULL) c->load_known(c, k);
    return c->in[k].known;
}

static bool holds_integers(onv_dtype dtype)
{
    return onv_dtype_is_integer(dtype) || dtype == ONV_BOOL;
}

bool onv_op_in_ints(onv_op_ctx *c, uint32_t k, uint32_t *count)
{
    const onv_known *known = onv_op_in_known(c, k);
    *count = 0;
    if (known == NULL || !holds_integers(known->dtype)) return false;
    *count = known->count;
    return true;
}

onv_dim onv_op_in_int(onv_op_ctx *c, uint32_t k, uint32_t i)
{
    const onv_known *known = onv_op_in_known(c, k);
    if (known == NULL || !holds_integers(known->dtype) || i >= known->count) return ONV_DIM_UNKNOWN;
    return known->elems[i].i;
}

onv_dim onv_op_in_scalar(onv_op_ctx *c, uint32_t k)
{
    const onv_known *known = onv_op_in_known(c, k);
    if (known == NULL || known->count != 1) return ONV_DIM_UNKNOWN;
    return onv_op_in_int(c, k, 0);
}

onv_dim onv_op_product(onv_op_ctx *c, const onv_dim *dims, int n)
{
    onv_type type = {.kind = ONV_TYPE_TENSOR, .rank = (int16_t)n, .dims = dims};
    return onv_type_elems(c->dims, &type);
}

/* --- Attributes -------------------------------------------------------------------------------- */

const onv_attr *onv_op_attr(const onv_op_ctx *c, const char *name)
{
    return onv_node_attr(c->node, name);
}

int64_t onv_op_attr_int(const onv_op_ctx *c, const char *name, int64_t fallback)
{
    return onv_node_int(c->node, name, fallback);
}

double onv_op_attr_float(const onv_op_ctx *c, const char *name, double fallback)
{
    const onv_attr *attr = onv_op_attr(c, name);
    return attr != NULL && attr->kind == ONV_ATTR_FLOAT ? (double)attr->f : fallback;
}

const char *onv_op_attr_string(const onv_op_ctx *c, const char *name, const char *fallback)
{
    const onv_attr *attr = onv_op_attr(c, name);
    return attr != NULL && attr->kind == ONV_ATTR_STRING ? attr->s : fallback;
}

const int64_t *onv_op_attr_ints(const onv_op_ctx *c, const char *name, uint32_t *count)
{
    const onv_attr *attr = onv_op_attr(c, name);
    *count = 0;
    if (attr == NULL || attr->kind != ONV_ATTR_INTS) return NULL;
    *count = attr->ints != NULL ? attr->count : 0;
    return attr->ints;
}

bool onv_op_ints(onv_op_ctx *c, const char *attr, int k, const onv_dim **list, uint32_t *count)
{
    *list = NULL;
    *count = 0;
    uint32_t n;
    if (k >= 0 && onv_op_has_in(c, (uint32_t)k)) {
        if (!onv_op_in_ints(c, (uint32_t)k, &n)) return false;
        onv_dim *copy = ONV_ARENA_ARRAY(c->arena, onv_dim, n);
        if (copy == NULL) return false;
        for (uint32_t i = 0; i < n; i++) copy[i] = onv_op_in_int(c, (uint32_t)k, i);
        *list = copy;
        *count = n;
        return true;
    }
    const int64_t *ints = onv_op_attr_ints(c, attr, &n);
    if (ints == NULL) return true;
    onv_dim *copy = ONV_ARENA_ARRAY(c->arena, onv_dim, n);
    if (copy == NULL) return false;
    for (uint32_t i = 0; i < n; i++) copy[i] = onv_dim_const(ints[i]);
    *list = copy;
    *count = n;
    return true;
}

onv_dtype onv_op_attr_dtype(const onv_op_ctx *c, const char *name, onv_dtype fallback)
{
    const onv_attr *attr = onv_op_attr(c, name);
    return attr != NULL && attr->kind == ONV_ATTR_INT ? onv_dtype_from(attr->i) : fallback;
}

onv_status onv_op_axis(onv_op_ctx *c, int64_t axis, int rank, int *normal)
{
    if (axis < -rank || axis >= rank)
        return onv_op_fail(c, "axis %lld is out of range for rank %d", (long long)axis, rank);
    *normal = (int)(axis < 0 ? axis + rank : axis);
    return ONV_OK;
}

/* --- Outputs ----------------------------------------------------------------------------------- */

onv_status onv_op_set_out(onv_op_ctx *c, uint32_t k, onv_dtype dtype, const onv_dim *dims, int rank)
{
    if (!onv_op_has_out(c, k)) return ONV_OK;
    onv_type *type = &c->out[k].type;
    *type = (onv_type){.kind = ONV_TYPE_TENSOR, .dtype = (uint8_t)dtype, .rank = -1};
    if (rank < 0) return ONV_OK;
    /* Dims are immutable once set, so types may share them; many outputs have those of input 0. */
    const onv_type *first = onv_op_in(c, 0);
    const size_t bytes = (size_t)rank * sizeof *dims;
    bool is_like = onv_type_has_rank(first) && first->rank == rank && rank > 0 &&
                   memcmp(first->dims, dims, bytes) == 0;
    type->dims = is_like ? first->dims : onv_arena_copy(c->arena, dims, bytes);
    if (type->dims != NULL) type->rank = (int16_t)rank;
    return ONV_OK;
}

onv_status onv_op_set_like(onv_op_ctx *c, const onv_dim *dims, int rank)
{
    return onv_op_set_out(c, 0, onv_op_in_dtype(c, 0), dims, rank);
}

onv_status onv_op_set_out_type(onv_op_ctx *c, uint32_t k, const onv_type *type)
{
    if (onv_op_has_out(c, k)) c->out[k].type = *type;
    return ONV_OK;
}

onv_status onv_op_set_out_like(onv_op_ctx *c, uint32_t k, uint32_t i, onv_dtype dtype)
{
    const onv_type *type = onv_op_in(c, i);
    if (!onv_op_has_out(c, k)) return ONV_OK;
    onv_op_set_out(c, k, dtype, NULL, -1);
    if (!onv_type_has_rank(type)) return ONV_OK;
    c->out[k].type.dims = type->dims;
    c->out[k].type.rank = type->rank;
    return ONV_OK;
}

onv_status onv_op_set_out_rank(onv_op_ctx *c, onv_dtype dtype, int rank)
{
    onv_dim dims[ONV_MAX_RANK];
    for (int i = 0; i < rank && i < ONV_MAX_RANK; i++) dims[i] = ONV_DIM_UNKNOWN;
    return onv_op_set_out(c, 0, dtype, dims, rank);
}

onv_known *onv_op_new_known(onv_op_ctx *c, uint32_t k)
{
    if (!onv_op_has_out(c, k)) return NULL;
    const onv_type *type = &c->out[k].type;
    if (type->kind != ONV_TYPE_TENSOR || !onv_type_is_static(type)) return NULL;
    onv_dim elems = onv_type_elems(c->dims, type);
    if (!onv_dim_is_const(elems) || elems.raw > c->model->most_known) return NULL;
    onv_known *known = onv_known_new(c->arena, type);
    if (known == NULL) return NULL;
    for (uint32_t i = 0; i < known->count; i++) known->elems[i] = onv_scalar_unknown();
    c->out[k].known = known;
    return known;
}

onv_status(onv_op_fail)(onv_op_ctx *c, const char *format, ...)
{
    char message[sizeof c->err->message];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    onv_status status = onv_fail(c->err, ONV_ERR_MODEL, "%s", message);
    onv_error_at(c->err, c->node->name, c->node->op_type);
    return status;
}

void onv_op_warn(onv_op_ctx *c, const char *code, const char *format, ...)
{
    char message[512];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    onv_model_diag(c->model, ONV_WARNING, code, c->node->name, "%s", message);
}

const char *onv_op_shape_text(onv_op_ctx *c, const onv_type *type)
{
    const char *text = onv_type_shape_text(&c->model->dims, c->arena, type);
    return text != NULL ? text : "[...]";
}

const char *onv_op_in_text(onv_op_ctx *c, uint32_t k)
{
    return onv_op_shape_text(c, onv_op_in(c, k));
}

/* --- Scalars ----------------------------------------------------------------------------------- */

onv_scalar onv_scalar_unknown(void)
{
    return (onv_scalar){.i = ONV_DIM_UNKNOWN, .f = NAN};
}

onv_scalar onv_scalar_int(onv_dim value)
{
    return (onv_scalar){.i = value, .f = 1};
}

onv_scalar onv_scalar_real(double value)
{
    return (onv_scalar){.i = {1}, .f = value};
}

bool onv_scalar_is_real(onv_scalar s)
{
    return onv_dim_is(s.i, 1) && !isnan(s.f);
}

bool onv_scalar_is_known(onv_dtype dtype, onv_scalar s)
{
    return onv_dim_is_known(s.i) && !(onv_dtype_is_float(dtype) && isnan(s.f));
}
