#include "base/csv.h"

#include "base/checked.h"

static onv_csv_fault pass_quoted(onv_csv *csv)
{
    const char *p = csv->at + 1;
    for (;; p++) {
        if (p == csv->end || (*p == '\n' && csv->quotes == ONV_CSV_LINE_QUOTES))
            return ONV_CSV_OPEN;
        if (*p == '\0') return ONV_CSV_ZERO;
        csv->n_passed += *p == '\n';
        if (*p != '"') continue;
        if (p + 1 == csv->end || p[1] != '"') break;
        p++;
    }
    p++;
    if (p != csv->end && *p != ',' && *p != '\n' && *p != '\r') return ONV_CSV_AFTER;
    csv->at = p;
    return ONV_CSV_GOOD;
}

static onv_csv_fault pass_plain(onv_csv *csv)
{
    for (; csv->at != csv->end; csv->at++) {
        char byte = *csv->at;
        if (byte == ',' || byte == '\n' || byte == '\r') break;
        if (byte == '\0') return ONV_CSV_ZERO;
        if (byte == '"' && csv->quotes != ONV_CSV_NO_QUOTES) return ONV_CSV_INSIDE;
    }
    return ONV_CSV_GOOD;
}

onv_csv_fault onv_csv_next(onv_csv *csv, onv_csv_field *field)
{
    if (!csv->in_row) {
        csv->line = csv->n_passed + 1;
        csv->line_start = csv->at;
    }
    *field = (onv_csv_field){csv->at, 0, (size_t)(csv->at - csv->line_start) + 1, true};
    bool quoted = csv->quotes != ONV_CSV_NO_QUOTES && csv->at != csv->end && *csv->at == '"';
    onv_csv_fault fault = quoted ? pass_quoted(csv) : pass_plain(csv);
    if (fault != ONV_CSV_GOOD) return fault;
    field->bytes = (size_t)(csv->at - field->at);
    csv->in_row = csv->at != csv->end && *csv->at == ',';
    field->last = !csv->in_row;
    if (csv->at == csv->end) return ONV_CSV_GOOD;
    if (*csv->at == '\r') {
        if (csv->at + 1 == csv->end || csv->at[1] != '\n') return ONV_CSV_RETURN;
        csv->at++;
    }
    csv->n_passed += field->last;
    csv->at++;
    return ONV_CSV_GOOD;
}

onv_status onv_csv_number(onv_csv_field field, uint64_t limit, uint64_t *number)
{
    *number = 0;
    for (size_t i = 0; i < field.bytes; i++) {
        unsigned digit = (unsigned)(field.at[i] - '0');
        if (digit > 9) return ONV_ERR_FORMAT;
        if (!onv_u64_mul(*number, 10, number) || !onv_u64_add(*number, digit, number) ||
            *number > limit)
            return ONV_ERR_LIMIT;
    }
    return field.bytes > 0 ? ONV_OK : ONV_ERR_FORMAT;
}
