/* What packs a program: zip archives, gzip, text; damaged, forged and too large ones. */
#include "base/quota.h"
#include "program/archive.h"
#include "program/packed.h"
#include "support/capture.h"
#include "support/test.h"

static const char entry[] = "net/models/model.json",
                  old_entry[] = "serialized_exported_program.json";

static void reads(packed p)
{
    onv_error err = {0};
    if (packed_read(p, &err) != ONV_OK) fail_msg("%s", err.message);
    packed_free(&p);
}

static void refuses(packed p, onv_status expected, const char *part)
{
    onv_error err = {0};
    onv_status status = packed_read(p, &err);
    if (status != expected || strstr(err.message, part) == NULL)
        fail_msg("gives %d: %s", status, err.message);
    packed_free(&p);
}

TEST(every_form_is_read)
{
    packed text = document("", "");
    reads(packed_copy(text.at));
    reads(packed_gzip(text));
    reads(packed_zip(text, entry, false));
    reads(packed_zip(text, entry, true));
    reads(packed_zip(text, old_entry, false));
    packed_free(&text);
}

TEST(other_files_are_refused)
{
    packed text = document("", "");
    refuses(packed_zip(text, "net/models/other.json", true), ONV_ERR_FORMAT, "torch.export.save()");
    refuses(packed_copy("{\"models\": []}"), ONV_ERR_FORMAT, "schema_version");
    refuses(packed_copy("{\"schema_version\": {\"major\": 9}}"), ONV_ERR_FORMAT, "found schema 9");
    refuses(packed_copy("{\"schema_version\": {\"major\": 4}}"), ONV_ERR_FORMAT, "found schema 4");
    refuses(packed_copy("{\"a\": 1"), ONV_ERR_FORMAT, "not valid JSON");
    refuses(packed_copy("{\"a\": 99999999999999999999}"), ONV_ERR_FORMAT, "not valid JSON");
    refuses(packed_copy("{\"a\": \"\xff\"}"), ONV_ERR_FORMAT, "not valid JSON");
    refuses(packed_copy("{} {}"), ONV_ERR_FORMAT, "not valid JSON");
    packed_free(&text);
}

/* Whatever byte is wrong or missing, there is an answer: the checksum of a zip entry sees it, as does that of gzip's data. */
TEST(damaged_files_are_refused)
{
    packed text = document("", "");
    packed files[] = {packed_zip(text, entry, true), packed_zip(text, entry, false),
                      packed_gzip(text)};
    for (size_t i = 0; i < 3; i++) {
        OWNED_TEXT copy = malloc(files[i].bytes);
        assert_non_null(copy);
        for (size_t cut = 1; cut < files[i].bytes; cut += 7) {
            onv_error err = {0};
            memcpy(copy, files[i].at, cut);
            assert_int_not_equal(packed_read((packed){copy, cut}, &err), ONV_OK);
            assert_true(err.message[0] != '\0');
        }
        size_t wrong = 0;
        for (size_t at = 0; at < files[i].bytes; at++) {
            onv_error err = {0};
            memcpy(copy, files[i].at, files[i].bytes);
            copy[at] ^= 0x10;
            onv_status status = packed_read((packed){copy, files[i].bytes}, &err);
            wrong += status != ONV_OK;
            assert_true((status != ONV_OK) == (err.message[0] != '\0'));
        }
        assert_true(wrong > files[i].bytes / 2);
        packed_free(&files[i]);
    }
    packed_free(&text);
}

/* What says where weights are is read with the program, and refused with it. */
TEST(weights_have_places)
{
    static const char good[] = "{\"config\": {\"w\": {\"path_name\": \"weight_0\"}}}";
    packed text = document("", ""), spaced = packed_copy(" {\"schema_version\": {}} \n");
    for (int compresses = 0; compresses < 2; compresses++)
        reads(packed_zip_with(text, entry, compresses, good));
    refuses(packed_zip_with(text, entry, true, ""), ONV_ERR_FORMAT, "not valid JSON");
    refuses(packed_zip_with(text, entry, true, "{}}"), ONV_ERR_FORMAT, "not valid JSON");
    refuses(packed_zip_with(text, entry, true, "{}"), ONV_ERR_FORMAT, "a member 'config'");
    refuses(packed_zip_with(text, entry, true, "3"), ONV_ERR_FORMAT, "expected an object");
    refuses(packed_zip_with(text, entry, true, "{\"config\": {\"w\": 3}}"), ONV_ERR_FORMAT,
            "w: expected an object");
    refuses(packed_zip_with(text, entry, true, "{\"config\": {\"w\": {}}}"), ONV_ERR_FORMAT,
            "a member 'path_name'");
    refuses(packed_zip_with(spaced, entry, false, good), ONV_ERR_FORMAT, "schema_version");
    packed p = packed_zip_with(text, entry, true, good);
    for (size_t at = p.bytes - 46, n = 1; n > 0 && at > 0; at--)
        if (memcmp(p.at + at, "PK\x01\x02", 4) == 0) memcpy(p.at + at + 24, "\xff\xff\xff", 3), n--;
    refuses(p, ONV_ERR_FORMAT, "model_weights_config.json");
    packed_free(&text);
    packed_free(&spaced);
}

/* Sizes in the directory of a zip file are what its author wants. */
TEST(forged_sizes_are_refused)
{
    static const uint32_t sizes[] = {UINT32_MAX - 1, 1 << 30, 1 << 20, 1, 0};
    packed text = document("", "");
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        packed p = packed_zip(text, entry, true);
        for (size_t at = 0; at + 46 < p.bytes; at++)
            if (memcmp(p.at + at, "PK\x01\x02", 4) == 0) memcpy(p.at + at + 24, &sizes[i], 4);
        refuses(p, ONV_ERR_FORMAT, "model.json");
    }
    static const uint32_t both[] = {UINT32_MAX - 1, 64 << 20}; /* compressed ones, too */
    packed p = packed_zip(text, entry, true);
    for (size_t at = 0; at + 46 < p.bytes; at++) {
        if (memcmp(p.at + at, "PK\x03\x04", 4) == 0) memcpy(p.at + at + 18, both, sizeof both);
        if (memcmp(p.at + at, "PK\x01\x02", 4) == 0) memcpy(p.at + at + 20, both, sizeof both);
    }
    refuses(p, ONV_ERR_FORMAT, "cannot have 67108864 bytes");
    packed_free(&text);
}

/* A megabyte of spaces is a kilobyte of gzip. */
TEST(bombs_meet_the_limit)
{
    enum { BYTES = 64 << 20, LIMIT = 8 << 20 };
    packed text = {malloc(BYTES), BYTES};
    assert_non_null(text.at);
    memset(text.at, ' ', BYTES);
    text.at[0] = '{';
    text.at[BYTES - 1] = '}';
    packed files[] = {packed_gzip(text), packed_zip(text, entry, true),
                      packed_zip(text, entry, false)};
    packed_free(&text);
    for (size_t i = 0; i < 3; i++) {
        onv_quota quota = {.limit = SIZE_MAX};
        onv_source source;
        onv_program_text read;
        onv_error err = {0};
        onv_source_memory(&source, files[i].at, files[i].bytes);
        onv_quota *before = onv_quota_enter(&quota);
        assert_int_equal(onv_program_text_read(&source, LIMIT, &read, &err), ONV_ERR_LIMIT);
        onv_program_text_cleanup(&read);
        onv_quota_enter(before);
        assert_non_null(strstr(err.message, "--limit memory"));
        assert_true(quota.most < 2 * LIMIT);
        assert_int_equal(quota.used, 0);
        packed_free(&files[i]);
    }
}
