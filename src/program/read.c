#include "program/load.h"

#include <inttypes.h>
#include <string.h>

#include "base/fail.h"
#include "base/quota.h"
#include "ir/dim.h"
#include "load/limits.h"
#include "program/archive.h"
#include "program/document.h"
#include "program/reader.h"
#include "program/view.h"

/* Majors of the schema that are read: PyTorch 2.4 to 2.15. Members of a union, of which one is not null. */
enum { FIRST_MAJOR = 5, LAST_MAJOR = 8, RECORDING_VERSION = 1, MOST_MEMBERS = 64 };

/* --- Documents ----------------------------------------------------------------------------------- */

static const char *const type_names[] = {
    [ONV_DOC_NULL] = "null",       [ONV_DOC_BOOL] = "a boolean",  [ONV_DOC_INTEGER] = "an integer",
    [ONV_DOC_REAL] = "a number",   [ONV_DOC_STRING] = "a string", [ONV_DOC_LIST] = "a list",
    [ONV_DOC_OBJECT] = "an object"};

void onv_program_leave(onv_program_reader *r, onv_status status)
{
    r->status = status;
    if (r->call != NULL) onv_error_at(r->err, r->call->name, r->call->op_name);
    longjmp(r->wrong, 1);
}

void onv_program_unexpected(onv_program_reader *r, const char *at, const char *expected,
                            const onv_doc *found)
{
    onv_program_leave(r, onv_fail(r->err, ONV_ERR_FORMAT, "%.100s: expected %s, found %s", at,
                                  expected, found != NULL ? type_names[found->type] : "nothing"));
}

void onv_program_fit(onv_program_reader *r, bool has_room)
{
    if (!has_room) onv_program_leave(r, onv_fail_memory(r->err));
}

void *onv_program_made(onv_program_reader *r, void *memory)
{
    onv_program_fit(r, memory != NULL);
    return memory;
}

const char *onv_program_intern(onv_program_reader *r, const char *text, size_t length)
{
    const char *interned = onv_intern_n(&r->model->strings, text, length);
    onv_program_fit(r, interned != NULL);
    return interned;
}

void onv_program_work(onv_program_reader *r, uint64_t units)
{
    if (!onv_work(units)) onv_program_leave(r, ONV_ERR_CANCELLED);
}

const onv_doc *onv_program_optional(onv_program_reader *r, const onv_doc *object, const char *key,
                                    onv_doc_type type)
{
    const onv_doc *member = onv_doc_get(object, key);
    if (member == NULL || onv_doc_is(member, ONV_DOC_NULL)) return NULL;
    if (!onv_doc_is(member, type)) onv_program_unexpected(r, key, type_names[type], member);
    return member;
}

const onv_doc *onv_program_member(onv_program_reader *r, const onv_doc *object, const char *key,
                                  onv_doc_type type)
{
    const onv_doc *member = onv_program_optional(r, object, key, type);
    if (member != NULL) return member;
    onv_program_leave(r,
                      onv_fail(r->err, ONV_ERR_FORMAT, "expected a member '%s', found none", key));
}

const char *onv_program_name(onv_program_reader *r, const char *at, const onv_doc *text)
{
    if (!onv_doc_is(text, ONV_DOC_STRING)) onv_program_unexpected(r, at, "a string", text);
    size_t length = text->count;
    if (length > r->limits->name_bytes)
        onv_program_leave(
            r, onv_fail(r->err, ONV_ERR_LIMIT,
                        "a name has %zu bytes; the limit is %" PRIu64 ONV_RAISE("name-bytes"),
                        length, r->limits->name_bytes));
    return onv_program_intern(r, text->text, length);
}

const onv_doc *onv_program_variant(onv_program_reader *r, const char *at, const onv_doc *object,
                                   const char **kind)
{
    uint32_t n = onv_doc_is(object, ONV_DOC_OBJECT) ? object->count : 0;
    for (uint32_t i = 0; i < n && i < MOST_MEMBERS; i++) {
        if (onv_doc_is(&object->items[i], ONV_DOC_NULL)) continue;
        *kind = object->items[i].key;
        return &object->items[i];
    }
    onv_program_unexpected(r, at, "an object with one member", object);
}

