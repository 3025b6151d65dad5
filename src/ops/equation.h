/* The equation of an Einsum, taken apart. */
#ifndef ONV_OPS_EQUATION_H
#define ONV_OPS_EQUATION_H

#include "ir/type.h"

enum { ONV_MOST_TERMS = 8 };

/* A letter for each axis. Axes of an ellipsis are numbers, as characters; the last axis that it stands for has the highest one in
 * all terms. */
typedef struct onv_equation {
    char terms[ONV_MOST_TERMS][ONV_MAX_RANK + 1], result[ONV_MAX_RANK + 1];
} onv_equation;

/* Of `n` operands of these ranks; a result that it does not give is the implied one. False: it does not fit them, has a
 * diagonal, or too many terms. */
bool onv_equation_read(const char *text, const uint32_t *ranks, uint32_t n, onv_equation *e);

#endif
