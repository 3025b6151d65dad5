/* A page: a writer together with what its reader's terminal can show, and tables on it.
 *
 * A table is a list of cells, row by row. Its widths follow from its contents; what does not fit
 * the page is taken from the columns that may shrink, whose cells then lose their middle; names lose their
 * front where their ends differ, else what they begin with in common. Cells are
 * cleaned when they are written (clean.h), so they may hold text of the model.
 */
#ifndef ONV_REPORT_PAGE_H
#define ONV_REPORT_PAGE_H

#include "base/arena.h"
#include "base/vec.h"
#include "onnxvram/report.h"
#include "report/clean.h"
#include "report/units.h"

typedef enum onv_style {
    ONV_STYLE_PLAIN,
    ONV_STYLE_TITLE,
    ONV_STYLE_DIM,
    ONV_STYLE_BAR,
    ONV_STYLE_PEAK,
    ONV_STYLE_WARN,
} onv_style;

typedef struct onv_page {
    onv_writer *out;
    onv_arena *arena; /* for text; failure is sticky and the report looks at it once, at its end */
    unsigned width;
    bool color;
    bool verbose;        /* all that there is, not the most important alone */
    onv_clean_mode mode; /* not ONV_CLEAN_CELL */
} onv_page;

enum { ONV_PAGE_MIN_WIDTH = 40, ONV_PAGE_MAX_WIDTH = 1000 };

onv_page onv_page_make(onv_writer *out, onv_arena *arena, const onv_report_options *options);

static inline bool onv_page_is_unicode(const onv_page *page)
{
    return page->mode != ONV_CLEAN_ASCII;
}

/* Markdown: tables are its tables, titles bold; nothing is cut or broken to a width. */
static inline bool onv_page_is_markdown(const onv_page *page)
{
    return page->mode == ONV_CLEAN_MARKDOWN;
}

/* Between the ends of a range. */
static inline const char *onv_page_dash(const onv_page *page)
{
    return onv_page_is_unicode(page) ? "–" : "-";
}

/* Signs before a number; behind them stands a space. */
static inline const char *onv_page_at_least(const onv_page *page)
{
    return onv_page_is_unicode(page) ? "≥ " : ">= ";
}

static inline const char *onv_page_at_most(const onv_page *page)
{
    return onv_page_is_unicode(page) ? "≤ " : "<= ";
}

/* Fixed text in a style; text of the model, cleaned and fitted. Returns the columns written. */
void onv_page_text(const onv_page *page, onv_style style, const char *text);
size_t onv_page_fitted(const onv_page *page, onv_style style, const char *text, size_t columns);
/* A name, whose end tells most. */
size_t onv_page_name(const onv_page *page, onv_style style, const char *name, size_t columns);
/* Text of the model, cleaned. */
static inline void onv_page_put(const onv_page *page, const char *text)
{
    onv_write_clean(page->out, text, page->mode);
}
void onv_page_line(const onv_page *page); /* ends the line */
void onv_page_item(
    const onv_page *page); /* begins a line of a list: indents it, or a dash in Markdown */

/* Text of the model over as many lines as it needs, broken at spaces, each line indented. The
 * first one starts at column `at` (what stands before it is written). Ends the last line. */
void onv_page_wrapped(const onv_page *page, const char *text, size_t at, size_t indent);

/* An empty line and a title, whose line goes on; or on a line of its own. */
void onv_page_head(const onv_page *page, const char *title);
void onv_page_title(const onv_page *page, const char *title);

/* The same with text behind it. */
#define onv_page_titled(page, title, ...)                                                          \
    (onv_page_head((page), (title)), onv_page_format((page), __VA_ARGS__), onv_page_line(page))

/* An item of a list, wrapped; NULL, for want of memory: nothing. */
void onv_page_sentence(const onv_page *page, const char *text);
#define onv_page_say(page, ...)                                                                    \
    onv_page_sentence((page), onv_arena_printf((page)->arena, __VA_ARGS__))

/* Texts in the arena; empty without memory, which the arena remembers. */
static inline const char *onv_page_kept(const char *text)
{
    return text != NULL ? text : "";
}
#define onv_page_print(page, ...)   onv_page_kept(onv_arena_printf((page)->arena, __VA_ARGS__))
#define onv_page_label(page, label) onv_page_print((page), "%s", (label).text)
/* The same, written: all of it is cleaned. */
#define onv_page_format(page, ...) onv_page_put((page), onv_page_print((page), __VA_ARGS__))
const char *onv_page_bytes(const onv_page *page, uint64_t bytes);
const char *onv_page_count(const onv_page *page, uint64_t count);
const char *onv_page_percent(const onv_page *page, uint64_t part, uint64_t whole);
const char *onv_page_range(const onv_page *page, uint64_t low, uint64_t high);

/* A bar of at most `columns` columns for part / whole, in the arena. */
const char *onv_page_bar(const onv_page *page, uint64_t part, uint64_t whole, unsigned columns);

enum { ONV_TABLE_COLUMNS = 16 };

typedef struct onv_column {
    const char *title; /* a table whose titles are all "" has no header */
    bool right;
    uint8_t least; /* columns it may shrink to; 0: never shrinks */
    uint8_t style; /* onv_style */
    bool is_name; /* of values, nodes or modules: cut at the front where the ends tell them apart */
} onv_column;

typedef struct onv_table {
    onv_column columns[ONV_TABLE_COLUMNS];
    size_t n_columns;
    bool has_totals; /* a rule stands above the last row */
    bool failed;     /* a cell did not find memory, or there are too many columns */
    ONV_VEC(const char *) cells;
} onv_table;

/* A table of facts: a name, a figure, and a note on it. */
#define ONV_FACTS "~", ">", "8~"
void onv_table_fact(onv_table *table, const onv_page *page, const char *name, uint64_t bytes,
                    const char *note);

/* A column is a word: its title, behind a space where these are in front of it: > (right), a number (the least columns),
 * * (is_name), ~ # ! (dim, bar, peak). "12* module", "> bytes", "~". The word lives as long as the table. */
void onv_table_column(onv_table *table, const char *word);
onv_table onv_table_make(const char *const *words, size_t n);
#define onv_table_of(...)                                                                          \
    onv_table_make((const char *const[]){__VA_ARGS__},                                             \
                   sizeof(const char *[]){__VA_ARGS__} / sizeof(const char *))

/* The next cells; NULL (memory was short where it was made) counts as a failure. */
void onv_table_add(onv_table *table, const char *cell);
void onv_table_add_all(onv_table *table, const char *const *cells, size_t n);
#define onv_table_row(table, ...)                                                                  \
    onv_table_add_all((table), (const char *const[]){__VA_ARGS__},                                 \
                      sizeof(const char *[]){__VA_ARGS__} / sizeof(const char *))

/* Writes the table and releases it. A failure goes to the page's arena. */
void onv_table_finish(onv_table *table, const onv_page *page);

#endif
