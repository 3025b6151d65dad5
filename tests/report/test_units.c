/* Numbers for people: units, rounding, shares. */
#include "report/units.h"
#include "support/test.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * 1024)
#define GIB (MIB * 1024)

TEST(bytes)
{
    assert_string_equal(onv_label_bytes(0).text, "0 B");
    assert_string_equal(onv_label_bytes(1023).text, "1023 B");
    assert_string_equal(onv_label_bytes(1024).text, "1.0 KiB");
    assert_string_equal(onv_label_bytes(1000 * KIB).text, "1000.0 KiB");
    assert_string_equal(onv_label_bytes(784 * MIB).text, "784.0 MiB");
    assert_string_equal(onv_label_bytes(102228128).text, "97.5 MiB");
    assert_string_equal(onv_label_bytes(3 * GIB / 2).text, "1.50 GiB");
    /* Rounding that reaches the next unit. */
    assert_string_equal(onv_label_bytes(MIB - 1).text, "1.0 MiB");
    assert_string_equal(onv_label_bytes(GIB - 1).text, "1.00 GiB");
    assert_string_equal(onv_label_bytes(1024 * KIB - 60).text, "1023.9 KiB");
    assert_string_equal(onv_label_bytes(UINT64_MAX).text, "16.00 EiB");
    assert_string_equal(onv_label_bytes(UINT64_C(1) << 60).text, "1.00 EiB");
    assert_string_equal(onv_label_bytes((UINT64_C(1) << 60) - 1).text, "1.00 EiB");
}

TEST(ranges)
{
    assert_string_equal(onv_label_range(256 * MIB, 600 * MIB, "-").text, "256-600 MiB");
    assert_string_equal(onv_label_range(0, 32 * MIB, "-").text, "0-32 MiB");
    assert_string_equal(onv_label_range(829 * MIB, 1229 * MIB, "-").text, "0.81-1.20 GiB");
    assert_string_equal(onv_label_range(MIB, MIB, "-").text, "1.0 MiB");
    assert_string_equal(onv_label_range(3, 5, "–").text, "3–5 B");
    assert_string_equal(onv_label_range(0, UINT64_MAX, "-").text, "0.00-16.00 EiB");
}

TEST(counts)
{
    assert_string_equal(onv_label_count(0).text, "0");
    assert_string_equal(onv_label_count(999).text, "999");
    assert_string_equal(onv_label_count(1000).text, "1,000");
    assert_string_equal(onv_label_count(25557032).text, "25,557,032");
    assert_string_equal(onv_label_count(UINT64_MAX).text, "18,446,744,073,709,551,615");
    assert_string_equal(onv_label_scaled(999).text, "999");
    assert_string_equal(onv_label_scaled(4089184256).text, "4.09 G");
    assert_string_equal(onv_label_scaled(123456).text, "123.5 K");
    assert_string_equal(onv_label_scaled(999996).text, "1.00 M");
    assert_string_equal(onv_label_scaled(UINT64_MAX).text, "18.45 E");
}

TEST(shares)
{
    assert_string_equal(onv_label_share(1, 3).text, "33.3%");
    assert_string_equal(onv_label_share(5, 5).text, "100.0%");
    assert_string_equal(onv_label_share(0, 0).text, "0.0%");
    assert_string_equal(onv_label_share(UINT64_MAX / 2, UINT64_MAX).text, "50.0%");
    assert_int_equal(onv_scale_share(UINT64_MAX, UINT64_MAX, 8), 8);
    assert_int_equal(onv_scale_share(1, 16, 8), 1);
    assert_int_equal(onv_scale_share(0, 16, 8), 0);
}
