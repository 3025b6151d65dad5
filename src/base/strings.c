#include "base/strings.h"

#include <stdatomic.h>
#include <string.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/random.h>
#endif

#include "base/heap.h"
#include "base/quota.h"

void onv_strings_init(onv_strings *table, onv_arena *arena)
{
    *table = (onv_strings){.arena = arena};
}

void onv_strings_cleanup(onv_strings *table)
{
    onv_heap_free(table->slots);
    onv_heap_free(table->texts);
    onv_heap_free(table->recent);
    *table = (onv_strings){.arena = table->arena};
}

/* A table is full at three quarters of its slots. */
static size_t most_strings(size_t capacity)
{
    return capacity / 4 * 3;
}

bool onv_strings_copy(const onv_strings *from, onv_arena *arena, onv_strings *to)
{
    onv_strings_init(to, arena);
    if (from->capacity == 0) return true;
    to->slots = onv_heap_copy(from->slots, from->capacity * sizeof *to->slots);
    to->texts = onv_heap_alloc(most_strings(from->capacity) * sizeof *to->texts);
    if (to->slots == NULL || to->texts == NULL) {
        onv_strings_cleanup(to);
        return false;
    }
    memcpy(to->texts, from->texts, from->count * sizeof *to->texts);
    to->count = to->next = from->count;
    to->capacity = from->capacity;
    return true;
}

/* --- Hashes ------------------------------------------------------------------------------------ */

/* The only thing that the library draws at random, and keeps: nothing shows it. */
static uint64_t key[2];
static once_flag key_once = ONCE_FLAG_INIT;
static atomic_bool key_is_drawn;

static void draw_key(void)
{
#ifdef __linux__
    if (getrandom(key, sizeof key, GRND_NONBLOCK) == (ssize_t)sizeof key) return;
#else
    if (getentropy(key, sizeof key) == 0) return;
#endif
    /* Too early in the life of a machine: what the loader placed at random has to do. */
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    key[0] = onv_hash_u64((uintptr_t)&now ^ (uint64_t)now.tv_nsec << 32);
    key[1] = onv_hash_u64((uintptr_t)&key ^ (uint64_t)now.tv_sec);
}

static void draw_key_once(void)
{
    call_once(&key_once, draw_key);
    atomic_store_explicit(&key_is_drawn, true, memory_order_release);
}

typedef struct sip {
    uint64_t a, b, c, d;
} sip;

static inline uint64_t rotate(uint64_t x, unsigned by)
{
    return x << by | x >> (64 - by);
}

static inline void mix(sip *s)
{
    s->a += s->b;
    s->c += s->d;
    s->b = rotate(s->b, 13) ^ s->a;
    s->d = rotate(s->d, 16) ^ s->c;
    s->a = rotate(s->a, 32) + s->d;
    s->c += s->b;
    s->b = rotate(s->b, 17) ^ s->c;
    s->d = rotate(s->d, 21) ^ s->a;
    s->c = rotate(s->c, 32);
}

static inline void take(sip *s, uint64_t word)
{
    s->d ^= word;
    mix(s);
    s->a ^= word;
}

static inline sip start(void)
{
    if (!atomic_load_explicit(&key_is_drawn, memory_order_acquire)) draw_key_once();
    return (sip){key[0] ^ 0x736f6d6570736575u, key[1] ^ 0x646f72616e646f6du,
                 key[0] ^ 0x6c7967656e657261u, key[1] ^ 0x7465646279746573u};
}

static inline uint64_t finish(sip *s)
{
    s->c ^= 0xff;
    for (int i = 0; i < 3; i++) mix(s);
    return s->a ^ s->b ^ s->c ^ s->d;
}

uint64_t onv_hash_bytes(const void *data, size_t bytes, uint64_t seed)
{
    const unsigned char *p = data;
    uint64_t word, tail = (uint64_t)bytes << 56;
    sip s = start();
    if (seed != 0) take(&s, seed);
    for (; bytes >= 8; p += 8, bytes -= 8) {
        memcpy(&word, p, 8);
        take(&s, word);
    }
    for (size_t i = 0; i < bytes; i++) tail |= (uint64_t)p[i] << 8 * i;
    take(&s, tail);
    return finish(&s);
}

uint64_t onv_hash_word(uint64_t x)
{
    sip s = start();
    take(&s, x);
    return finish(&s);
}

/* --- Tables ------------------------------------------------------------------------------------ */

static bool is_same(const char *interned, const char *text, size_t length)
{
    return strncmp(interned, text, length) == 0 && interned[length] == '\0';
}

