/* Figures of training against the program's own simulation of the same requests: traces, pools, full devices. */
#include <inttypes.h>

#include "cli/program.h"
#include "support/test.h"

#define MIB    (UINT64_C(1) << 20)
#define SAMPLE ONV_SOURCE_DIR "/samples/vit-small-train.onnx"

typedef struct figures {
    uint64_t allocated, reserved, unbounded, released;
    uint64_t beside; /* context and handles, at most */
    int status;
    bool fits_by_release;
} figures;

static uint64_t number(const char *text, const char *key)
{
    const char *at = text != NULL ? strstr(text, key) : NULL;
    return at != NULL ? strtoull(at + strlen(key), NULL, 10) : 0;
}

static figures train(const char *options)
{
    enum { JSON_BYTES = 1 << 20 };
    char arguments[512], *text = malloc(JSON_BYTES);
    assert_non_null(text);
    snprintf(arguments, sizeof arguments,
             "-b 12 --train adamw --json=r.json %s " SAMPLE
             "; status=$?; tr -d ' \\n' < r.json > s.json; exit $status",
             options);
    figures f = {.status = program_run(arguments, text)};
    FILE *file = fopen("s.json", "r");
    if (f.status != 0 && f.status != 3) fail_msg("%s: %s", options, text);
    if (file != NULL) {
        size_t n = fread(text, 1, JSON_BYTES - 1, file);
        text[n] = '\0';
        const char *training = strstr(text, "\"training\":"), *run = strstr(text, "\"train\":{");
        f.allocated = number(training, "\"allocated_peak_bytes\":");
        f.reserved = number(training, "\"reserved_peak_bytes\":");
        f.unbounded = number(training, "\"unbounded_reserved_bytes\":");
        f.released = number(training, "\"released_bytes\":");
        f.fits_by_release = strstr(text, "\"fits_by_release\":true") != NULL;
        const char *range = run != NULL ? strstr(run, "\"total_range_bytes\":[") : NULL;
        if (range != NULL) f.beside = strtoull(strchr(range, ',') + 1, NULL, 10) - f.reserved;
    }
    if (file != NULL) fclose(file);
    free(text);
    return f;
}

/* What `simulate` says of the trace of the same training. */
static figures simulate(const char *options, const char *how)
{
    char arguments[512], *text = malloc(PROGRAM_TEXT);
    figures f = {0};
    assert_non_null(text);
    snprintf(arguments, sizeof arguments, "-b 12 --train adamw --dump=trace %s " SAMPLE " > t.csv",
             options);
    assert_int_equal(program_run(arguments, text), 0);
    snprintf(arguments, sizeof arguments, "simulate t.csv --runtime torch %s", how);
    f.status = program_run(arguments, text);
    if (sscanf(text, "torch,%" SCNu64 ",%" SCNu64, &f.allocated, &f.reserved) != 2)
        fail_msg("%s: %s", options, text);
    free(text);
    return f;
}

TEST(traces_are_of_the_training)
{
    static const char *const cases[][2] = {
        {"", ""},
        {"--accumulate 2", ""},
        {"--checkpoint blocks", ""},
        {"--ddp --world 4", ""},
        {"--fsdp --world 4", ""},
        {"--fsdp --world 4 --offload gradients", ""},
        {"--expandable-segments", "--expandable-segments"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        figures f = train(cases[i][0]), s = simulate(cases[i][0], cases[i][1]);
        if (f.allocated == 0 || f.allocated != s.allocated || f.reserved != s.reserved)
            fail_msg("'%s': %" PRIu64 " and %" PRIu64 ", the trace %" PRIu64 " and %" PRIu64,
                     cases[i][0], f.allocated, f.reserved, s.allocated, s.reserved);
    }
    /* Streams are a sixth field. */
    assert_int_not_equal(system("grep -qE '^alloc(,[^,]*){4},[12]$' t.csv"), 0);
    simulate("--fsdp --world 4", "");
    assert_int_equal(system("grep -qE '^alloc(,[^,]*){4},1$' t.csv"), 0);
    assert_int_equal(system("grep -qE '^alloc(,[^,]*){4},2$' t.csv"), 0);
}

TEST(tables_of_plans_have_room_for_all_columns)
{
    program_expect("plans --budget T4 --max-batch --checkpoint none,offload " SAMPLE, 0,
                   "time  segments");
}

/* A free segment as large as all that is large takes it all; small requests have theirs. Such a one as the
 * first request would take from the device changes nothing. */
TEST(pools_are_used_first)
{
    figures plain = train(""), large = train("--cached 512MiB"), same = train("--cached 20MiB");
    assert_true(plain.reserved > 0 && plain.reserved < 512 * MIB);
    /* Small requests take segments of 2 MiB. */
    uint64_t others = large.reserved - 512 * MIB;
    assert_true(large.reserved > 512 * MIB && others < plain.reserved && others % (2 * MIB) == 0);
    assert_int_equal(train("--cached 300MiB").reserved, 300 * MIB + others);
    assert_int_equal(same.reserved, plain.reserved);
    assert_int_equal(same.allocated, plain.allocated);
}

/* Between what is allocated and what would be reserved cached segments are given back. */
TEST(full_devices_get_segments_back)
{
    char budget[64], capacity[64];
    figures plain = train("");
    uint64_t left = plain.reserved - 10 * MIB;
    assert_true(plain.beside > 0 && plain.allocated < left && plain.released == 0);
    snprintf(budget, sizeof budget, "--budget %" PRIu64 "B", plain.beside + left);
    figures f = train(budget);
    assert_int_equal(f.status, 3);
    assert_int_equal(f.unbounded, plain.reserved);
    assert_int_equal(f.reserved, plain.reserved);
    assert_int_equal(f.allocated, plain.allocated);
    assert_true(f.released > 0);
    assert_true(f.fits_by_release);
    snprintf(capacity, sizeof capacity, "--capacity %" PRIu64, left);
    figures s = simulate("", capacity);
    assert_int_equal(s.status, 0);
    assert_true(s.reserved <= left);
    /* Room for all: nothing goes. Less than what is allocated at once: nothing helps. */
    snprintf(budget, sizeof budget, "--budget %" PRIu64 "B", plain.beside + plain.reserved);
    f = train(budget);
    assert_int_equal(f.status, 0);
    assert_int_equal(f.released, 0);
    assert_false(f.fits_by_release);
    snprintf(budget, sizeof budget, "--budget %" PRIu64 "B", plain.beside + plain.allocated - MIB);
    f = train(budget);
    assert_int_equal(f.status, 3);
    assert_false(f.fits_by_release);
}

TEST_GROUP(folder_enter, folder_leave)
