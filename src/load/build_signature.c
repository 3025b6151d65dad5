/* The parameters of the network that was exported: PyTorch's exporter lists them in a note of the graph, those
 * too that no node reads, one line each:
 *
 *     p_layer1_weight: PARAMETER target='layer1.weight'
 *
 * The notes of calls name them so: "args = (%x, %p_layer1_weight)". */
#include <string.h>

#include "base/fail.h"
#include "load/build.h"
#include "load/fields.h"

static const char mark[] = ": PARAMETER target='";

/* What the network has beside: registered buffers, and tensors that it merely has an attribute for. */
static const char *const other_marks[] = {": BUFFER target='", ": CONSTANT_TENSOR target='"};

/* Buffers that the pass writes, by results of the export: running statistics. */
static const char *const update_marks[] = {": BUFFER_MUTATION target='"};

static const char words[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";

/* The next name, NULL: there is none; and where ends what calls name it. */
static const char *next_name(const char **at, size_t *length, const char **called)
{
    const char *name = strstr(*at, mark);
    if (name == NULL) return NULL;
    *called = name;
    name += sizeof mark - 1;
    *length = strcspn(name, "'\n");
    *at = name + *length;
    return name;
}

static onv_status list_names(onv_builder *b, const char *text)
{
    onv_model *model = b->model;
    const char *at, *name, *end;
    size_t length, n = 0, n_names = 0;
    for (at = text; next_name(&at, &length, &end) != NULL;) n++;
    const char **names = ONV_ARENA_ARRAY(&model->arena, const char *, n);
    if (names == NULL) return onv_fail_memory(b->err);
    for (at = text; (name = next_name(&at, &length, &end)) != NULL;) {
        const char *interned = onv_intern_n(&model->strings, name, length);
        if (interned == NULL) return onv_fail_memory(b->err);
        const char *begin = end;
        while (begin > text && strchr(words, begin[-1]) != NULL) begin--;
        const char *called = onv_intern_n(&model->strings, begin, (size_t)(end - begin));
        if (called == NULL || !onv_ptr_map_set(&b->signature, called, (uint32_t)n_names))
            return onv_fail_memory(b->err);
        names[n_names++] = interned;
    }
    model->parameters = names;
    model->n_parameters = n_names;
    return ONV_OK;
}

static onv_status list_marked(onv_builder *b, const char *text, const char *const *marks,
                              size_t n_marks, const char *const **to, size_t *n_to)
{
    onv_model *model = b->model;
    size_t n = 0;
    for (size_t k = 0; k < n_marks; k++)
        for (const char *at = text; (at = strstr(at, marks[k])) != NULL; at++) n++;
    const char **names = ONV_ARENA_ARRAY(&model->arena, const char *, n);
    if (names == NULL) return onv_fail_memory(b->err);
    n = 0;
    for (size_t k = 0; k < n_marks; k++)
        for (const char *at = text; (at = strstr(at, marks[k])) != NULL;) {
            at += strlen(marks[k]);
            const char *name = onv_intern_n(&model->strings, at, strcspn(at, "'\n"));
            if (name == NULL) return onv_fail_memory(b->err);
            names[n++] = name;
        }
    *to = names;
    *n_to = n;
    return ONV_OK;
}

static onv_status list_others(onv_builder *b, const char *text)
{
    onv_model *model = b->model;
    ONV_TRY(list_marked(b, text, other_marks, sizeof other_marks / sizeof other_marks[0],
                        &model->buffers, &model->n_buffers));
    for (const char *at = text; (at = strstr(at, other_marks[0])) != NULL; at++)
        model->n_registered++;
    return list_marked(b, text, update_marks, 1, &model->updated, &model->n_updated);
}

onv_status onv_build_signature(onv_builder *b, const onv_scan_graph *record)
{
    ONV_EACH_RECORD(note, b->scan->notes, record->notes)
    {
        b->notes.count = 0;
        if (!onv_vec_reserve(&b->notes, (size_t)note->bytes + 1)) return onv_fail_memory(b->err);
        const unsigned char *text;
        ONV_TRY(onv_source_view(b->scan->source, note->offset, note->bytes, &text, b->err));
        memcpy(b->notes.at, text, note->bytes);
        b->notes.at[note->bytes] = '\0';
        ONV_TRY(list_names(b, b->notes.at));
        ONV_TRY(list_others(b, b->notes.at));
    }
    return ONV_OK;
}

/* The next argument that may be a parameter, up to the keyword arguments. */
static const char *next_argument(const char **at, const char *end, size_t *length)
{
    const char *found = strstr(*at, ONV_NOTE_PARAMETER);
    if (found == NULL || (end != NULL && found > end)) return NULL;
    *length = strspn(++found, words);
    *at = found + *length;
    return found;
}

onv_status onv_build_parameters(onv_builder *b, const char *args, onv_node *node)
{
    enum { MAX_PARAMETERS = 64 };
    const char *names[MAX_PARAMETERS], *at = args, *name, *end = strstr(args, "kwargs");
    uint32_t n = 0, place;
    size_t length;
    if (b->model->n_parameters == 0) return ONV_OK;
    while (n < MAX_PARAMETERS && (name = next_argument(&at, end, &length)) != NULL) {
        const char *called = onv_intern_n(&b->model->strings, name, length);
        if (called == NULL) return onv_fail_memory(b->err);
        if (onv_ptr_map_get(&b->signature, called, &place))
            names[n++] = b->model->parameters[place];
    }
    const char *buffer = strstr(args, ONV_NOTE_BUFFER);
    node->takes_buffer = n == 0 && buffer != NULL && (end == NULL || buffer < end);
    if (n == 0) return ONV_OK;
    node->parameters = onv_arena_copy(&b->model->arena, names, n * sizeof *names);
    node->n_parameters = n;
    return node->parameters != NULL ? ONV_OK : onv_fail_memory(b->err);
}
