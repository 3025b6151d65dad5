#include <string.h>

#include "onnxvram/common.h"
#include "report/clean.h"

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
