/* Programs of the corpus (tests/truth/programs), each for one fact: what autograd keeps of them on the CUDA build of PyTorch 2.15, and
 * what is said where a program does not tell. */
#include "api/analysis.h"
#include "onnxvram/onnxvram.h"
#include "support/capture.h"
#include "support/test.h"

enum { BATCH = 4 };

static onv_analysis *analyse_with(const char *file, const onv_options *options)
{
    char path[600];
    onv_analysis *analysis;
    onv_error err = {0};
    snprintf(path, sizeof path, "%s/%s", ONV_SOURCE_DIR, file);
    assert_int_equal(onv_analysis_new(path, options, &analysis, &err), ONV_OK);
    return analysis;
}

static onv_analysis *analyse_in(const char *file, int64_t batch, const char *train,
                                const char *loss, onv_precision amp)
{
    char path[400];
    onv_options options = onv_options_default();
    options.batch = batch;
    options.train = train;
    options.loss = loss;
    options.amp = amp;
    options.runtimes = "torch";
    snprintf(path, sizeof path, "tests/%s.json.gz", file);
    return analyse_with(path, &options);
}

static onv_analysis *analyse_at(const char *file, int64_t batch, const char *train,
                                const char *loss)
{
    return analyse_in(file, batch, train, loss, ONV_PRECISION_AS_EXPORTED);
}

static onv_analysis *analyse(const char *file, const char *loss)
{
    return analyse_at(file, BATCH, "momentum", loss);
}

static void keeps_at(const char *file, int64_t batch, const char *loss, uint64_t bytes)
{
    enum { PER_MILLE = 1000 };
    OWNED_ANALYSIS analysis = analyse_at(file, batch, "momentum", loss);
    onv_training_figures info = analysis->training.figures;
    uint64_t low = bytes - 2 * bytes / PER_MILLE, high = bytes + 2 * bytes / PER_MILLE;
    assert_in_range(info.saved_activation_bytes, low, high);
}

static void keeps(const char *file, const char *loss, uint64_t bytes)
{
    keeps_at(file, BATCH, loss, bytes);
}

/* The most that training with momentum has in tensors at once. */
static void takes(const char *file, const char *loss, uint64_t bytes)
{
    enum { PER_MILLE = 1000 };
    OWNED_ANALYSIS analysis = analyse(file, loss);
    onv_training_figures info = analysis->training.figures;
    assert_in_range(info.peak_bytes, bytes - 5 * bytes / PER_MILLE, bytes + 5 * bytes / PER_MILLE);
}

static bool has_warning(onv_analysis *analysis, const char *code)
{
    onv_diagnostic d;
    bool found = false;
    for (size_t i = 0; onv_analysis_diagnostic(analysis, i, &d); i++)
        found |= strcmp(d.code, code) == 0 && strcmp(d.severity, "warning") == 0;
    onv_analysis_destroy(analysis);
    return found;
}

static bool warns(const char *file, const char *code)
{
    return has_warning(analyse(file, "none"), code);
}

static bool warns_of_inference(const char *file, const char *code)
{
    return has_warning(analyse_at(file, BATCH, NULL, NULL), code);
}

static bool warns_of_autocast(const char *file, const char *code)
{
    return has_warning(analyse_in(file, BATCH, "adamw", "none", ONV_PRECISION_BF16), code);
}

/* torch.zeros(..., dtype=x.dtype) is of float32 in the file, and of bfloat16 under autocast: with it GATv2 takes 2.1 % too much. */
TEST(types_of_tensors_are_not_told)
{
    assert_true(warns_of_autocast("tape/programs/gatv2.archive", "autocast-types"));
    assert_false(warns("tape/programs/gatv2.archive", "autocast-types"));
    assert_false(warns_of_autocast("truth/programs/t5_encoder.archive", "autocast-types"));
    assert_false(warns_of_autocast("truth/programs/llama.archive", "autocast-types"));
    assert_true(warns_of_autocast("tape/programs/named_types", "autocast-types"));
}

