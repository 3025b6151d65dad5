/* A batch that the export fixed, changed: what is said where figures may be off. */
#include "support/capture.h"
#include "support/onnx_writer.h"
#include "support/test.h"

static onv_options batch_of(int64_t batch)
{
    onv_options options = onv_options_default();
    options.batch = batch;
    return options;
}

/* Of the first diagnostic about the batch; NULL: there is none. */
static void expect_note(model *m, const char *part)
{
    onv_options options = batch_of(8);
    OWNED_ANALYSIS analysis = model_analyse(m, &options);
    const char *found = message_of(analysis, "batch");
    if (part == NULL && found != NULL) fail_msg("'%s'", found);
    if (part != NULL && (found == NULL || strstr(found, part) == NULL))
        fail_msg("'%s' does not say '%s'", found, part);
    model_free(m);
}

TEST(inputs_without_the_batch_are_noted)
{
    model *m = model_read(17, "in x f32[4,16]", "in pairs f32[16,8]", "y = MatMul(x pairs) near",
                          "out y f32");
    expect_note(m, "--shape pairs=");

    m = model_read(17, "in x f32[4,16]", "in w f32[16,9]", "y = MatMul(x w) near", "out y f32");
    expect_note(m, "--shape w=");
}

TEST(a_cut_at_the_old_batch_is_noted)
{
    for (int64_t end = 4; end <= 5; end++) {
        model *m = model_read(17, "in x f32[4,16]");
        model_ints(m, "zero", 1, (int64_t[]){0});
        model_ints(m, "end", 1, (int64_t[]){end});
        model_ints(m, "axis", 1, (int64_t[]){1});
        model_add(m, "y = Slice(x zero end axis) part", "out y f32");
        expect_note(m, end == 4 ? "equals the batch of the export" : NULL);
    }
}
