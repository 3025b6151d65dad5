/* Text of lines with commas, field by field: the lines, columns and quotes of every CSV that is read. What is wrong gets its
 * words from the caller. */
#ifndef ONV_BASE_CSV_H
#define ONV_BASE_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef enum onv_csv_quotes {
    ONV_CSV_NO_QUOTES, /* a quote is a byte like others */
    ONV_CSV_LINE_QUOTES,
    ONV_CSV_TEXT_QUOTES, /* they may hold line breaks */
} onv_csv_quotes;

typedef enum onv_csv_fault {
    ONV_CSV_GOOD,
    ONV_CSV_OPEN,   /* a quote is not closed */
    ONV_CSV_AFTER,  /* text after a closing quote */
    ONV_CSV_INSIDE, /* a quote in a field that does not start with one */
    ONV_CSV_ZERO,   /* a NUL byte */
    ONV_CSV_RETURN, /* "\r" alone behind a field */
    ONV_CSV_N_FAULTS
} onv_csv_fault;

/* Starts with `at`, `end` and `quotes`; a fault leaves `at` where it is. */
typedef struct onv_csv {
    const char *at, *end;
    onv_csv_quotes quotes;
    const char *line_start; /* of the row */
    size_t line;            /* where the row starts, from 1 */
    size_t n_passed;        /* line breaks */
    bool in_row;
} onv_csv;

/* As it stands in the text, with its quotes. */
typedef struct onv_csv_field {
    const char *at;
    size_t bytes;
    size_t column; /* byte of the line, from 1 */
    bool last;     /* of its row */
} onv_csv_field;

/* Takes the next field and what ends it: a comma, LF, CRLF or the end. Before ONV_CSV_RETURN the field is whole. */
onv_csv_fault onv_csv_next(onv_csv *csv, onv_csv_field *field);

/* Decimal digits. ONV_ERR_FORMAT: there are none, or other bytes; ONV_ERR_LIMIT: more than `limit`. */
onv_status onv_csv_number(onv_csv_field field, uint64_t limit, uint64_t *number);

#endif
