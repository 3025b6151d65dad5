/* A trace that is a text, as a timeline. */
#ifndef ONV_TESTS_ALLOC_CSV_TEXT_H
#define ONV_TESTS_ALLOC_CSV_TEXT_H

#include "alloc/trace_csv.h"

typedef struct csv_text {
    const char *at;
    size_t bytes;
} csv_text;

static inline onv_status csv_text_scan(void *context, onv_trace_take take, void *taker,
                                       onv_error *err)
{
    const csv_text *text = context;
    return onv_trace_csv_scan(text->at, text->bytes, take, taker, NULL, err);
}

static inline onv_status csv_text_read(const char *at, size_t bytes, onv_timeline *t,
                                       onv_error *err)
{
    csv_text text = {at, bytes};
    return onv_trace_read(csv_text_scan, &text, t, err);
}

#endif