void *onv_program_take(onv_arena *arena, const void *all, size_t size, size_t *count, size_t first)
{
    size_t n = *count - first;
    *count = first;
    if (n == 0) return onv_arena_alloc(arena, 0);
    return onv_arena_copy(arena, (const char *)all + first * size, n * size);
}

/* --- Sizes --------------------------------------------------------------------------------------- */

/* Sizes recur: each text is read once. */
static onv_dim read_expression(onv_program_reader *r, const onv_doc *expression)
{
    const onv_doc *text = onv_program_member(r, expression, "expr_str", ONV_DOC_STRING);
    const char *known = onv_program_name(r, "expr_str", text), *unread;
    uint32_t at;
    onv_dim dim;
    if (onv_ptr_map_get(&r->dims, known, &at)) return r->dim_list.at[at];
    onv_status status =
        onv_dim_read(known, &r->model->dims, &r->model->strings, &dim, &unread, r->err);
    if (status != ONV_OK) onv_program_leave(r, status);
    if (!onv_dim_is_known(dim))
        onv_model_diag(r->model, ONV_WARNING, "program-size", NULL,
                       "the size '%.200s' of the program is not known: %.60s cannot be computed",
                       known, unread);
    at = (uint32_t)r->dim_list.count;
    onv_program_fit(r, onv_vec_push(&r->dim_list, dim) && onv_ptr_map_set(&r->dims, known, at));
    return dim;
}

onv_dim onv_program_size(onv_program_reader *r, const char *at, const onv_doc *size)
{
    const char *kind;
    if (onv_doc_is(size, ONV_DOC_INTEGER)) return onv_dim_const(size->integer);
    const onv_doc *value = onv_program_variant(r, at, size, &kind);
    if (strcmp(kind, "as_int") == 0 && onv_doc_is(value, ONV_DOC_INTEGER))
        return onv_dim_const(value->integer);
    if (strcmp(kind, "as_expr") == 0) return read_expression(r, value);
    if (strcmp(kind, "as_name") != 0 || !onv_doc_is(value, ONV_DOC_STRING))
        onv_program_unexpected(r, at, "as_int, as_expr or as_name", value);
    uint32_t place;
    const char *known = onv_interned(&r->model->strings, value->text);
    if (known == NULL || !onv_ptr_map_get(&r->size_at, known, &place))
        onv_program_leave(r, onv_fail(r->err, ONV_ERR_FORMAT,
                                      "the size '%.100s' is not in sym_int_values", value->text));
    const onv_doc *named = &r->sizes->items[place];
    value = onv_program_variant(r, at, named, &kind);
    if (strcmp(kind, "as_name") == 0) onv_program_unexpected(r, at, "as_int or as_expr", value);
    return onv_program_size(r, at, named);
}

onv_dtype onv_program_dtype(int64_t scalar_type)
{
    static const uint8_t types[] = {
        [1] = ONV_UINT8,           [2] = ONV_INT8,
        [3] = ONV_INT16,           [4] = ONV_INT32,
        [5] = ONV_INT64,           [6] = ONV_FLOAT16,
        [7] = ONV_FLOAT,           [8] = ONV_DOUBLE,
        [10] = ONV_COMPLEX64,      [11] = ONV_COMPLEX128,
        [12] = ONV_BOOL,           [13] = ONV_BFLOAT16,
        [28] = ONV_UINT16,         [29] = ONV_FLOAT8E4M3FN,
        [30] = ONV_FLOAT8E5M2,     [31] = ONV_FLOAT8E4M3FNUZ,
        [32] = ONV_FLOAT8E5M2FNUZ, [33] = ONV_FLOAT8E8M0,
        [34] = ONV_UINT32,         [35] = ONV_UINT64,
    };
    if (scalar_type < 0 || scalar_type >= (int64_t)sizeof types) return ONV_UNDEFINED;
    return (onv_dtype)types[scalar_type];
}

