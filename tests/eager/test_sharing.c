/* What people train with beside the usual: sizes and lifetimes counted by hand on a small network. */
#include "eager/trainer.h"
#include "kernels/cublas.h"
#include "support/test.h"

enum { ROW = 16384, W = 262144 }; /* x [16, 256], matrices [256, 256] */

/* Two square products, one in each of two blocks. */
static void open_blocks(trainer *t, const char *type)
{
    char text[64];
    OWNED_MODEL m = model_new(17);
    snprintf(text, sizeof text, "%s[16,256]", type);
    model_input(m, "x", text);
    snprintf(text, sizeof text, "%s[256,256]", type);
    model_weight(m, "blocks.0.weight", text);
    model_weight(m, "blocks.1.weight", text);
    model_add(m, "a = MatMul(x blocks.0.weight) /blocks.0/MatMul",
              "y = MatMul(a blocks.1.weight) /blocks.1/MatMul");
    model_output(m, "y", type);
    trainer_open_model(t, m);
}

static onv_train_options with(const char *optimizer)
{
    onv_train_options options = {.optimizer = onv_optimizer_find(optimizer)};
    options.lower.loss = ONV_LOSS_MSE;
    return options;
}

static onv_training run_sharded(trainer *t, const onv_train_options *options, const char *units)
{
    onv_error err = {0};
    onv_training result;
    onv_training_options all = {.train = *options, .units = units};
    if (onv_training_compute(&t->model, &t->live, &all, &result, &err) != ONV_OK)
        fail_msg("%s", err.message);
    return result;
}

/* --- Formats ----------------------------------------------------------------------------------- */

/* Measured with bitsandbytes 0.50: a Linear4bit and a Linear8bitLt of 1024 to 512. */
TEST(formats_have_scales)
{
    static const struct {
        const char *name;
        uint32_t n;
        uint64_t sum;
    } cases[] = {{"nf4", 6, 271556}, {"int8", 2, 526336}, {"int4", 3, 262144 + 8192 * 4 + 64}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t bytes[ONV_MAX_WEIGHT_PARTS], sum = 0;
        const onv_weight_format *format = onv_weight_format_find(cases[i].name);
        assert_non_null(format);
        assert_int_equal(onv_weight_parts(format, 512 * 1024, 512, bytes), cases[i].n);
        for (uint32_t k = 0; k < cases[i].n; k++) sum += bytes[k];
        assert_int_equal(sum, cases[i].sum);
    }
    assert_null(onv_weight_format_find("int3"));
}

/* The first matrix is frozen; the last product is the head, which stays, frozen or not. */
TEST(frozen_layers_are_quantized)
{
    static const char *const frozen[] = {"blocks.0"}, *const all[] = {"*"};
    OWNED_TRAINER t;
    open_blocks(&t, "f32");
    onv_train_options options = with("sgd");
    options.weights = onv_weight_format_find("nf4");
    assert_int_equal(trainer_run(&t, &options).figures.parameter_bytes, 2 * W);
    options.lower.freeze = frozen;
    options.lower.n_freeze = 1;
    onv_training r = trainer_run(&t, &options);
    uint64_t kept = 32768 + 1024 + 64 + 16 + 1024 + 4;
    assert_int_equal(r.figures.parts.quantized_bytes, kept);
    assert_int_equal(r.figures.parameter_bytes, W + kept);
    /* The matrix in float32, and 1024 scales twice. */
    assert_int_equal(r.figures.parts.dequantized_bytes, W + 2 * 4096);
    options.lower.freeze = all;
    r = trainer_run(&t, &options);
    assert_int_equal(r.figures.parameter_bytes, W + kept);
}

/* A frozen layer, and a head behind it. */
static void open_frozen(trainer *t, bool biased, bool is_large)
{
    OWNED_MODEL m = model_new(17);
    model_input(m, "x", is_large ? "f32[4096,768]" : "f32[16,256]");
    model_weight(m, "blocks.0.weight", is_large ? "f32[768,3072]" : "f32[256,256]");
    model_weight(m, "blocks.0.bias", is_large ? "f32[3072]" : "f32[256]");
    model_weight(m, "blocks.1.weight", is_large ? "f32[3072,64]" : "f32[256,256]");
    model_node(m, "Gemm", "/blocks.0/Gemm",
               biased ? "x blocks.0.weight blocks.0.bias" : "x blocks.0.weight", "a", "");
    model_add(m, "y = MatMul(a blocks.1.weight) /blocks.1/MatMul", "out y f32");
    trainer_open_model(t, m);
}

