#include "report/page.h"

#include <stdlib.h>
#include <string.h>

enum { INDENT = 2, GAP = 2 };

onv_page onv_page_make(onv_writer *out, onv_arena *arena, const onv_report_options *options)
{
    unsigned width = options->width == 0 ? 80 : options->width;
    if (width < ONV_PAGE_MIN_WIDTH) width = ONV_PAGE_MIN_WIDTH;
    if (width > ONV_PAGE_MAX_WIDTH) width = ONV_PAGE_MAX_WIDTH;
    return (onv_page){
        .out = out,
        .arena = arena,
        .width = width,
        .color = options->color,
        .verbose = options->verbosity > 0,
        .mode = options->unicode ? ONV_CLEAN_UNICODE : ONV_CLEAN_ASCII,
    };
}

static void begin_style(const onv_page *page, onv_style style)
{
    static const char *const codes[] = {
        [ONV_STYLE_PLAIN] = "",          [ONV_STYLE_TITLE] = "\033[1m",
        [ONV_STYLE_DIM] = "\033[2m",     [ONV_STYLE_BAR] = "\033[36m",
        [ONV_STYLE_PEAK] = "\033[1;35m", [ONV_STYLE_WARN] = "\033[33m",
    };
    if (page->color) onv_write_text(page->out, codes[style]);
    if (onv_page_is_markdown(page) && style == ONV_STYLE_TITLE) onv_write_text(page->out, "**");
}

static void end_style(const onv_page *page, onv_style style)
{
    if (page->color && style != ONV_STYLE_PLAIN) onv_write_text(page->out, "\033[0m");
    if (onv_page_is_markdown(page) && style == ONV_STYLE_TITLE) onv_write_text(page->out, "**");
}

void onv_page_text(const onv_page *page, onv_style style, const char *text)
{
    begin_style(page, style);
    onv_write_text(page->out, text);
    end_style(page, style);
}

static size_t write_cut(const onv_page *page, onv_style style, const char *text, size_t columns,
                        onv_cut cut)
{
    begin_style(page, style);
    size_t most = onv_page_is_markdown(page) ? SIZE_MAX : columns;
    size_t used = onv_write_fitted(page->out, text, most, page->mode, cut);
    end_style(page, style);
    return used;
}

size_t onv_page_fitted(const onv_page *page, onv_style style, const char *text, size_t columns)
{
    return write_cut(page, style, text, columns, ONV_CUT_MIDDLE);
}

size_t onv_page_name(const onv_page *page, onv_style style, const char *name, size_t columns)
{
    return write_cut(page, style, name, columns, ONV_CUT_FRONT);
}

void onv_page_line(const onv_page *page)
{
    onv_write_char(page->out, '\n');
}

void onv_page_item(const onv_page *page)
{
    onv_write_text(page->out, onv_page_is_markdown(page) ? "- " : "  ");
}

static void write_spaces(const onv_page *page, size_t count)
{
    for (size_t i = 0; i < count; i++) onv_write_char(page->out, ' ');
}

/* The columns of the word at `text`, and where it ends. */
static size_t word_columns(const onv_page *page, const char *text, const char **end)
{
    size_t columns = 0;
    while (*text != '\0' && *text != ' ') columns += onv_clean_next(&text, page->mode).columns;
    *end = text;
    return columns;
}

void onv_page_wrapped(const onv_page *page, const char *text, size_t at, size_t indent)
{
    bool line_is_empty = true, breaks = !onv_page_is_markdown(page);
    while (*text != '\0' && !page->out->failed) {
        const char *end;
        size_t columns = word_columns(page, text, &end);
        if (breaks && !line_is_empty && at + 1 + columns > page->width) {
            onv_page_line(page);
            write_spaces(page, indent);
            at = indent;
            line_is_empty = true;
        }
        if (!line_is_empty) onv_write_char(page->out, ' ');
        at += columns + !line_is_empty;
        while (text < end) {
            onv_unit unit = onv_clean_next(&text, page->mode);
            onv_write_bytes(page->out, unit.text, unit.bytes);
        }
        line_is_empty = false;
        while (*text == ' ') text++;
    }
    onv_page_line(page);
}