/* --- Values -------------------------------------------------------------------------------------- */

uint32_t onv_program_find_value(onv_program_reader *r, const onv_doc *name)
{
    const char *known = onv_interned(&r->model->strings, name->text);
    uint32_t id;
    if (known != NULL && onv_ptr_map_get(&r->values, known, &id)) return id;
    onv_program_leave(r, onv_fail(r->err, ONV_ERR_FORMAT,
                                  "the tensor '%.100s' is read before it is made", name->text));
}

static const onv_dim *read_sizes(onv_program_reader *r, const onv_doc *list, const char *at)
{
    size_t n = onv_doc_count(list);
    onv_dim *made = onv_program_made(r, ONV_ARENA_ARRAY(&r->model->arena, onv_dim, n));
    for (size_t i = 0; i < n; i++) made[i] = onv_program_size(r, at, &list->items[i]);
    return made;
}

static bool is_size(onv_dim d)
{
    return !onv_dim_is_infinite(d) && (!onv_dim_is_const(d) || d.raw >= 0);
}

static void describe(onv_program_reader *r, onv_program_value *value)
{
    uint32_t place;
    if (!onv_ptr_map_get(&r->tensor_at, value->name, &place))
        onv_program_leave(r, onv_fail(r->err, ONV_ERR_FORMAT,
                                      "the tensor '%.100s' is not in tensor_values", value->name));
    const onv_doc *meta = &r->tensors->items[place];
    const onv_doc *dtype = onv_program_member(r, meta, "dtype", ONV_DOC_INTEGER);
    const onv_doc *sizes = onv_program_member(r, meta, "sizes", ONV_DOC_LIST);
    const onv_doc *strides = onv_program_optional(r, meta, "strides", ONV_DOC_LIST);
    const onv_doc *grad = onv_program_optional(r, meta, "requires_grad", ONV_DOC_BOOL);
    size_t rank = onv_doc_count(sizes);
    if (rank > ONV_MAX_RANK)
        onv_program_leave(r, onv_fail(r->err, ONV_ERR_LIMIT,
                                      "the tensor '%.100s' has rank %zu, beyond %d", value->name,
                                      rank, ONV_MAX_RANK));
    value->dtype = (uint8_t)onv_program_dtype(dtype->integer);
    if (value->dtype == ONV_UNDEFINED)
        onv_model_diag(r->model, ONV_WARNING, "program-dtype", value->name,
                       "the element type %" PRId64
                       " of PyTorch is not known: the tensor has no size",
                       dtype->integer);
    value->rank = (uint32_t)rank;
    const onv_doc *device = onv_program_optional(r, meta, "device", ONV_DOC_OBJECT);
    const onv_doc *type = onv_doc_get(device, "type");
    value->on_host = onv_program_is_recorded(r->program) && onv_doc_is(type, ONV_DOC_STRING) &&
                     strcmp(type->text, "cpu") == 0;
    value->requires_grad = grad != NULL && grad->flag;
    const onv_doc *offset = onv_doc_get(meta, "storage_offset");
    if (offset != NULL && !onv_doc_is(offset, ONV_DOC_NULL))
        value->offset = onv_program_size(r, "storage_offset", offset);
    value->dims = read_sizes(r, sizes, "sizes");
    bool is_sized = is_size(value->offset);
    for (size_t i = 0; i < rank; i++) is_sized &= is_size(value->dims[i]);
    if (!is_sized)
        onv_program_leave(
            r, onv_fail(r->err, ONV_ERR_MODEL, "the tensor '%.100s' has no size", value->name));
    if (strides != NULL && onv_doc_count(strides) == rank)
        value->strides = read_sizes(r, strides, "strides");
}

