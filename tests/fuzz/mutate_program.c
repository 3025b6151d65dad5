#include "fuzz/mutate.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aten/aten.h"
#include "fuzz/words.h"

/* A value of a document, and where it is: `key` of an object, or `index` of a list that has the key; `of`: the key of the
 * object or list that has it. */
typedef struct site {
    json_t *holder, *value;
    const char *key, *of;
    size_t index;
} site;

enum { MOST_SITES = 1 << 16, MOST_CALLS = 6, MOST_RENAMED = 64, MOST_NAME = 40 };

typedef struct sites {
    site *at;
    size_t count, capacity;
} sites;

static void add(sites *s, const site *new)
{
    if (s->count == MOST_SITES) return;
    if (s->count == s->capacity) {
        s->capacity = s->capacity * 2 + 256;
        s->at = realloc(s->at, s->capacity * sizeof *s->at);
        if (s->at == NULL) abort();
    }
    s->at[s->count++] = *new;
    const char *name;
    json_t *value = new->value, *member;
    size_t i;
    json_object_foreach(value, name, member) add(s, &(site){value, member, name, new->key, 0});
    json_array_foreach(value, i, member) add(s, &(site){value, member, new->key, new->key, i});
}

/* All but the document itself, which has no key. */
static void add_all(sites *s, json_t *root)
{
    const char *key;
    json_t *member;
    s->count = 0;
    json_object_foreach(root, key, member) add(s, &(site){root, member, key, "", 0});
}

/* One of them; or each key as likely as every other one, so that rare members have their share. */
static const site *pick(const sites *s, fuzz_random *random)
{
    if (s->count == 0) return NULL;
    if (fuzz_below(random, 2) == 0) return &s->at[fuzz_below(random, s->count)];
    const site *found = NULL;
    uint64_t salt = fuzz_next(random), least = UINT64_MAX;
    size_t same = 0;
    for (size_t i = 0; i < s->count; i++) {
        uint64_t hash = salt;
        for (const char *c = s->at[i].key; *c != '\0'; c++)
            hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
        if (hash < least) same = 0;
        if (hash > least || fuzz_below(random, ++same) != 0) continue;
        least = hash;
        found = &s->at[i];
    }
    return found;
}

static void set(const site *s, json_t *value) /* takes the value */
{
    if (json_is_object(s->holder))
        json_object_set_new(s->holder, s->key, value);
    else
        json_array_set_new(s->holder, s->index, value);
}

static void drop(const site *s)
{
    if (json_is_object(s->holder))
        json_object_del(s->holder, s->key);
    else
        json_array_remove(s->holder, s->index);
}

static json_t *operator_name(fuzz_random *random)
{
    static const char *const overloads[] = {"default", "Tensor", "Scalar", "int"};
    return json_sprintf("torch.ops.aten.%s.%s",
                        onv_aten_ops[fuzz_below(random, ONV_ATEN_N_IDS)].name,
                        ONE_OF(random, overloads));
}

static json_t *new_value(const site *s, fuzz_random *random)
{
    switch (fuzz_below(random, 10)) {
    case 0: return json_null();
    case 1: return json_object();
    case 2: return json_array();
    case 3: return json_boolean(fuzz_below(random, 2) == 0);
    case 4: return json_real((double)fuzz_interesting(random) * -0.5);
    case 5: return json_string("2*s0 + 1");
    default:
        if (strcmp(s->key, "target") == 0) return operator_name(random);
        if (!json_is_string(s->value)) return json_integer((json_int_t)fuzz_interesting(random));
        json_t *text = json_string(fuzz_odd_name(random)); /* not all of them are UTF-8 */
        return text != NULL ? text : json_string("");
    }
}

/* How well a value fits in the place of another one: it has the same key in the same kind of object, or is another member of
 * such an object. */
static unsigned likeness(const site *a, const site *b)
{
    if (json_is_array(a->holder) != json_is_array(b->holder) || strcmp(a->of, b->of) != 0) return 0;
    return strcmp(a->key, b->key) == 0 ? 2 : json_typeof(a->value) == json_typeof(b->value);
}

