/* Python's pickle format, protocol 2: the few operations that dicts, lists, numbers and text take.
 *
 *     onv_pickle_begin(out);
 *     onv_pickle_dict(out);
 *     onv_pickle_text(out, "bytes");
 *     onv_pickle_u64(out, 42);
 *     onv_pickle_end_dict(out);
 *     onv_pickle_end(out);
 *
 * A dict takes keys and values in turn; each element of a list is followed by onv_pickle_append. What was
 * put into the memo stands for itself afterwards.
 */
#ifndef ONV_REPORT_PICKLE_H
#define ONV_REPORT_PICKLE_H

#include "report/writer.h"

void onv_pickle_begin(onv_writer *out);
void onv_pickle_end(onv_writer *out);

void onv_pickle_dict(onv_writer *out);
void onv_pickle_end_dict(onv_writer *out);
void onv_pickle_list(onv_writer *out);
void onv_pickle_append(onv_writer *out);

void onv_pickle_u64(onv_writer *out, uint64_t value); /* up to INT64_MAX */
void onv_pickle_bool(onv_writer *out, bool value);
void onv_pickle_text(onv_writer *out, const char *text); /* UTF-8 */

void onv_pickle_put(onv_writer *out, uint32_t memo); /* what was written last */
void onv_pickle_get(onv_writer *out, uint32_t memo);

#endif