uint32_t onv_program_add_value(onv_program_reader *r, const onv_doc *name,
                               onv_program_value_kind kind, uint32_t call)
{
    uint32_t id = (uint32_t)r->program->values.count;
    onv_program_value value = {.name = onv_program_name(r, "a tensor", name),
                               .kind = (uint8_t)kind,
                               .graph = r->graph,
                               .call = call,
                               .same_as = ONV_NO_PROGRAM_VALUE,
                               .storage = ONV_NO_STORAGE,
                               .freed_after = ONV_NO_CALL_INDEX};
    if (onv_ptr_map_get(&r->values, value.name, NULL))
        onv_program_leave(
            r, onv_fail(r->err, ONV_ERR_FORMAT, "the tensor '%.100s' is made twice", value.name));
    describe(r, &value);
    if (id >= r->limits->values)
        onv_program_leave(r, onv_fail(r->err, ONV_ERR_LIMIT,
                                      "the program has more than %" PRIu64
                                      " tensors" ONV_RAISE("values"),
                                      r->limits->values));
    onv_program_fit(r, onv_vec_push(&r->program->values, value) &&
                           onv_ptr_map_set(&r->values, value.name, id));
    return id;
}

/* --- Symbols ------------------------------------------------------------------------------------- */

static int64_t bound_of(const onv_doc *range, const char *key, int64_t fallback)
{
    const onv_doc *bound = onv_doc_get(range, key);
    return onv_doc_is(bound, ONV_DOC_INTEGER) ? bound->integer : fallback;
}

/* Every symbol of the pool, in its order: the expressions brought them. */
static void list_symbols(onv_program_reader *r, const onv_doc *ranges)
{
    const onv_dims *pool = &r->model->dims;
    for (uint32_t i = 0; i < pool->n_symbols; i++) {
        onv_program_symbol symbol = {.dim = onv_dim_symbol_at(pool, i),
                                     .high = INT64_MAX,
                                     .input = UINT32_MAX,
                                     .axis = UINT32_MAX};
        onv_program_work(r, 1);
        symbol.name = onv_dim_symbol_name(pool, symbol.dim);
        symbol.is_made = symbol.name[0] == 'u' && symbol.name[1] >= '0' && symbol.name[1] <= '9';
        onv_program_fit(r, onv_vec_push(&r->program->symbols, symbol));
    }
    for (uint32_t i = 0; i < onv_doc_count(ranges); i++) {
        const char *name = onv_interned(&r->model->strings, ranges->items[i].key);
        onv_dim d = name != NULL ? onv_dim_symbol_named(pool, name) : ONV_DIM_UNKNOWN;
        onv_program_work(r, 1);
        if (!onv_dim_is_known(d)) continue;
        onv_program_symbol *symbol = &r->program->symbols.at[onv_dim_symbol_index(pool, d)];
        symbol->low = bound_of(&ranges->items[i], "min_val", 0);
        symbol->high = bound_of(&ranges->items[i], "max_val", INT64_MAX);
    }
}

/* The first input that has each symbol as a dim. */
static void place_symbols(const onv_program_reader *r)
{
    const onv_dims *pool = &r->model->dims;
    const onv_program *p = r->program;
    const onv_program_graph *graph = &p->graphs.at[0];
    for (uint32_t i = 0; i < graph->n_inputs; i++) {
        const onv_program_value *value = &p->values.at[graph->inputs[i]];
        for (uint32_t k = 0; k < value->rank; k++) {
            if (!onv_dim_is_symbol(pool, value->dims[k])) continue;
            onv_program_symbol *symbol = &p->symbols.at[onv_dim_symbol_index(pool, value->dims[k])];
            if (symbol->input != UINT32_MAX) continue;
            symbol->input = i;
            symbol->axis = k;
        }
    }
}

/* --- Parameters that are one tensor ------------------------------------------------------------- */

/* An archive lists a tensor under each name that modules have for it, as if they were several, and its calls read the last one;
 * which file has the data of each says what is what. Two tensors of one storage have equal types there as well, but calls read
 * both. */

