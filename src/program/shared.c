/* Parameters that are one tensor. An archive lists a tensor under each name that modules have for it, as if they were several, and
 * its calls read the last one; which file has the data of each says what is what. Two tensors of one storage have equal types
 * there as well, but calls read both. */
#include <string.h>

#include "base/fail.h"
#include "base/quota.h"
#include "program/reader.h"

/* By value: whether a call reads it, or a graph returns it. NULL without memory. */
static bool *find_read(const onv_program_reader *r)
{
    const onv_program *p = r->program;
    bool *is_read = ONV_ARENA_ARRAY(&r->model->arena, bool, p->values.count);
    if (is_read == NULL) return NULL;
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
static onv_status data_of(onv_program_reader *r, const onv_doc *config, const onv_ptr_map *places,
                          const onv_program_value *v, const char **data)
{
    const onv_doc *path;
    uint32_t at;
    *data = NULL;
    if (v->kind != ONV_PROGRAM_PARAMETER || !onv_ptr_map_get(places, v->fqn, &at)) return ONV_OK;
    if (!onv_doc_is(&config->items[at], ONV_DOC_OBJECT))
        return onv_program_unexpected(r, v->fqn, "an object", &config->items[at]);
    ONV_TRY(onv_program_member(r, &config->items[at], "path_name", ONV_DOC_STRING, &path));
    return onv_program_name(r, "path_name", path, data);
}

/* Parameters that calls read come first, so that those that no call reads are names of them. */
static onv_status find_same(onv_program_reader *r, const onv_doc *config, const bool *is_read,
                            onv_ptr_map *places, onv_ptr_map *owners)
{
    uint32_t n = (uint32_t)r->program->values.count;
    ONV_TRY(onv_program_map_members(r, config, places));
    for (uint32_t k = 0; k < 2 * n; k++) {
        onv_program_value *v = &r->program->values.at[k % n];
        uint32_t owner;
        const char *data;
        ONV_WORK(1);
        if (is_read[k % n] != (k < n)) continue;
        ONV_TRY(data_of(r, config, places, v, &data));
        if (data == NULL) continue;
        bool is_known = onv_ptr_map_get(owners, data, &owner);
        if (is_known && k >= n && is_alike(v, &r->program->values.at[owner]))
            v->same_as = owner;
        else if (!is_known && !onv_ptr_map_set(owners, data, k % n))
            return onv_fail_memory(r->err);
    }
    return ONV_OK;
}

onv_status onv_program_share(onv_program_reader *r, const onv_doc *root)
{
    const onv_doc *weights, *config;
    onv_ptr_map places = {0}, owners = {0};
    ONV_TRY(onv_program_optional(r, root, ONV_PROGRAM_WEIGHTS, ONV_DOC_OBJECT, &weights));
    if (weights == NULL) return ONV_OK;
    ONV_TRY(onv_program_member(r, weights, "config", ONV_DOC_OBJECT, &config));
    ONV_WORK(1 + r->program->calls.count);
    const bool *is_read = find_read(r);
    if (is_read == NULL) return onv_fail_memory(r->err);
    onv_status status = find_same(r, config, is_read, &places, &owners);
    onv_ptr_map_cleanup(&places);
    onv_ptr_map_cleanup(&owners);
    r->program->knows_shared = true;
    return status;
}