/* The slot that holds the text, or the empty one where it belongs. */
static onv_string_slot *find_slot(const onv_strings *table, const char *text, size_t length,
                                  uint32_t hash)
{
    size_t mask = table->capacity - 1, at = hash & mask;
    for (; table->slots[at].number != 0; at = (at + 1) & mask)
        if (table->slots[at].hash == hash &&
            is_same(table->texts[table->slots[at].number - 1], text, length))
            break;
    return &table->slots[at];
}

static bool grow(onv_strings *table)
{
    if (table->capacity > UINT32_MAX / 4) return false; /* numbers have 32 bits */
    size_t capacity = table->capacity == 0 ? 256 : table->capacity * 2;
    const char **texts =
        onv_heap_realloc(table->texts, most_strings(capacity) * sizeof *table->texts);
    if (texts == NULL) return false;
    table->texts = texts;
    onv_string_slot *slots = onv_heap_calloc(capacity, sizeof *slots);
    if (slots == NULL) return false;
    for (size_t i = 0; i < table->capacity; i++) {
        if (table->slots[i].number == 0) continue;
        size_t at = table->slots[i].hash & (capacity - 1);
        while (slots[at].number != 0) at = (at + 1) & (capacity - 1);
        slots[at] = table->slots[i];
    }
    onv_heap_free(table->slots);
    table->slots = slots;
    table->capacity = capacity;
    return true;
}

/* One of the strings behind the last one, if it is the text; or NULL. */
static const char *find_next(onv_strings *table, const char *text, size_t length)
{
    enum { LOOKED_AT = 8 };
    for (size_t i = table->next; i < table->count && i - table->next < LOOKED_AT; i++) {
        if (!is_same(table->texts[i], text, length)) continue;
        table->next = i + 1;
        return table->texts[i];
    }
    return NULL;
}

/* Where a text stands among the recent ones: what collides there is only looked up in the table. */
static size_t recent_place(const char *text, size_t length)
{
    uint64_t head = 0, tail = 0;
    if (length >= sizeof head) {
        memcpy(&head, text, sizeof head);
        memcpy(&tail, text + length - sizeof tail, sizeof tail);
    } else {
        for (size_t i = 0; i < length; i++) head = head << 8 | (unsigned char)text[i];
    }
    uint64_t mixed = (head ^ length) * 0x9e3779b97f4a7c15u ^ tail * 0xd6e8feb86659fd93u;
    return (size_t)((mixed ^ mixed >> 32) * 0x9e3779b97f4a7c15u >> 56) % ONV_STRINGS_RECENT;
}

/* A copy behind its number. */
static const char *make(onv_strings *table, const char *text, size_t length)
{
    uint32_t number = (uint32_t)table->count;
    char *made = onv_arena_packed(table->arena, sizeof number + length + 1);
    if (made == NULL) return NULL;
    memcpy(made, &number, sizeof number);
    made += sizeof number;
    memcpy(made, text, length);
    made[length] = '\0';
    table->texts[table->count++] = made;
    return made;
}

static const char *intern(onv_strings *table, const char *text, size_t length)
{
    onv_work(1 + length / 16);
    const char *found = find_next(table, text, length);
    if (found != NULL) return found;
    if (table->count >= most_strings(table->capacity) && !grow(table)) return NULL;
    uint32_t hash = (uint32_t)onv_hash_bytes(text, length, 0);
    onv_string_slot *slot = find_slot(table, text, length, hash);
    if (slot->number == 0) {
        if (make(table, text, length) == NULL) return NULL;
        *slot = (onv_string_slot){hash, (uint32_t)table->count};
    }
    table->next = slot->number;
    return table->texts[slot->number - 1];
}

const char *onv_intern_n(onv_strings *table, const char *text, size_t length)
{
    const char *nul = length > 0 ? memchr(text, '\0', length) : NULL;
    if (nul != NULL) length = (size_t)(nul - text);
    if (table->recent == NULL)
        table->recent = onv_heap_calloc(ONV_STRINGS_RECENT, sizeof *table->recent);
    if (table->recent == NULL) return NULL;
    onv_recent_string *recent = &table->recent[recent_place(text, length)];
    if (recent->text != NULL && recent->length == length && memcmp(recent->text, text, length) == 0)
        return recent->text;
    const char *interned = intern(table, text, length);
    if (interned != NULL) *recent = (onv_recent_string){interned, length};
    return interned;
}

const char *onv_intern(onv_strings *table, const char *text)
{
    return onv_intern_n(table, text, strlen(text));
}

const char *onv_interned(const onv_strings *table, const char *text)
{
    if (table->capacity == 0) return NULL;
    size_t length = strlen(text);
    uint32_t hash = (uint32_t)onv_hash_bytes(text, length, 0);
    const onv_string_slot *slot = find_slot(table, text, length, hash);
    return slot->number != 0 ? table->texts[slot->number - 1] : NULL;
}