/* By value: whether a call reads it, or a graph returns it. */
static const bool *find_read(onv_program_reader *r)
{
    const onv_program *p = r->program;
    bool *is_read = onv_program_made(r, ONV_ARENA_ARRAY(&r->model->arena, bool, p->values.count));
    for (size_t i = 0; i < p->calls.count; i++) {
        onv_values_in given = onv_values_of(&p->calls.at[i]);
        for (uint32_t value; onv_next_value(&given, &value);) is_read[value] = true;
    }
    for (size_t i = 0; i < p->values.count; i++) is_read[i] |= p->values.at[i].is_output;
    return is_read;
}

static bool is_alike(const onv_program_value *a, const onv_program_value *b)
{
    if (a->dtype != b->dtype || a->rank != b->rank || a->offset.raw != b->offset.raw) return false;
    return a->rank == 0 || memcmp(a->dims, b->dims, a->rank * sizeof *a->dims) == 0;
}

/* The file of a parameter's data, as an interned text; NULL: none is told. */
static const char *data_of(onv_program_reader *r, const onv_doc *config, const onv_program_value *v)
{
    uint32_t at;
    if (v->kind != ONV_PROGRAM_PARAMETER || !onv_ptr_map_get(&r->files, v->fqn, &at)) return NULL;
    const onv_doc *file = &config->items[at];
    if (!onv_doc_is(file, ONV_DOC_OBJECT)) onv_program_unexpected(r, v->fqn, "an object", file);
    return onv_program_name(r, "path_name",
                            onv_program_member(r, file, "path_name", ONV_DOC_STRING));
}

/* Parameters that calls read come first, so that those that no call reads are names of them. */
static void find_same(onv_program_reader *r, const onv_doc *config, const bool *is_read)
{
    uint32_t n = (uint32_t)r->program->values.count;
    onv_program_map_members(r, config, &r->files);
    for (uint32_t k = 0; k < 2 * n; k++) {
        onv_program_value *v = &r->program->values.at[k % n];
        uint32_t owner;
        onv_program_work(r, 1);
        if (is_read[k % n] != (k < n)) continue;
        const char *data = data_of(r, config, v);
        if (data == NULL) continue;
        bool is_known = onv_ptr_map_get(&r->owners, data, &owner);
        if (is_known && k >= n && is_alike(v, &r->program->values.at[owner]))
            v->same_as = owner;
        else if (!is_known)
            onv_program_fit(r, onv_ptr_map_set(&r->owners, data, k % n));
    }
}

static void share(onv_program_reader *r, const onv_doc *root)
{
    const onv_doc *weights = onv_program_optional(r, root, ONV_PROGRAM_WEIGHTS, ONV_DOC_OBJECT);
    if (weights == NULL) return;
    const onv_doc *config = onv_program_member(r, weights, "config", ONV_DOC_OBJECT);
    onv_program_work(r, 1 + r->program->calls.count);
    find_same(r, config, find_read(r));
    r->program->knows_shared = true;
}

/* --- Files --------------------------------------------------------------------------------------- */

static void check_schema(onv_program_reader *r, const onv_doc *root)
{
    const onv_doc *version = onv_doc_get(root, "schema_version");
    const onv_doc *major =
        onv_doc_is(version, ONV_DOC_OBJECT) ? onv_doc_get(version, "major") : version;
    if (!onv_doc_is(major, ONV_DOC_INTEGER))
        onv_program_leave(
            r, onv_fail(r->err, ONV_ERR_FORMAT,
                        "is JSON, but not a program of torch.export: it has no schema_version"));
    int64_t number = major->integer;
    if (number < FIRST_MAJOR || number > LAST_MAJOR)
        onv_program_leave(
            r, onv_fail(r->err, ONV_ERR_FORMAT,
                        "expected a program of schema %d to %d (PyTorch 2.4 to 2.15), found schema "
                        "%" PRId64 ": export with one of these releases",
                        FIRST_MAJOR, LAST_MAJOR, number));
}