/* What moves to a device keeps the type that it has under autocast: x.to(device=...) has a dtype in an archive. Measured: 2048 bytes. */
TEST(moves_keep_types)
{
    OWNED_ANALYSIS analysis =
        analyse_in("tape/programs/moved.archive", BATCH, "adamw", "none", ONV_PRECISION_BF16);
    assert_int_equal(analysis->training.figures.saved_activation_bytes, 2048);
}

/* The kernel of softmax reads a contiguous copy and writes a contiguous result, whatever the strides of its input. */
TEST(softmax_gives_rows)
{
    keeps_at("tape/programs/coat_lite.archive", 2, "cross-entropy", 14477300);
    takes("tape/programs/box_heads.archive", "none", 3024616);
}

/* From 2.14 on kernels of attention take tensors without a batch, here with a bias that is trained, and one head for all of the query's. */
TEST(kernels_take_more_shapes)
{
    keeps_at("tape/programs/samvit_base_patch16_224.archive", 2, "cross-entropy", 26996100);
    takes("tape/programs/falcon.recording", "cross-entropy", 2055048);
}

/* The gradient of a sum repeats its elements: an embedding's backward copies it. */
TEST(repeated_gradients_are_copied)
{
    takes("tape/programs/memory_net.recording", "cross-entropy", 92984);
}

/* cuDNN makes the gradients of a layer's weights as one tensor: those of two calls are summed into new ones, but for the last. */
TEST(recurrent_gradients_are_parts)
{
    takes("tape/programs/esim.archive", "cross-entropy", 1301420);
}

/* What lines call inside a checkpoint runs again in backward. */
TEST(checkpoints_run_again)
{
    static const char *const evidence[] = {"truth/programs/checkpointed.archive",
                                           "truth/programs/checkpointed.recording"};
    for (size_t i = 0; i < 2; i++) {
        keeps(evidence[i], "cross-entropy", 74948);
        takes(evidence[i], "cross-entropy", 1806656);
        assert_false(warns(evidence[i], "checkpointed-calls"));
        assert_false(warns(evidence[i], "recorded-kept"));
    }
    /* A loop on one line, which adds what each run of the function gives. */
    takes("tape/programs/checkpointed_chunks.recorded", "mse", 8288292);
}

/* Indexing leaves out slices of everything, so that gradients of its parts are summed in place. */
TEST(whole_slices_are_left_out)
{
    takes("tape/programs/mamba.recording", "cross-entropy", 666056);
}

/* A loss expands both of its arguments, each to a view of its own. */
TEST(lists_are_expanded_one_by_one)
{
    keeps("truth/programs/dqn.archive", "none", 339360);
    keeps("truth/programs/vqvae.archive", "none", 411648);
}

/* A recording knows which calls ran under no_grad, and in the forward of an autograd.Function. */
TEST(recordings_know_what_has_no_gradient)
{
    keeps("truth/programs/dqn.recording", "none", 339360);
    keeps("truth/programs/separable.recording", "cross-entropy", 20253892);
}

/* vdot() names its second argument otherwise than dot() does. */
TEST(vectors_have_gradients)
{
    keeps("truth/programs/spectral_critic.archive", "none", 299424);
}

/* What autograd kept is as the recording has it, whatever the rules say. */
TEST(recordings_know_what_is_kept)
{
    keeps("truth/programs/message_passing.recording", "cross-entropy", 579348);
    keeps("truth/programs/seq2seq.recording", "cross-entropy", 227412);
}

/* Losses and distances of other operators keep what those do. */
TEST(composites_keep_what_their_parts_do)
{
    keeps("tape/programs/losses", "none", 9040);
    keeps("truth/programs/siamese.archive", "none", 1532048);
}

/* transformers computes masks that mask nothing, or causally, while it is exported alone. */
TEST(exported_masks_do_not_run)
{
    keeps("truth/programs/bert.archive", "cross-entropy", 680964);
    keeps("truth/programs/opt.archive", "cross-entropy", 690724);
    keeps("truth/programs/t5_encoder.archive", "cross-entropy", 853892);
}

