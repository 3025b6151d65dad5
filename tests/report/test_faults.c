/* No memory: every format fails with ONV_ERR_MEMORY at every allocation, leaks nothing, and succeeds
 * once there is enough. */
#include "base/heap.h"
#include "support/capture.h"
#include "support/onnx_writer.h"
#include "support/test.h"

#ifdef ONV_FAULT_INJECTION

TEST(every_allocation_may_fail)
{
    OWNED_MODEL m = model_read(17, "in x f32[batch,64]", "weight net.0.weight f32[64,64]",
                               "a = MatMul(x net.0.weight) /net/net.0/MatMul",
                               "y = Relu(a) /net/net.1/Relu", "out y f32");
    onv_options options = onv_options_default();
    long n_failed = 0; /* some formats allocate nothing */
    for (int bound = 0; bound < 2; bound++) {
        options.batch = bound * 4;
        options.timelines = options.example = true;
        OWNED_ANALYSIS a = model_analyse(m, &options);
        for (int format = ONV_FORMAT_TEXT; format <= ONV_FORMAT_MODEL_EXPLORER; format++) {
            bool is_dump =
                (format >= ONV_FORMAT_DUMP_INTERVALS && format <= ONV_FORMAT_DUMP_TRACE) ||
                format >= ONV_FORMAT_MEMORY_VIZ;
            if (format > ONV_FORMAT_DUMP_TRACE && format < ONV_FORMAT_HTML) continue;
            if (!bound && is_dump) continue;
            long n = 0;
            onv_status status;
            do {
                const onv_analysis *both[] = {a, a};
                size_t count = is_dump ? 1 : 2;
                OWNED_CAPTURE caught = {0};
                onv_error error = {0};
                onv_heap_fail_after(n++);
                status = onv_report(both, count, (onv_format)format, NULL, capture_write, &caught,
                                    &error);
                onv_heap_fail_after(-1);
                assert_true(status == ONV_OK || status == ONV_ERR_MEMORY);
                assert_int_equal(error.code, status);
            } while (status != ONV_OK && n < 1000);
            assert_int_equal(status, ONV_OK);
            n_failed += n - 1;
        }
    }
    assert_true(n_failed > 100);
}

/* The same model by model. */
TEST(every_allocation_of_a_stream_may_fail)
{
    OWNED_MODEL m = model_read(17, "in x f32[2,64]", "y = Relu(x) relu", "out y f32");
    OWNED_ANALYSIS a = model_analyse(m, NULL);
    for (int format = ONV_FORMAT_TEXT; format <= ONV_FORMAT_JSON; format++) {
        long n = 0;
        onv_status status;
        do {
            OWNED_CAPTURE caught = {0};
            onv_error error = {0};
            onv_report_stream *stream;
            onv_heap_fail_after(n++);
            status = onv_report_begin((onv_format)format, 2, NULL, capture_write, &caught, &stream,
                                      &error);
            for (int i = 0; i < 2 && status == ONV_OK; i++) {
                OWNED_CAPTURE part = {0};
                status =
                    onv_report_part(a, (onv_format)format, 2, NULL, capture_write, &part, &error);
                if (status == ONV_OK)
                    status = onv_report_add_part(stream, part.text, part.length, &error);
            }
            onv_status end = onv_report_end(stream, &error);
            if (status == ONV_OK) status = end;
            onv_heap_fail_after(-1);
            assert_true(status == ONV_OK || status == ONV_ERR_MEMORY);
        } while (status != ONV_OK && n < 1000);
        assert_int_equal(status, ONV_OK);
        assert_true(n > 1);
    }
}

#else

TEST(every_allocation_of_a_stream_may_fail)
{
    skip();
}

TEST(every_allocation_may_fail)
{
    skip(); /* this build cannot make allocations fail */
}

#endif