/* The program of that mode, else the other one. */
static const onv_doc *choose(onv_program_reader *r, const onv_doc *root, onv_program_mode mode)
{
    static const char *const names[] = {"inference", "training"};
    const onv_doc *version = onv_program_member(r, root, "version", ONV_DOC_INTEGER);
    if (version->integer != RECORDING_VERSION)
        onv_program_leave(r, onv_fail(r->err, ONV_ERR_FORMAT,
                                      "expected a recording of version %d, found version %" PRId64
                                      ": record it with the onnxvram.record of this release",
                                      RECORDING_VERSION, version->integer));
    const onv_doc *programs = onv_program_member(r, root, "programs", ONV_DOC_OBJECT);
    for (int i = 0; i < 2; i++) {
        uint8_t at = (uint8_t)(mode ^ i);
        const onv_doc *program = onv_program_optional(r, programs, names[at], ONV_DOC_OBJECT);
        if (program == NULL) continue;
        r->program->is_training = at == ONV_PROGRAM_TRAINING;
        return program;
    }
    onv_program_leave(r, onv_fail(r->err, ONV_ERR_FORMAT, "the recording has no program"));
}

static void read_document(onv_program_reader *r, const onv_doc *root, onv_program_mode mode)
{
    const onv_doc *of = root, *lifetimes = NULL;
    const onv_doc *format = onv_doc_get(root, "format");
    if (onv_doc_is(format, ONV_DOC_STRING) && strcmp(format->text, "onnxvram.program") == 0) {
        r->program->source = ONV_PROGRAM_RECORDING;
        r->program->knows_shared = true;
        of = choose(r, root, mode);
        lifetimes = onv_program_optional(r, of, "lifetimes", ONV_DOC_OBJECT);
    } else {
        check_schema(r, root);
    }
    const onv_doc *version = onv_program_optional(r, root, "torch_version", ONV_DOC_STRING);
    r->program->torch_version =
        version != NULL ? onv_program_name(r, "torch_version", version) : "";
    const onv_doc *module = onv_program_member(r, of, "graph_module", ONV_DOC_OBJECT);
    const onv_doc *ranges = onv_program_optional(r, of, "range_constraints", ONV_DOC_OBJECT);
    onv_program_graphs(r, module, lifetimes);
    share(r, root);
    list_symbols(r, ranges);
    place_symbols(r);
}

static onv_status read_or_leave(onv_program_reader *r, const onv_doc *root, onv_program_mode mode)
{
    if (setjmp(r->wrong) != 0) return r->status;
    read_document(r, root, mode);
    return ONV_OK;
}

/* The arrays go to the arena, as all else of a program. */
#define KEEP(r, vec)                                                                               \
    do {                                                                                           \
        size_t kept = (vec)->count;                                                                \
        void *at = ONV_PROGRAM_TAKE(r, vec, 0);                                                    \
        onv_vec_cleanup(vec);                                                                      \
        (vec)->at = at;                                                                            \
        (vec)->count = (vec)->capacity = at != NULL ? kept : 0;                                    \
    } while (0)

static onv_status keep(onv_program_reader *r)
{
    onv_program *p = r->program;
    KEEP(r, &p->values);
    KEEP(r, &p->calls);
    KEEP(r, &p->graphs);
    KEEP(r, &p->modules);
    KEEP(r, &p->symbols);
    return r->model->arena.failed || r->model->dims.failed ? onv_fail_memory(r->err) : ONV_OK;
}

static void clean_up(onv_program_reader *r)
{
    onv_ptr_map_cleanup(&r->tensor_at);
    onv_ptr_map_cleanup(&r->size_at);
    onv_ptr_map_cleanup(&r->values);
    onv_ptr_map_cleanup(&r->calls);
    onv_ptr_map_cleanup(&r->dims);
    onv_ptr_map_cleanup(&r->stacks);
    onv_ptr_map_cleanup(&r->files);
    onv_ptr_map_cleanup(&r->owners);
    onv_vec_cleanup(&r->pending);
    onv_vec_cleanup(&r->dim_list);
    onv_vec_cleanup(&r->ids);
}