/* A value that another document, or this one, has elsewhere. */
static json_t *other_value(const site *s, const sites *from, fuzz_random *random)
{
    unsigned least = (unsigned)fuzz_below(random, 3);
    const site *found = NULL;
    size_t seen = 0;
    for (size_t i = 0; i < from->count; i++) {
        const site *other = &from->at[i];
        bool fits = least > 0 ? likeness(other, s) >= least
                              : json_typeof(other->value) == json_typeof(s->value);
        if (fits && other->value != s->value && fuzz_below(random, ++seen) == 0) found = other;
    }
    return found != NULL ? json_deep_copy(found->value) : new_value(s, random);
}

/* {"as_int": 1} becomes {"as_tensor": 1}. */
static void change_kind(const site *s, const sites *from, fuzz_random *random)
{
    const site *other = pick(from, random);
    if (!json_is_object(s->holder)) return;
    for (size_t i = 0; i < from->count && strncmp(s->key, "as_", 3) == 0; i++) {
        if (strncmp(other->key, "as_", 3) == 0) break;
        other = &from->at[fuzz_below(random, from->count)];
    }
    json_t *value =
        fuzz_below(random, 2) == 0 ? json_incref(s->value) : json_deep_copy(other->value);
    json_object_set_new(s->holder, other->key, value);
    if (strcmp(other->key, s->key) != 0) json_object_del(s->holder, s->key);
}

/* Elements of a list: again, elsewhere, or of another document. */
static void change_list(const site *s, const sites *from, fuzz_random *random)
{
    if (!json_is_array(s->holder)) return;
    size_t to = fuzz_below(random, json_array_size(s->holder) + 1);
    bool is_other = fuzz_below(random, 2) == 0, again = fuzz_below(random, 2) == 0;
    json_t *value = is_other ? other_value(s, from, random) : json_deep_copy(s->value);
    if (!is_other && !again) json_array_remove(s->holder, s->index);
    json_array_insert_new(s->holder, to, value);
}

/* --- Calls ------------------------------------------------------------------------------------- */

/* A graph of a document: an object with calls and with what describes their tensors. */
static json_t *pick_graph(const sites *s, fuzz_random *random)
{
    json_t *found = NULL;
    size_t seen = 0;
    for (size_t i = 0; i < s->count; i++)
        if (json_is_array(json_object_get(s->at[i].value, "nodes")) &&
            json_is_object(json_object_get(s->at[i].value, "tensor_values")) &&
            fuzz_below(random, ++seen) == 0)
            found = s->at[i].value;
    return found;
}

/* Calls that are put into another graph: what they make gets new names, which later ones of them read. */
typedef struct splice {
    json_t *from, *to; /* tensor_values */
    json_t *made;      /* what later calls may read: an object with a member for each tensor */
    char was[MOST_RENAMED][MOST_NAME], is[MOST_RENAMED][MOST_NAME];
    size_t n;
    fuzz_random *random;
} splice;

static void rename_made(splice *p, json_t *tensor)
{
    const char *name = json_string_value(json_object_get(tensor, "name"));
    json_t *described = name != NULL ? json_object_get(p->from, name) : NULL;
    if (described == NULL || p->n == MOST_RENAMED || strlen(name) >= MOST_NAME) return;
    snprintf(p->was[p->n], MOST_NAME, "%s", name);
    snprintf(p->is[p->n], MOST_NAME, "f%u", (unsigned)fuzz_below(p->random, 1000000));
    json_object_set_new(p->to, p->is[p->n], json_deep_copy(described));
    json_object_set_new(tensor, "name", json_string(p->is[p->n++]));
}

static void rename_read(splice *p, json_t *tensor)
{
    const char *name = json_string_value(json_object_get(tensor, "name")), *other = NULL, *any;
    json_t *described;
    size_t seen = 0;
    if (name == NULL) return;
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->was[i], name) == 0) other = p->is[i];
    if (other == NULL && json_object_get(p->to, name) != NULL) return;
    if (other == NULL)
        json_object_foreach(p->to, any, described)
            if (fuzz_below(p->random, ++seen) == 0) other = any;
    if (other != NULL) json_object_set_new(tensor, "name", json_string(other));
}

static void note_made(splice *p, json_t *tensor)
{
    const char *name = json_string_value(json_object_get(tensor, "name"));
    if (name != NULL) json_object_set_new(p->made, name, json_null());
}

static void each_tensor(splice *p, const char *key, json_t *value,
                        void (*visit)(splice *, json_t *))
{
    const char *name;
    json_t *member;
    size_t i;
    if (strcmp(key, "as_tensor") == 0 || strcmp(key, "as_tensors") == 0) visit(p, value);
    json_object_foreach(value, name, member) each_tensor(p, name, member, visit);
    json_array_foreach(value, i, member) each_tensor(p, key, member, visit);
}

