/* What networks of images, videos and diffusion do: layouts of memory, buffers that layers read, calls that were folded. */
#include "eager/pass.h"
#include "eager/trainer.h"
#include "kernels/cudnn.h"
#include "support/test.h"

#define LINEAR "torch.nn.modules.linear.Linear"

/* A layer of fixed weights, as of a cosine transform, whose transpose the exporter computed. */
TEST(weights_that_are_buffers_are_not_trained)
{
    static const struct {
        const char *arguments;
        bool trains;
    } cases[] = {{"%x, %p_dct_weights", true}, {"%x, %b_dct_weights", false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        OWNED_MODEL m = model_read(18, "in x f32[4,8]", "weight val_1 f32[8,8]",
                                   "weight val_2 f32[8,8]", "parameters dct.weights head.weight");
        for (int k = 0; k < 2; k++) {
            model_source(m, k == 0 ? "dct" : "head", k == 0 ? "linear" : "linear_1");
            model_class(m, k == 0 ? "zoo.Cosines" : LINEAR, "aten.linear.default");
            model_call(m, "aten.linear.default",
                       k == 0 ? cases[i].arguments : "%linear, %p_head_weight");
            model_node(m, "MatMul", k == 0 ? "a" : "b", k == 0 ? "x val_1" : "h val_2",
                       k == 0 ? "h" : "y", "");
        }
        model_output(m, "y", "f32");
        OWNED_TRAINER t;
        onv_training_figures f = TRAINED(&t, m, .loss = ONV_LOSS_NONE);
        enum { W = 8 * 8 * 4, H = 4 * 8 * 4 };
        assert_int_equal(f.gradient_bytes, cases[i].trains ? 2 * W : W);
        assert_int_equal(f.parameter_bytes, cases[i].trains ? 2 * W : W);
        assert_int_equal(f.saved_activation_bytes, cases[i].trains ? 2 * H : H);
    }
}

/* An image whose channels come last is convolved so, by kernels of one channel too, and what follows keeps the order:
 * then a flattened result is a view where channels still come last. Images in the usual order give the usual one. */
TEST(convolutions_answer_in_the_order_of_their_image)
{
    enum { PIXELS = 6 * 6, ALL = 8 * PIXELS * 4, KERNEL = 8 * 8 * 9 * 4 };
    static const int64_t flat[] = {1, 8 * PIXELS};
    static const struct {
        const char *weight, *convolution, *between, *before;
        bool is_view;
    } cases[] = {
        {"f32[8,8,3,3]", "pads=[1,1,1,1]", "Sigmoid", "perm=[0,3,1,2]", true},
        {"f32[8,8,3,3]", "pads=[1,1,1,1]", "Sigmoid", NULL, false},
        {"f32[8,1,3,3]", "pads=[1,1,1,1] group=8", "Sigmoid", "perm=[0,3,1,2]", true},
        {"f32[8,8,2,2]", "pads=[0,0,1,1]", "Sigmoid", "perm=[0,3,1,2]", true}, /* padded before */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bool is_last = cases[i].before != NULL;
        model *m = model_new(18);
        model_input(m, "x", is_last ? "f32[1,6,6,8]" : "f32[1,8,6,6]");
        model_weight(m, "w", cases[i].weight);
        model_ints(m, "flat", 2, flat);
        if (is_last) model_node(m, "Transpose", "first", "x", "image", cases[i].before);
        model_node(m, "Conv", "conv", is_last ? "image w" : "x w", "a", cases[i].convolution);
        model_node(m, cases[i].between, "between", "a", "b", "");
        model_add(m, "c = Transpose(b) last perm=[0,2,3,1]", "d = Reshape(c flat) flatten",
                  "y = Sin(d) sine", "out y f32");
        onv_lower_options how = {.loss = ONV_LOSS_NONE, .cuda = onv_cuda_library_defaults()};
        bool is_padded = i == 3;
        uint64_t read = is_padded ? 8 * 7 * 7 * 4 : ALL;
        assert_int_equal(trainer_kept(m, &how), read + (cases[i].is_view ? ALL : 2 * ALL));
    }
}

/* Biases of a window of 3 by 3, of which the exporter folded the look-up and the view. */
TEST(tables_are_as_small_as_their_windows)
{
    enum { ROWS = 25, HEADS = 2 };
    OWNED_MODEL m =
        model_read(18, "in x f32[2,9,9]", "parameters net.relative_position_bias_table",
                   "weight permute f32[2,9,9]", "source net add",
                   "class zoo.Attention aten.add.Tensor", "y = Add(x permute) add", "out y f32");
    OWNED_TRAINER t;
    onv_training_figures f = TRAINED(&t, m, .loss = ONV_LOSS_NONE);
    assert_int_equal(f.parameter_bytes, ROWS * HEADS * 4);
    assert_int_equal(f.gradient_bytes, ROWS * HEADS * 4);
}

/* What contiguous() copies of a part leads to what the part was of. */
TEST(parts_that_are_copied_lead_back)
{
    for (int is_cloned = 0; is_cloned < 2; is_cloned++) {
        enum { FIRST = 8 * 8 * 4, SECOND = 4 * 4 * 4, X = 4 * 8 * 4, PART = 4 * 4 * 4 };
        model *m =
            model_read(18, "in x f32[4,8]", "weight w f32[8,8]", "role w PARAMETER",
                       "weight second.weight f32[4,4]", "h = MatMul(x w) product",
                       "part rest = Split(h) split axis=1 num_outputs=2", "source second linear");
        model_class(m, LINEAR, "aten.linear.default");
        model_call(m, "aten.linear.default",
                   is_cloned ? "%clone, %p_second_weight" : "%part, %p_second_weight");
        model_add(m, "y = MatMul(part second.weight) linear", "out y f32");
        OWNED_TRAINER t;
        onv_training_figures f = TRAINED(&t, m, .loss = ONV_LOSS_NONE);
        assert_int_equal(f.gradient_bytes, FIRST + SECOND);
        assert_int_equal(f.saved_activation_bytes, X + (is_cloned ? PART : 2 * PART));
        model_free(m);
    }
}

/* 0.5 x (1 + erf(x / sqrt(2))) in one call, or written in Python. */
TEST(formulas_in_python_keep_their_parts)
{
    enum { X = 4 * 8 * 4 };
    static const struct {
        const char *op, *inputs, *output, *call, *aten;
    } nodes[] = {{"Mul", "h half", "a", "mul", "aten.mul.Tensor"},
                 {"Div", "h root", "b", "div", "aten.div.Tensor"},
                 {"Erf", "b", "c", "erf", "aten.erf.default"},
                 {"Add", "c one", "d", "add", "aten.add.Tensor"},
                 {"Mul", "a d", "y", "mul_1", "aten.mul.Tensor"}};
    for (int is_python = 0; is_python < 2; is_python++) {
        model *m = model_read(18, "in x f32[4,8]", "weight w f32[8,8]", "role w PARAMETER",
                              "half = Constant() c0 value_float=0.5",
                              "root = Constant() c1 value_float=1.4142135",
                              "one = Constant() c2 value_float=1.0", "h = MatMul(x w) product");
        for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++) {
            model_source(m, "act", is_python ? nodes[i].call : "gelu");
            model_class(m, "zoo.Activation", is_python ? nodes[i].aten : "aten.gelu.default");
            model_node(m, nodes[i].op, nodes[i].output, nodes[i].inputs, nodes[i].output, "");
        }
        model_output(m, "y", "f32");
        uint64_t kept = trainer_kept(m, &(onv_lower_options){.loss = ONV_LOSS_NONE});
        assert_int_equal(kept, X + (is_python ? 3 * X : X));
    }
}