void onv_page_head(const onv_page *page, const char *title)
{
    onv_page_line(page);
    onv_page_text(page, ONV_STYLE_TITLE, title);
}

void onv_page_title(const onv_page *page, const char *title)
{
    onv_page_head(page, title);
    onv_page_line(page);
}

void onv_page_sentence(const onv_page *page, const char *text)
{
    if (text == NULL) return;
    onv_page_item(page);
    onv_page_wrapped(page, text, 2, 4);
}

const char *onv_page_bytes(const onv_page *page, uint64_t bytes)
{
    return onv_page_label(page, onv_label_bytes(bytes));
}

const char *onv_page_count(const onv_page *page, uint64_t count)
{
    return onv_page_label(page, onv_label_count(count));
}

const char *onv_page_percent(const onv_page *page, uint64_t part, uint64_t whole)
{
    return onv_page_label(page, onv_label_percent(part, whole));
}

const char *onv_page_range(const onv_page *page, uint64_t low, uint64_t high)
{
    return onv_page_label(page, onv_label_range(low, high, onv_page_dash(page)));
}

const char *onv_page_bar(const onv_page *page, uint64_t part, uint64_t whole, unsigned columns)
{
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    unsigned fine = onv_page_is_unicode(page) ? 8 : 1;
    const char *block = fine == 8 ? "█" : "#";
    unsigned units = onv_scale_share(part, whole, columns * fine);
    if (units == 0 && part > 0) units = 1;
    char *bar = onv_arena_alloc(page->arena, (size_t)columns * 3 + 4);
    if (bar == NULL) return NULL;
    char *to = bar;
    for (unsigned i = 0; i < units / fine; i++) to = stpcpy(to, block);
    stpcpy(to, eighths[units % fine]);
    return bar;
}

/* --- Tables ------------------------------------------------------------------------------------ */

void onv_table_fact(onv_table *table, const onv_page *page, const char *name, uint64_t bytes,
                    const char *note)
{
    onv_table_row(table, name, onv_page_bytes(page, bytes), note);
}

void onv_table_column(onv_table *table, const char *word)
{
    onv_column column = {.title = ""};
    for (; *word != '\0' && strchr(">*~#!0123456789", *word) != NULL; word++) {
        switch (*word) {
        case '>': column.right = true; break;
        case '*': column.is_name = true; break;
        case '~': column.style = ONV_STYLE_DIM; break;
        case '#': column.style = ONV_STYLE_BAR; break;
        case '!': column.style = ONV_STYLE_PEAK; break;
        default: column.least = (uint8_t)(10 * column.least + *word - '0');
        }
    }
    column.title = *word == ' ' ? word + 1 : word;
    if (table->n_columns < ONV_TABLE_COLUMNS)
        table->columns[table->n_columns++] = column;
    else
        table->failed = true;
}

onv_table onv_table_make(const char *const *words, size_t n)
{
    onv_table table = {.n_columns = 0};
    for (size_t i = 0; i < n; i++) onv_table_column(&table, words[i]);
    return table;
}

void onv_table_add(onv_table *table, const char *cell)
{
    if (cell == NULL || !onv_vec_push(&table->cells, cell)) table->failed = true;
}

void onv_table_add_all(onv_table *table, const char *const *cells, size_t n)
{
    for (size_t i = 0; i < n; i++) onv_table_add(table, cells[i]);
}

static bool has_titles(const onv_table *table)
{
    for (size_t c = 0; c < table->n_columns; c++)
        if (table->columns[c].title[0] != '\0') return true;
    return false;
}

