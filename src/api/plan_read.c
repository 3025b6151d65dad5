#include "api/plan_read.h"

#include <string.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/heap.h"
#include "program/document.h"

/* Beyond what any network needs. */
enum { MOST_BYTES = 4 << 20, MOST_COUNT = 1 << 20 };

typedef struct reader {
    onv_arena *arena;
    onv_error *err;
} reader;

static const char *kind_of(const onv_doc *value)
{
    static const char *const kinds[] = {
        [ONV_DOC_NULL] = "null",        [ONV_DOC_BOOL] = "true or false",
        [ONV_DOC_INTEGER] = "a number", [ONV_DOC_REAL] = "a number",
        [ONV_DOC_STRING] = "text",      [ONV_DOC_LIST] = "a list",
        [ONV_DOC_OBJECT] = "an object"};
    return value != NULL ? kinds[value->type] : "nothing";
}

static onv_status refuse(reader *r, const char *what, const char *expected, const onv_doc *found)
{
    return onv_fail(r->err, ONV_ERR_FORMAT, "%s: expected %s, found %s", what, expected,
                    kind_of(found));
}

static onv_status copy_text(reader *r, const char *what, const onv_doc *from, const char **text)
{
    if (!onv_doc_is(from, ONV_DOC_STRING)) return refuse(r, what, "text", from);
    *text = onv_arena_strndup(r->arena, from->text, from->count);
    return *text != NULL ? ONV_OK : onv_fail_memory(r->err);
}

/* A list of texts. */
static onv_status read_texts(reader *r, const char *what, const onv_doc *from,
                             const char *const **texts, size_t *n)
{
    size_t count = onv_doc_count(from);
    const char **to = ONV_ARENA_ARRAY(r->arena, const char *, count);
    if (!onv_doc_is(from, ONV_DOC_LIST)) return refuse(r, what, "a list", from);
    if (to == NULL) return onv_fail_memory(r->err);
    for (size_t i = 0; i < count; i++) ONV_TRY(copy_text(r, what, &from->items[i], &to[i]));
    *texts = to;
    *n = count;
    return ONV_OK;
}

/* A list of pairs of texts. */
static onv_status read_pairs(reader *r, const onv_doc *from, onv_plan_text *plan)
{
    size_t count = onv_doc_count(from);
    const char *(*to)[2] = onv_arena_calloc(r->arena, count, sizeof *to, _Alignof(const char *));
    if (!onv_doc_is(from, ONV_DOC_LIST)) return refuse(r, "segments", "a list", from);
    if (to == NULL) return onv_fail_memory(r->err);
    for (size_t i = 0; i < count; i++) {
        const onv_doc *pair = &from->items[i];
        if (!onv_doc_is(pair, ONV_DOC_LIST) || pair->count != 2)
            return refuse(r, "segments", "lists of where they begin and end", pair);
        for (int k = 0; k < 2; k++) ONV_TRY(copy_text(r, "segments", &pair->items[k], &to[i][k]));
    }
    plan->segments = (const char *const(*)[2])to;
    plan->n_segments = count;
    return ONV_OK;
}

static onv_status read_form(reader *r, const onv_doc *apply, onv_plan_text *plan)
{
    const onv_doc *form = onv_doc_get(apply, "form");
    int k = 0;
    if (!onv_doc_is(form, ONV_DOC_STRING)) return refuse(r, "apply.form", "text", form);
    while (k < ONV_N_PLAN_FORMS && strcmp(onv_plan_form_names[k], form->text) != 0) k++;
    if (k == ONV_N_PLAN_FORMS)
        return onv_fail(r->err, ONV_ERR_FORMAT,
                        "apply.form: expected one of none, modules, sequential, save_on_cpu, "
                        "compile, operations, found '%.40s'",
                        form->text);
    plan->form = (onv_plan_form)k;
    return ONV_OK;
}

