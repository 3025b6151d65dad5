/* Programs and plans that keep tensors on the host. */
#include "ckpt/taped.h"
#include "support/test.h"

enum { ROWS = 16 * 256 * 4, WEIGHT = 256 * 256 * 4 };

typedef struct row {
    bool all;
    uint32_t until;
    onv_tape_segment segments[2];
    uint32_t n_segments;
    uint64_t out, back, saved; /* bytes */
} row;

static void expect(taped *t, const row *r)
{
    t->options.saves_on_cpu = r->all;
    t->options.offload_until = r->until;
    onv_train_program program = taped_program(t, r->segments, r->n_segments);
    assert_int_equal(program.offloaded_bytes, r->out);
    assert_int_equal(program.pinned_bytes, r->out); /* all are powers of two */
    assert_int_equal(program.returned_bytes, r->back);
    assert_int_equal(program.saved_bytes, r->saved);
    onv_train_program_cleanup(&program);
}

/* The loss keeps the difference of y4 and the target. x is the caller's and stays where it is. */
TEST(bytes_by_hand)
{
    taped t;
    OWNED_MODEL m = taped_four_products();
    taped_open_model(&t, m);
    assert_int_equal(t.eager.first_loss_op, 4);
    uint64_t loss = 0;
    t.options.saves_on_cpu = true;
    onv_train_program program = taped_program(&t, NULL, 0);
    loss = program.saved_bytes;
    onv_train_program_cleanup(&program);
    const row rows[] = {
        {.saved = loss + 4 * ROWS},
        {.all = true, .out = 4 * ROWS + 3 * WEIGHT, .back = 4 * ROWS + 3 * WEIGHT, .saved = loss},
        /* y1, which the second one saves. */
        {.until = 2, .out = ROWS, .back = ROWS, .saved = loss + 3 * ROWS},
        {.until = 4, .out = 3 * ROWS, .back = 3 * ROWS, .saved = loss + ROWS},
        /* Of the segment y1 alone, which its second run begins from; y2 is made again. */
        {.until = 3,
         .segments = {{1, 2}},
         .n_segments = 1,
         .out = ROWS,
         .back = ROWS,
         .saved = loss + 2 * ROWS},
        {.until = 1, .segments = {{1, 2}}, .n_segments = 1, .saved = loss + 3 * ROWS},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) expect(&t, &rows[i]);
    taped_close(&t);
}

/* What save_on_cpu brings back stands beside the gradients that an operation makes. Without it the peak is that
 * of the first product: the gradients of four weights and of y1. With it that of the second one: y1 and
 * w2 came back, and there are the gradients of three weights, y1 and y2. */
TEST(what_comes_back_stands_in_backward)
{
    taped t;
    OWNED_MODEL m = taped_four_products();
    onv_peak with, without;
    taped_open_model(&t, m);
    for (int k = 0; k < 2; k++) {
        t.options.saves_on_cpu = k == 1;
        onv_train_program program = taped_program(&t, NULL, 0);
        onv_error err = {0};
        assert_int_equal(onv_timeline_peak_without(&program.timeline, ONV_BUFFERS_BESIDE_TENSORS,
                                                   k == 1 ? &with : &without, NULL, &err),
                         ONV_OK);
        onv_train_program_cleanup(&program);
    }
    /* At the fourth product y1 and y2 are away. */
    assert_int_equal(with.of_phase[ONV_PHASE_FORWARD] + 2 * ROWS,
                     without.of_phase[ONV_PHASE_FORWARD]);
    assert_int_equal(with.of_phase[ONV_PHASE_BACKWARD],
                     without.of_phase[ONV_PHASE_BACKWARD] + 2 * ROWS);
    taped_close(&t);
}

static bool is_as_good(const onv_ckpt_plan *a, const onv_ckpt_plan *b)
{
    return a->peak_bytes <= b->peak_bytes && a->recomputed_macs <= b->recomputed_macs &&
           a->moved_bytes <= b->moved_bytes;
}

/* No plan betters another one, and of optimal's all are there. */
TEST(joint_is_a_front)
{
    taped t;
    taped_open_sample(&t, "vit-small-train.onnx", "batch=32", ONV_UNDEFINED);
    onv_ckpt_plans joint = taped_plans(&t, "joint"), optimal = taped_plans(&t, "optimal");
    uint32_t n_moving = 0;
    for (size_t i = 0; i < joint.at.count; i++) {
        const onv_ckpt_plan *plan = &joint.at.at[i];
        n_moving += plan->moved_bytes > 0;
        assert_true(plan->moved_bytes == 0 || plan->offload_until > 0);
        for (size_t k = 0; k < joint.at.count; k++)
            assert_true(k == i || !is_as_good(&joint.at.at[k], plan));
    }
    assert_true(n_moving > 5);
    for (size_t i = 0; i < optimal.at.count; i++) {
        bool is_met = false;
        for (size_t k = 0; k < joint.at.count; k++)
            is_met |= is_as_good(&joint.at.at[k], &optimal.at.at[i]);
        assert_true(is_met);
        assert_int_equal(optimal.at.at[i].moved_bytes, 0);
    }
    onv_ckpt_plans_cleanup(&joint);
    onv_ckpt_plans_cleanup(&optimal);
    taped_close(&t);
}
