#include "aten/aten.h"

#include <stdlib.h>
#include <string.h>

#include "aten/recipes.h"

/* --- Rows -------------------------------------------------------------------------------------- */

/* What rows are made of. */
#define KERNEL      .form = ONV_ATEN_KERNEL
#define POINTWISE   .form = ONV_ATEN_POINTWISE
#define VIEW        .form = ONV_ATEN_VIEW
#define MAKES       .form = ONV_ATEN_MAKES
#define NOTHING     .form = ONV_ATEN_NOTHING
#define RULE(name)  .rule = ONV_RULE_##name
#define CAST(name)  .cast = ONV_CAST_##name
#define GRADS(name) .order = ONV_ORDER_##name
#define AS(id)      .as = ONV_ATEN_##id
#define MADE(...)                                                                                  \
    .temps = &(const onv_aten_temps)                                                               \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define TEMPS(first)               MADE(.backward = (first))
#define TEMPS_OF_EACH(first, next) MADE(.backward = (first), .of_second = (next))
#define FORWARD_TEMPS(text)        MADE(.forward = (text))
#define TEMPS_OF_BOTH(back, ahead) MADE(.backward = (back), .forward = (ahead))
#define HIDDEN(text)               MADE(.hidden = (text))
#define INDUCTOR(ahead, back)      .recipe = ahead "\0" back
#define FUSED                      .is_fused = true
#define PART(bytes)                .part = (bytes)
#define COUNTED_AS(id)             .counted_as = ONV_ATEN_##id
#define PRODUCT                    .multiplies = true
#define APART                      .is_apart = true
#define OVERWRITES                 .runs_in_place = true

#define OP(id, arguments, formulas, ...)                                                           \
    [ONV_ATEN_##id] = {.name = #id, .in = arguments "\0" formulas, __VA_ARGS__},
#define OVERLOAD(id, overload, arguments, formulas, ...)                                           \
    [ONV_ATEN_##id##__##                                                                           \
        overload] = {.name = #id "." #overload, .in = arguments "\0" formulas, __VA_ARGS__},
#define SHARED(id, formulas, ...)                                                                  \
    [ONV_ATEN_##id] = {.name = #id, .in = "\0" formulas, .form = ONV_ATEN_SHARED, __VA_ARGS__},

const onv_aten_op onv_aten_ops[ONV_ATEN_N_IDS] = {
    [ONV_ATEN_NONE] = {.name = "", .in = "\0", .form = ONV_ATEN_SHARED},
#include "aten/families.def"
};

/* Behind the last row of each family. */
static const uint16_t ends[] = {
#define OP(id, ...)
#define OVERLOAD(id, overload, ...)
#define SHARED(id, ...)
#define FAMILY(name) ONV_ATEN_END_##name,
#include "aten/families.def"
};

/* --- Names ------------------------------------------------------------------------------------- */

enum { MAX_NAME = 80 };

static int compare(const void *name, const void *op)
{
    return strcmp(name, ((const onv_aten_op *)op)->name);
}

static onv_aten_id exactly(const char *name)
{
    size_t first = ONV_ATEN_NONE + 1;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; first = ends[i++]) {
        const onv_aten_op *op =
            bsearch(name, &onv_aten_ops[first], ends[i] - first, sizeof onv_aten_ops[0], compare);
        if (op != NULL) return onv_aten_id_of(op);
    }
    return ONV_ATEN_NONE;
}

onv_aten_id onv_aten_named(const char *name)
{
    char base[MAX_NAME];
    size_t length = strlen(name);
    onv_aten_id id = exactly(name);
    if (id != ONV_ATEN_NONE || length < 2 || length >= sizeof base || name[length - 1] != '_')
        return id;
    memcpy(base, name, length - 1);
    base[length - 1] = '\0';
    return exactly(base);
}

static const onv_aten_op *find_name(const char *name)
{
    const onv_aten_op *op = &onv_aten_ops[exactly(name)];
    return op->form != ONV_ATEN_SHARED ? op : NULL;
}

/* With the overload, then without. `base` has `length` bytes. */
static const onv_aten_op *find_base(const char *base, size_t length, const char *overload)
{
    char name[MAX_NAME];
    size_t more = strlen(overload);
    if (length + 1 + more >= sizeof name) return NULL;
    memcpy(name, base, length);
    name[length] = '.';
    memcpy(name + length + 1, overload, more + 1);
    const onv_aten_op *op = more > 0 ? find_name(name) : NULL;
    name[length] = '\0';
    return op != NULL ? op : find_name(name);
}

const onv_aten_op *onv_aten_find(const char *op_name, bool *in_place)
{
    static const char *const libraries[] = {"aten.", "transformers."};
    *in_place = false;
    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++)
        if (strncmp(op_name, libraries[i], strlen(libraries[i])) == 0)
            op_name += strlen(libraries[i]);
    const char *dot = strchr(op_name, '.');
    size_t length = dot != NULL ? (size_t)(dot - op_name) : strlen(op_name);
    const char *overload = dot != NULL ? dot + 1 : "";
    if (strncmp(op_name, "higher_order", length) == 0) return find_name(op_name);
    /* "__and__" and the like end with two of them. */
    bool writes = length > 2 && op_name[length - 1] == '_' && op_name[length - 2] != '_';
    const onv_aten_op *op = find_base(op_name, length, overload);
    *in_place = writes;
    return op != NULL || !writes ? op : find_base(op_name, length - 1, overload);
}

/* --- Gradients --------------------------------------------------------------------------------- */

static uint32_t bit_of(char letter, char first)
{
    return letter >= first && letter < first + ONV_ATEN_MOST_TENSORS
               ? UINT32_C(1) << (letter - first)
               : 0;
}

bool onv_aten_next_grad(const char **text, onv_aten_grad *grad)
{
    const char *c = *text;
    *grad = (onv_aten_grad){0};
    while (*c == ' ') c++;
    if (*c == '\0') return false;
    for (; *c != '\0' && *c != ':' && *c != ' '; c++) grad->of |= bit_of(*c, 'a');
    for (; *c != '\0' && *c != ' '; c++) {
        grad->reads_in |= bit_of(*c, 'a');
        grad->reads_out |= bit_of(*c, 'o');
        grad->hands_on |= *c == '=';
        grad->hands_part |= *c == '[';
    }
    *text = c;
    return true;
}

static bool is_one(uint32_t bits)
{
    return bits != 0 && (bits & (bits - 1)) == 0;
}

void onv_aten_saved(const onv_aten_op *op, uint32_t wants, uint32_t *in, uint32_t *out)
{
    /* Arguments that some formula reads, that more than one does or one of several arguments, and that one reads whose
     * argument wants its gradient. */
    uint32_t read = 0, more = 0, wanted = 0, results = 0;
    bool is_any = false;
    const char *text = onv_aten_grads(op);
    onv_aten_grad grad;
    while (onv_aten_next_grad(&text, &grad)) {
        bool is_wanted = (grad.of & wants) != 0;
        more |= is_one(grad.of) ? read & grad.reads_in : grad.reads_in;
        read |= grad.reads_in;
        results |= grad.reads_out;
        if (is_wanted) wanted |= grad.reads_in;
        is_any |= is_wanted;
    }
    *in = is_any ? more | wanted : 0;
    *out = is_any ? results : 0;
}
