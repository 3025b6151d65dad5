/* The modules around a call, as nn_module_stack has them, outer first:
 * "L__self__,,__main__.Net;L__self__conv@1,conv,torch.nn.modules.conv.Conv2d". */
#include <string.h>

#include "base/fail.h"
#include "program/reader.h"

/* torch.export's word for a call outside of all modules. */
static const char no_stack[] = "_empty_nn_module_stack_from_metadata_hook";

/* One entry, "key,path,class": keys may have commas, paths and classes have none. */
typedef struct entry {
    const char *key, *path, *class_name;
    size_t key_length, path_length, class_length;
} entry;

static const char *comma_before(const char *from, const char *end)
{
    while (end > from && end[-1] != ',') end--;
    return end > from ? end - 1 : NULL;
}

static bool read_entry(const char *from, const char *end, entry *e)
{
    const char *second = comma_before(from, end);
    const char *first = second != NULL ? comma_before(from, second) : NULL;
    if (first == NULL) return false;
    *e = (entry){from,
                 first + 1,
                 second + 1,
                 (size_t)(first - from),
                 (size_t)(second - first - 1),
                 (size_t)(end - second - 1)};
    return e->key_length != sizeof no_stack - 1 || memcmp(from, no_stack, e->key_length) != 0;
}

/* The module of that key inside `parent`: found by a text that names both. */
static onv_status find_module(onv_program_reader *r, const entry *e, uint32_t parent,
                              uint32_t *module)
{
    onv_strings *strings = &r->model->strings;
    char *both = onv_arena_printf(&r->model->arena, "%x %.*s", parent, (int)e->key_length, e->key);
    const char *name = both != NULL ? onv_intern(strings, both) : NULL;
    if (name == NULL) return onv_fail_memory(r->err);
    if (onv_ptr_map_get(&r->stacks, name, module)) return ONV_OK;
    onv_program_module made = {
        .path = onv_intern_n(strings, e->path, e->path_length),
        .class_name = onv_intern_n(strings, e->class_name, e->class_length),
        .key = onv_intern_n(strings, e->key, e->key_length),
        .parent = parent,
    };
    *module = (uint32_t)r->program->modules.count;
    if (made.path == NULL || made.class_name == NULL || made.key == NULL ||
        !onv_vec_push(&r->program->modules, made) || !onv_ptr_map_set(&r->stacks, name, *module))
        return onv_fail_memory(r->err);
    return ONV_OK;
}

onv_status onv_program_module_of(onv_program_reader *r, const char *stack, uint32_t *module)
{
    *module = UINT32_MAX;
    const char *known = onv_intern(&r->model->strings, stack);
    if (known == NULL) return onv_fail_memory(r->err);
    if (onv_ptr_map_get(&r->stacks, known, module)) return ONV_OK;
    for (const char *at = known; *at != '\0';) {
        const char *end = strchr(at, ';');
        entry e;
        if (end == NULL) end = at + strlen(at);
        if (read_entry(at, end, &e)) ONV_TRY(find_module(r, &e, *module, module));
        at = *end == ';' ? end + 1 : end;
    }
    return onv_ptr_map_set(&r->stacks, known, *module) ? ONV_OK : onv_fail_memory(r->err);
}