/* A bias is an operand behind the matrix. */
TEST(a_bias_does_not_hide_a_quantized_matrix)
{
    static const char *const formats[] = {"nf4", "int8"}, *const frozen[] = {"blocks.0"};
    uint64_t bytes[2];
    for (uint32_t f = 0; f < 2; f++) {
        for (uint32_t biased = 0; biased < 2; biased++) {
            OWNED_TRAINER t;
            open_frozen(&t, biased, false);
            onv_train_options options = with("sgd");
            options.weights = onv_weight_format_find(formats[f]);
            options.lower.freeze = frozen;
            options.lower.n_freeze = 1;
            bytes[biased] = trainer_run(&t, &options).figures.parts.dequantized_bytes;
        }
        assert_int_not_equal(bytes[0], 0);
        assert_int_equal(bytes[1], bytes[0]);
    }
}

/* [4096, 768] times [768, 3072] by LLM.int8(), a bias or none: the input in bytes and 4096 scales, the product in int32, and what
 * it is in float16. As bitsandbytes 0.50.2 took it over a substitute for the driver, without a workspace of cuBLAS. */
TEST(a_product_of_bytes_takes_no_workspace)
{
    static const char *const frozen[] = {"blocks.0"};
    for (uint32_t biased = 0; biased < 2; biased++) {
        OWNED_TRAINER t;
        open_frozen(&t, biased, true);
        onv_train_options options = with("sgd");
        options.weights = onv_weight_format_find("int8");
        options.lower.freeze = frozen;
        options.lower.n_freeze = 1;
        options.lower.cuda = onv_cuda_library_defaults();
        onv_training r = trainer_run(&t, &options);
        assert_int_equal(r.figures.parts.dequantized_bytes,
                         4096 * 768 + 4096 * 4 + 6 * 4096 * 3072);
    }
}

/* Bytes of the matrix as it comes, and of what looks for outliers. */
static onv_status find_early(void *context, const onv_timeline *t, const onv_placement *placement,
                             const char *plan, onv_error *err)
{
    (void)placement, (void)plan, (void)err;
    uint64_t *found = context;
    for (size_t i = 0; i < t->buffers.count; i++) {
        const onv_buffer *b = &t->buffers.at[i];
        if (b->kind != ONV_BUFFER_TEMPORARY || b->first != b->last || b->label == NULL) continue;
        if (strcmp(b->label, "blocks.0.weight") == 0) found[0] += b->bytes;
        if (strcmp(b->label, "outliers") == 0 && t->steps.at[b->first].iteration == 0)
            found[1] += b->bytes;
    }
    return ONV_OK;
}

/* Matrices come to the device whole, one after the other; LLM.int8() has them as float16. */
TEST(a_quantized_matrix_was_whole_before)
{
    static const char *const formats[] = {"nf4", "int8"}, *const frozen[] = {"blocks.0"};
    static const uint64_t whole[] = {4 * 65536 + 2 * 4 * 1024, 2 * 65536};
    for (uint32_t f = 0; f < 2; f++) {
        OWNED_TRAINER t;
        open_frozen(&t, false, false);
        uint64_t found[2] = {0, 0};
        onv_training_options all = {
            .train = with("sgd"), .take = find_early, .take_context = found};
        all.train.weights = onv_weight_format_find(formats[f]);
        all.train.lower.freeze = frozen;
        all.train.lower.n_freeze = 1;
        trainer_compute(&t, &all);
        assert_int_equal(found[0], whole[f]);
        assert_int_equal(found[1], f == 1 ? 3 * 16 * 256 : 0);
    }
}

/* --- Copies ------------------------------------------------------------------------------------ */

