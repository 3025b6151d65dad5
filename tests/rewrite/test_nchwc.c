/* Blocks of channels on the CPU, one small graph each; compared with graphs that ONNX Runtime 1.31 saves (AVX-512). */
#include "rewrite/small_graphs.h"
#include "support/test.h"

/* A convolution of x, and one of y behind it. */
#define FIRST "in x f32[1,16,8,8]; weight w f32[32,16,1,1]; Conv x,w -> c; "
#define LAST  "weight v f32[32,32,1,1]; Conv y,v -> z; out z f32"
#define SUM                                                                                        \
    "in x f32[1,16,8,8]; weight w f32[32,16,1,1]; weight u f32[32,16,3,3]; Conv x,w -> p; Conv "   \
    "x,u -> q pads=[1,1,1,1]; Add p,q -> c; "
#define ROW(graph, operators)                                                                      \
    {                                                                                              \
        17, ONV_REWRITE_ALL, graph, operators, "NchwcTransformer"                                  \
    }
#define NONE(graph, operators)                                                                     \
    {                                                                                              \
        17, ONV_REWRITE_ALL, graph, operators, ""                                                  \
    }
#define ONE_CONV(in, out, kernel_in, group)                                                        \
    "in x f32[1," in ",8,8]; weight w f32[" out "," kernel_in ",3,3]; Conv x,w -> z group=" group  \
    "; out z f32"

static const rewrite_case cases[] = {
    /* channels that fill blocks of 4 but not of 16 are filled up; few are read as they are */
    ROW(ONE_CONV("3", "32", "3", "1"), "Conv ReorderOutput"),
    ROW(ONE_CONV("20", "24", "20", "1"), "Conv ReorderInput ReorderOutput"),
    NONE(ONE_CONV("18", "32", "18", "1"), "Conv"),
    ROW(ONE_CONV("24", "24", "1", "24"), "Conv ReorderInput ReorderOutput"),
    NONE(ONE_CONV("30", "30", "1", "30"), "Conv"),
    NONE(ONE_CONV("24", "24", "12", "2"), "Conv"),
    ROW(ONE_CONV("32", "32", "16", "2"), "Conv ReorderInput ReorderOutput"),
    /* functions that a convolution applies, and others */
    ROW(SUM "Relu c -> y; " LAST, "Conv Conv Conv ReorderInput ReorderOutput"),
    ROW(SUM "HardSwish c -> y; " LAST, "Conv Conv Conv ReorderInput ReorderOutput"),
    ROW(SUM "HardSigmoid c -> s alpha=0.16666667; Mul c,s -> y; " LAST,
        "Conv Conv Conv ReorderInput ReorderOutput"),
    ROW(SUM "HardSigmoid c -> s; Mul c,s -> y; " LAST,
        "Conv Conv Conv HardSigmoid Mul ReorderInput ReorderOutput"),
    ROW(SUM "Elu c -> y; " LAST,
        "Conv Conv Conv Elu ReorderInput ReorderInput ReorderOutput ReorderOutput"),
    ROW(SUM "LeakyRelu c -> y; " LAST,
        "Conv Conv Conv LeakyRelu ReorderInput ReorderInput ReorderOutput ReorderOutput"),
    ROW(FIRST "Sub c,c -> y; " LAST,
        "Conv Conv ReorderInput ReorderInput ReorderOutput ReorderOutput Sub"),
    ROW(FIRST "Mul c,c -> y; " LAST, "Conv Conv Mul ReorderInput ReorderOutput"),
    /* pools; global ones only of blocks, or of an input of the graph */
    ROW(FIRST "MaxPool c -> y kernel_shape=[2,2]; " LAST,
        "Conv Conv MaxPool ReorderInput ReorderOutput"),
    ROW("in x f32[1,16,8,8]; MaxPool x -> y kernel_shape=[2,2]; out y f32",
        "MaxPool ReorderInput ReorderOutput"),
    NONE("in x f32[1,20,8,8]; MaxPool x -> y kernel_shape=[2,2]; out y f32", "MaxPool"),
    ROW("in x f32[1,16,8,8]; GlobalAveragePool x -> y; out y f32",
        "GlobalAveragePool ReorderInput ReorderOutput"),
    NONE("in x f32[1,16,8,8]; Relu x -> r; GlobalAveragePool r -> y; out y f32",
         "GlobalAveragePool Relu"),
    /* a gate is not of the image's size */
    ROW(FIRST "weight a f32[16,32,1,1]; weight b f32[32,16,1,1]; GlobalAveragePool c -> p; Conv "
              "p,a -> d; Relu d -> r; Conv r,b -> g; Sigmoid g -> s; Mul c,s -> y; " LAST,
        "Conv Conv Conv Conv GlobalAveragePool Mul ReorderInput ReorderInput ReorderOutput "
        "ReorderOutput ReorderOutput"),
    /* parts that fill blocks */
    ROW("in x f32[1,16,8,8]; weight w f32[32,16,1,1]; weight u f32[32,16,1,1]; weight v "
        "f32[16,64,1,1]; Conv x,w -> p; Conv x,u -> q; Concat p,q -> y axis=1; Conv y,v -> z; "
        "out z f32",
        "Concat Conv Conv Conv ReorderInput ReorderOutput"),
    ROW("in x f32[1,16,8,8]; weight w f32[24,16,1,1]; weight u f32[24,16,1,1]; weight v "
        "f32[16,48,1,1]; Conv x,w -> p; Conv x,u -> q; Concat p,q -> y axis=1; Conv y,v -> z; "
        "out z f32",
        "Concat Conv Conv Conv ReorderInput ReorderInput ReorderOutput ReorderOutput "
        "ReorderOutput"),
    /* whole factors of sizes */
    ROW(FIRST "ints s 1,32,16,16; Resize c,-,-,s -> y mode='linear' "
              "coordinate_transformation_mode='half_pixel'; " LAST,
        "Conv Conv ReorderInput ReorderOutput Upsample"),
    ROW(FIRST "ints s 1,32,16,16; Resize c,-,-,s -> y mode='nearest'; " LAST,
        "Conv Conv ReorderInput ReorderInput ReorderOutput ReorderOutput Resize"),
    /* a Transpose to or from channels last is a part of the reorder */
    ROW(FIRST
        "Transpose c -> q perm=[0,2,3,1]; Softmax q -> r; Transpose r -> y perm=[0,3,1,2]; " LAST,
        "Conv Conv ReorderInput ReorderInput ReorderOutput ReorderOutput Softmax"),
    /* sizes without numbers: the same where the windows leave them */
    ROW("in x f32[n,16,h,w]; weight a f32[32,16,3,3]; weight b f32[32,32,3,3]; Conv x,a -> c "
        "pads=[1,1,1,1]; Conv c,b -> d pads=[1,1,1,1]; Add c,d -> z; out z f32",
        "Conv Conv ReorderInput ReorderOutput"),
    ROW("in x f32[n,16,h,w]; weight a f32[32,16,3,3]; weight b f32[32,16,1,1]; Conv x,a -> c "
        "pads=[1,1,1,1]; Conv x,b -> d; Add c,d -> z; out z f32",
        "Add Conv Conv ReorderInput ReorderOutput"),
};

