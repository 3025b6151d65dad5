/* Orders of a part's rows, and placing rows in an order on a skyline. */
#ifndef ONV_PLAN_GREEDY_H
#define ONV_PLAN_GREEDY_H

#include "plan/part.h"
#include "plan/skyline.h"

typedef enum onv_order {
    ONV_ORDER_SIZE,  /* largest first */
    ONV_ORDER_WIDTH, /* longest-lived first, counted in sections */
    ONV_ORDER_AREA,  /* size x width */
    ONV_ORDER_TIME,  /* earliest first, as an allocator at run time sees them */
    ONV_ORDER_LOAD,  /* those of the most loaded section first */
    /* size x pressure^4 x width^(1/4): pressure is the load of the row's fullest section as a share of the largest, as
     * what meets the peak goes before what has space; steep: size x pressure^16 x width^(1/8) */
    ONV_ORDER_PRESSURE,
    ONV_ORDER_STEEP,
} onv_order;

/* Writes the part's rows in that order; ties go by a second measure, then by row. */
onv_status onv_order_rows(const onv_part *part, onv_order order, uint32_t *rows, onv_error *err);

#endif