TEST(averages_and_masters_stand_beside)
{
    trainer t;
    open_blocks(&t, "f32");
    onv_train_options options = with("adamw");
    onv_training base = trainer_run(&t, &options);
    options.ema = true;
    onv_training r = trainer_run(&t, &options);
    assert_int_equal(r.figures.parts.ema_bytes, 2 * W + 8);
    assert_int_equal(r.figures.peak_bytes, base.figures.peak_bytes + 2 * W + 8);
    options.ema = false;
    options.master_weights = true; /* what is float32 has none */
    r = trainer_run(&t, &options);
    assert_int_equal(r.figures.parts.master_bytes, 0);
    assert_int_equal(r.figures.peak_bytes, base.figures.peak_bytes);
    trainer_close(&t);

    open_blocks(&t, "f16");
    options.master_weights = false;
    base = trainer_run(&t, &options);
    assert_int_equal(base.figures.optimizer_bytes, 2 * W); /* two, in 16 bits */
    options.master_weights = true;
    r = trainer_run(&t, &options);
    assert_int_equal(r.figures.parts.master_bytes, 2 * W);
    assert_int_equal(r.figures.optimizer_bytes, 4 * W);
    /* Parameters, masters, state, gradients of masters, and Adam's list of roots; x, y, targets and the last
     * loss, which has their size, in 16 bits. */
    assert_int_equal(r.figures.phase_peak_bytes[ONV_PHASE_OPTIMIZER],
                     W + 2 * W + 4 * W + 2 * W + 2 * W + 4 * (ROW / 2));
    trainer_close(&t);
}

TEST(the_host_takes_what_is_offloaded)
{
    OWNED_TRAINER t;
    open_blocks(&t, "f32");
    onv_train_options options = with("adamw");
    options.offload = ONV_OFFLOAD_OPTIMIZER;
    onv_training r = trainer_run(&t, &options);
    uint64_t always = 2 * ROW + 2 * W, outputs = 2 * ROW;
    assert_int_equal(r.figures.optimizer_bytes, 0);
    assert_int_equal(r.figures.parts.host_bytes, 4 * W);
    assert_int_equal(r.figures.phase_peak_bytes[ONV_PHASE_OPTIMIZER], always + 2 * W + outputs);
    options.offload = ONV_OFFLOAD_GRADIENTS;
    r = trainer_run(&t, &options);
    assert_int_equal(r.figures.gradient_bytes, 0);
    assert_int_equal(r.figures.phase_peak_bytes[ONV_PHASE_OPTIMIZER], always + outputs);
}

/* --- DDP --------------------------------------------------------------------------------------- */

TEST(gradients_stand_in_buckets)
{
    OWNED_TRAINER t;
    open_blocks(&t, "f32");
    onv_train_options options = with("sgd");
    onv_training base = trainer_run(&t, &options);
    options.parallel = ONV_PARALLEL_DDP;
    options.world = 4;
    onv_training r = trainer_run(&t, &options);
    assert_int_equal(r.figures.parts.bucket_bytes, 2 * W);
    assert_int_equal(r.figures.peak_bytes, base.figures.peak_bytes + 2 * W);
    options.parallel = ONV_PARALLEL_DDP_VIEWS;
    r = trainer_run(&t, &options);
    uint64_t always = 2 * ROW + 2 * W, outputs = 2 * ROW;
    assert_int_equal(r.figures.phase_peak_bytes[ONV_PHASE_OPTIMIZER], always + 2 * W + outputs);
    /* Beside the buckets, in the second product: its gradient for the matrix, before that goes into one; a,
     * its gradient, and that of y. */
    assert_int_equal(r.figures.phase_peak_bytes[ONV_PHASE_BACKWARD],
                     always + 2 * W + outputs + W + 3 * ROW);
}

typedef struct buckets {
    uint64_t bytes[8];
    uint32_t n;
} buckets;

static onv_status list_buckets(void *context, const onv_timeline *timeline,
                               const onv_placement *placement, const char *plan, onv_error *err)
{
    (void)placement, (void)plan, (void)err;
    buckets *found = context;
    for (size_t i = 0; i < timeline->buffers.count; i++) {
        const onv_buffer *b = &timeline->buffers.at[i];
        if (b->label != NULL && strcmp(b->label, "bucket") == 0 && found->n < 8)
            found->bytes[found->n++] = b->bytes;
    }
    return ONV_OK;
}