/* The widths that the contents ask for, shrunk to the page: always the widest that may. */
static void measure(const onv_table *table, const onv_page *page, size_t *widths)
{
    size_t total = INDENT + GAP * (table->n_columns - 1);
    for (size_t c = 0; c < table->n_columns; c++) {
        widths[c] = strlen(table->columns[c].title);
        for (size_t i = c; i < table->cells.count; i += table->n_columns) {
            size_t width = onv_clean_columns(table->cells.at[i], page->mode);
            if (width > widths[c]) widths[c] = width;
        }
        /* No column needs more than the page, and the loop below stays short. */
        if (table->columns[c].least > 0 && widths[c] > page->width) widths[c] = page->width;
        total += widths[c];
    }
    while (total > page->width) {
        size_t widest = table->n_columns;
        for (size_t c = 0; c < table->n_columns; c++) {
            const onv_column *column = &table->columns[c];
            if (column->least == 0 || widths[c] <= column->least) continue;
            if (widest == table->n_columns || widths[c] > widths[widest]) widest = c;
        }
        if (widest == table->n_columns) return;
        widths[widest]--;
        total--;
    }
}

/* --- Names that do not fit their column ---------------------------------------------------------- */

/* How the cells of a column are cut. */
typedef struct cut {
    bool at_front;
    size_t common; /* bytes that they begin with, to a separator */
} cut;

typedef struct ending {
    const char *end, *name;
} ending;

static int compare_ends(const void *a, const void *b)
{
    return strcmp(((const ending *)a)->end, ((const ending *)b)->end);
}

/* Whether two different names have the same end. */
static bool ends_collide(ending *ends, size_t n)
{
    qsort(ends, n, sizeof *ends, compare_ends);
    for (size_t i = 1; i < n; i++)
        if (strcmp(ends[i].end, ends[i - 1].end) == 0 &&
            strcmp(ends[i].name, ends[i - 1].name) != 0)
            return true;
    return false;
}

static size_t common_bytes(const char *a, const char *b, size_t most)
{
    size_t n = 0;
    while (n < most && a[n] != '\0' && a[n] == b[n]) n++;
    return n;
}

/* Up to and without the last '/' or '.' of what all that do not fit begin with. */
static size_t find_common(const onv_table *table, const onv_page *page, size_t column, size_t width)
{
    const char *first = NULL;
    size_t common = 0;
    for (size_t i = column; i < table->cells.count; i += table->n_columns) {
        const char *name = table->cells.at[i];
        if (onv_clean_columns(name, page->mode) <= width) continue;
        common = first == NULL ? strlen(name) : common_bytes(first, name, common);
        if (first == NULL) first = name;
    }
    while (common > 0 && first[common] != '/' && first[common] != '.') common--;
    return common;
}

static cut choose_cut(const onv_table *table, const onv_page *page, size_t column, size_t width)
{
    size_t rows = table->cells.count / table->n_columns, n = 0;
    if (!table->columns[column].is_name) return (cut){0};
    ending *ends = ONV_ARENA_ARRAY(page->arena, ending, rows);
    if (ends == NULL) return (cut){0};
    for (size_t r = 0; r < rows; r++) {
        const char *name = table->cells.at[r * table->n_columns + column];
        ends[n++] = (ending){onv_clean_end(name, width, page->mode), name};
    }
    if (!ends_collide(ends, n)) return (cut){.at_front = true};
    return (cut){.common = find_common(table, page, column, width)};
}

/* A cell that does not fit keeps its indentation, up to a half of the column. */
static size_t write_cell(const onv_page *page, onv_style style, const char *cell, size_t width,
                         const cut *how)
{
    if (how->at_front) return onv_page_name(page, style, cell, width);
    if (how->common > 0 && onv_clean_columns(cell, page->mode) > width && width > 4) {
        const char *dots = onv_page_is_unicode(page) ? "\u2026" : "...";
        onv_page_text(page, style, dots);
        size_t used = onv_page_is_unicode(page) ? 1 : 3;
        return used + onv_page_fitted(page, style, cell + how->common, width - used);
    }
    size_t indent = strspn(cell, " ");
    if (onv_clean_columns(cell, page->mode) > width && indent > width / 2) {
        cell += indent - width / 2;
        indent = width / 2;
    }
    write_spaces(page, indent);
    return indent + onv_page_fitted(page, style, cell + indent, width - indent);
}

