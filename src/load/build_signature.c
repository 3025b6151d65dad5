/* The parameters of the network that was exported: PyTorch's exporter lists them in a note of the graph, those
 * too that no node reads, one line each:
 *
 *     p_layer1_weight: PARAMETER target='layer1.weight'
 *
 * The notes of calls name them so: "args = (%x, %p_layer1_weight)". */
#include <string.h>

#include "base/fail.h"
#include "load/notes.h"

/* In the order in which their names are kept. */
typedef enum kind { PARAMETER, BUFFER, ATTRIBUTE, UPDATED, N_KINDS } kind;

/* One line of the list. */
typedef struct entry {
    kind kind;
    onv_text called, name;
} entry;

static bool next_entry(onv_text *rest, entry *e)
{
    static const char *const kinds[N_KINDS] = {
        "PARAMETER target='", "BUFFER target='", /* that is registered */
        "CONSTANT_TENSOR target='",              /* that the network merely has an attribute for */
        "BUFFER_MUTATION target='", /* that the pass writes, by a result of the export */
    };
    for (onv_text line; onv_next_part(rest, '\n', &line);) {
        onv_text is = onv_text_behind(line, ": ");
        for (kind k = 0; k < N_KINDS; k++) {
            if (!onv_text_begins(is, kinds[k])) continue;
            onv_text before = {line.at, (size_t)(is.at - line.at) - strlen(": ")};
            *e = (entry){k, onv_text_last_word(before),
                         onv_text_until(onv_text_skip(is, strlen(kinds[k])), "'")};
            return true;
        }
    }
    return false;
}

onv_status onv_build_signature(onv_builder *b, const onv_scan_graph *record)
{
    onv_model *model = b->model;
    onv_text text;
    entry e;
    size_t ends[N_KINDS + 1] = {0}, at[N_KINDS] = {0};
    ONV_TRY(onv_build_note(b, record->notes, ONV_NOTED_SIGNATURE, &text));
    for (onv_text rest = text; next_entry(&rest, &e);) ends[e.kind + 1]++;
    for (kind k = 0; k < N_KINDS; k++) ends[k + 1] += at[k] = ends[k];
    const char **names = ONV_ARENA_ARRAY(&model->arena, const char *, ends[N_KINDS]), *called;
    if (names == NULL) return onv_fail_memory(b->err);
    for (onv_text rest = text; next_entry(&rest, &e);) {
        ONV_TRY(onv_build_text(b, e.name, &names[at[e.kind]++]));
        if (e.kind != PARAMETER) continue;
        ONV_TRY(onv_build_text(b, e.called, &called));
        if (!onv_ptr_map_set(&b->signature, called, (uint32_t)at[PARAMETER] - 1))
            return onv_fail_memory(b->err);
    }
    model->listed = (onv_listed){
        .parameters = names,
        .n_parameters = ends[BUFFER],
        .buffers = names + ends[BUFFER],
        .n_buffers = ends[UPDATED] - ends[BUFFER],
        .n_registered = ends[ATTRIBUTE] - ends[BUFFER],
        .updated = names + ends[UPDATED],
        .n_updated = ends[N_KINDS] - ends[UPDATED],
    };
    return ONV_OK;
}

onv_status onv_build_parameters(onv_builder *b, const onv_noted_call *call, onv_notes *notes)
{
    enum { MAX_PARAMETERS = 64 };
    const char *names[MAX_PARAMETERS], *called;
    uint32_t n = 0, place;
    if (b->model->listed.n_parameters == 0) return ONV_OK;
    for (uint32_t i = 0; i < call->n_plain && n < MAX_PARAMETERS; i++) {
        notes->takes_buffer |= onv_text_begins(call->tensors[i], "b_");
        if (!onv_text_begins(call->tensors[i], "p_")) continue;
        ONV_TRY(onv_build_text(b, call->tensors[i], &called));
        if (!onv_ptr_map_get(&b->signature, called, &place)) continue;
        const char *name = onv_listed_parameter(&b->model->listed, place);
        if (name != NULL) names[n++] = name;
    }
    if (n == 0) return ONV_OK;
    notes->takes_buffer = false;
    notes->parameters = onv_arena_copy(&b->model->arena, names, n * sizeof *names);
    notes->n_parameters = n;
    return notes->parameters != NULL ? ONV_OK : onv_fail_memory(b->err);
}
