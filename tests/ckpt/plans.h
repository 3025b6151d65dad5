/* Every plan of a chain of so many units, and what one costs, found by doing what it says. */
#ifndef ONV_TESTS_PLANS_H
#define ONV_TESTS_PLANS_H

#include "ckpt/layers.h"

enum { MAX_PLAN_UNITS = 8 };

typedef struct one_plan {
    onv_chain_range at[MAX_PLAN_UNITS * 2];
    uint32_t count;
} one_plan;

typedef ONV_VEC(one_plan) plan_list;

/* Of `n` units. */
void plans_all(uint32_t n, plan_list *plans);

typedef struct outcome {
    bool is_refused; /* a checkpoint begins where none may */
    uint64_t peak_bytes, cost;
} outcome;

/* By what chain.h says of every unit. */
outcome plan_in_chain(const onv_chain *chain, const onv_chain_range *ranges, uint32_t count);

/* By what layers.h says of every gradient: tensors are made, read and freed one by one, and a layer
 * that lacks what it needs fails the test. The cost is that of the forwards. */
outcome plan_on_layers(const layers *l, const onv_chain_range *ranges, uint32_t count);

#endif