/* Five matrices of 1 MiB: one bucket, then the first to come alone, and the others. */
TEST(buckets_are_made_anew)
{
    OWNED_MODEL m = model_read(17, "in v0 f32[16,512]");
    for (int i = 0; i < 5; i++) {
        char in[32], w[16], out[16], name[16];
        snprintf(w, sizeof w, "w%d", i);
        snprintf(in, sizeof in, "v%d w%d", i, i);
        snprintf(out, sizeof out, "v%d", i + 1);
        snprintf(name, sizeof name, "n%d", i);
        model_weight(m, w, "f32[512,512]");
        model_node(m, "MatMul", name, in, out, "");
    }
    model_output(m, "v5", "f32");
    OWNED_TRAINER t;
    trainer_open_model(&t, m);
    buckets found = {.n = 0};
    onv_training_options all = {.train = with("sgd"), .take = list_buckets, .take_context = &found};
    all.train.parallel = ONV_PARALLEL_DDP;
    all.train.world = 2;
    trainer_compute(&t, &all);
    assert_int_equal(found.n, 3);
    assert_int_equal(found.bytes[0], 5 << 20);
    assert_int_equal(found.bytes[1], 1 << 20);
    assert_int_equal(found.bytes[2], 4 << 20);
}

/* --- FSDP -------------------------------------------------------------------------------------- */

TEST(units_are_gathered_one_by_one)
{
    OWNED_TRAINER t;
    open_blocks(&t, "f32");
    onv_train_options options = with("sgd");
    options.parallel = ONV_PARALLEL_FSDP;
    options.world = 4;
    onv_training r = run_sharded(&t, &options, "blocks.?");
    assert_int_equal(r.n_units, 2);
    assert_int_equal(r.figures.parameter_bytes, 2 * W / 4);
    assert_int_equal(r.figures.gradient_bytes, 2 * W / 4);
    /* A buffer and the parameters copied out of it, or the buffer of the unit that comes next. */
    assert_int_equal(r.figures.parts.gathered_bytes, 2 * W);
    assert_int_equal(r.figures.parts.reduce_bytes, W);
    uint64_t always = 2 * ROW + 2 * W / 4, outputs = 2 * ROW;
    assert_int_equal(r.figures.phase_peak_bytes[ONV_PHASE_OPTIMIZER], always + 2 * W / 4 + outputs);
    /* The second unit's gradient is on its way to the others while the first one's product goes back: that
     * unit's parameters, its gradient, the second one's part, and the gradient that came in. */
    assert_int_equal(r.figures.phase_peak_bytes[ONV_PHASE_BACKWARD],
                     always + outputs + W + W + W / 4 + W + ROW);
    /* All at once: twice two matrices. */
    r = run_sharded(&t, &options, NULL);
    assert_int_equal(r.n_units, 0); /* nothing meets in these blocks */
    assert_int_equal(r.figures.parts.gathered_bytes, 4 * W);
}

/* Matrices of 16 bits are gathered as such; parts, gradients and what reduces them are float32. */
TEST(masters_are_what_is_shared_out)
{
    OWNED_TRAINER t;
    open_blocks(&t, "f16");
    onv_train_options options = with("adamw");
    options.parallel = ONV_PARALLEL_FSDP;
    options.world = 4;
    options.master_weights = true;
    onv_training r = run_sharded(&t, &options, "blocks.?");
    assert_int_equal(r.figures.parameter_bytes, 2 * W / 4);
    assert_int_equal(r.figures.gradient_bytes, 2 * W / 4);
    assert_int_equal(r.figures.optimizer_bytes, 4 * W / 4);
    assert_int_equal(r.figures.parts.master_bytes, 0);
    /* The part of the first in 16 bits, while the second's buffer stands beside the first's parameters. */
    assert_int_equal(r.figures.parts.gathered_bytes, W / 2 + W / 2 + W / 8);
    assert_int_equal(r.figures.parts.reduce_bytes, W);
}

typedef struct streams {
    uint32_t n[3]; /* buffers of the second iteration on, by stream */
} streams;

