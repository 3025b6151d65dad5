/* Untrusted text: what is escaped, how wide it is, how it is cut. */
#include "report/clean.h"
#include "report/quoted.h"
#include "support/capture.h"
#include "support/test.h"

static void expect_clean(const char *text, onv_clean_mode mode, const char *expected)
{
    OWNED_CAPTURE caught = {0};
    onv_writer writer;
    onv_writer_init(&writer, capture_write, &caught);
    onv_write_clean(&writer, text, mode);
    assert_int_equal(onv_writer_finish(&writer, NULL), ONV_OK);
    assert_string_equal(caught.text, expected);
}

TEST(plain_text_stays)
{
    expect_clean("/layer1/conv.0:1", ONV_CLEAN_UNICODE, "/layer1/conv.0:1");
    expect_clean("größe 模型 \\x1b", ONV_CLEAN_UNICODE, "größe 模型 \\x1b");
    expect_clean("größe", ONV_CLEAN_ASCII, "gr\\xf6\\xdfe");
    expect_clean("模", ONV_CLEAN_ASCII, "\\u6a21");
}

TEST(controls_are_escaped)
{
    expect_clean("a\x1b[31mb", ONV_CLEAN_UNICODE, "a\\x1b[31mb");
    expect_clean("\a\b\t\r\n\x7f", ONV_CLEAN_UNICODE, "\\x07\\x08\\x09\\x0d\\x0a\\x7f");
    expect_clean("\xc2\x9b"
                 "2J",
                 ONV_CLEAN_UNICODE, "\\x9b2J");
    expect_clean("\u202egnp\u2066", ONV_CLEAN_UNICODE, "\\u202egnp\\u2066");
    expect_clean("a\u200bb\ufeff\u2028\U000e0041", ONV_CLEAN_UNICODE,
                 "a\\u200bb\\ufeff\\u2028\\U000e0041");
}

TEST(ill_formed_bytes_are_escaped)
{
    expect_clean("\xff\x80x", ONV_CLEAN_UNICODE, "\\xff\\x80x");
    expect_clean("\xc0\xaf", ONV_CLEAN_UNICODE, "\\xc0\\xaf");          /* overlong */
    expect_clean("\xed\xa0\x80", ONV_CLEAN_UNICODE, "\\xed\\xa0\\x80"); /* a surrogate */
    expect_clean("\xf4\x90\x80\x80", ONV_CLEAN_UNICODE, "\\xf4\\x90\\x80\\x80");
    expect_clean("\xe6\xa8", ONV_CLEAN_UNICODE, "\\xe6\\xa8"); /* cut off */
}

/* Whatever bytes come in, what goes out is safe, and the width is what was announced. */
TEST(all_bytes_are_safe)
{
    uint32_t seed = 12345;
    for (int round = 0; round < 2000; round++) {
        char text[33];
        for (size_t i = 0; i < 32; i++) {
            seed = seed * 1664525 + 1013904223;
            text[i] = (char)(seed >> 24 == 0 ? 1 : seed >> 24);
        }
        text[32] = '\0';
        capture caught = {0};
        onv_writer writer;
        onv_writer_init(&writer, capture_write, &caught);
        size_t columns = seed >> 16 & 63;
        size_t used = onv_write_fitted(&writer, text, columns, ONV_CLEAN_ASCII, ONV_CUT_MIDDLE);
        assert_int_equal(onv_writer_finish(&writer, NULL), ONV_OK);
        assert_true(used <= columns);
        if (used > 0) {
            expect_safe(caught.text, columns);
            assert_int_equal(strlen(caught.text), used);
        }
        capture_free(&caught);
        onv_writer_init(&writer, capture_write, &caught);
        onv_write_clean(&writer, text, ONV_CLEAN_UNICODE);
        assert_int_equal(onv_writer_finish(&writer, NULL), ONV_OK);
        expect_safe(caught.text, 0);
        capture_free(&caught);
    }
}

