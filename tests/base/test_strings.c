/* Interned strings: equal text is one pointer, in whatever order it comes. */
#include "base/strings.h"
#include "support/test.h"

enum { COUNT = 5000, STEP = 7 }; /* the step has no divisor of the count */

static const char *name_of(uint32_t i, char *text, size_t size)
{
    /* Prefixes of each other, text of any length, and the empty one. */
    int length = snprintf(text, size, "%.*s%u", (int)(i % 40),
                          "a/layer/of/some/network/with/long/names/", i / 3);
    text[i % 3 == 2 ? (size_t)length - 1 : (size_t)length] = '\0';
    return text;
}

/* What is known of each name, by its place. */
typedef struct names {
    onv_arena arena;
    onv_strings table;
    const char *found[COUNT];
} names;

static void intern_all(names *n, uint32_t first, uint32_t step)
{
    char text[64];
    for (uint32_t i = 0, at = first; i < COUNT; i++, at = (at + step) % COUNT) {
        const char *found = onv_intern(&n->table, name_of(at, text, sizeof text));
        assert_string_equal(found, text);
        if (n->found[at] != NULL) assert_ptr_equal(found, n->found[at]);
        n->found[at] = found;
    }
}

static void open_names(names *n)
{
    memset(n, 0, sizeof *n);
    onv_arena_init(&n->arena, SIZE_MAX);
    onv_strings_init(&n->table, &n->arena);
}

static void close_names(names *n)
{
    onv_strings_cleanup(&n->table);
    onv_arena_cleanup(&n->arena);
}

TEST(equal_text_is_one_string)
{
    static names n;
    open_names(&n);
    assert_null(onv_interned(&n.table, "a"));
    intern_all(&n, 0, 1);
    size_t count = n.table.count;
    intern_all(&n, 0, 1);                 /* in the same order again */
    intern_all(&n, 0, 2);                 /* with others between */
    intern_all(&n, COUNT - 1, COUNT - 1); /* backwards */
    intern_all(&n, 3, STEP);
    assert_int_equal(n.table.count, count);
    for (uint32_t i = 0; i < COUNT; i++) {
        char text[64];
        assert_ptr_equal(onv_interned(&n.table, name_of(i, text, sizeof text)), n.found[i]);
        for (uint32_t k = i + 1; k < i + 60 && k < COUNT; k++)
            assert_int_equal(n.found[i] == n.found[k], strcmp(n.found[i], n.found[k]) == 0);
    }
    assert_null(onv_interned(&n.table, "never"));
    close_names(&n);
}

TEST(text_ends_at_a_nul)
{
    static names n;
    open_names(&n);
    const char *a = onv_intern_n(&n.table, "a\0b", 3);
    assert_string_equal(a, "a");
    assert_ptr_equal(onv_intern(&n.table, "a"), a);
    assert_ptr_equal(onv_intern_n(&n.table, "abc", 1), a);
    assert_string_equal(onv_intern_n(&n.table, "abc", 0), "");
    close_names(&n);
}

TEST(numbers_count_strings)
{
    static names n;
    open_names(&n);
    intern_all(&n, 0, STEP);
    for (size_t i = 0; i < n.table.count; i++)
        assert_int_equal(onv_string_number(n.table.texts[i]), i);
    close_names(&n);
}

TEST(a_copy_goes_on_by_itself)
{
    static names n, copy;
    open_names(&n);
    open_names(&copy);
    intern_all(&n, 0, 1);
    size_t count = n.table.count;
    assert_true(onv_strings_copy(&n.table, &copy.arena, &copy.table));
    memcpy(copy.found, n.found, sizeof copy.found);
    intern_all(&copy, 0, 1);
    const char *added = onv_intern(&copy.table, "only in the copy");
    assert_int_equal(onv_string_number(added), count);
    assert_null(onv_interned(&n.table, added));
    assert_int_equal(n.table.count, count);
    close_names(&copy);
    close_names(&n);
}