static onv_status count_streams(void *context, const onv_timeline *timeline,
                                const onv_placement *placement, const char *plan, onv_error *err)
{
    (void)placement;
    (void)plan;
    (void)err;
    streams *found = context;
    for (size_t i = 0; i < timeline->buffers.count; i++) {
        const onv_buffer *b = &timeline->buffers.at[i];
        assert_in_range(b->stream, 0, 2);
        if (timeline->steps.at[b->first].iteration != 1) continue;
        found->n[b->stream]++;
        bool gathers =
            strcmp(b->label, "gathered parameters") == 0 || strncmp(b->label, "part", 4) == 0;
        bool is_reduced = strcmp(b->label, "gradient") == 0 && b->bytes == W / 4;
        assert_int_equal(b->stream, gathers ? 1 : is_reduced ? 2 : 0);
    }
    return ONV_OK;
}

/* Each of two units is gathered twice and reduced once. With parts on the host, each is copied before. */
TEST(gathering_has_a_stream)
{
    OWNED_TRAINER t;
    open_blocks(&t, "f32");
    for (int offloads = 0; offloads < 2; offloads++) {
        streams found = {{0}};
        onv_training_options all = {.train = with("adamw"),
                                    .units = "blocks.?",
                                    .take = count_streams,
                                    .take_context = &found};
        all.train.parallel = ONV_PARALLEL_FSDP;
        all.train.world = 4;
        all.train.offload = offloads ? ONV_OFFLOAD_GRADIENTS : ONV_OFFLOAD_NOTHING;
        onv_training result = trainer_compute(&t, &all);
        assert_int_equal(found.n[1], offloads ? 8 : 4);
        assert_int_equal(found.n[2], 2);
        assert_int_equal(result.figures.parts.gathered_bytes, 2 * W + (offloads ? W / 4 : 0));
        assert_int_equal(result.figures.parts.host_bytes,
                         offloads ? 2 * W / 4 + 2 * (2 * W / 4) : 0);
        assert_int_equal(result.figures.parameter_bytes, offloads ? 0 : 2 * W / 4);
        assert_int_equal(result.figures.optimizer_bytes, offloads ? 0 : 2 * (2 * W / 4));
        /* x, y, the output and the last loss; with offloading nothing else. */
        uint64_t left = offloads ? 0 : 2 * W / 4 * 5;
        assert_int_equal(result.figures.phase_peak_bytes[ONV_PHASE_OPTIMIZER], 4 * ROW + left);
    }
}

TEST(what_cannot_be_shared_out)
{
    static const struct {
        uint8_t parallel;
        uint32_t world, zero_stage;
        const char *units, *says;
    } cases[] = {
        {ONV_PARALLEL_FSDP, 1, 0, "", "--world"},
        {ONV_PARALLEL_DDP, 0, 0, "", "--world"},
        {ONV_PARALLEL_DDP, 2, 1, "", "exclude"},
        {ONV_PARALLEL_FSDP, 2, 0, "layers.*", "matches no module"},
        {ONV_PARALLEL_FSDP, 2, 0, ",", "patterns"},
        {ONV_PARALLEL_FSDP, 2, 0, "blocks,blocks.0", "within"},
    };
    OWNED_TRAINER t;
    open_blocks(&t, "f32");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        onv_error err = {0};
        onv_training result;
        onv_training_options all = {.train = with("sgd"), .units = cases[i].units};
        all.train.parallel = cases[i].parallel;
        all.train.world = cases[i].world;
        all.train.zero_stage = cases[i].zero_stage;
        assert_int_equal(onv_training_compute(&t.model, &t.live, &all, &result, &err),
                         ONV_ERR_USAGE);
        if (strstr(err.message, cases[i].says) == NULL) fail_msg("%s", err.message);
    }
}

/* --- Losses ------------------------------------------------------------------------------------ */

