/* What is said of weights: constants whose role stays unsure. */
#include <string.h>

#include "lower/lowering.h"

/* How many constants of unsure role are reported one by one. */
enum { MAX_REPORTS = 12 };

static void report(const onv_emitter *e, const onv_value *value, const onv_weight_verdict *v)
{
    const onv_node *node = v->read != NULL ? &e->model->nodes.at[v->read->node] : NULL;
    bool trained = v->use == ONV_WEIGHT_TRAINED || v->use == ONV_WEIGHT_EXPANDED;
    const char *class = node != NULL ? onv_noted(node)->module_class : "";
    const char *note =
        onv_is_call_of(value->name, "embedding") || onv_weight_is_for_all(value, v->read)
            ? e->options->parameters > 0
                  ? ""
                  : "; rows of a table that are never looked up are not in the file, nor counted: "
                    "--missing-parameters N counts them, where N is the sum of p.numel() for p in "
                    "model.parameters()"
            : "";
    onv_model_diag(e->model, trained ? ONV_WARNING : ONV_NOTE,
                   trained ? "assumed-parameter" : "assumed-constant",
                   node != NULL ? node->name : NULL,
                   "'%s', %llu bytes, was computed by the export; module '%s'%s%s%s reads it: "
                   "counted as %s%s",
                   value->name, (unsigned long long)value->tensor->bytes,
                   v->read != NULL ? v->read->scope : "", class[0] != '\0' ? " (" : "", class,
                   class[0] != '\0' ? ")" : "",
                   trained                     ? "a trained parameter"
                   : v->use == ONV_WEIGHT_MADE ? "made in each forward pass, without gradient"
                                               : "a constant without gradient",
                   note);
}

/* Beside initializers, Constant nodes count as numbers in the code: unless they are few, that is said. */
static void report_constants(onv_lowering *l)
{
    enum { WORTH_A_NOTE = 100 }; /* one in so many elements */
    uint64_t elems = 0, trained = 0;
    for (uint32_t i = 0; i < l->emit.model->values.count && !l->emit.model->trains_constants; i++) {
        const onv_value *value = &l->emit.model->values.at[i];
        if (!onv_value_is_held(value) || value->tensor->elems < 2) continue;
        if (!onv_dtype_is_float((onv_dtype)value->tensor->type.dtype)) continue;
        if (value->kind == ONV_VALUE_INITIALIZER) trained += value->tensor->elems;
        if (value->kind != ONV_VALUE_CONSTANT) continue;
        onv_say(&l->emit, ONV_SAID_constants, NULL, value->tensor->bytes, NULL);
        elems += value->tensor->elems; /* liveness has checked the sum of all weights */
    }
    if (elems <= trained / WORTH_A_NOTE) l->emit.said[ONV_SAID_constants].of.count = 0;
}

void onv_weights_report(onv_lowering *l)
{
    report_constants(l);
    uint64_t left = 0, left_bytes = 0, n = 0;
    for (uint32_t i = 0; i < l->emit.model->values.count && l->weights.has_notes; i++) {
        const onv_value *value = &l->emit.model->values.at[i];
        if (value->kind != ONV_VALUE_INITIALIZER || value->role != ONV_ROLE_NOT_NOTED) continue;
        if (value->tensor == NULL || value->tensor->elems < 2 || l->weights.values[i].is_statistic)
            continue;
        if (!onv_dtype_is_float((onv_dtype)value->tensor->type.dtype)) continue;
        onv_weight_verdict v = onv_weight_judge(l, i);
        if (v.is_sure) continue;
        if (n++ < MAX_REPORTS) {
            report(&l->emit, value, &v);
        } else {
            left++;
            left_bytes += value->tensor->bytes;
        }
    }
    if (left > 0)
        onv_model_diag(l->emit.model, ONV_NOTE, "assumed-constant", NULL,
                       "%llu more constants of unsure role, %llu bytes", (unsigned long long)left,
                       (unsigned long long)left_bytes);
}