static bool splice_calls(const sites *own, const sites *from, fuzz_random *random)
{
    json_t *to = pick_graph(own, random), *donor = pick_graph(from, random), *copies = json_array();
    json_t *calls = json_object_get(to, "nodes"), *others = json_object_get(donor, "nodes"), *call;
    splice p = {.from = json_object_get(donor, "tensor_values"),
                .to = json_object_get(to, "tensor_values"),
                .made = json_object(),
                .random = random};
    size_t first = fuzz_below(random, json_array_size(others)), i;
    size_t last = first + 1 + fuzz_below(random, MOST_CALLS);
    size_t at = fuzz_below(random, json_array_size(calls) + 1);
    each_tensor(&p, "", json_object_get(to, "inputs"), note_made);
    for (i = 0; i < at; i++)
        each_tensor(&p, "", json_object_get(json_array_get(calls, i), "outputs"), note_made);
    for (i = first; to != NULL && i < last && i < json_array_size(others); i++)
        json_array_append_new(copies, json_deep_copy(json_array_get(others, i)));
    json_array_foreach(copies, i, call)
    {
        each_tensor(&p, "", json_object_get(call, "inputs"), rename_read);
        each_tensor(&p, "", json_object_get(call, "outputs"), rename_made);
        json_array_insert(calls, at + i, call);
    }
    bool is_done = json_array_size(copies) > 0;
    json_decref(copies);
    json_decref(p.made);
    return is_done;
}

/* --- All of it --------------------------------------------------------------------------------- */

static void change(const sites *own, const sites *from, fuzz_random *random)
{
    const site *s = pick(own, random);
    if (s == NULL) return;
    switch (fuzz_below(random, 12)) {
    case 0: drop(s); break;
    case 1: change_kind(s, from, random); break;
    case 2: change_list(s, from, random); break;
    case 3: set(s, new_value(s, random)); break;
    case 4:
    case 5:
    case 6:
    case 7:
        if (splice_calls(own, from, random)) break;
        /* FALLTHROUGH */
    default: set(s, other_value(s, from, random));
    }
}

static json_t *parse(const uint8_t *data, size_t size)
{
    return data != NULL ? json_loadb((const char *)data, size, JSON_ALLOW_NUL, NULL) : NULL;
}

static size_t mutate(uint8_t *data, size_t size, size_t capacity, const uint8_t *donor,
                     size_t donor_size, fuzz_random *random)
{
    json_t *root = parse(data, size), *other = parse(donor, donor_size);
    sites own = {0}, all = {0};
    for (size_t n = 1 + fuzz_below(random, 3); n > 0; n--) {
        add_all(&own, root);
        add_all(&all, other != NULL ? other : root);
        if (all.count > 0) change(&own, &all, random);
    }
    size_t written = json_dumpb(root, NULL, 0, JSON_COMPACT);
    if (own.count == 0)
        size = fuzz_mutate_bytes(data, size, capacity, donor, donor_size, random);
    else if (written > 0 && written <= capacity)
        size = json_dumpb(root, (char *)data, capacity, JSON_COMPACT);
    free(own.at);
    free(all.at);
    return size;
}

/* Documents are many small blocks, all of which go at once: a sanitizer that knows each would take most of the time. */
enum { MOST_BYTES = 32 << 20 };
static unsigned char *blocks;
static size_t used;

static void *take(size_t bytes)
{
    const size_t aligned = (bytes + 15) / 16 * 16;
    if (bytes > MOST_BYTES || aligned > MOST_BYTES - used) return NULL;
    used += aligned;
    return blocks + used - aligned;
}

static void leave(void *block)
{
    (void)block;
}

size_t fuzz_mutate_program(uint8_t *data, size_t size, size_t capacity, const uint8_t *donor,
                           size_t donor_size, fuzz_random *random)
{
    if (fuzz_below(random, 64) == 0)
        return fuzz_mutate_bytes(data, size, capacity, donor, donor_size, random);
    if (blocks == NULL) blocks = malloc(MOST_BYTES);
    if (blocks == NULL) abort();
    used = 0;
    json_set_alloc_funcs(take, leave);
    size = mutate(data, size, capacity, donor, donor_size, random);
    json_set_alloc_funcs(malloc, free);
    return size;
}