static onv_status read_root(const onv_doc *root, const char *path, const onv_limits *limits,
                            onv_program_mode mode, onv_model *model, const onv_program **program,
                            onv_error *err)
{
    onv_program_reader r = {.model = model, .limits = limits, .err = err};
    r.program = ONV_ARENA_ARRAY(&model->arena, onv_program, 1);
    if (r.program == NULL) return onv_fail_memory(err);
    r.program->path = path;
    onv_status status = read_or_leave(&r, root, mode);
    onv_status kept = keep(&r); /* also what is to be given back after a failure */
    clean_up(&r);
    ONV_TRY(status);
    ONV_TRY(kept);
    *program = r.program;
    return ONV_OK;
}

static onv_status read_source(onv_source *source, const char *path, const onv_limits *limits,
                              onv_program_mode mode, onv_model *model, const onv_program **program,
                              onv_error *err)
{
    const onv_limits resolved = onv_limits_resolve(limits);
    onv_program_text text;
    onv_document document = {0};
    onv_status status = onv_program_text_read(source, resolved.arena_bytes, &text, err);
    if (status == ONV_OK) status = onv_document_parse(&document, &text, err);
    if (status == ONV_OK)
        status = read_root(document.root, path, &resolved, mode, model, program, err);
    onv_program_text_cleanup(&text);
    onv_document_cleanup(&document);
    return status;
}

static onv_status open_source(const onv_program_file *file, onv_source_how how,
                              const onv_limits *limits, onv_source *source, onv_error *err)
{
    if (file->data == NULL)
        return onv_source_open(source, file->path, how, onv_limits_resolve(limits).file_bytes, err);
    if (file->bytes == 0) return onv_fail(err, ONV_ERR_FORMAT, "is empty");
    onv_source_memory(source, file->data, file->bytes);
    return ONV_OK;
}

onv_status onv_program_is(const onv_program_file *file, const onv_limits *limits, bool *is_program,
                          onv_error *err)
{
    onv_source source = {.fd = -1};
    const unsigned char *head;
    *is_program = false;
    if (open_source(file, ONV_SOURCE_WINDOWS, limits, &source, NULL) != ONV_OK) return ONV_OK;
    size_t bytes = source.bytes < ONV_SOURCE_HEAD ? (size_t)source.bytes : ONV_SOURCE_HEAD;
    onv_status status = onv_source_view(&source, 0, bytes, &head, err);
    if (status == ONV_OK) *is_program = onv_program_begins(head, bytes);
    onv_source_close(&source);
    return status;
}

static onv_status load(const onv_program_file *file, const onv_limits *limits,
                       onv_program_mode mode, onv_model *model, onv_error *err)
{
    const char *path = file->path != NULL ? file->path : "";
    const onv_program *program;
    onv_source source;
    model->path = onv_arena_strndup(&model->arena, path, strlen(path));
    if (model->path == NULL) return onv_fail_memory(err);
    ONV_TRY(open_source(file, ONV_SOURCE_BEST, limits, &source, err));
    model->most_output = onv_limits_output(limits, source.bytes);
    onv_status status = read_source(&source, model->path, limits, mode, model, &program, err);
    onv_source_close(&source);
    ONV_TRY(status);
    return onv_program_view(program, model, err);
}

onv_status onv_program_load(const onv_program_file *file, const onv_limits *limits,
                            onv_program_mode mode, onv_model *model, onv_error *err)
{
    onv_limits resolved = onv_limits_resolve(limits);
    onv_model_init(model, (size_t)resolved.arena_bytes);
    model->dims.max_tree = resolved.expression;
    onv_status status = load(file, limits, mode, model, err);
    if (status == ONV_ERR_MEMORY) status = onv_limits_refused(&model->arena, err);
    if (status != ONV_OK) onv_model_cleanup(model);
    return status;
}
