/* JSON text becomes a document: a tree that is read, and not changed. */
#ifndef ONV_PROGRAM_DOCUMENT_H
#define ONV_PROGRAM_DOCUMENT_H

#include "base/arena.h"
#include "program/archive.h"

typedef enum onv_doc_type {
    ONV_DOC_NULL = 0,
    ONV_DOC_BOOL,
    ONV_DOC_INTEGER,
    ONV_DOC_REAL,
    ONV_DOC_STRING,
    ONV_DOC_LIST,
    ONV_DOC_OBJECT,
} onv_doc_type;

typedef struct onv_doc {
    const char *key; /* of a member of an object; else NULL */
    union {
        bool flag;
        int64_t integer;
        double real;
        const char *text; /* terminated; without NUL bytes in it */
        const struct onv_doc *items;
    };
    uint32_t count; /* of items; of bytes of a text */
    uint8_t type;   /* onv_doc_type */
} onv_doc;

typedef struct onv_document {
    onv_program_text text; /* strings are in it */
    onv_arena arena;
    const onv_doc *root; /* an object */
} onv_document;

/* Takes the text over and changes it: strings get an end, and numbers that JSON lacks (Infinity, NaN), which Python
 * writes, become strings. ONV_ERR_FORMAT: no JSON object; ONV_ERR_LIMIT: nested deeper than ONV_DOC_MOST_DEPTH. The caller frees
 * the document with onv_document_cleanup, also after a failure. */
enum { ONV_DOC_MOST_DEPTH = 2000 };
onv_status onv_document_parse(onv_document *document, onv_program_text *text, onv_error *err);
void onv_document_cleanup(onv_document *document);

/* The first member of that name; NULL where there is none, or `of` is NULL or no object. Cost: its members. */
const onv_doc *onv_doc_get(const onv_doc *of, const char *key);

static inline bool onv_doc_is(const onv_doc *doc, onv_doc_type type)
{
    return doc != NULL && doc->type == (uint8_t)type;
}

/* Elements of a list, members of an object; 0 of all else. */
static inline uint32_t onv_doc_count(const onv_doc *doc)
{
    return onv_doc_is(doc, ONV_DOC_LIST) || onv_doc_is(doc, ONV_DOC_OBJECT) ? doc->count : 0;
}

#endif
