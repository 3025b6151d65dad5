#include "plan/plan.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/vec.h"

typedef enum csv_column { ID, LOWER, UPPER, SIZE, OFFSET, COLUMNS } csv_column;

static const char *const column_names[COLUMNS] = {"id", "lower", "upper", "size", "offset"};

typedef struct parser {
    char *at, *end;   /* *end is NUL */
    char *line_start; /* of the current line */
    size_t line;      /* from 1 */
    csv_column order[COLUMNS];
    size_t n_columns;
    onv_error *err;
} parser;

/* A field of the current line, NUL-terminated in place. */
typedef struct field {
    char *text;
    size_t column; /* byte of the line, from 1 */
    bool last;     /* of its line */
} field;

__attribute__((format(printf, 3, 4))) static onv_status fail_at(parser *p, size_t column,
                                                                const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return onv_fail(p->err, ONV_ERR_FORMAT, "line %zu, column %zu: %s", p->line, column, text);
}

/* --- Reading ----------------------------------------------------------------------------------- */

/* Moves to the end of a field; inside quotes a comma belongs to it. */
static onv_status skip_field(parser *p, size_t column)
{
    if (*p->at == '"') {
        for (p->at++;; p->at++) {
            if (*p->at == '\n' || p->at == p->end)
                return fail_at(p, column, "the quote is not closed");
            if (*p->at != '"') continue;
            if (p->at[1] != '"') break;
            p->at++;
        }
        p->at++;
        if (*p->at != ',' && *p->at != '\n' && *p->at != '\r' && p->at != p->end)
            return fail_at(p, column, "text follows the closing quote");
        return ONV_OK;
    }
    while (p->at < p->end && *p->at != ',' && *p->at != '\n' && *p->at != '\r') {
        if (*p->at == '\0' || *p->at == '"')
            return fail_at(p, (size_t)(p->at - p->line_start) + 1, "unexpected %s",
                           *p->at == '"' ? "quote" : "zero byte");
        p->at++;
    }
    return ONV_OK;
}

/* Takes the next field of the line and what ends it. */
static onv_status next_field(parser *p, field *f)
{
    *f = (field){.text = p->at, .column = (size_t)(p->at - p->line_start) + 1};
    ONV_TRY(skip_field(p, f->column));
    char *stop = p->at;
    if (p->at < p->end && *p->at == '\r') {
        if (p->at[1] != '\n')
            return fail_at(p, (size_t)(p->at - p->line_start) + 1,
                           "a carriage return without a line feed");
        p->at++;
    }
    f->last = p->at == p->end || *p->at == '\n';
    if (p->at < p->end) p->at++;
    *stop = '\0';
    return ONV_OK;
}

static onv_status parse_header(parser *p)
{
    bool seen[COLUMNS] = {false};
    field f = {0};
    while (!f.last) {
        ONV_TRY(next_field(p, &f));
        size_t c = 0;
        while (c < COLUMNS && strcmp(f.text, column_names[c]) != 0) c++;
        if (c == COLUMNS)
            return fail_at(p, f.column, "'%.40s' is not a column of id,lower,upper,size[,offset]",
                           f.text);
        if (seen[c]) return fail_at(p, f.column, "a second column '%s'", column_names[c]);
        seen[c] = true;
        p->order[p->n_columns++] = (csv_column)c;
    }
    for (size_t c = 0; c < OFFSET; c++)
        if (!seen[c]) return fail_at(p, 1, "the header has no column '%s'", column_names[c]);
    return ONV_OK;
}

static onv_status parse_number(parser *p, const field *f, csv_column c, uint64_t *value)
{
    uint64_t sum = 0;
    const char *digit = f->text;
    for (; *digit >= '0' && *digit <= '9'; digit++) {
        uint64_t low = (uint64_t)(*digit - '0');
        if (sum > (INT64_MAX - low) / 10)
            return fail_at(p, f->column, "%s %.40s does not fit 63 bits", column_names[c], f->text);
        sum = sum * 10 + low;
    }
    if (digit == f->text || *digit != '\0')
        return fail_at(p, f->column, "%s '%.40s' is not a whole number of 0 or more",
                       column_names[c], f->text);
    *value = sum;
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
    field f = {0};
    for (size_t i = 0; i < p->n_columns; i++) {
        if (f.last)
            return fail_at(p, f.column, "the line ends after %zu of %zu columns", i, p->n_columns);
        ONV_TRY(next_field(p, &f));
        csv_column c = p->order[i];
        if (c == UPPER) upper_column = f.column;
        if (c == ID && has_control(f.text))
            return fail_at(p, f.column, "the id has a control character");
        if (c == ID)
            *id = f.text;
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
    while (p->at < p->end) {
        p->line++;
        p->line_start = p->at;
        bool blank = *p->at == '\n' || (*p->at == '\r' && p->at[1] == '\n');
        if (blank && p->at + (*p->at == '\r') + 1 == p->end) break; /* the last line may be */
        if (buffers->count == ONV_PLAN_MAX_BUFFERS)
            return onv_fail(p->err, ONV_ERR_LIMIT, "line %zu: more than %d buffers", p->line,
                            ONV_PLAN_MAX_BUFFERS);
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
    parser p = {.at = text, .end = text + bytes, .line_start = text, .line = 1, .err = err};
    static const char mark[] = "\xef\xbb\xbf"; /* of UTF-8, which spreadsheets put in front */
    if (bytes >= 3 && memcmp(text, mark, 3) == 0) p.line_start = p.at += 3;
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
