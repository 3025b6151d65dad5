/* The table of modules. */
#include <string.h>

#include "base/fail.h"
#include "report/format.h"
#include "report/modules.h"

/* The shape of what the module hands on: the output of its last node. */
static const char *output_shape(const onv_view *view, const onv_page *page,
                                const onv_module *module)
{
    const onv_node *node =
        onv_model_node(&view->model, view->live.timeline.steps.at[module->last_step].node);
    for (uint32_t i = 0; i < node->n_outputs; i++)
        if (onv_is_value(node->outputs[i]))
            return onv_view_shape(view, page->arena, node->outputs[i], page->mode);
    return "";
}

static const char *module_name(const onv_page *page, const onv_module *module)
{
    /* Indented below the model itself, which has no row of its own. */
    return onv_page_print(page, "%*s%s", (int)(module->depth - 1) * 2, "", module->name);
}

/* Where dims are free, what grows with them counts; "+24 B" is a module that has fixed sizes only. */
static const char *activation_text(const onv_page *page, const onv_module *module, bool in_units)
{
    if (in_units && module->activation.units > 0)
        return onv_page_label(page, onv_label_bytes(module->activation.units));
    return onv_page_print(page, "%s%s", in_units && module->activation.fixed > 0 ? "+" : "",
                          onv_label_bytes(module->activation.fixed).text);
}

static uint64_t counted(const onv_module *module, bool in_units)
{
    return in_units ? module->activation.units : module->activation.fixed;
}

/* Nothing to show is an empty cell: a table of modules has many. */
static void add_row(onv_table *table, const onv_page *page, const char *name, const char *shape,
                    const onv_module *module, const onv_module *whole)
{
    const char *empty = "";
    bool in_units = whole->activation.units > 0;
    onv_table_row(
        table, name, shape, module->params == 0 ? empty : onv_page_count(page, module->params),
        !module->macs_known ? "?"
        : module->macs == 0 ? empty
                            : onv_page_label(page, onv_label_scaled(module->macs)),
        activation_text(page, module, in_units),
        onv_page_label(page, onv_label_share(counted(module, in_units), counted(whole, in_units))));
}

/* What stands outside of every module: the model less its children. */
static onv_module outside(const onv_modules *modules)
{
    onv_module rest = modules->list.at[0];
    rest.macs_known = true;
    for (uint32_t c = rest.first_child; c != ONV_NO_MODULE; c = modules->list.at[c].next) {
        rest.params -= modules->list.at[c].params;
        rest.macs -= modules->list.at[c].macs;
        rest.activation.fixed -= modules->list.at[c].activation.fixed;
        rest.activation.units -= modules->list.at[c].activation.units;
    }
    return rest;
}

static void add_rows(onv_table *table, const onv_view *view, const onv_page *page,
                     const onv_modules *modules)
{
    const onv_module *list = modules->list.at;
    uint32_t at = list[0].first_child;
    while (at != ONV_NO_MODULE && at != 0) {
        add_row(table, page, module_name(page, &list[at]), output_shape(view, page, &list[at]),
                &list[at], list);
        if (list[at].first_child != ONV_NO_MODULE) {
            at = list[at].first_child;
            continue;
        }
        while (at != 0 && list[at].next == ONV_NO_MODULE) at = list[at].parent;
        if (at != 0) at = list[at].next;
    }
    if (list[0].own_steps > 0) {
        onv_module rest = outside(modules);
        add_row(table, page, "(outside of modules)", "", &rest, list);
    }
    if (modules->unused_params > 0) {
        onv_table_row(table, "(weights never used)", "",
                      onv_page_count(page, modules->unused_params), "", "", "");
    }
    onv_module total = list[0];
    total.params += modules->unused_params;
    add_row(table, page, "total", output_shape(view, page, &total), &total, list);
}

static void write_view(const onv_report_job *job)
{
    const onv_view *view = job->views[0];
    const onv_page *page = &job->page;
    onv_modules modules;
    bool is_made = onv_modules_init(&modules, view, page, job->options.layer_depth);
    onv_page_fitted(page, ONV_STYLE_TITLE, onv_view_path(view), page->width);
    onv_page_line(page);
    if (modules.footprint.measure == ONV_MEASURE_UNITS) {
        onv_write_text(page->out, "  activations for every ");
        onv_page_fitted(page, ONV_STYLE_PLAIN, modules.footprint.unit, page->width - 39);
        onv_write_text(page->out, "; + are fixed\n");
    } else if (modules.footprint.measure == ONV_MEASURE_AT_LEAST) {
        onv_write_text(page->out, "  activations as far as their sizes are known\n");
    }
    if (onv_view_trains(view))
        onv_write_format(page->out,
                         "  saved for backward with %s; the batch and the loss are outside\n",
                         view->training.optimizer->name);
    if (is_made && (!onv_view_trains(view) || onv_modules_take_saved(&modules, view))) {
        onv_table table =
            onv_table_of("12 module", "9 output", "> parameters", "> MACs",
                         onv_view_trains(view) ? "> saved" : "> activations", "> share");
        table.has_totals = true;
        add_rows(&table, view, page, &modules);
        onv_table_finish(&table, page);
    } else {
        job->arena->failed = true;
    }
    onv_modules_cleanup(&modules);
}

onv_status onv_format_layers_add(onv_report_job *job)
{
    if (onv_view_trains(job->views[0]) && job->views[0]->training.n_plans > 1)
        return onv_fail(job->err, ONV_ERR_USAGE,
                        "modules are shown with one checkpointing plan, not with %u: name one in "
                        "--checkpoint",
                        (unsigned)job->views[0]->training.n_plans);
    onv_write_between(job, "\n");
    write_view(job);
    return ONV_OK;
}