static void expect_fitted(const char *text, size_t columns, onv_clean_mode mode,
                          const char *expected, size_t used)
{
    OWNED_CAPTURE caught = {0};
    onv_writer writer;
    onv_writer_init(&writer, capture_write, &caught);
    assert_int_equal(onv_write_fitted(&writer, text, columns, mode, ONV_CUT_MIDDLE), used);
    assert_int_equal(onv_writer_finish(&writer, NULL), ONV_OK);
    assert_string_equal(caught.text != NULL ? caught.text : "", expected);
}

TEST(wide_text_loses_its_middle)
{
    assert_int_equal(onv_clean_columns("模型", ONV_CLEAN_UNICODE), 4);
    assert_int_equal(onv_clean_columns("e\u0301", ONV_CLEAN_UNICODE), 1);
    assert_int_equal(onv_clean_columns("\x1b", ONV_CLEAN_UNICODE), 4);
    expect_fitted("abcdef", 6, ONV_CLEAN_UNICODE, "abcdef", 6);
    expect_fitted("abcdefg", 6, ONV_CLEAN_UNICODE, "a…defg", 6);
    expect_fitted("abcdefg", 6, ONV_CLEAN_ASCII, "a...fg", 6);
    /* A wide character that would be cut in half is left out whole. */
    expect_fitted("模型模型模型", 6, ONV_CLEAN_UNICODE, "…模型", 5);
    expect_fitted("模型模型模型", 7, ONV_CLEAN_UNICODE, "模…模型", 7);
    /* No mark is left without its character. */
    expect_fitted("abcdXe\u0301fg", 4, ONV_CLEAN_UNICODE, "a…fg", 4);
    expect_fitted("abcdef", 2, ONV_CLEAN_UNICODE, "ab", 2);
    expect_fitted("abcdef", 0, ONV_CLEAN_UNICODE, "", 0);
}

static void expect_field(const char *text, const char *expected)
{
    OWNED_CAPTURE caught = {0};
    onv_writer writer;
    onv_writer_init(&writer, capture_write, &caught);
    onv_csv_field(&writer, text);
    assert_int_equal(onv_writer_finish(&writer, NULL), ONV_OK);
    assert_string_equal(caught.text, expected);
}

TEST(csv_fields_are_quoted)
{
    expect_field("plain", "plain");
    expect_field("a,b", "\"a,b\"");
    expect_field("a\"b", "\"a\"\"b\"");
    expect_field("a\r\nb", "\"a\r\nb\"");
    expect_field("a\x1b"
                 "b",
                 "a\\x1bb");
    expect_field("=1+1", "'=1+1");
    expect_field("@a,b", "\"'@a,b\"");
    expect_field("\tx", "\"'\tx\"");
    expect_field("a=b", "a=b");
    expect_field("\n=1", "\"'\n=1\"");
    expect_field("\nx", "\"'\nx\"");
    expect_field("  =1", "'  =1");
    expect_field("\u00a0\u3000-1", "'\u00a0\u3000-1");
    expect_field("\u200b=1", "'\\u200b=1");
    expect_field("\uff1d1", "'\uff1d1");
    expect_field("\uff20x", "'\uff20x");
    expect_field("\u22121", "'\u22121");
    expect_field("  a=1", "  a=1");
    expect_field("   ", "   ");
}

TEST(a_refusal_is_sticky)
{
    OWNED_CAPTURE caught = {.limit = 10000};
    onv_writer writer;
    onv_error error = {0};
    onv_writer_init(&writer, capture_write, &caught);
    for (int i = 0; i < 5000; i++) onv_write_format(&writer, "%d\n", i);
    assert_true(writer.failed);
    assert_int_equal(onv_writer_finish(&writer, &error), ONV_ERR_IO);
    assert_int_equal(error.code, ONV_ERR_IO);
    assert_true(caught.length <= 10000);
}
