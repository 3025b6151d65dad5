/* CSV after RFC 4180: fields with commas, quotes or line ends are quoted, quotes doubled. */
#ifndef ONV_REPORT_CSV_H
#define ONV_REPORT_CSV_H

#include "report/writer.h"

/* One field of untrusted text, cleaned. A spreadsheet takes a cell that starts with = + - @, after
 * blanks or as full-width signs too, for a formula, and drops tabs and line ends there; such a field gets a leading ', which spreadsheets hide and programs that read
 * the file strip. */
void onv_csv_field(onv_writer *out, const char *text);

#endif