/* Of inference: the least and the most that may be allocated, and what is. */
static onv_runtime_result infer_at(const char *file, int64_t batch)
{
    onv_analysis *analysis = analyse_at(file, batch, NULL, NULL);
    onv_runtime_result info = analysis->runtimes[0];
    onv_analysis_destroy(analysis);
    return info;
}

static onv_runtime_result infer(const char *file)
{
    return infer_at(file, BATCH);
}

/* A view in a loop belongs to the line that has called it, which runs again. */
TEST(loops_bind_names_again)
{
    assert_int_equal(infer("tape/programs/conv_lstm.archive").tensor_peak_bytes, 596148);
}

/* `largest, _ = torch.max(x, 1)` has the places, too. */
TEST(results_that_nothing_reads_have_names)
{
    assert_int_equal(infer("tape/programs/cbam.archive").tensor_peak_bytes, 442368);
}

/* What the last turn of a loop binds, and nothing reads, is there until forward returns. */
TEST(values_that_nothing_reads_have_names)
{
    takes("tape/programs/egnn.archive", "mse", 624764);
    assert_int_equal(infer("truth/programs/wavenet.archive").tensor_peak_bytes, 800000);
}

/* Modules share a tensor, of which the archive says where its data is. */
TEST(shared_parameters_count_once)
{
    assert_int_equal(infer("truth/programs/t5_encoder.archive").tensor_peak_bytes, 547328);
    assert_false(warns("truth/programs/t5_encoder.archive", "shared-parameters"));
}

/* What instance_norm() gives is a view: an activation that overwrites it is written through its base. */
TEST(norms_of_instances_give_views)
{
    takes("tape/programs/unet3d.archive", "cross-entropy", 8605260);
}

/* A recording decides tensors, not what cuDNN takes where its answers to such convolutions differed. */
TEST(recordings_leave_open_what_cudnn_takes)
{
    OWNED_ANALYSIS analysis = analyse("truth/programs/resnet18.recording", NULL);
    const onv_training *t = &analysis->training;
    assert_int_equal(t->least.peak_bytes, t->most.peak_bytes);
    assert_true(t->figures.held_ends[0] <= t->figures.reserved_peak_bytes);
    assert_true(t->figures.held_ends[1] >= t->figures.reserved_peak_bytes);
    assert_true(t->figures.held_ends[1] > t->figures.held_ends[0]);
    const onv_runtime_result *train = &analysis->runtimes[analysis->n_runtimes - 1];
    assert_string_equal(train->runtime->name, "train");
    assert_int_equal(train->high_bytes, t->figures.held_ends[1]);
    assert_true(train->has_open_workspaces);
}

/* Quantized products have steps of their own, so that steps are not operations: the ends of what cuDNN takes are built apart. */
TEST(ends_of_quantized_networks_have_their_own_steps)
{
    onv_options options = onv_options_default();
    options.batch = 5;
    options.weights = "int8";
    options.runtimes = "torch";
    OWNED_ANALYSIS analysis = analyse_with("samples/vit_b_16.onnx", &options);
    const onv_runtime_result *r = &analysis->runtimes[0];
    assert_true(r->has_open_workspaces);
    assert_true(r->allocated_ends.low <= r->allocated_peak_bytes &&
                r->allocated_peak_bytes < r->allocated_ends.high);
}

/* The copy that an activation keeps of what it overwrites is what one that makes a new tensor keeps of its input: plans are as small
 * as those of the default export, where all make new ones. */
TEST(plans_of_what_is_in_place_are_as_small)
{
    enum { EXPORTED = 9678740 };
    onv_options options = onv_options_default();
    options.batch = BATCH;
    options.train = "sgd";
    options.checkpoint = "optimal";
    OWNED_ANALYSIS analysis =
        analyse_with("tests/truth/programs/timm_mobilevit_xxs.recording.json.gz", &options);
    uint64_t least = analysis->training.plans[analysis->training.n_plans - 1].figures.peak_bytes;
    assert_in_range(least, EXPORTED - EXPORTED / 100, EXPORTED + EXPORTED / 100);
}

