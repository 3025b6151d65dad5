/* base64, RFC 4648. */
#ifndef ONV_BASE_BASE64_H
#define ONV_BASE_BASE64_H

#include <stddef.h>

extern const char onv_base64_digits[65];

/* Writes (bytes + 2) / 3 * 4 characters at `to`, without an end. */
void onv_base64_encode(const unsigned char *from, size_t bytes, char *to);

#endif