/* Which checkpoint modules are under: without `use_reentrant`, unless something else is said. */
static onv_status read_checkpoint(reader *r, const onv_doc *apply, onv_plan_text *plan)
{
    const onv_doc *save = onv_doc_get(apply, "save"), *how = onv_doc_get(apply, "checkpoint");
    if (save != NULL) ONV_TRY(copy_text(r, "apply.save", save, &plan->save));
    if (how == NULL) return ONV_OK;
    plan->is_reentrant = onv_doc_is(how, ONV_DOC_STRING) && strcmp(how->text, "reentrant") == 0;
    if (plan->is_reentrant && save == NULL) return ONV_OK;
    return refuse(r, "apply.checkpoint", "\"reentrant\", without apply.save", how);
}

static onv_status read_apply(reader *r, const onv_doc *apply, onv_plan_text *plan)
{
    const onv_doc *count = onv_doc_get(apply, "count"),
                  *budget = onv_doc_get(apply, "memory_budget"),
                  *until = onv_doc_get(apply, "offload");
    ONV_TRY(read_form(r, apply, plan));
    switch (plan->form) {
    case ONV_PLAN_SEQUENTIAL:
        if (!onv_doc_is(count, ONV_DOC_INTEGER) || count->integer < 1 ||
            count->integer > MOST_COUNT)
            return refuse(r, "apply.count", "a number from 1 to 1048576", count);
        plan->count = (uint32_t)count->integer;
        return ONV_OK;
    case ONV_PLAN_COMPILE:
        plan->memory_budget = onv_doc_is(budget, ONV_DOC_REAL)      ? budget->real
                              : onv_doc_is(budget, ONV_DOC_INTEGER) ? (double)budget->integer
                                                                    : -1;
        return plan->memory_budget >= 0 && plan->memory_budget <= 1
                   ? ONV_OK
                   : refuse(r, "apply.memory_budget", "a number from 0 to 1", budget);
    case ONV_PLAN_MODULES:
        ONV_TRY(read_texts(r, "apply.modules", onv_doc_get(apply, "modules"), &plan->modules,
                           &plan->n_modules));
        return read_checkpoint(r, apply, plan);
    case ONV_PLAN_OPERATIONS:
        ONV_TRY(read_pairs(r, onv_doc_get(apply, "segments"), plan));
        ONV_TRY(
            read_texts(r, "apply.keep", onv_doc_get(apply, "keep"), &plan->kept, &plan->n_kept));
        return until == NULL ? ONV_OK : copy_text(r, "apply.offload", until, &plan->until);
    default: return ONV_OK;
    }
}

static onv_status read_document(reader *r, const onv_doc *from, onv_plan_text *plan)
{
    const onv_doc *version = onv_doc_get(from, "plan_version");
    if (!onv_doc_is(version, ONV_DOC_INTEGER))
        return onv_fail(r->err, ONV_ERR_FORMAT, "is not a plan: expected plan_version, found %s",
                        kind_of(version));
    if (version->integer != 1)
        return onv_fail(r->err, ONV_ERR_FORMAT, "plan_version: expected 1, found %lld",
                        (long long)version->integer);
    ONV_TRY(copy_text(r, "name", onv_doc_get(from, "name"), &plan->name));
    return read_apply(r, onv_doc_get(from, "apply"), plan);
}

static onv_status read_text(reader *r, onv_file_bytes *bytes, onv_plan_text *plan)
{
    onv_document document;
    onv_program_text text = {onv_heap_copy(bytes->at, bytes->count), bytes->count};
    if (text.at == NULL) return onv_fail_memory(r->err);
    onv_status status = onv_document_parse(&document, &text, r->err);
    if (status == ONV_OK) status = read_document(r, document.root, plan);
    onv_document_cleanup(&document);
    return status;
}

onv_status onv_plan_read(const char *path, onv_arena *arena, onv_plan_text *plan, onv_error *err)
{
    onv_file_bytes bytes;
    onv_error local = {0};
    reader r = {arena, &local};
    *plan = (onv_plan_text){0};
    onv_status status = onv_file_read(path, MOST_BYTES, &bytes, err);
    if (status == ONV_OK) {
        status = read_text(&r, &bytes, plan);
        if (status != ONV_OK && status != ONV_ERR_CANCELLED)
            onv_fail(err, status, "%s: %s%s", path, local.message,
                     status == ONV_ERR_FORMAT ? "; --plan-out FILE.json writes a plan" : "");
    }
    onv_vec_cleanup(&bytes);
    return status;
}
