/* The lowest plan of a few buffers, found by trying everything; shares no code with the planner. */
#ifndef ONV_TESTS_PLAN_BRUTE_H
#define ONV_TESTS_PLAN_BRUTE_H

#include "plan/plan.h"

enum { BRUTE_MAX = 10 };

/* `count` is at most BRUTE_MAX. */
uint64_t brute_height(const onv_plan_buffer *buffers, size_t count);

/* The most bytes live at one step. */
uint64_t brute_load(const onv_plan_buffer *buffers, size_t count);

/* Do two buffers of the plan overlap in time and in place? Compares all pairs. */
bool brute_overlap(const onv_plan_buffer *buffers, size_t count, const uint64_t *offsets);

#endif
