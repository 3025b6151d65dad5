#include "ckpt/training.h"

static bool is_cheaper(const onv_training_plan *a, const onv_training_plan *b)
{
    uint64_t x = onv_training_plan_price(a), y = onv_training_plan_price(b);
    return x != y ? x < y : a->figures.reserved_peak_bytes < b->figures.reserved_peak_bytes;
}

static bool is_smaller(const onv_training_plan *a, const onv_training_plan *b)
{
    uint64_t x = a->figures.reserved_peak_bytes, y = b->figures.reserved_peak_bytes;
    return x != y ? x < y : onv_training_plan_price(a) < onv_training_plan_price(b);
}

uint32_t onv_training_knee(const onv_training *t)
{
    const onv_training_plan *cheapest = t->plans, *smallest = t->plans;
    if (t->n_plans < 2) return ONV_NO_PLAN;
    for (uint32_t i = 1; i < t->n_plans; i++) {
        if (is_cheaper(&t->plans[i], cheapest)) cheapest = &t->plans[i];
        if (is_smaller(&t->plans[i], smallest)) smallest = &t->plans[i];
    }
    double low = (double)onv_training_plan_price(cheapest), most = 0;
    double high = (double)cheapest->figures.reserved_peak_bytes;
    double price = (double)onv_training_plan_price(smallest) - low;
    double bytes = high - (double)smallest->figures.reserved_peak_bytes;
    uint32_t knee = (uint32_t)(smallest - t->plans); /* where no plan is below the line */
    for (uint32_t i = 0; i < t->n_plans && price > 0; i++) {
        const onv_training_plan *p = &t->plans[i];
        double paid = ((double)onv_training_plan_price(p) - low) / price;
        double gained = (high - (double)p->figures.reserved_peak_bytes) / bytes;
        if (gained - paid <= most) continue;
        most = gained - paid;
        knee = i;
    }
    return knee;
}
