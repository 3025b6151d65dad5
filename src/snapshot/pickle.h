/* Python's pickles, read as data: dicts, lists, tuples, numbers and text, of protocols 2 to 5.
 *
 * A pickle is a program for a stack machine, and Python's own reader calls whatever it names. This one knows the
 * operations that make data, and refuses all others by name. It calls nothing.
 *
 * What an object contains may be shared, and may contain the object itself: who reads one looks as deep as its format
 * says. Everything is in the arena, but for text, which is in the file.
 */
#ifndef ONV_SNAPSHOT_PICKLE_H
#define ONV_SNAPSHOT_PICKLE_H

#include "base/arena.h"
#include "base/status.h"

typedef enum onv_pickled_type {
    ONV_PICKLED_OTHER, /* None, a real number, an integer that does not fit, bytes */
    ONV_PICKLED_INTEGER,
    ONV_PICKLED_BOOL, /* in `integer` */
    ONV_PICKLED_TEXT,
    ONV_PICKLED_LIST, /* or a tuple */
    ONV_PICKLED_DICT, /* of keys and values in turn */
    ONV_PICKLED_MARK, /* the reader's own */
} onv_pickled_type;

struct onv_pickled_items;

typedef struct onv_pickled {
    uint32_t type;   /* onv_pickled_type */
    uint32_t length; /* bytes of text */
    union {
        int64_t integer;
        const char *text; /* not terminated */
        struct onv_pickled_items *items;
    };
} onv_pickled;

typedef struct onv_pickled_items {
    onv_pickled *at;
    uint32_t count, capacity;
} onv_pickled_items;

/* ONV_ERR_FORMAT: not a pickle, a damaged one, or one that is more than data. Work: each byte. */
onv_status onv_pickled_read(const char *data, size_t bytes, onv_arena *arena, onv_pickled *root,
                            onv_error *err);

/* The last value of that key; NULL where there is none, or `of` is no dict. */
const onv_pickled *onv_pickled_get(const onv_pickled *of, const char *key);

/* Elements of a list; 0 of all else. */
uint32_t onv_pickled_count(const onv_pickled *of);

bool onv_pickled_is_text(const onv_pickled *value, const char *text);

/* A number of at least 0; false of all else. */
bool onv_pickled_u64(const onv_pickled *value, uint64_t *number);

#endif
