#include "program/document.h"

#include <setjmp.h>
#include <string.h>

#include <yajl/yajl_parse.h>

#include "base/fail.h"
#include "base/heap.h"
#include "base/quota.h"
#include "base/vec.h"

/* Containers that are open: their items are at the end of `items`, until they go to the arena as one array. */
typedef struct container {
    size_t first;
    const char *key;
    bool is_object;
} container;

typedef struct builder {
    onv_document *document;
    ONV_VEC(onv_doc) items;
    ONV_VEC(container) open;
    const char *key; /* of the next value */
    onv_arena parser_memory;
    jmp_buf no_memory;
    bool is_short, is_deep; /* of memory */
} builder;

/* --- Memory of the parser ------------------------------------------------------------------------ */

/* yajl does not look whether it was given memory, so that it is left where there is none. It has no state but what is in this
 * arena. */
static void *give(void *context, size_t bytes)
{
    builder *b = context;
    size_t *block = onv_arena_alloc(&b->parser_memory, bytes + sizeof(max_align_t));
    if (block == NULL) longjmp(b->no_memory, 1);
    *block = bytes;
    return (char *)block + sizeof(max_align_t);
}

static void *give_more(void *context, void *before, size_t bytes)
{
    void *more = give(context, bytes);
    if (before == NULL) return more;
    size_t had = *(const size_t *)(const void *)((const char *)before - sizeof(max_align_t));
    memcpy(more, before, had < bytes ? had : bytes);
    return more;
}

static void take_back(void *context, void *block)
{
    (void)context;
    (void)block;
}

/* --- The tree ------------------------------------------------------------------------------------ */

enum { STOP = 0, GO_ON = 1 };

static int push(builder *b, onv_doc doc)
{
    doc.key = b->key;
    b->key = NULL;
    if (onv_work(1) && onv_vec_push(&b->items, doc)) return GO_ON;
    b->is_short = true;
    return STOP;
}

static int take_null(void *context)
{
    return push(context, (onv_doc){.type = ONV_DOC_NULL});
}

static int take_boolean(void *context, int value)
{
    return push(context, (onv_doc){.type = ONV_DOC_BOOL, .flag = value != 0});
}

static int take_integer(void *context, long long value)
{
    return push(context, (onv_doc){.type = ONV_DOC_INTEGER, .integer = value});
}

static int take_double(void *context, double value)
{
    return push(context, (onv_doc){.type = ONV_DOC_REAL, .real = value});
}

/* Ends a string: in the text, where it has no escapes, as a quotation mark is behind it; else a copy. What is behind a NUL byte is
 * not looked at. */
static const char *end_string(builder *b, const unsigned char *at, size_t length)
{
    onv_program_text *text = &b->document->text;
    uintptr_t offset = (uintptr_t)at - (uintptr_t)text->at;
    if (offset < text->bytes && length < text->bytes - offset) {
        text->at[offset + length] = '\0';
        return text->at + offset;
    }
    const char *copy = onv_arena_strndup(&b->document->arena, (const char *)at, length);
    if (copy == NULL) b->is_short = true;
    return copy;
}

static int take_string(void *context, const unsigned char *at, size_t length)
{
    builder *b = context;
    const char *text = end_string(b, at, length);
    if (text == NULL) return STOP;
    return push(b,
                (onv_doc){.type = ONV_DOC_STRING, .text = text, .count = (uint32_t)strlen(text)});
}

static int take_key(void *context, const unsigned char *at, size_t length)
{
    builder *b = context;
    b->key = end_string(b, at, length);
    return b->key != NULL ? GO_ON : STOP;
}

static int open_container(builder *b, bool is_object)
{
    container c = {.first = b->items.count, .key = b->key, .is_object = is_object};
    b->key = NULL;
    b->is_deep = b->open.count == ONV_DOC_MOST_DEPTH;
    if (b->is_deep) return STOP;
    if (onv_vec_push(&b->open, c)) return GO_ON;
    b->is_short = true;
    return STOP;
}

static int open_object(void *context)
{
    return open_container(context, true);
}

static int open_list(void *context)
{
    return open_container(context, false);
}

static int close_container(void *context)
{
    builder *b = context;
    container c = b->open.at[--b->open.count];
    onv_doc doc = {.type = c.is_object ? ONV_DOC_OBJECT : ONV_DOC_LIST};
    doc.count = (uint32_t)(b->items.count - c.first);
    if (doc.count > 0)
        doc.items = onv_arena_copy(&b->document->arena, b->items.at + c.first,
                                   doc.count * sizeof *doc.items);
    b->is_short = doc.count > 0 && doc.items == NULL;
    if (b->is_short) return STOP;
    b->items.count = c.first;
    b->key = c.key;
    return push(b, doc);
}

/* --- Text ---------------------------------------------------------------------------------------- */

/* Writes `as` over a word, with spaces behind it. */
static void overwrite(char *word, size_t length, const char *as)
{
    memset(word, ' ', length);
    while (*as != '\0') *word++ = *as++;
}

