#include "report/units.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* count / unit with so many decimals (at most 2), rounded to the nearest: the digits without the
 * point. `unit` is at most 10^18 or 2^60, so that its hundredth part is far from 0. */
static uint64_t divide(uint64_t count, uint64_t unit, unsigned decimals)
{
    unsigned factor = decimals == 0 ? 1 : decimals == 1 ? 10 : 100;
    uint64_t whole = count / unit, rest = count % unit;
    /* rest * factor may pass 64 bits for the largest units; one bit less of each keeps the value. */
    while (rest > UINT64_MAX / factor) {
        rest /= 2;
        unit /= 2;
    }
    uint64_t digits = rest * factor / unit;
    uint64_t left = rest * factor % unit;
    return whole * factor + digits + (left >= unit - left);
}

static onv_label point(uint64_t digits, unsigned decimals, const char *suffix)
{
    onv_label label;
    unsigned factor = decimals == 1 ? 10 : 100;
    snprintf(label.text, sizeof label.text, "%llu.%0*llu%s", (unsigned long long)(digits / factor),
             (int)decimals, (unsigned long long)(digits % factor), suffix);
    return label;
}

static onv_label fixed(uint64_t count, uint64_t unit, unsigned decimals)
{
    onv_label label;
    uint64_t digits = divide(count, unit, decimals);
    if (decimals > 0) return point(digits, decimals, "");
    snprintf(label.text, sizeof label.text, "%llu", (unsigned long long)digits);
    return label;
}

static const char *const units[] = {" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"};

onv_label onv_label_bytes(uint64_t bytes)
{
    onv_label label;
    if (bytes < 1024) {
        snprintf(label.text, sizeof label.text, "%u B", (unsigned)bytes);
        return label;
    }
    for (unsigned power = 1;; power++) {
        unsigned decimals = power < 3 ? 1 : 2;
        uint64_t digits = divide(bytes, UINT64_C(1) << 10 * power, decimals);
        /* Rounding may reach the next unit: 1023.96 KiB is 1.0 MiB. */
        if (power < 6 && digits >= (power < 3 ? 10240 : 102400)) continue;
        return point(digits, decimals, units[power]);
    }
}

static unsigned power_of(uint64_t bytes)
{
    unsigned power = 0;
    while (power < 6 && bytes >> 10 * (power + 1) > 0) power++;
    return power;
}

/* Both ends in that unit; one number where they are one. */
static onv_label range(uint64_t low, uint64_t high, unsigned power, const char *dash,
                       const char *suffix)
{
    unsigned decimals = power < 3 ? 0 : 2;
    uint64_t unit = UINT64_C(1) << 10 * power;
    onv_label label, from = fixed(low, unit, decimals), to = fixed(high, unit, decimals);
    bool is_one = strcmp(from.text, to.text) == 0;
    snprintf(label.text, sizeof label.text, "%.9s%.4s%.9s%.4s", is_one ? "" : from.text,
             is_one ? "" : dash, to.text, suffix);
    return label;
}

onv_label onv_label_range(uint64_t low, uint64_t high, const char *dash)
{
    unsigned power = power_of(high), decimals = power < 3 ? 0 : 2;
    uint64_t unit = UINT64_C(1) << 10 * power;
    if (divide(low, unit, decimals) == divide(high, unit, decimals)) return onv_label_bytes(high);
    return range(low, high, power, dash, units[power]);
}

onv_label onv_label_part(uint64_t low, uint64_t high, uint64_t whole, const char *dash)
{
    return range(low, high, power_of(whole), dash, "");
}

onv_label onv_label_time(uint64_t low, uint64_t high, const char *dash)
{
    static const char *const names[] = {"us", "ms", "s"};
    unsigned power = 0, decimals = 0;
    uint64_t unit = 1000;
    for (; power < 2 && high / 1000 >= unit; power++) unit *= 1000;
    if (high / unit < 100) decimals = high / unit < 10 ? 2 : 1;
    onv_label label, from = fixed(low, unit, decimals), to = fixed(high, unit, decimals);
    snprintf(label.text, sizeof label.text, "%.9s%.4s%.9s %s", from.text, dash, to.text,
             names[power]);
    return label;
}

onv_label onv_label_count(uint64_t count)
{
    onv_label label = {.text = ""};
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)count);
    char *to = label.text;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0) *to++ = ',';
        *to++ = digits[i];
    }
    *to = '\0';
    return label;
}

onv_label onv_label_rate(uint64_t low, uint64_t high, const char *dash)
{
    const uint64_t hundred = 100;
    bool is_small = high < 100 * hundred;
    onv_label label, from = is_small ? fixed(low, hundred, 2) : onv_label_count(low / hundred);
    onv_label to = is_small ? fixed(high, hundred, 2) : onv_label_count(high / hundred);
    snprintf(label.text, sizeof label.text, "%.13s%.4s%.13s", from.text, dash, to.text);
    return label;
}

onv_label onv_label_scaled(uint64_t count)
{
    static const char *const thousands[] = {"", " K", " M", " G", " T", " P", " E"};
    if (count < 1000) return onv_label_count(count);
    uint64_t unit = 1;
    for (unsigned power = 1;; power++) {
        unit *= 1000;
        uint64_t digits = divide(count, unit, 2);
        if (power < 6 && digits >= 100000) continue;
        if (digits < 10000) return point(digits, 2, thousands[power]);
        return point(divide(count, unit, 1), 1, thousands[power]);
    }
}

unsigned onv_scale_share(uint64_t part, uint64_t whole, unsigned scale)
{
    if (whole == 0) return 0;
    if (part >= whole) return scale;
    while (part > UINT64_MAX / scale / 2) {
        part /= 2;
        whole /= 2;
    }
    return (unsigned)((part * scale + whole / 2) / whole);
}

onv_label onv_label_share(uint64_t part, uint64_t whole)
{
    return point(onv_scale_share(part, whole, 1000), 1, "%");
}

onv_label onv_label_percent(uint64_t part, uint64_t whole)
{
    onv_label label;
    unsigned percent = onv_scale_share(part, whole, 100);
    if (percent == 0 && part > 0) return (onv_label){"<1%"};
    snprintf(label.text, sizeof label.text, "%u%%", percent);
    return label;
}
