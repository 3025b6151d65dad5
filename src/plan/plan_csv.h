/* Intervals as CSV: `id,lower,upper,size`, half-open; the answer adds `offset`.
 *
 * The first line is the header; its columns may stand in any order, and there may be an `offset`
 * column, which is read over. Ids are kept as they stand (they may be quoted, as in RFC 4180) and
 * written in the order in which they were read. Numbers are decimal digits that fit 63 bits.
 */
#ifndef ONV_PLAN_PLAN_CSV_H
#define ONV_PLAN_PLAN_CSV_H

#include "onnxvram/common.h"
#include "plan/plan.h"

typedef struct onv_plan_table {
    onv_plan_buffer *buffers;
    const char **ids; /* as in the file, quotes included */
    size_t count;
    char *text; /* of the file, which the ids point into */
} onv_plan_table;

/* Limits on the file, each met with an error. */
enum { ONV_PLAN_CSV_MAX_BYTES = 1 << 30 };

/* On failure *table is empty; the error names the line and the column. */
onv_status onv_plan_csv_parse(const char *data, size_t bytes, onv_plan_table *table,
                              onv_error *err);
onv_status onv_plan_csv_read(const char *path, onv_plan_table *table, onv_error *err);
void onv_plan_table_cleanup(onv_plan_table *table);

onv_status onv_plan_csv_write(const onv_plan_table *table, const onv_plan *plan, onv_write_fn write,
                              void *context, onv_error *err);

/* `onnxvram plan`: reads the file at `path`, plans it, checks the plan and writes the answer.
 * `plan` receives the figures, NULL allowed; its offsets are gone. */
onv_status onv_plan_csv_run(const char *path, const onv_plan_options *options, onv_write_fn write,
                            void *context, onv_plan *plan, onv_error *err);

#endif