/* By its first letter, which is rare in a program: faster than memmem() on short words. */
static bool has_word(const char *text, size_t bytes, const char *word)
{
    size_t length = strlen(word);
    const char *end = text + bytes;
    while ((text = memchr(text, word[0], (size_t)(end - text))) != NULL) {
        if ((size_t)(end - text) >= length && memcmp(text, word, length) == 0) return true;
        text++;
    }
    return false;
}

/* PyTorch before 2.5 lets Python write these words, which are not JSON. They have room for a string. */
static void quote_numbers(char *text, size_t bytes)
{
    static const struct {
        const char *word, *as;
    } words[] = {{"-Infinity", "\"-inf\""}, {"Infinity", "\"inf\""}, {"NaN", "\"n\""}};
    bool inside = false;
    if (!has_word(text, bytes, "Infinity") && !has_word(text, bytes, "NaN")) return;
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] == '"') inside = !inside;
        if (inside && text[i] == '\\') i++;
        if (inside || (text[i] != '-' && text[i] != 'I' && text[i] != 'N')) continue;
        for (size_t k = 0; k < sizeof words / sizeof words[0]; k++) {
            size_t length = strlen(words[k].word);
            if (length > bytes - i || memcmp(text + i, words[k].word, length) != 0) continue;
            overwrite(text + i, length, words[k].as);
            i += length - 1;
            break;
        }
    }
}

static onv_status fail_at(builder *b, yajl_handle parser, onv_error *err)
{
    const onv_program_text *text = &b->document->text;
    size_t at = yajl_get_bytes_consumed(parser), line = 1;
    if (b->is_short) return onv_fail_memory(err);
    if (b->is_deep)
        return onv_fail(err, ONV_ERR_LIMIT, "the JSON text is nested more than %d levels deep",
                        ONV_DOC_MOST_DEPTH);
    for (size_t i = 0; i < at && i < text->bytes; i++) line += text->at[i] == '\n';
    return onv_fail(err, ONV_ERR_FORMAT, "is not valid JSON at byte %zu (line %zu)", at, line);
}

static onv_status parse(builder *b, onv_error *err)
{
    static const yajl_callbacks calls = {
        .yajl_null = take_null,
        .yajl_boolean = take_boolean,
        .yajl_integer = take_integer,
        .yajl_double = take_double,
        .yajl_string = take_string,
        .yajl_start_map = open_object,
        .yajl_map_key = take_key,
        .yajl_end_map = close_container,
        .yajl_start_array = open_list,
        .yajl_end_array = close_container,
    };
    yajl_alloc_funcs memory = {give, give_more, take_back, b};
    const onv_program_text *text = &b->document->text;
    if (setjmp(b->no_memory) != 0) return onv_fail_memory(err);
    yajl_handle parser = yajl_alloc(&calls, &memory, b);
    if (yajl_parse(parser, (const unsigned char *)text->at, text->bytes) != yajl_status_ok ||
        yajl_complete_parse(parser) != yajl_status_ok || b->items.count != 1)
        return fail_at(b, parser, err);
    const onv_doc *root = onv_arena_copy(&b->document->arena, b->items.at, sizeof *root);
    if (root == NULL) return onv_fail_memory(err);
    b->document->root = root;
    if (onv_doc_is(root, ONV_DOC_OBJECT)) return ONV_OK;
    return onv_fail(err, ONV_ERR_FORMAT, "expected a JSON object, found another value");
}

onv_status onv_document_parse(onv_document *document, onv_program_text *text, onv_error *err)
{
    enum { WORK_BYTES = 32 };
    *document = (onv_document){.text = *text};
    *text = (onv_program_text){0};
    onv_arena_init(&document->arena, SIZE_MAX);
    if (document->text.bytes > UINT32_MAX)
        return onv_fail(err, ONV_ERR_LIMIT, "the JSON text has more than 4 GiB");
    ONV_WORK(1 + document->text.bytes / WORK_BYTES);
    quote_numbers(document->text.at, document->text.bytes);
    builder *b = onv_heap_calloc(1, sizeof *b);
    if (b == NULL) return onv_fail_memory(err);
    b->document = document;
    onv_arena_init(&b->parser_memory, SIZE_MAX);
    onv_status status = parse(b, err);
    onv_arena_cleanup(&b->parser_memory);
    onv_vec_cleanup(&b->items);
    onv_vec_cleanup(&b->open);
    onv_heap_free(b);
    return status;
}

void onv_document_cleanup(onv_document *document)
{
    onv_arena_cleanup(&document->arena);
    onv_program_text_cleanup(&document->text);
}

const onv_doc *onv_doc_get(const onv_doc *of, const char *key)
{
    if (!onv_doc_is(of, ONV_DOC_OBJECT)) return NULL;
    for (uint32_t i = 0; i < of->count; i++)
        if (strcmp(of->items[i].key, key) == 0) return &of->items[i];
    return NULL;
}
