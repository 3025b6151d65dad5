/* Parameters without a tensor in the file that no parameter is called like: what the forward pass never runs. Their
 * shapes are assumed as networks are usually built, and reported as assumed:
 *
 * - The next stage of a network is its last one, twice as wide, where the stages before differ by that alone, with
 *   as many blocks as its names tell (assumed_stages.c).
 * - Convolutions in a row go on as wide as they were: "features.24" after "features.21", and those in front of a batch
 *   norm that nothing runs, either.
 * - "conv_head" is 4 times as wide as what is before it where all stages have squeeze and excitation (EfficientNet), else
 *   1280 wide (its lite form, MobileNet).
 * - A batch norm is as wide as such a convolution before it.
 * - A classifier that is never asked has the 1000 classes of ImageNet. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/quota.h"
#include "lower/assumed.h"

enum { MAX_NAME = 512, WIDE_HEAD = 4, HEAD = 1280, CLASSES = 1000, WIDE_CLASSIFIER = 4096 };

static int by_text(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

bool onv_assume(onv_assumed *a, size_t i, uint32_t rank, const int64_t *dims, onv_assumption why)
{
    onv_assumed_shape *shape = &a->at[i];
    int64_t *copy = ONV_ARENA_ARRAY(&a->l->emit.model->arena, int64_t, rank);
    if (copy == NULL) {
        a->l->emit.status = onv_fail_memory(a->l->emit.err);
        return false;
    }
    memcpy(copy, dims, rank * sizeof *dims);
    *shape = (onv_assumed_shape){.dims = copy, .rank = rank, .why = (uint8_t)why};
    return true;
}

/* What the file, and parameters of like names, tell of the listed ones. */
static bool read_known(onv_assumed *a)
{
    const onv_lowering *l = a->l;
    const onv_model *model = l->emit.model;
    for (size_t i = 0; i < l->signature.count; i++)
        a->at[i].why = l->signature.explained[i] ? ONV_BY_FILE : ONV_BY_NOTHING;
    for (size_t i = 0; i < l->emit.eager->storages.count; i++) {
        const onv_eager_storage *storage = &l->emit.eager->storages.at[i];
        if (storage->kind != ONV_STORAGE_PARAMETER || storage->label == NULL) continue;
        if (storage->elems == 0 || storage->dims == NULL) continue;
        size_t at = onv_listed_find(l, storage->label);
        if (at == SIZE_MAX || a->at[at].dims != NULL) continue;
        a->at[at].dims = storage->dims;
        a->at[at].rank = storage->rank;
        a->at[at].why = ONV_BY_FILE;
        if (a->element == 0) a->element = storage->bytes / storage->elems;
    }
    a->buffers = onv_arena_copy(&l->emit.model->arena, model->buffers,
                                model->n_buffers * sizeof *model->buffers);
    if (a->buffers == NULL && model->n_buffers > 0) return false;
    if (model->n_buffers > 0) qsort(a->buffers, model->n_buffers, sizeof *a->buffers, by_text);
    return true;
}

/* 0: the network's own. */
static size_t module_length(const char *parameter)
{
    const char *dot = strrchr(parameter, '.');
    return dot != NULL ? (size_t)(dot - parameter) : 0;
}

static const char *attribute_of(const char *parameter)
{
    const char *dot = strrchr(parameter, '.');
    return dot != NULL ? dot + 1 : parameter;
}

/* The module of that parameter has running statistics: it is a batch norm. */
bool onv_is_of_batch_norm(const onv_assumed *a, const char *parameter)
{
    char text[MAX_NAME];
    const char *name = text;
    size_t length = module_length(parameter), n = a->l->emit.model->n_buffers;
    if (n == 0 || length == 0) return false;
    int put = snprintf(text, sizeof text, "%.*s.running_mean", (int)length, parameter);
    return put < (int)sizeof text &&
           bsearch(&name, a->buffers, n, sizeof *a->buffers, by_text) != NULL;
}

static size_t find_beside(const onv_assumed *a, const char *parameter, const char *attribute)
{
    char text[MAX_NAME];
    int put =
        snprintf(text, sizeof text, "%.*s.%s", (int)module_length(parameter), parameter, attribute);
    return put < (int)sizeof text ? onv_listed_find(a->l, text) : SIZE_MAX;
}

