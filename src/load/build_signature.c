/* The parameters of the network that was exported: PyTorch's exporter lists them in a note of the graph, those
 * too that no node reads, one line each:
 *
 *     p_layer1_weight: PARAMETER target='layer1.weight' */
#include <string.h>

#include "load/build.h"

static const char mark[] = ": PARAMETER target='";

/* The next name, NULL: there is none. */
static const char *next_name(const char **at, size_t *length)
{
    const char *name = strstr(*at, mark);
    if (name == NULL) return NULL;
    name += sizeof mark - 1;
    *length = strcspn(name, "'\n");
    *at = name + *length;
    return name;
}

static onv_status list_names(onv_builder *b, const char *text)
{
    onv_model *model = b->model;
    const char *at, *name;
    size_t length, n = 0, n_names = 0;
    for (at = text; next_name(&at, &length) != NULL;) n++;
    const char **names = ONV_ARENA_ARRAY(&model->arena, const char *, n);
    if (names == NULL) return onv_fail_memory(b->err);
    for (at = text; (name = next_name(&at, &length)) != NULL;) {
        const char *interned = onv_intern_n(&model->strings, name, length);
        if (interned == NULL) return onv_fail_memory(b->err);
        names[n_names++] = interned;
    }
    model->parameters = names;
    model->n_parameters = n_names;
    return ONV_OK;
}

onv_status onv_build_signature(onv_builder *b, const onv_scan_graph *record)
{
    ONV_EACH_RECORD(note, b->scan->notes, record->notes)
    {
        b->notes.count = 0;
        if (!onv_vec_reserve(&b->notes, (size_t)note->bytes + 1)) return onv_fail_memory(b->err);
        memcpy(b->notes.at, note->text, note->bytes);
        b->notes.at[note->bytes] = '\0';
        ONV_TRY(list_names(b, b->notes.at));
    }
    return ONV_OK;
}
