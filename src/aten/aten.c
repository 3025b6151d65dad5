#include "aten/aten.h"

#include <stdlib.h>
#include <string.h>

static const onv_aten_family *const families[] = {
    &onv_aten_pointwise, &onv_aten_reduce, &onv_aten_matmul, &onv_aten_layers,
    &onv_aten_view,      &onv_aten_index,  &onv_aten_create, &onv_aten_loss,
    &onv_aten_image,     &onv_aten_linalg, &onv_aten_other,
};

const onv_aten_family *onv_aten_family_at(size_t index)
{
    return index < sizeof families / sizeof families[0] ? families[index] : NULL;
}

/* --- Names ------------------------------------------------------------------------------------- */

enum { MAX_NAME = 80 };

static int compare(const void *name, const void *op)
{
    return strcmp(name, ((const onv_aten_op *)op)->name);
}

static const onv_aten_op *find_name(const char *name)
{
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        const onv_aten_op *op =
            bsearch(name, families[i]->ops, families[i]->count, sizeof *families[i]->ops, compare);
        if (op != NULL) return op;
    }
    return NULL;
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
    static const char prefix[] = "aten.";
    *in_place = false;
    if (strncmp(op_name, prefix, sizeof prefix - 1) == 0) op_name += sizeof prefix - 1;
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
    if (c == NULL) return false;
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
    const char *text = op->grads;
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
