/* The table of GPUs: rows that contradict nothing, names as people type them, and the page of the
 * documentation that shows the same rows. */
#include "speed/gpu.h"
#include "support/capture.h"
#include "support/test.h"

TEST(rows_are_sane)
{
    assert_true(onv_n_gpus > 0);
    for (size_t i = 0; i < onv_n_gpus; i++) {
        const onv_gpu *gpu = &onv_gpus[i];
        unsigned nominal_mib = gpu->nominal_gib * 1024u;
        if (gpu->nominal_gib < 3) fail_msg("%s: nominal", gpu->name);
        /* ECC in GDDR takes a sixteenth; the firmware of a small Jetson up to a sixth. */
        if (gpu->usable_mib > nominal_mib || gpu->usable_mib < nominal_mib / 6 * 5)
            fail_msg("%s: usable", gpu->name);
        if (gpu->cc_major < 3 || gpu->cc_minor > 9) fail_msg("%s: compute capability", gpu->name);
        /* A size that is not a reading says so, and only then is it the nominal one by default. */
        int nominal = strncmp(gpu->source, "nominal: ", 9) == 0;
        int reading = strncmp(gpu->source, "nvidia-smi total, ", 18) == 0 ||
                      strncmp(gpu->source, "CUDA total of ", 14) == 0;
        if (nominal == reading)
            fail_msg("%s: source '%s' begins with neither 'nominal: ', 'nvidia-smi total, ' nor "
                     "'CUDA total of '",
                     gpu->name, gpu->source);
        if (nominal && gpu->usable_mib != nominal_mib)
            fail_msg("%s: usable MiB are not the nominal ones: give the reading's source",
                     gpu->name);
    }
}

/* A speed is whole or unknown: faster units have more, and TF32 and bfloat16 came with 8.0. */
TEST(speeds_are_sane)
{
    size_t known = 0;
    for (size_t i = 0; i < onv_n_gpus; i++) {
        const onv_gpu *gpu = &onv_gpus[i];
        const onv_gpu_rates *fast = &gpu->speed->fastest, *slow = &gpu->speed->slowest;
        if (gpu->speed->source == NULL) {
            if (fast->fp32 != 0 || fast->bandwidth != 0) fail_msg("%s: no source", gpu->name);
            continue;
        }
        known++;
        if (slow->fp32 < 5 || fast->fp32 > 200 || slow->bandwidth < 200 || fast->bandwidth > 10000)
            fail_msg("%s: rates", gpu->name);
        if (slow->fp32 > fast->fp32 || slow->tf32 > fast->tf32 || slow->half > fast->half ||
            slow->bandwidth > fast->bandwidth)
            fail_msg("%s: the slowest card is faster", gpu->name);
        if ((fast->tf32 > 0) != (gpu->cc_major >= 8)) fail_msg("%s: TF32", gpu->name);
        if (fast->half > 0 && fast->half < fast->fp32) fail_msg("%s: 16 bits", gpu->name);
        if (gpu->speed->pcie != 16 && gpu->speed->pcie != 32 && gpu->speed->pcie != 64)
            fail_msg("%s: PCIe", gpu->name);
    }
    assert_true(known >= 20);
}

/* Names and aliases mean one row each, so none of them may be spelled like another's. */
TEST(names_are_unique)
{
    for (size_t i = 0; i < onv_n_gpus; i++) {
        const onv_gpu *gpu = &onv_gpus[i];
        for (const char *name = gpu->name; *name != '\0'; name += strlen(name) + 1)
            if (onv_gpu_find(name) != gpu) fail_msg("'%s' does not find its row", name);
    }
}

/* A model has several rows of different sizes; alone it finds none, with the size its row. */
TEST(models_are_ambiguous)
{
    for (size_t i = 0; i < onv_n_gpus; i++) {
        const onv_gpu *gpu = &onv_gpus[i], *found[8];
        char text[64];
        const char *model = gpu->model ? gpu->model : gpu->name;
        unsigned gib = gpu->nominal_gib;
        snprintf(text, sizeof text, "%s %uGB", model, gib);
        if (onv_gpu_find(text) != gpu) fail_msg("'%s' does not find its row", text);
        snprintf(text, sizeof text, "%s-%ug", model, gib);
        if (onv_gpu_find(text) != gpu) fail_msg("'%s' does not find its row", text);
        if (!gpu->model) continue;
        if (onv_gpu_find(gpu->model)) fail_msg("'%s' is not ambiguous", gpu->model);
        size_t count = onv_gpu_candidates(gpu->model, found, 8);
        assert_in_range(count, 2, 8);
        for (size_t j = 0; j < count; j++) assert_string_equal(found[j]->model, gpu->model);
    }
}

static void check_find(const char *typed, const char *name, unsigned usable_mib)
{
    const onv_gpu *gpu = onv_gpu_find(typed);
    if (!gpu) fail_msg("'%s' finds nothing", typed);
    if (strcmp(gpu->name, name) != 0) fail_msg("'%s' finds %s", typed, gpu->name);
    if (gpu->usable_mib != usable_mib) fail_msg("'%s' has other bytes", typed);
}

