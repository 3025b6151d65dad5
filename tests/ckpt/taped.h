/* A model taken as far as the eager tape, and its units. */
#ifndef ONV_TESTS_TAPED_H
#define ONV_TESTS_TAPED_H

#include "ckpt/ckpt.h"
#include "support/flow.h"

typedef struct taped {
    flow flow;
    onv_eager eager;
    onv_ckpt_units units;
    onv_places places;
    onv_arena arena;           /* of the places */
    onv_train_options options; /* SGD with momentum, no segments */
    onv_ckpt_problem problem;
} taped;

/* Fail the test where they fail. `dims` as in flow.h. The struct must not move. */
void taped_open_sample(taped *t, const char *name, const char *dims, onv_dtype amp);
void taped_open_model(taped *t, model *m);
void taped_close(taped *t);

/* Opens the problem's pricing, once more where options changed that all plans share. */
void taped_price(taped *t);

/* The program with these segments; checked, and its price. */
onv_train_program taped_program(taped *t, const onv_tape_segment *segments, uint32_t count);

/* The plans of a list. */
onv_ckpt_plans taped_plans(taped *t, const char *list);

/* Four square products in a row, x[16,256] by w1 to w4. Each saves its operand where the weight is trained, and the
 * weight where the operand has a gradient: the first one does not save its weight. */
model *taped_four_products(void);

#endif