/* "features." of "features.24.weight" and of "features.21.weight", whose modules are numbered in one row. */
static bool is_in_one_row(const char *name, const char *other)
{
    size_t ends[2] = {module_length(name), module_length(other)}, begins[2];
    const char *names[2] = {name, other};
    for (int k = 0; k < 2; k++) {
        size_t at = ends[k];
        while (at > 0 && isdigit((unsigned char)names[k][at - 1])) at--;
        if (at == ends[k] || at == 0 || names[k][at - 1] != '.') return false;
        begins[k] = at;
    }
    return begins[0] == begins[1] && memcmp(name, other, begins[0]) == 0;
}

/* Whether a module follows, in the order in which the network lists its parameters, that is a batch norm. */
static bool is_before_norm(const onv_assumed *a, size_t place)
{
    const onv_model *model = a->l->emit.model;
    const char *name = model->parameters[place];
    if (place + 1 >= model->n_parameters) return false;
    const char *next = model->parameters[place + 1];
    return find_beside(a, name, "bias") == SIZE_MAX && !onv_is_of_batch_norm(a, name) &&
           onv_is_of_batch_norm(a, next);
}

static bool ends_with(const char *name, size_t length, const char *end)
{
    size_t n = strlen(end);
    return length >= n && memcmp(name + length - n, end, n) == 0;
}

/* Layers of squeeze and excitation in the first stage of the network: ".0.0.se." or "._blocks.0._se_reduce". */
static bool has_excitation(const onv_assumed *a, const char *name, size_t length)
{
    static const char *const first[] = {"blocks.0.0.se.conv_reduce.weight",
                                        "_blocks.0._se_reduce.weight"};
    while (length > 0 && name[length - 1] != '.') length--;
    for (size_t i = 0; i < sizeof first / sizeof first[0]; i++) {
        char text[MAX_NAME];
        int put = snprintf(text, sizeof text, "%.*s%s", (int)length, name, first[i]);
        if (put < (int)sizeof text && onv_listed_find(a->l, text) != SIZE_MAX) return true;
    }
    return false;
}

typedef struct row {
    const char *name;    /* of the convolution before */
    const int64_t *dims; /* of it; NULL: it is not known, or none is before */
    int64_t width;       /* of what is before; 0: not known */
    onv_assumption why;  /* of the convolution before */
    bool has_convolutions;
} row;

/* A weight of four dims, or none: false. */
static bool assume_convolution(onv_assumed *a, size_t place, size_t i, const row *before)
{
    const char *name = a->l->emit.model->parameters[place];
    size_t length = module_length(name);
    if (before->dims == NULL) return false;
    const int64_t *dims = before->dims;
    bool is_head = ends_with(name, length, "conv_head");
    if (is_head && find_beside(a, name, "bias") == SIZE_MAX) {
        int64_t width = HEAD;
        if (has_excitation(a, name, length) && !onv_i64_mul(dims[0], WIDE_HEAD, &width))
            return false;
        if (width < HEAD) width = HEAD;
        return onv_assume(a, i, 4, (int64_t[]){width, dims[0], 1, 1}, ONV_BY_HEAD);
    }
    bool goes_on =
        is_in_one_row(name, before->name) || (!a->at[i].is_tried && is_before_norm(a, place));
    if (is_head || !goes_on || dims[0] != dims[1]) return false;
    return onv_assume(a, i, 4, dims, ONV_BY_ROW);
}

/* Three layers: VGG's and AlexNet's, which read maps of 7 and 6 by 6. */
static const struct {
    const char *layers[3];
    int64_t map;
} in_three[] = {
    {{"classifier.0", "classifier.3", "classifier.6"}, 49},
    {{"classifier.1", "classifier.4", "classifier.6"}, 36},
};

enum { N_IN_THREE = sizeof in_three / sizeof in_three[0] };

/* Which layer of such a classifier the module is; -1: none. */
static int number_in_three(const onv_assumed *a, const char *name, size_t length, size_t k)
{
    int found = -1;
    size_t n = strlen(in_three[k].layers[0]);
    for (int i = 0; i < 3 && length >= n; i++) {
        char text[MAX_NAME];
        if (ends_with(name, length, in_three[k].layers[i])) found = i;
        int put = snprintf(text, sizeof text, "%.*s%s.weight", (int)(length - n), name,
                           in_three[k].layers[i]);
        if (put >= (int)sizeof text || onv_listed_find(a->l, text) == SIZE_MAX) return -1;
    }
    return found;
}