static void write_row(const onv_table *table, const onv_page *page, const size_t *widths,
                      const cut *cuts, const char *const *cells, bool is_header)
{
    size_t last = table->n_columns;
    while (last > 0 && cells[last - 1][0] == '\0') last--;
    write_spaces(page, last > 0 ? INDENT : 0);
    for (size_t c = 0; c < last; c++) {
        const onv_column *column = &table->columns[c];
        onv_style style = is_header ? ONV_STYLE_DIM : (onv_style)column->style;
        size_t width = onv_clean_columns(cells[c], page->mode);
        size_t pad = width < widths[c] ? widths[c] - width : 0;
        if (column->right) write_spaces(page, pad);
        size_t used = write_cell(page, style, cells[c], widths[c], &cuts[c]);
        if (c + 1 == last) break;
        /* A wide character may leave the fitted text a column short. */
        if (!column->right)
            pad = widths[c] > used ? widths[c] - used : 0;
        else
            pad = width > widths[c] && widths[c] > used ? widths[c] - used : 0;
        write_spaces(page, pad + GAP);
    }
    onv_page_line(page);
}

static void write_rule(const onv_table *table, const onv_page *page, const size_t *widths)
{
    size_t total = GAP * (table->n_columns - 1);
    for (size_t c = 0; c < table->n_columns; c++) total += widths[c];
    write_spaces(page, INDENT);
    for (size_t i = 0; i < total; i++)
        onv_write_text(page->out, onv_page_is_unicode(page) ? "─" : "-");
    onv_page_line(page);
}

static void write_markdown_row(const onv_page *page, const char *const *cells, size_t n)
{
    for (size_t c = 0; c < n; c++) {
        onv_write_text(page->out, c == 0 ? "| " : " | ");
        onv_page_put(page, cells[c] + strspn(cells[c], " "));
    }
    onv_write_text(page->out, " |\n");
}

/* Between two empty lines, as Markdown wants it. */
static void write_markdown(const onv_table *table, const onv_page *page, const char *const *titles)
{
    size_t rows = table->cells.count / table->n_columns;
    onv_page_line(page);
    write_markdown_row(page, titles, table->n_columns);
    for (size_t c = 0; c < table->n_columns; c++)
        onv_write_text(page->out, table->columns[c].right ? "|--:" : "|---");
    onv_write_text(page->out, "|\n");
    for (size_t r = 0; r < rows && !page->out->failed; r++)
        write_markdown_row(page, &table->cells.at[r * table->n_columns], table->n_columns);
    onv_page_line(page);
}

/* Columns that fit the page. */
static void write_plain(const onv_table *table, const onv_page *page, const char *const *titles)
{
    size_t rows = table->cells.count / table->n_columns, widths[ONV_TABLE_COLUMNS];
    cut cuts[ONV_TABLE_COLUMNS];
    measure(table, page, widths);
    for (size_t c = 0; c < table->n_columns; c++) cuts[c] = choose_cut(table, page, c, widths[c]);
    if (has_titles(table)) write_row(table, page, widths, cuts, titles, true);
    for (size_t r = 0; r < rows && !page->out->failed; r++) {
        if (table->has_totals && r + 1 == rows) write_rule(table, page, widths);
        write_row(table, page, widths, cuts, &table->cells.at[r * table->n_columns], false);
    }
}

void onv_table_finish(onv_table *table, const onv_page *page)
{
    const char *titles[ONV_TABLE_COLUMNS];
    if (table->failed) {
        page->arena->failed = true;
    } else if (table->cells.count >= table->n_columns) {
        for (size_t c = 0; c < table->n_columns; c++) titles[c] = table->columns[c].title;
        if (onv_page_is_markdown(page))
            write_markdown(table, page, titles);
        else
            write_plain(table, page, titles);
    }
    onv_vec_cleanup(&table->cells);
}
