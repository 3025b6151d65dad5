#include "base/base64.h"

const char onv_base64_digits[65] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void onv_base64_encode(const unsigned char *from, size_t bytes, char *to)
{
    for (size_t i = 0; i < bytes; i += 3) {
        unsigned word = (unsigned)from[i] << 16;
        if (i + 1 < bytes) word |= (unsigned)from[i + 1] << 8;
        if (i + 2 < bytes) word |= from[i + 2];
        *to++ = onv_base64_digits[word >> 18];
        *to++ = onv_base64_digits[word >> 12 & 63];
        *to++ = (char)(i + 1 < bytes ? onv_base64_digits[word >> 6 & 63] : '=');
        *to++ = (char)(i + 2 < bytes ? onv_base64_digits[word & 63] : '=');
    }
}
