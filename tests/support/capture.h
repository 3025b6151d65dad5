/* Reports caught in memory. */
#ifndef ONV_TESTS_SUPPORT_CAPTURE_H
#define ONV_TESTS_SUPPORT_CAPTURE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "onnxvram/onnxvram.h"

/* Variables of these types are released at the end of their block:
 *
 *     OWNED_TEXT text = report_text(a, ONV_FORMAT_TEXT, NULL);
 */
void end_text(char **text);
void end_json(json_t **json);
void end_analysis(onv_analysis **analysis);
#define OWNED_TEXT     __attribute__((cleanup(end_text))) char *
#define OWNED_JSON     __attribute__((cleanup(end_json))) json_t *
#define OWNED_ANALYSIS __attribute__((cleanup(end_analysis))) onv_analysis *
#define OWNED_CAPTURE  __attribute__((cleanup(capture_free))) capture

/* A growing text; `limit` (0: none) is where it starts to refuse. */
typedef struct capture {
    char *text; /* NUL-terminated once something was written */
    size_t length, capacity, limit;
} capture;

bool capture_write(void *context, const char *text, size_t bytes);
void capture_free(capture *caught);

/* Counts the bytes alone, in a size_t. */
bool capture_size(void *count, const char *text, size_t bytes);

/* What is in a file, nothing where there is none. Free the text. */
char *capture_file(const char *file);

/* The report of one analysis; fails the test where it fails. Free the text. */
char *report_text(const onv_analysis *analysis, onv_format format,
                  const onv_report_options *options);

/* The model's object in its JSON report; fails the test where it is not valid. Release it. */
json_t *report_json(const onv_analysis *analysis);

struct onv_model;

/* The first diagnostic of that code; of an analysis its message. NULL: there is none. */
const struct onv_diag *diag_of(const struct onv_model *of, const char *code);
const char *message_of(const onv_analysis *analysis, const char *code);

/* A member that has to be an integer. */
json_int_t json_number(const json_t *object, const char *key);

/* Fails the test if `text` could act on a terminal: control characters other than line ends,
 * ill-formed UTF-8, bidirectional controls. With `width`, also if a line is wider. */
void expect_safe(const char *text, size_t width);

void expect_contains(const char *text, const char *part);
void expect_lacks(const char *text, const char *part);

/* How often `part` stands in `text`. */
size_t count_parts(const char *text, const char *part);

#endif