TEST(finds)
{
    check_find("T4", "T4", 15360);
    check_find("tesla t4", "T4", 15360);
    check_find("t4-16gb", "T4", 15360);
    check_find("H100 80GB", "H100", 81559);
    check_find("NVIDIA H100 80GB HBM3", "H100", 81559);
    check_find("h100_sxm5_80gb", "H100", 81559);
    check_find("H100 NVL", "H100 NVL", 95830);
    check_find("h200", "H200", 143771);
    check_find("4090", "RTX 4090", 24564);
    check_find("rtx4090", "RTX 4090", 24564);
    check_find("NVIDIA GeForce RTX 4090", "RTX 4090", 24564);
    check_find("  rtx-4090 24 GiB ", "RTX 4090", 24564);
    check_find("A100-80G", "A100 80GB", 81920);
    check_find("a100 40", "A100 40GB", 40960);
    check_find("NVIDIA A100-SXM4-80GB", "A100 80GB", 81920);
    check_find("A10", "A10", 23028);
    check_find("A10G", "A10G", 23028);
    check_find("a10 24gb", "A10", 23028);
    check_find("NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada", 49140);
    check_find("a6000", "RTX A6000", 49140);
    check_find("Jetson AGX Orin 64GB", "Jetson AGX Orin 64GB", 62827);
}

/* A laptop's GPU has less memory than the card it is named after, a word more is another product,
 * and a wrong capacity is a mistake. */
TEST(refuses)
{
    static const char *const names[] = {
        "",
        " - ",
        "nvidia",
        "RTX",
        "rtx 4090 laptop gpu",
        "RTX 4090 16GB",
        "A100",
        "V100",
        "a100 60gb",
        "A",
        "T4x",
        "409",
        "RTX 6000",
        "RTX 5060 Ti",
        "RTX 4060 Ti ",
        "RX580",
        "4090\x1b[0m",
        "16GiB",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const onv_gpu *gpu = onv_gpu_find(names[i]);
        if (gpu) fail_msg("'%s' finds %s", names[i], gpu->name);
    }
    OWNED_TEXT endless = calloc(1, 100001);
    assert_non_null(endless);
    memset(endless, 'a', 100000);
    assert_null(onv_gpu_find(endless));
    assert_int_equal(onv_gpu_candidates(endless, NULL, 0), 0);
}

TEST(candidates)
{
    const onv_gpu *found[4] = {NULL};
    assert_int_equal(onv_gpu_candidates("nvidia a100", found, 4), 2);
    assert_string_equal(found[0]->name, "A100 40GB");
    assert_string_equal(found[1]->name, "A100 80GB");
    assert_null(found[2]);
    /* Words of a name. */
    assert_int_equal(onv_gpu_candidates("RTX 6000", found, 4), 2);
    assert_string_equal(found[0]->name, "RTX 6000 Ada");
    assert_string_equal(found[1]->name, "RTX PRO 6000 Blackwell");
    /* Whole words: no part of T5000 is one. */
    assert_int_equal(onv_gpu_candidates("T5", found, 4), 0);
    assert_int_equal(onv_gpu_candidates("Orin Nano", found, 4), 2);
    assert_int_equal(onv_gpu_candidates("thor", found, 4), 2);
    /* A name that is found is the only candidate, whatever else contains it. */
    assert_int_equal(onv_gpu_candidates("H100", found, 4), 1);
    assert_string_equal(found[0]->name, "H100");
    /* More than there is room for: counted, not written. */
    found[1] = NULL;
    assert_true(onv_gpu_candidates("orin", found, 1) > 1);
    assert_null(found[1]);
    assert_int_equal(onv_gpu_candidates("Radeon", found, 4), 0);
    assert_int_equal(onv_gpu_candidates("", found, 4), 0);
}

/* One figure of the fastest card of a name, and where it differs of the slowest; empty: there is none. */
static const char *figure(double fastest, double slowest, char *text, size_t size)
{
    if (fastest == 0)
        text[0] = '\0';
    else if (fastest == slowest)
        snprintf(text, size, "%g", fastest);
    else
        snprintf(text, size, "%g / %g", fastest, slowest);
    return text;
}

/* The page up to its table's rows, which come last, and the rows: GPUs whose speed is known. */
static size_t make_page(char *page, size_t size)
{
    static const char heading[] = "\n|---|---|---|---|---|---|---|\n";
    const char *start = strstr(page, heading);
    assert_non_null(start);
    size_t used = (size_t)(start - page) + strlen(heading);
    for (size_t i = 0; i < onv_n_gpus && used < size; i++) {
        const onv_gpu_speed *speed = onv_gpus[i].speed;
        if (speed->source == NULL) continue;
        const double *fastest = &speed->fastest.fp32, *slowest = &speed->slowest.fp32;
        char text[5][32];
        for (int k = 0; k < 4; k++) figure(fastest[k], slowest[k], text[k], sizeof text[k]);
        figure(speed->pcie, speed->pcie, text[4], sizeof text[4]);
        used += (size_t)snprintf(page + used, size - used, "| %s | %s | %s | %s | %s | %s | %s |\n",
                                 onv_gpus[i].name, text[0], text[1], text[2], text[3], text[4],
                                 speed->source);
    }
    assert_true(used < size);
    return used;
}

/* ONV_UPDATE_GPUS=1 writes the rows into the page. */
TEST(page_shows_the_table)
{
    static const char path[] = ONV_SOURCE_DIR "/docs/gpus.md";
    static char page[1 << 20], made[1 << 20];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t bytes = fread(page, 1, sizeof page - 1, file);
    assert_int_equal(fclose(file), 0);
    memcpy(made, page, sizeof made);
    size_t expected = make_page(made, sizeof made);
    if (bytes == expected && memcmp(made, page, bytes) == 0) return;
    if (getenv("ONV_UPDATE_GPUS") == NULL)
        fail_msg("docs/gpus.md is not the table: ONV_UPDATE_GPUS=1 writes it");
    file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(made, 1, expected, file), expected);
    assert_int_equal(fclose(file), 0);
}
