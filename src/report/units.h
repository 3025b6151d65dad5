/* Numbers for people.
 *
 * All of it is integer arithmetic, so that the result depends on no locale and is never a NaN.
 */
#ifndef ONV_REPORT_UNITS_H
#define ONV_REPORT_UNITS_H

#include <stdint.h>

typedef struct onv_label {
    char text[32];
} onv_label;

onv_label onv_label_bytes(uint64_t bytes); /* "812 B", "97.3 MiB", "2.30 GiB" */

/* "256-600 MiB", "0.81-1.20 GiB": what is no more than an estimate, in the unit of `high`. As
 * onv_label_bytes where both ends are one. `dash` stands between them, at most 4 bytes. */
onv_label onv_label_range(uint64_t low, uint64_t high, const char *dash);

/* The same without the unit, in that of `whole`: a part of a sum, whose unit stands at its end. */
onv_label onv_label_part(uint64_t low, uint64_t high, uint64_t whole, const char *dash);

/* "31.2-88.0 ms", in nanoseconds: an estimate, in the unit of `high`. */
onv_label onv_label_time(uint64_t low, uint64_t high, const char *dash);

/* "412-1,130", "0.35-0.90": what comes to `low` and to `high` hundredths. */
onv_label onv_label_rate(uint64_t low, uint64_t high, const char *dash);

onv_label onv_label_count(uint64_t count);  /* "25,507,944" */
onv_label onv_label_scaled(uint64_t count); /* "812", "4.09 G": powers of 1000 */

/* "34.1%"; of nothing, everything is 0.0%. In whole parts: "34%", "<1%". */
onv_label onv_label_share(uint64_t part, uint64_t whole);
onv_label onv_label_percent(uint64_t part, uint64_t whole);

/* `part` of `whole` in `scale` parts, rounded to the nearest; 0 of nothing. part <= whole. */
unsigned onv_scale_share(uint64_t part, uint64_t whole, unsigned scale);

#endif