/* Nor does a plan, whose verdict is of the upper end. */
TEST(plans_leave_open_what_cudnn_takes)
{
    onv_options options = onv_options_default();
    options.batch = BATCH;
    options.train = "momentum";
    options.checkpoint = "sqrt";
    OWNED_ANALYSIS analysis =
        analyse_with("tests/truth/programs/resnet18.recording.json.gz", &options);
    const onv_training_figures *f = &analysis->training.figures;
    const onv_runtime_result *train = &analysis->runtimes[analysis->n_runtimes - 1];
    assert_string_equal(train->runtime->name, "train");
    assert_int_equal(analysis->training.chosen, 0);
    assert_true(f->held_ends[1] > f->held_ends[0]);
    assert_int_equal(train->low_bytes, f->held_ends[0]);
    assert_int_equal(train->high_bytes, f->held_ends[1]);
    assert_true(train->has_open_workspaces);
}

/* A row of modules hands on one tensor from each to the next. A layer that forward gives a buffer of the network's besides is not
 * called so behind one without: the plan is of operations. Behind a layer that is given it, too, it is. A list of modules is a
 * part of names, and is not called: what it has becomes segments of operations. */
TEST(plans_name_rows_of_modules_that_are_called)
{
    static const struct {
        const char *file, *plan;
        onv_plan_form form;
    } cases[] = {{"given_buffers", "sqrt", ONV_PLAN_OPERATIONS},
                 {"given_buffers", "blocks", ONV_PLAN_MODULES},
                 {"lists_of_layers", "blocks", ONV_PLAN_OPERATIONS}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char path[128];
        onv_options options = onv_options_default();
        options.batch = 2;
        options.train = "sgd";
        options.checkpoint = cases[i].plan;
        snprintf(path, sizeof path, "tests/tape/programs/%s.recorded.json.gz", cases[i].file);
        OWNED_ANALYSIS analysis = analyse_with(path, &options);
        assert_int_equal(analysis->training.n_plans, 1);
        assert_int_equal(analysis->training.plans[0].form, cases[i].form);
    }
}

/* The fast path of an encoder's layer has what it normalized until attention, or the feed-forward, is over. */
TEST(the_fast_path_has_what_it_normalized)
{
    assert_int_equal(infer("tape/programs/masked_autoencoder.recording").tensor_peak_bytes, 376576);
}

/* Lists are not decided by lines: PyTorch allocated what is between both ends, and the answer has both. */
TEST(lists_have_two_ends)
{
    enum { ALLOCATED = 2136576 };
    onv_runtime_result info = infer("tape/programs/fpn.archive");
    assert_true(info.allocated_ends.low < ALLOCATED);
    assert_true(info.allocated_ends.high > ALLOCATED);
    assert_true(info.total_bytes.high - info.total_bytes.low >
                info.context_bytes.high - info.context_bytes.low);
}

/* A loop over a list of others' results may give a list, of which the caller reads one, and an encoder's list may have all of its
 * states: no call tells. The upper end has them. */
TEST(lists_that_calls_return_may_be_whole)
{
    enum { TENSORS = 567904 };
    assert_int_equal(infer("tape/programs/pyramid.archive").tensor_ends.high, TENSORS);
}

/* The lower end has what modules are called with, until they return. */
TEST(modules_hold_what_they_are_called_with)
{
    enum { TENSORS = 3090112, PER_MILLE = 1000 };
    onv_range ends = infer("truth/programs/maxvit.archive").tensor_ends;
    assert_in_range(ends.low, TENSORS - TENSORS / PER_MILLE, TENSORS);
    assert_in_range(ends.high, TENSORS, TENSORS + TENSORS / PER_MILLE);
}

/* What a function gives that is not shown ends with the names of its line. */
TEST(names_end_what_is_not_shown)
{
    enum { TENSORS = 699392, PERCENT = 100 };
    uint64_t most = infer("truth/programs/moe_transformer.archive").tensor_ends.high;
    assert_in_range(most, TENSORS, TENSORS + 2 * TENSORS / PERCENT);
}

