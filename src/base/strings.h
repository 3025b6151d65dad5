/* Interned strings: equal text is the same pointer, so names compare with ==.
 *
 * Strings live in the arena that the table was given, NUL-terminated, each behind its number. A name that
 * holds a NUL byte is interned up to it.
 *
 * A table of millions of names does not fit a cache, so that each look into it waits for memory. What was
 * interned lately is looked for first, then what follows the string that was found last: files list their
 * initializers and declared values in the order in which nodes name them.
 *
 * Hashes: what a model chose is hashed under a key that the process draws once, so that no model can
 * choose names, sizes or expressions that all collide. Results do not depend on the key.
 */
#ifndef ONV_BASE_STRINGS_H
#define ONV_BASE_STRINGS_H

#include <stdint.h>
#include <string.h>

#include "base/arena.h"

/* Strings that were interned lately: names recur soon, and so cost no hash of a key. */
enum { ONV_STRINGS_RECENT = 256 };

typedef struct onv_recent_string {
    const char *text;
    size_t length;
} onv_recent_string;

typedef struct onv_string_slot {
    uint32_t hash;
    uint32_t number; /* 1 + the string's; 0: empty */
} onv_string_slot;

typedef struct onv_strings {
    onv_arena *arena; /* not owned */
    onv_recent_string *recent;
    onv_string_slot *slots;
    size_t capacity;    /* of the slots: a power of two, or 0 */
    const char **texts; /* by number; room for those that the slots take */
    size_t count;
    size_t next; /* the number behind the string that was found or made last */
} onv_strings;

void onv_strings_init(onv_strings *table, onv_arena *arena);
void onv_strings_cleanup(onv_strings *table);

/* A table of its own with the same strings, which stay where they are; new ones go to `arena`. False
 * when memory is short. */
bool onv_strings_copy(const onv_strings *from, onv_arena *arena, onv_strings *to);

/* The interned copy, or NULL when memory is short. */
const char *onv_intern(onv_strings *table, const char *text);
const char *onv_intern_n(onv_strings *table, const char *text, size_t length);

/* The number of an interned string: they count from 0 on, in the order in which they were interned. */
static inline uint32_t onv_string_number(const char *interned)
{
    uint32_t number;
    memcpy(&number, interned - sizeof number, sizeof number);
    return number;
}

static inline const char *onv_string_at(const onv_strings *table, uint32_t number)
{
    return table->texts[number];
}

/* The interned copy if the text was interned before, else NULL. */
const char *onv_interned(const onv_strings *table, const char *text);

/* A keyed 64-bit hash of bytes (SipHash-1-3); what stands before them may come as `seed`. */
uint64_t onv_hash_bytes(const void *data, size_t bytes, uint64_t seed);

/* The same of one number, for pointers and for what follows a hash. */
uint64_t onv_hash_word(uint64_t x);

/* No key: for numbers that no model chose, and where results depend on it. */
static inline uint64_t onv_hash_u64(uint64_t x)
{
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    return x ^ (x >> 32);
}

#endif
