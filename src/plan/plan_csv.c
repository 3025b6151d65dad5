#include "plan/plan.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/csv.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/vec.h"

typedef enum csv_column { ID, LOWER, UPPER, SIZE, OFFSET, COLUMNS } csv_column;

static const char *const column_names[COLUMNS] = {"id", "lower", "upper", "size", "offset"};

typedef struct parser {
    onv_csv csv;
    char *text; /* the NUL-terminated text that `csv` reads */
    csv_column order[COLUMNS];
    size_t n_columns;
    onv_error *err;
} parser;

__attribute__((format(printf, 3, 4))) static onv_status fail_at(parser *p, size_t column,
                                                                const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return onv_fail(p->err, ONV_ERR_FORMAT, "line %zu, column %zu: %s", p->csv.line, column, text);
}

/* --- Reading ----------------------------------------------------------------------------------- */

/* Takes the next field of the line, and makes it a string in place. */
static onv_status next_field(parser *p, onv_csv_field *f)
{
    static const char *const faults[ONV_CSV_N_FAULTS] = {
        [ONV_CSV_OPEN] = "the quote is not closed",
        [ONV_CSV_AFTER] = "text follows the closing quote",
        [ONV_CSV_INSIDE] = "unexpected quote",
        [ONV_CSV_ZERO] = "unexpected zero byte",
        [ONV_CSV_RETURN] = "a carriage return without a line feed",
    };
    onv_csv_fault fault = onv_csv_next(&p->csv, f);
    if (fault != ONV_CSV_GOOD)
        return fail_at(p, (size_t)(p->csv.at - p->csv.line_start) + 1, "%s", faults[fault]);
    p->text[f->at - p->text + (ptrdiff_t)f->bytes] = '\0';
    return ONV_OK;
}

static onv_status parse_header(parser *p)
{
    bool seen[COLUMNS] = {false};
    onv_csv_field f = {0};
    while (!f.last) {
        ONV_TRY(next_field(p, &f));
        size_t c = 0;
        while (c < COLUMNS && strcmp(f.at, column_names[c]) != 0) c++;
        if (c == COLUMNS)
            return fail_at(p, f.column, "'%.40s' is not a column of id,lower,upper,size[,offset]",
                           f.at);
        if (seen[c]) return fail_at(p, f.column, "a second column '%s'", column_names[c]);
        seen[c] = true;
        p->order[p->n_columns++] = (csv_column)c;
    }
    for (size_t c = 0; c < OFFSET; c++)
        if (!seen[c]) return fail_at(p, 1, "the header has no column '%s'", column_names[c]);
    return ONV_OK;
}

static onv_status parse_number(parser *p, const onv_csv_field *f, csv_column c, uint64_t *value)
{
    onv_status status = onv_csv_number(*f, INT64_MAX, value);
    if (status == ONV_ERR_LIMIT)
        return fail_at(p, f->column, "%s %.40s does not fit 63 bits", column_names[c], f->at);
    if (status != ONV_OK)
        return fail_at(p, f->column, "%s '%.40s' is not a whole number of 0 or more",
                       column_names[c], f->at);
    return ONV_OK;
}

/* C0, DEL and C1: the id goes to a terminal as it is. */
static bool has_control(const char *id)
{
    for (; *id != '\0'; id++) {
        unsigned char c = (unsigned char)id[0], next = (unsigned char)id[1];
        if (c < ' ' || c == 0x7f || (c == 0xc2 && next >= 0x80 && next < 0xa0)) return true;
    }
    return false;
}

static onv_status parse_row(parser *p, onv_plan_buffer *buffer, const char **id)
{
    uint64_t values[COLUMNS] = {0};
    size_t upper_column = 1;
    onv_csv_field f = {0};
    for (size_t i = 0; i < p->n_columns; i++) {
        if (f.last)
            return fail_at(p, f.column, "the line ends after %zu of %zu columns", i, p->n_columns);
        ONV_TRY(next_field(p, &f));
        csv_column c = p->order[i];
        if (c == UPPER) upper_column = f.column;
        if (c == ID && has_control(f.at))
            return fail_at(p, f.column, "the id has a control character");
        if (c == ID)
            *id = f.at;
        else if (c != OFFSET)
            ONV_TRY(parse_number(p, &f, c, &values[c]));
    }
    if (!f.last) return fail_at(p, f.column, "the line has more than %zu columns", p->n_columns);
    if (values[LOWER] >= values[UPPER])
        return fail_at(p, upper_column, "upper %" PRIu64 " is not above lower %" PRIu64,
                       values[UPPER], values[LOWER]);
    *buffer = (onv_plan_buffer){values[LOWER], values[UPPER], values[SIZE]};
    return ONV_OK;
}

