#include "measured/compare.h"

#include "base/quota.h"

/* How far the next common place is looked for, and how much must be alike there. */
enum { WINDOW = 24, ALIKE = 3, MOST_SKIPPED = 16 };

static bool is_short(const onv_aligned *a, uint32_t index)
{
    return a->freed <= index + 2;
}

/* Workspaces are as long as a library says, and gone at once. */
static bool is_alike(const onv_order_of *p, uint32_t j, const onv_order_of *m, uint32_t i)
{
    const onv_aligned *a = &p->at[j], *b = &m->at[i];
    return a->units == b->units || (a->is_workspace && is_short(a, j) && is_short(b, i));
}

/* Whether some that follow are alike, or all up to an end. */
static bool goes_on(const onv_order_of *p, uint32_t j, const onv_order_of *m, uint32_t i)
{
    uint32_t n = 0;
    for (; n < ALIKE && i + n < m->n && j + n < p->n; n++)
        if (!is_alike(p, j + n, m, i + n)) return false;
    return n > 0;
}

/* The least that has to be left out on both sides; false where nothing helps. */
static bool find_next(const onv_order_of *p, uint32_t *j, const onv_order_of *m, uint32_t *i)
{
    for (uint32_t both = 1; both <= 2 * WINDOW; both++)
        for (uint32_t a = both > WINDOW ? both - WINDOW : 0; a <= both && a <= WINDOW; a++) {
            if (*i + a >= m->n || *j + both - a >= p->n) continue;
            if (!goes_on(p, *j + both - a, m, *i + a)) continue;
            *i += a;
            *j += both - a;
            return true;
        }
    return false;
}

static void put(onv_order_of *p, uint32_t j, onv_order_of *m, uint32_t i)
{
    p->at[j].partner = i;
    m->at[i].partner = j;
}

static onv_status walk(onv_order_of *p, uint32_t j, onv_order_of *m, uint32_t i)
{
    while (i < m->n && j < p->n) {
        ONV_WORK(1);
        if (is_alike(p, j, m, i)) {
            put(p, j++, m, i++);
            continue;
        }
        ONV_WORK((uint64_t)WINDOW * WINDOW);
        if (!find_next(p, &j, m, &i)) return ONV_OK;
    }
    return ONV_OK;
}

static onv_status run_of(const onv_order_of *p, uint32_t j, const onv_order_of *m, uint32_t i,
                         uint32_t *run)
{
    for (*run = 0; i + *run < m->n && j + *run < p->n && is_alike(p, j + *run, m, i + *run);)
        ++*run;
    ONV_WORK(*run);
    return ONV_OK;
}

/* Where the predicted order begins, with some of its first ones left out if need be: where most of what follows is
 * alike. Layers that come again begin alike, too, but end earlier. */
static onv_status find_begin(const onv_order_of *p, const onv_order_of *m, uint32_t until,
                             uint32_t *j, uint32_t *i)
{
    uint32_t longest = 0, run;
    for (uint32_t skipped = 0; longest < ALIKE && skipped < p->n && skipped < MOST_SKIPPED;
         skipped++)
        for (uint32_t at = 0; at < m->n && (at < until || longest < ALIKE); at++) {
            ONV_TRY(run_of(p, skipped, m, at, &run));
            if (run == 0 || run < longest) continue;
            longest = run;
            *i = at;
            *j = skipped;
        }
    return ONV_OK;
}

onv_status onv_align(onv_order_of *predicted, onv_order_of *measured, uint32_t until)
{
    uint32_t i = measured->n, j = 0;
    ONV_WORK((uint64_t)measured->n * MOST_SKIPPED);
    ONV_TRY(find_begin(predicted, measured, until, &j, &i));
    /* Of what was left out some may be alike. */
    for (uint32_t k = 1; i < measured->n && k <= i && k <= j; k++)
        if (is_alike(predicted, j - k, measured, i - k)) put(predicted, j - k, measured, i - k);
    return walk(predicted, j, measured, i);
}
