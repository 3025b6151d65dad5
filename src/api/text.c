#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "onnxvram/common.h"
#include "report/clean.h"
#include "report/units.h"

size_t onv_printable(const char *text, char *out, size_t size)
{
    size_t length = 0;
    if (size == 0) return 0;
    while (*text != '\0') {
        onv_unit unit = onv_clean_next(&text, ONV_CLEAN_UNICODE);
        if (unit.bytes >= size - length) break;
        memcpy(out + length, unit.text, unit.bytes);
        length += unit.bytes;
    }
    out[length] = '\0';
    return length;
}

void onv_size_text(uint64_t low, uint64_t high, bool unicode, char *text, size_t size)
{
    onv_label label = onv_label_range(low, high, unicode ? "\xe2\x80\x93" : "-");
    if (size > 0) snprintf(text, size, "%s", label.text);
}

bool onv_size_parse(const char *text, uint64_t *bytes)
{
    static const struct {
        const char *name;
        uint64_t factor;
    } units[] = {
        {"", 1},
        {"B", 1},
        {"KB", 1000},
        {"MB", 1000000},
        {"GB", 1000000000},
        {"TB", 1000000000000},
        {"KiB", UINT64_C(1) << 10},
        {"MiB", UINT64_C(1) << 20},
        {"GiB", UINT64_C(1) << 30},
        {"TiB", UINT64_C(1) << 40},
        {"K", UINT64_C(1) << 10},
        {"M", UINT64_C(1) << 20},
        {"G", UINT64_C(1) << 30},
        {"T", UINT64_C(1) << 40},
    };
    if (*text < '0' || *text > '9') return false;
    char *unit;
    long double number = strtold(text, &unit);
    /* Neither hexadecimal digits nor exponents, which it takes too. */
    if (strspn(text, "0123456789.") != (size_t)(unit - text)) return false;
    while (*unit == ' ') unit++;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcasecmp(units[i].name, unit) != 0) continue;
        number *= (long double)units[i].factor;
        if (!(number >= 0 && number < 9.2e18L)) return false;
        *bytes = (uint64_t)number;
        return true;
    }
    return false;
}