/* Names of several results hold what the module around them gave a name, whether something reads it or not. */
TEST(several_results_have_names)
{
    enum { TENSORS = 2572976 };
    assert_in_range(TENSORS, infer("tape/programs/perceiver.archive").tensor_ends.low,
                    infer("tape/programs/perceiver.archive").tensor_ends.high);
}

/* What is computed of parameters alone may be an attribute of its module in evaluation, as biases of attention in tiny_vit are. */
TEST(computed_parameters_may_be_kept)
{
    enum { AT_2 = 634599864 };
    assert_int_equal(infer_at("tape/programs/tiny_vit_21m_512.archive", 2).tensor_ends.high, AT_2);
}

/* Zeros into which inputs are copied are computed of inputs, and so is what reads them: no attribute. */
TEST(written_views_are_no_attributes)
{
    enum { TENSORS = 2131056 };
    onv_range ends = infer("tape/programs/shift_net.archive").tensor_ends;
    assert_int_equal(ends.low, TENSORS);
    assert_true(ends.high < TENSORS + TENSORS / 3);
}

/* Weights with noise, in training mode alone. */
TEST(training_mode_is_said)
{
    assert_true(warns_of_inference("tape/programs/rainbow_iqn.archive", "training-calls"));
    assert_false(warns_of_inference("tape/programs/tiny_vit_21m_512.archive", "training-calls"));
    assert_false(warns_of_inference("truth/programs/vae.archive", "training-calls"));
    /* Masks that eager PyTorch may compute. */
    assert_true(warns_of_inference("truth/programs/opt.archive", "exported-masks"));
    assert_false(warns_of_inference("truth/programs/vit.archive", "exported-masks"));
    /* They are nothing beside its parameters. */
    assert_false(warns_of_inference("tape/programs/opt_vocabulary.archive", "exported-masks"));
    /* Exported without a GPU, where autocast for one is off; and with autocast for where it was exported. */
    assert_true(warns_of_inference("program/autocast_off", "autocast-off"));
    assert_false(warns_of_inference("tape/programs/autocast", "autocast-off"));
}

/* The fast path with a mask: a copy of that, and weights of attention beside what they are computed of. */
TEST(the_fast_path_copies_its_mask)
{
    assert_int_equal(infer("tape/programs/decision_transformer.recording").tensor_peak_bytes,
                     514364);
    /* An archive leaves the mask to a kernel that is told to be causal. */
    assert_in_range(infer("tape/programs/decision_transformer.archive").tensor_peak_bytes, 510764,
                    514364);
}

/* What a function gives that is not shown ends with its line, where the line's value is another tensor, or each of its names has
 * a tensor of its own. */
TEST(values_of_lines_are_known)
{
    enum { REALNVP = 188224, AT = 16, DIT = 1477552, PER_MILLE = 1000 };
    assert_in_range(infer_at("truth/programs/realnvp.archive", AT).tensor_ends.high, REALNVP,
                    REALNVP + REALNVP / PER_MILLE);
    assert_in_range(infer("truth/programs/dit.archive").tensor_ends.high, DIT,
                    DIT + 2 * DIT / PER_MILLE);
}

/* An autograd.Function keeps what a recording says, and leads gradients on; what its backward makes on its way is not told. */
TEST(functions_keep_what_was_recorded)
{
    static const char file[] = "tape/programs/fused_blocks.recording";
    keeps(file, "cross-entropy", 373668);
    assert_true(warns(file, "custom-function"));
    assert_false(warns(file, "recorded-kept"));
}

/* Of an archive: what it is given. Its calls in forward keep nothing, and run without gradients. */
TEST(functions_in_archives_keep_what_they_are_given)
{
    enum { AT = 4, KEPT = 20253892 };
    keeps_at("truth/programs/separable.archive", AT, "cross-entropy", KEPT);
    /* One whose forward calls modules is one: its input, weights, and what linear layers and the loss keep outside. */
    OWNED_ANALYSIS analysis = analyse("tape/programs/function_of_modules.archive", "none");
    onv_diagnostic d = {0};
    bool is_one = false;
    for (size_t i = 0; onv_analysis_diagnostic(analysis, i, &d); i++)
        is_one |= strncmp(d.message, "1 calls of an autograd.Function", 31) == 0;
    assert_true(is_one);
}

