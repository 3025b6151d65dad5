#include "base/strings.h"

#include <string.h>

#include "base/heap.h"

void onv_strings_init(onv_strings *table, onv_arena *arena)
{
    *table = (onv_strings){.arena = arena, .seed = onv_hash_u64((uintptr_t)table)};
}

void onv_strings_cleanup(onv_strings *table)
{
    onv_heap_free(table->slots);
    onv_heap_free(table->hashes);
    *table = (onv_strings){.arena = table->arena};
}

uint64_t onv_hash_bytes(const void *data, size_t bytes, uint64_t seed)
{
    const unsigned char *p = data;
    uint64_t hash = seed ^ (bytes * 0x9e3779b97f4a7c15u);
    while (bytes >= 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        hash = onv_hash_u64(hash ^ word);
        p += 8;
        bytes -= 8;
    }
    uint64_t tail = 0;
    if (bytes > 0) memcpy(&tail, p, bytes);
    return onv_hash_u64(hash ^ tail);
}

/* The slot that holds the text, or the empty one where it belongs. */
static size_t find_slot(const onv_strings *table, const char *text, size_t length, uint32_t hash)
{
    size_t mask = table->capacity - 1;
    size_t slot = hash & mask;
    while (table->slots[slot] != NULL) {
        const char *other = table->slots[slot];
        if (table->hashes[slot] == hash && strncmp(other, text, length) == 0 &&
            other[length] == '\0')
            return slot;
        slot = (slot + 1) & mask;
    }
    return slot;
}

static bool grow(onv_strings *table)
{
    size_t capacity = table->capacity == 0 ? 256 : table->capacity * 2;
    const char **slots = onv_heap_calloc(capacity, sizeof *slots);
    uint32_t *hashes = onv_heap_calloc(capacity, sizeof *hashes);
    if (slots == NULL || hashes == NULL) {
        onv_heap_free(slots);
        onv_heap_free(hashes);
        return false;
    }
    for (size_t i = 0; i < table->capacity; i++) {
        if (table->slots[i] == NULL) continue;
        size_t slot = table->hashes[i] & (capacity - 1);
        while (slots[slot] != NULL) slot = (slot + 1) & (capacity - 1);
        slots[slot] = table->slots[i];
        hashes[slot] = table->hashes[i];
    }
    onv_heap_free(table->slots);
    onv_heap_free(table->hashes);
    table->slots = slots;
    table->hashes = hashes;
    table->capacity = capacity;
    return true;
}

const char *onv_intern_n(onv_strings *table, const char *text, size_t length)
{
    const char *nul = length > 0 ? memchr(text, '\0', length) : NULL;
    if (nul != NULL) length = (size_t)(nul - text);
    if (table->count * 2 >= table->capacity && !grow(table)) return NULL;
    uint32_t hash = (uint32_t)onv_hash_bytes(text, length, table->seed);
    size_t slot = find_slot(table, text, length, hash);
    if (table->slots[slot] != NULL) return table->slots[slot];
    const char *copy = onv_arena_strndup(table->arena, text, length);
    if (copy == NULL) return NULL;
    table->slots[slot] = copy;
    table->hashes[slot] = hash;
    table->count++;
    return copy;
}

const char *onv_intern(onv_strings *table, const char *text)
{
    return onv_intern_n(table, text, strlen(text));
}

const char *onv_interned(const onv_strings *table, const char *text)
{
    if (table->capacity == 0) return NULL;
    size_t length = strlen(text);
    uint32_t hash = (uint32_t)onv_hash_bytes(text, length, table->seed);
    return table->slots[find_slot(table, text, length, hash)];
}