/* A convolution of integers, its bias at a scale that fits or not. */
#define PAIRS(bias)                                                                                \
    "in x f32[1,16,8,8]; float s 0.1; float t 0.02; float u " bias                                 \
    "; weight z u8[]; weight w i8[32,16,3,3]; weight wz i8[]; weight b i32[32]; weight bz i32[]; " \
    "QuantizeLinear x,s,z -> q; DequantizeLinear q,s,z -> d; DequantizeLinear w,t,wz -> v; "       \
    "DequantizeLinear b,u,bz -> c; Conv d,v,c -> y pads=[1,1,1,1]; QuantizeLinear y,s,z -> r; "    \
    "DequantizeLinear r,s,z -> e; "

static const rewrite_case quantized[] = {
    {17, ONV_REWRITE_ALL, PAIRS("0.002") "out e f32",
     "DequantizeLinear QLinearConv QuantizeLinear Transpose Transpose",
     "QDQSelectorActionTransformer"},
    {17, ONV_REWRITE_ALL, PAIRS("0.00201") "out e f32",
     "DequantizeLinear QLinearConv QuantizeLinear Transpose Transpose", "NhwcTransformer"},
    {17, ONV_REWRITE_ALL, PAIRS("0.00203") "out e f32",
     "Conv DequantizeLinear DequantizeLinear DequantizeLinear DequantizeLinear QuantizeLinear "
     "QuantizeLinear",
     ""},
    {17, ONV_REWRITE_EXTENDED, PAIRS("0.002") "out e f32",
     "DequantizeLinear QLinearConv QuantizeLinear", "QDQSelectorActionTransformer"},
    /* with channels last, a pool too */
    {17, ONV_REWRITE_ALL,
     PAIRS("0.002") "MaxPool e -> f kernel_shape=[2,2]; QuantizeLinear f,s,z -> g; "
                    "DequantizeLinear g,s,z -> h; out h f32",
     "DequantizeLinear NhwcMaxPool QLinearConv QuantizeLinear Transpose Transpose",
     "NhwcTransformer"},
};

TEST(pairs_become_operators_of_integers)
{
    check_rewrites(ONV_PROVIDER_CPU, quantized, sizeof quantized / sizeof quantized[0]);
}

TEST(channels_lie_in_blocks)
{
    check_rewrites(ONV_PROVIDER_CPU, cases, sizeof cases / sizeof cases[0]);
}