typedef ONV_VEC(onv_plan_buffer) buffer_vec;
typedef ONV_VEC(const char *) id_vec;

static onv_status parse_rows(parser *p, buffer_vec *buffers, id_vec *ids)
{
    while (p->csv.at < p->csv.end) {
        const char *at = p->csv.at + (p->csv.at[0] == '\r');
        if (*at == '\n' && at + 1 == p->csv.end) break; /* the last line may be blank */
        if (buffers->count == ONV_PLAN_MAX_BUFFERS)
            return onv_fail(p->err, ONV_ERR_LIMIT, "line %zu: more than %d buffers",
                            p->csv.n_passed + 1, ONV_PLAN_MAX_BUFFERS);
        onv_plan_buffer buffer;
        const char *id = NULL;
        ONV_TRY(parse_row(p, &buffer, &id));
        if (!onv_vec_push(buffers, buffer) || !onv_vec_push(ids, id))
            return onv_fail_memory(p->err);
    }
    return ONV_OK;
}

onv_status onv_plan_csv_parse(char *text, size_t bytes, onv_plan_table *table, onv_error *err)
{
    parser p = {.csv = {.at = text, .end = text + bytes, .quotes = ONV_CSV_LINE_QUOTES},
                .text = text,
                .err = err};
    static const char mark[] = "\xef\xbb\xbf"; /* of UTF-8, which spreadsheets put in front */
    if (bytes >= 3 && memcmp(text, mark, 3) == 0) p.csv.at += 3;
    buffer_vec buffers = {0};
    id_vec ids = {0};
    onv_status status = parse_header(&p);
    if (status == ONV_OK) status = parse_rows(&p, &buffers, &ids);
    *table = (onv_plan_table){buffers.at, ids.at, buffers.count, text};
    if (status != ONV_OK) onv_plan_table_cleanup(table);
    return status;
}

onv_status onv_plan_csv_read(const char *path, onv_plan_table *table, onv_error *err)
{
    *table = (onv_plan_table){0};
    const char *why;
    onv_error local = {0};
    onv_file_bytes all = {0};
    int file = onv_file_open(path, &why);
    if (file < 0) return onv_fail(err, ONV_ERR_IO, "cannot be opened: %s", why);
    onv_status status = onv_file_read_all(file, ONV_PLAN_CSV_MAX_BYTES, &all, &local);
    close(file);
    if (status == ONV_OK && !onv_vec_push(&all, '\0')) status = onv_fail_memory(&local);
    if (status == ONV_OK) return onv_plan_csv_parse(all.at, all.count - 1, table, err);
    onv_vec_cleanup(&all);
    return onv_fail(err, status, "%s%s",
                    status == ONV_ERR_IO      ? "cannot be read: "
                    : status == ONV_ERR_LIMIT ? "has "
                                              : "",
                    local.message);
}

void onv_plan_table_cleanup(onv_plan_table *table)
{
    onv_vec_free(table->buffers);
    onv_vec_free(table->ids);
    onv_heap_free(table->text);
    *table = (onv_plan_table){0};
}

/* --- Writing ----------------------------------------------------------------------------------- */

onv_status onv_plan_csv_write(const onv_plan_table *table, const onv_plan *plan, onv_write_fn write,
                              void *context, onv_error *err)
{
    static const char header[] = "id,lower,upper,size,offset\n";
    bool good = write(context, header, sizeof header - 1);
    for (size_t i = 0; i < table->count && good; i++) {
        const onv_plan_buffer *b = &table->buffers[i];
        char line[128];
        int bytes =
            snprintf(line, sizeof line, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n",
                     b->lower, b->upper, b->size, plan->offsets[i]);
        good = write(context, table->ids[i], strlen(table->ids[i])) &&
               write(context, line, (size_t)bytes);
    }
    return good ? ONV_OK : onv_fail(err, ONV_ERR_IO, "the plan could not be written");
}

onv_status onv_plan_csv_run(const char *path, const onv_plan_options *options, onv_write_fn write,
                            void *context, onv_plan *plan, onv_error *err)
{
    onv_plan_table table;
    onv_plan made = {0};
    ONV_TRY(onv_plan_csv_read(path, &table, err));
    onv_status status = onv_plan_compute(table.buffers, table.count, options, &made, err);
    if (status == ONV_OK) status = onv_plan_check(table.buffers, table.count, options, &made, err);
    if (status == ONV_OK) status = onv_plan_csv_write(&table, &made, write, context, err);
    if (plan != NULL) {
        *plan = made;
        plan->offsets = NULL;
        plan->count = 0;
    }
    onv_plan_cleanup(&made);
    onv_plan_table_cleanup(&table);
    return status;
}