/* Logits [16, 256] of a matrix [256, 256]: in one chunk, for there are as many classes as values. */
TEST(losses_take_the_head_in)
{
    OWNED_TRAINER t;
    open_blocks(&t, "f32");
    onv_train_options options = with("sgd");
    options.lower.loss = ONV_LOSS_CROSS_ENTROPY;
    onv_training plain = trainer_run(&t, &options);
    /* x, a, the log-probabilities, targets, the total weight. */
    assert_int_equal(plain.figures.saved_activation_bytes, 3 * ROW + 16 * 8 + 4);
    options.lower.loss = ONV_LOSS_FUSED;
    onv_training r = trainer_run(&t, &options);
    assert_string_equal(r.loss, "fused-cross-entropy");
    /* x, and the gradients of a and of the matrix. */
    assert_int_equal(r.figures.saved_activation_bytes, ROW + ROW + W);
    /* Beside them logits, the losses of rows with a mask, the product before it is added, the loss and the
     * last one; x and a are there, and targets. */
    assert_int_equal(r.figures.phase_peak_bytes[ONV_PHASE_LOSS],
                     2 * W + 2 * ROW + 16 * 8 + ROW + W + ROW + 16 * 5 + W + 2 * 4);
    options.lower.loss = ONV_LOSS_CHUNKED;
    options.lower.loss_chunks = 4;
    r = trainer_run(&t, &options);
    assert_string_equal(r.loss, "chunked-cross-entropy");
    assert_int_equal(r.figures.saved_activation_bytes, 3 * ROW + 16 * 8 + 4 * 4);
    assert_true(r.figures.phase_peak_bytes[ONV_PHASE_LOSS] <
                plain.figures.phase_peak_bytes[ONV_PHASE_LOSS]);
}

/* Its products have a workspace beside the logits, which are most there. */
TEST(fused_losses_have_workspaces)
{
    OWNED_TRAINER t;
    open_blocks(&t, "f32");
    onv_train_options options = with("sgd");
    options.lower.loss = ONV_LOSS_FUSED;
    options.lower.cuda = onv_cuda_library_defaults();
    onv_training r = trainer_run(&t, &options);
    uint64_t beside = onv_cublas_product(&options.lower.cuda).bytes;
    assert_true(beside > 0);
    assert_int_equal(r.figures.requested_peak_bytes,
                     r.figures.phase_peak_bytes[ONV_PHASE_LOSS] + beside);
}

typedef struct sums {
    uint32_t n;
} sums;

static onv_status count_sums(void *context, const onv_timeline *timeline,
                             const onv_placement *placement, const char *plan, onv_error *err)
{
    (void)placement;
    (void)plan;
    (void)err;
    sums *found = context;
    for (size_t i = 0; i < timeline->steps.count; i++) {
        const onv_step *step = &timeline->steps.at[i];
        found->n += step->iteration == 1 && step->label != NULL &&
                    strcmp(step->label, "sum of gradients") == 0;
    }
    return ONV_OK;
}

/* The first two gradients of the matrix are views, as every linear layer gives; the third is added to their
 * sum in place. Of the rows' there are four, in places of their own. */
TEST(chunks_add_up_their_gradients)
{
    OWNED_TRAINER t;
    open_blocks(&t, "f32");
    for (uint32_t chunks = 1; chunks <= 4; chunks++) {
        sums found = {0};
        onv_training_options all = {
            .train = with("sgd"), .take = count_sums, .take_context = &found};
        all.train.lower.loss = ONV_LOSS_CHUNKED;
        all.train.lower.loss_chunks = chunks;
        trainer_compute(&t, &all);
        assert_int_equal(found.n, chunks > 1);
    }
}

TEST(losses_have_counts)
{
    const char *list = "chunked-cross-entropy=12,y=chunked-cross-entropy,z=mse";
    onv_loss_item item;
    assert_true(onv_loss_next(&list, &item));
    assert_int_equal(item.loss, ONV_LOSS_CHUNKED);
    assert_int_equal(item.count, 12);
    assert_int_equal(item.output_length, 0);
    assert_true(onv_loss_next(&list, &item));
    assert_int_equal(item.loss, ONV_LOSS_CHUNKED);
    assert_int_equal(item.count, ONV_LOSS_CHUNKS);
    assert_int_equal(item.output_length, 1);
    assert_true(onv_loss_next(&list, &item));
    assert_int_equal(item.loss, ONV_LOSS_MSE);
    static const char *const wrong[] = {"mse=3", "chunked-cross-entropy=0",
                                        "chunked-cross-entropy=5000",
                                        "chunked-cross-entropy=99999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        list = wrong[i];
        assert_true(onv_loss_next(&list, &item));
        assert_int_equal(item.loss, ONV_LOSS_AUTO);
    }
}
