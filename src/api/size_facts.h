/* What a search for the largest size knows: totals at sizes that were analysed.
 *
 * The largest size is found by halving, on sizes that do not depend on the budget: 1, 2, 4, ... until one does not fit,
 * then in the middle. So a larger budget never has a smaller answer, even where totals fall in places. Totals grow nearly
 * in proportion: a size that a line through the two nearest analysed ones places clearly on one side needs no analysis;
 * both sizes that an answer stands between have one. Where totals follow no line, so that a search goes astray, it goes on
 * by halving alone, which ends.
 *
 * Of many plans each analysis counts: there the next size is where a line through those around the answer meets the budget. */
#ifndef ONV_API_SIZE_FACTS_H
#define ONV_API_SIZE_FACTS_H

#include "base/vec.h"
#include "runtime/runtime.h"

/* What is searched for: it fits as it runs, or once PyTorch returns what it has cached. */
enum { ONV_FITS, ONV_BY_RELEASE, ONV_SIZE_GOALS };

/* Of one size. */
typedef struct onv_size_fact {
    int64_t size;
    bool is_known;                /* analysed; else about */
    bool is_guess;                /* known is only what a line through others says */
    bool reaches[ONV_SIZE_GOALS]; /* what is asked for */
    uint64_t allocated;           /* of the total, by the allocator, at its peak */
    /* The total, and with what is allocated in place of what is reserved. UINT64_MAX: beyond all bounds. */
    uint64_t of[ONV_SIZE_GOALS];
} onv_size_fact;

typedef struct onv_size_facts {
    ONV_VEC(onv_size_fact) at;
    uint64_t usable_bytes;
    uint32_t errors; /* how often a total was on the other side of the line that was drawn to it */
    /* The size that is to be analysed next; 0: `found` is the answer. */
    int64_t wanted[ONV_SIZE_GOALS];
    int64_t found[ONV_SIZE_GOALS];
    uint32_t asked[ONV_SIZE_GOALS]; /* how many sizes were wanted */
    /* How often an analysis contradicted what was decided without one. */
    uint32_t misled[ONV_SIZE_GOALS];
} onv_size_facts;

onv_size_fact onv_size_fact_of(const onv_runtime_result *result, int64_t size,
                               uint64_t usable_bytes);
/* What is analysed is compared with the line so far. False: no memory. The owner cleans `at` up. */
bool onv_size_add(onv_size_facts *facts, onv_size_fact fact);
/* By the two nearest sizes; false: there are no two. `times`: how far the nearest one that was analysed is from it, 0
 * where none is. */
bool onv_size_line(const onv_size_facts *facts, int goal, int64_t size, double *bytes,
                   double *times);
/* Sets what is found, or what is wanted for it: by halving. The answer and the next size are neighbours. */
void onv_size_look(onv_size_facts *facts, int goal);
/* The same by lines, as far as onv_size_grain() goes. `to_better` > 0: what does not reach that size is of no interest. */
void onv_size_narrow(onv_size_facts *facts, int goal, int64_t to_better);
/* Whether an analysis at `size` tells nearly as much as one at the size that onv_size_narrow() wants. */
bool onv_size_helps(const onv_size_facts *facts, int goal, int64_t size);
/* The search was cut: the largest size that is known to fit. */
void onv_size_settle(onv_size_facts *facts, int goal);
/* How far sizes are apart that are told from each other, some thousandth: a power of two, so that halving meets it. */
int64_t onv_size_grain(int64_t size);

#endif