static bool is_classifier(const char *name, size_t length)
{
    static const char *const called[] = {"fc",      "classifier", "classifier.1", "head",
                                         "head.fc", "heads.head", "last_linear"};
    for (size_t i = 0; i < sizeof called / sizeof called[0]; i++) {
        size_t n = strlen(called[i]);
        if (ends_with(name, length, called[i]) && (length == n || name[length - n - 1] == '.'))
            return true;
    }
    return false;
}

static bool assume_classifier(onv_assumed *a, size_t place, size_t i, const row *before)
{
    const char *name = a->l->emit.model->parameters[place];
    size_t length = module_length(name);
    if (!before->has_convolutions || before->width == 0) return false;
    if (find_beside(a, name, "bias") == SIZE_MAX || onv_is_of_batch_norm(a, name)) return false;
    int64_t in = before->width, out = CLASSES;
    int layer = -1;
    for (size_t k = 0; k < N_IN_THREE && layer < 0; k++) {
        layer = number_in_three(a, name, length, k);
        if (layer == 0 && !onv_i64_mul(in, in_three[k].map, &in)) return false;
    }
    if (layer < 0 && !is_classifier(name, length)) return false;
    if (layer == 0 || layer == 1) out = WIDE_CLASSIFIER;
    return onv_assume(a, i, 2, (int64_t[]){out, in}, ONV_BY_CLASSES);
}

static bool assume_weight(onv_assumed *a, size_t place, size_t i, const row *before)
{
    if (onv_is_of_batch_norm(a, a->l->emit.model->parameters[place]))
        return before->why > ONV_BY_LIKE_NAMES && onv_assume(a, i, 1, &before->width, before->why);
    return assume_convolution(a, place, i, before) || assume_classifier(a, place, i, before);
}

/* A bias is as long as its weight is wide. */
static bool assume_bias(onv_assumed *a, size_t i, const char *name)
{
    size_t weight = find_beside(a, name, "weight");
    const onv_assumed_shape *shape = weight != SIZE_MAX ? &a->at[weight] : NULL;
    if (shape == NULL || shape->dims == NULL || shape->why <= ONV_BY_LIKE_NAMES) return false;
    return onv_assume(a, i, 1, shape->dims, (onv_assumption)shape->why);
}

/* In the order in which the network has them. */
static void assume_rows(onv_assumed *a)
{
    const onv_model *model = a->l->emit.model;
    row before = {0};
    for (size_t place = 0; place < model->n_parameters && a->l->emit.status == ONV_OK; place++) {
        const char *name = model->parameters[place];
        size_t i = onv_listed_find(a->l, name);
        onv_assumed_shape *shape = &a->at[i];
        if (!onv_work(1)) a->l->emit.status = ONV_ERR_CANCELLED;
        if (shape->why == ONV_BY_NOTHING && module_length(name) > 0) {
            if (strcmp(attribute_of(name), "weight") == 0)
                (void)assume_weight(a, place, i, &before);
            else if (strcmp(attribute_of(name), "bias") == 0)
                (void)assume_bias(a, i, name);
        }
        if (shape->dims == NULL && strcmp(attribute_of(name), "bias") == 0) continue;
        /* Files have matrices either way round. */
        bool has_width =
            shape->dims != NULL && (shape->rank != 2 || shape->why > ONV_BY_LIKE_NAMES);
        before.width = has_width ? shape->dims[0] : 0;
        if (has_width && shape->rank == 1) continue;
        before.name = name;
        before.dims = shape->rank == 4 ? shape->dims : NULL;
        if (shape->rank > 4 || shape->rank == 3) before.width = 0;
        before.why = before.dims != NULL ? (onv_assumption)shape->why : ONV_BY_FILE;
        before.has_convolutions |= before.dims != NULL;
    }
}

onv_status onv_assumed_begin(onv_assumed *a)
{
    a->at = ONV_ARENA_ARRAY(&a->l->emit.model->arena, onv_assumed_shape, a->l->signature.count);
    if (a->at == NULL || !read_known(a)) return onv_fail_memory(a->l->emit.err);
    onv_assume_stages(a);
    return a->l->emit.status;
}

onv_status onv_assumed_end(onv_assumed *a)
{
    assume_rows(a);
    return a->l->emit.status;
}
