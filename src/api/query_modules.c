/* The table of modules, which is made for who asks. */
#include "api/analysis.h"
#include "api/sized.h"
#include "base/fail.h"
#include "load/limits.h"
#include "report/modules.h"

struct onv_module_table {
    onv_arena arena;
    onv_modules modules;
};

static bool make(onv_module_table *made, const onv_analysis *analysis, unsigned depth)
{
    const onv_report_options options = onv_report_options_default();
    onv_page page = onv_page_make(NULL, &made->arena, &options);
    onv_arena_init(&made->arena, SIZE_MAX);
    return onv_modules_init(&made->modules, analysis, &page, depth) && !made->arena.failed;
}

onv_status onv_module_table_new(const onv_analysis *analysis, unsigned depth,
                                onv_module_table **table, onv_error *error)
{
    if (error != NULL) *error = (onv_error){0};
    onv_watch watch = analysis->making->watch;
    onv_watch_resume(&watch);
    *table = onv_heap_calloc(1, sizeof **table);
    if (*table != NULL && !make(*table, analysis, depth)) {
        onv_module_table_destroy(*table);
        *table = NULL;
    }
    onv_status status = *table != NULL ? ONV_OK : onv_fail_memory(error);
    status = onv_watch_leave(&watch, status, error);
    if (status == ONV_OK) return ONV_OK;
    onv_module_table_destroy(*table);
    *table = NULL;
    return status;
}

void onv_module_table_destroy(onv_module_table *table)
{
    if (table == NULL) return;
    onv_modules_cleanup(&table->modules);
    onv_arena_cleanup(&table->arena);
    onv_heap_free(table);
}

bool onv_module_table_get(const onv_module_table *table, size_t index, onv_module_info *info,
                          size_t size)
{
    if (index >= table->modules.list.count) return false;
    const onv_module *m = &table->modules.list.at[index];
    onv_module_info full = {.name = m->name,
                            .parent = index > 0 ? m->parent : ONV_NO_INDEX,
                            .depth = m->depth,
                            .parameters = m->params,
                            .macs = m->macs_known ? m->macs : ONV_SIZE_UNKNOWN,
                            .activation_bytes = m->activation.fixed,
                            .own_steps = m->own_steps};
    return onv_give(info, size, &full, sizeof full);
}