/* Backward of memory-efficient attention makes its temporaries one by one, as PyTorch's attention_backward.cu does: small ones come of
 * the allocator's small pool, and the products of the result and its gradient are gone before the sums in tiles. */
TEST(backward_of_attention_makes_temporaries_one_by_one)
{
    onv_analysis *analysis;
    onv_error err = {0};
    onv_options options = onv_options_default();
    uint32_t n = 0, together = 0;
    enum { EACH = 6 };
    options.batch = BATCH;
    options.train = "momentum";
    options.runtimes = "torch";
    options.timelines = true;
    assert_int_equal(onv_analysis_new(ONV_SOURCE_DIR
                                      "/tests/tape/programs/falcon.recording.json.gz",
                                      &options, &analysis, &err),
                     ONV_OK);
    const onv_timeline *t = &analysis->training.timeline;
    for (size_t i = 0; i < t->buffers.count; i++) {
        if (t->buffers.at[i].kind != ONV_BUFFER_TEMPORARY ||
            strcmp(t->buffers.at[i].label, "efficient_attention") != 0)
            continue;
        n++;
        for (size_t k = 0; k < i; k++)
            together += t->buffers.at[k].kind == ONV_BUFFER_TEMPORARY &&
                        strcmp(t->buffers.at[k].label, "efficient_attention") == 0 &&
                        t->buffers.at[k].last >= t->buffers.at[i].first;
    }
    /* Of the 15 pairs of each call all but the tiles with the products and with their sums. */
    assert_true(n > 0 && n % EACH == 0);
    assert_int_equal(together, n / EACH * 13);
    onv_analysis_destroy(analysis);
}

/* cosine_similarity() of one tensor and several keeps as many quotients of each. */
TEST(cosines_expand_both)
{
    keeps("tape/programs/wav2vec.archive", "none", 2305496);
    takes("tape/programs/wav2vec.archive", "none", 3510284);
    /* Inference: PyTorch has its arguments, norms and quotients until it returns. 4 bytes are a scalar's. */
    assert_int_equal(infer_at("tape/programs/wav2vec.archive", 6).tensor_ends.high, 1833756 - 4);
}

static bool notes(const char *file, const char *code)
{
    OWNED_ANALYSIS analysis = analyse(file, "cross-entropy");
    onv_diagnostic d;
    for (size_t i = 0; onv_analysis_diagnostic(analysis, i, &d); i++)
        if (strcmp(d.code, code) == 0) return strcmp(d.severity, "note") == 0;
    return false;
}

/* Stochastic depth asks self.training: in an archive of evaluation it is not there, in one of training it is. */
TEST(archives_of_evaluation_say_what_they_lack)
{
    assert_true(notes("tape/programs/left_out_list.archive", "evaluation-calls"));
    assert_false(notes("truth/programs/bert.archive", "evaluation-calls"));
    assert_false(notes("truth/programs/bert.recording", "evaluation-calls"));
}

/* An archive has neither checkpoints nor the backward of an autograd.Function: lines of the network show that it had. */
TEST(archives_say_what_they_do_not_tell)
{
    assert_true(warns("tape/programs/checkpointed_loop", "checkpointed-calls"));
    assert_true(warns("truth/programs/separable.archive", "custom-function"));
    /* Its forward calls sign() alone, which keeps nothing. */
    assert_true(warns("tape/programs/binary_net.archive", "custom-function"));
    assert_false(warns("truth/programs/bert.archive", "shared-parameters"));
    assert_false(warns("truth/programs/separable.recording", "custom-function"));
    assert_false(warns("truth/programs/siamese.archive", "custom-function"));
    /* Archives leave out some lists of modules, so that a layer in one has a forward() more than modules: it is no function. */
    assert_false(warns("tape/programs/left_out_list.archive", "custom-function"));
    assert_false(warns("truth/programs/siamese.archive", "checkpointed-calls"));
    assert_true(warns("tape/programs/projected_states", "projected-layers"));
}