#define POOLING(call, aten) "pool", call, "torch.nn.modules.pooling.AdaptiveAvgPool2d", "aten." aten

typedef struct part {
    const char *op, *inputs, *output, *attributes, *module, *call, *class, *aten;
} part;

static void add_parts(model *m, const part *parts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        model_source(m, parts[i].module, parts[i].call);
        model_class(m, parts[i].class, parts[i].aten);
        model_node(m, parts[i].op, parts[i].output, parts[i].inputs, parts[i].output,
                   parts[i].attributes);
    }
}

/* Windows of unequal sizes, which the exporter looks up and sums one place after the other: one kernel, which keeps what it
 * pools, and whose result has the order of that. */
TEST(poolings_to_any_size_are_one_operation)
{
    enum { IN = 8 * 5 * 5 * 4, OUT = 8 * 3 * 3 * 4 };
    static const int64_t places[3 * 2 * 3 * 2 * 2], flat[] = {1, 8 * 3 * 3};
    static const part sums[] = {
        {"Transpose", "h", "t", "perm=[2,3,0,1]", POOLING("index", "index.Tensor")},
        {"GatherND", "t places", "g", "", POOLING("index", "index.Tensor")},
        {"Transpose", "g", "u", "perm=[4,5,0,1,2,3]", POOLING("index", "index.Tensor")},
        {"Where", "mask zero u", "v", "", POOLING("masked_fill", "masked_fill.Scalar")},
        {"Gather", "v first", "a", "axis=3", POOLING("select", "select.int")},
        {"Gather", "a first", "b", "axis=4", POOLING("select_1", "select.int")},
        {"Gather", "a second", "c", "axis=4", POOLING("select_2", "select.int")},
        {"Add", "b c", "d", "", POOLING("add", "add.Tensor")},
        {"Div", "d sizes", "p", "", POOLING("div", "div.Tensor")},
    };
    static const part means[] = {
        {"Transpose", "h", "t", "perm=[2,3,0,1]", POOLING("index", "index.Tensor")},
        {"GatherND", "t places", "g", "", POOLING("index", "index.Tensor")},
        {"Transpose", "g", "u", "perm=[4,5,0,1,2,3]", POOLING("index", "index.Tensor")},
        {"ReduceMean", "u inner", "p", "keepdims=0", POOLING("mean", "mean.dim")},
    };
    static const struct {
        const part *parts;
        size_t n;
        bool is_last;
        uint64_t kept;
    } cases[] = {
        {sums, 9, false, IN + 2 * OUT}, {sums, 9, true, IN + OUT}, {means, 4, true, IN + OUT}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bool is_last = cases[i].is_last;
        static const int64_t inner[] = {-3, -1};
        model *m = model_new(18);
        model_input(m, "x", is_last ? "f32[1,5,5,8]" : "f32[1,8,5,5]");
        model_add(m, "weight w f32[8,8,1,1]", "role w PARAMETER");
        model_weight_data(m, "places", "i64[3,2,3,2,2]", places, sizeof places);
        model_weight(m, "mask", "bool[3,2,1,1]");
        model_float(m, "zero", 0);
        model_add(m, "int first 0", "int second 1", "weight sizes f32[3,3]");
        model_ints(m, "flat", 2, flat);
        model_ints(m, "inner", 2, inner);
        if (is_last) model_node(m, "Transpose", "move", "x", "image", "perm=[0,3,1,2]");
        model_node(m, "Conv", "conv", is_last ? "image w" : "x w", "h", "");
        add_parts(m, cases[i].parts, cases[i].n);
        model_add(m, "s = Sigmoid(p) sigmoid", "q = Transpose(s) last perm=[0,2,3,1]",
                  "r = Reshape(q flat) flatten", "y = Sin(r) sine", "out y f32");
        uint64_t kept = trainer_kept(m, &(onv_lower_options){.loss = ONV_LOSS_NONE});
        assert_int_equal(kept, IN + cases[i].kept);
    }
}

/* F.affine_grid keeps nothing, and its places are no tensor. */
TEST(grids_keep_nothing)
{
    for (int is_grid = 0; is_grid < 2; is_grid++) {
        static const int64_t ones[] = {1}, rows[] = {-2};
        enum { H = 4 * 3 * 2 * 4, PLACES = 9 * 3 * 4 };
        model *m = model_read(18, "in x f32[4,3,2]", "weight w f32[2,2]", "role w PARAMETER");
        model_weight(m, "val_7", is_grid ? "f32[9,3,1]" : "f32[9,3,2]");
        model_ints(m, "one", 1, ones);
        model_ints(m, "rows", 1, rows);
        model_add(m, "h = MatMul(x w) product", "a = Unsqueeze(h one) unsqueeze", "source net mul",
                  "class zoo.Net aten.mul.Tensor", "b = Mul(val_7 a) mul", "source net sum_1",
                  "class zoo.Net aten.sum.dim_IntList", "y = ReduceSum(b rows) sum keepdims=0",
                  "out y f32");
        uint64_t kept = trainer_kept(m, &(onv_lower_options){.loss = ONV_LOSS_NONE});
        assert_int_equal(kept, H + (is_grid ? 0 : 2 * PLACES));
    }
}
