/* Rewrites, one small graph each: what stands there before, which operators afterwards, and the name
 * under which it is counted. */
#include "rewrite/rules.h"
#include "rewrite/small_graphs.h"
#include "support/capture.h"
#include "support/onnx_writer.h"
#include "support/test.h"

static const rewrite_case cases[] = {
    /* Level 0: providers, copies, casts */
    {17, ONV_REWRITE_DISABLED, "in x f32[2]; Identity x -> a; Relu a -> y; out y f32",
     "Identity Relu", ""},
    {17, ONV_REWRITE_DISABLED,
     "in x f32[a,b]; Shape x -> s; Relu x -> y; Add s,s -> z; out y f32; out z i64",
     "Add Relu Shape", ""},
    {17, ONV_REWRITE_DISABLED,
     "in x f32[a,b]; ints i 0; Shape x -> s; Gather s i -> d; Cast d -> f to=1; Mul x f -> y; out "
     "y f32",
     "Cast Gather MemcpyFromHost Mul Shape", ""},
    {17, ONV_REWRITE_DISABLED,
     "in x f32[2]; Abs x -> a; DynamicQuantizeLinear a -> q,s,z; out q u8",
     "Abs DynamicQuantizeLinear MemcpyToHost", ""},
    {17, ONV_REWRITE_DISABLED,
     "in x f32[2]; Cast x -> a to=11; Cast a -> b to=1; Relu b -> y; out y f32", "Relu",
     "RemoveDuplicateCastTransformer"},
    {17, ONV_REWRITE_DISABLED,
     "in x f32[2]; Cast x -> a to=7; Cast a -> b to=1; Relu b -> y; out y f32", "Cast Cast Relu",
     ""},
    {17, ONV_REWRITE_DISABLED,
     "weight w i8[4]; weight s f32; in x f32[4]; DequantizeLinear w,s -> d; Add x,d -> a; Mul a,d "
     "-> "
     "y; out y f32",
     "Add DequantizeLinear DequantizeLinear Mul", "EnsureUniqueDQForNodeUnit"},

    /* Eliminations */
    {17, ONV_REWRITE_BASIC, "in x f32[2]; Identity x -> a; Relu a -> y; out y f32", "Relu",
     "EliminateIdentity"},
    {17, ONV_REWRITE_BASIC, "in x f32[2]; Relu x -> a; Identity a -> y; out y f32", "Relu",
     "EliminateIdentity"},
    {17, ONV_REWRITE_BASIC,
     "in x f32[2]; Relu x -> a; Abs a -> z; Identity a -> y; out y f32; out z f32",
     "Abs Identity Relu", ""},
    {17, ONV_REWRITE_BASIC, "in x f32[2]; Identity x -> y; out y f32", "Identity", ""},
    {17, ONV_REWRITE_BASIC,
     "in x f32[a]; ints s 0; ints e 9223372036854775807; Relu x -> r; Slice r,s,e,s -> a; Abs a -> "
     "y; "
     "out y f32",
     "Abs Relu", "EliminateSlice"},
    {17, ONV_REWRITE_BASIC,
     "in x f32[a]; ints s 0; ints e 7; Relu x -> r; Slice r,s,e,s -> a; Abs a -> y; out y f32",
     "Abs Relu Slice", ""},
    {17, ONV_REWRITE_BASIC,
     "weight w f32[8]; ints i 0; in x f32[4,8]; Unsqueeze w,i -> u; Add x,u -> y; out y f32", "Add",
     "UnsqueezeElimination"},
    {17, ONV_REWRITE_BASIC, "in x f32[2]; Relu x -> r; Dropout r -> d; Abs d -> y; out y f32",
     "Abs Relu", "EliminateDropout"},
    {17, ONV_REWRITE_BASIC,
     "in x f32[2]; Relu x -> r; Dropout r -> d,m; Abs d -> y; out y f32; out m bool",
     "Abs Dropout Relu", ""},
    {17, ONV_REWRITE_BASIC,
     "in x f32[n,3]; ints s 1,3; Relu x -> r; Expand r,s -> a; Abs a -> y; out y f32", "Abs Relu",
     "ExpandElimination"},
    {17, ONV_REWRITE_BASIC,
     "in x f32[n,3]; ints s 2,3; Relu x -> r; Expand r,s -> a; Abs a -> y; out y f32",
     "Abs Expand Relu", ""},
    {17, ONV_REWRITE_BASIC, "in x f32[2]; Cast x -> a to=1; Relu a -> y; out y f32", "Relu",
     "CastElimination"},
    {17, ONV_REWRITE_BASIC,
     "in x f32[n]; Relu x -> r; Cast r -> a to=7; Shape a -> y; Abs r -> z; out y i64; out z f32",
     "Abs Relu Shape", "PreShapeNodeElimination"},
    {17, ONV_REWRITE_BASIC,
     "in x i64[n]; int zero 0; Abs x -> r; Add zero,r -> a; Neg a -> y; out y i64", "Abs Neg",
     "NoopElimination"},
    {17, ONV_REWRITE_BASIC,
     "in x i64[n]; int one 1; Abs x -> r; Add one,r -> a; Neg a -> y; out y i64", "Abs Add Neg",
     ""},
    {17, ONV_REWRITE_BASIC,
     "in x i64[n]; int zero 0; Abs x -> r; Sub zero,r -> a; Neg a -> y; out y i64", "Abs Neg Sub",
     ""},

    /* Two nodes that are one */
    {17, ONV_REWRITE_BASIC,
     "in x i64[n]; in z i64[n]; int one 1; Div one,x -> d; Mul d,z -> a; Neg a -> y; out y i64",
     "Div Neg", "DivMulFusion"},
    {17, ONV_REWRITE_BASIC,
     "in x f32[n]; Abs x -> a; Relu a -> r; Clip r -> c; Neg c -> y; out y f32", "Abs Clip Neg",
     "FuseReluClip"},
    {17, ONV_REWRITE_BASIC,
     "in x f32[4,8]; in z f32[4,16]; weight w f32[8,16]; Gemm x,w -> g; Sum g,z -> s; Abs s -> y; "
     "out y "
     "f32",
     "Abs Gemm", "GemmSumFusion"},
    {17, ONV_REWRITE_BASIC,
     "in x f32[4,8]; in v f32[16,8]; Transpose v -> t perm=[1,0]; Gemm x,t -> g; Abs g -> y; out y "
     "f32",
     "Abs Gemm", "GemmTransposeFusion"},
    {17, ONV_REWRITE_BASIC,
     "in x f32[4,8]; in v f32[8,16]; Gemm x,v -> g; Transpose g -> t perm=[1,0]; Abs t -> y; out y "
     "f32",
     "Abs Gemm", "GemmTransposeFusion"},
    {17, ONV_REWRITE_BASIC,
     "in c bool[4]; in a f32[4]; in b f32[4]; Not c -> n; Where n,a,b -> w; Abs w -> y; out y f32",
     "Abs Where", "NotWhereFusion"},
    {17, ONV_REWRITE_BASIC,
     "in x f32[1,3,8,8]; weight w f32[4,3,3,3]; weight b f32[4,1,1]; Conv x,w -> c; Add c,b -> a; "
     "Relu a "
     "-> y; out y f32",
     "Conv Relu", "ConvAddFusion"},
    {17, ONV_REWRITE_BASIC,
     "in x f32[1,3,8,8]; weight w f32[4,3,3,3]; weight b f32[1,4,1,1]; Conv x,w -> c; Add c,b -> "
     "a; Relu "
     "a -> y; out y f32",
     "Conv Relu", "ConvAddFusion"},
    {17, ONV_REWRITE_BASIC,
     "in x f32[1,4,8,8]; weight w f32[4,3,3,3]; weight b f32[6]; ConvTranspose x,w -> c group=2; "
     "BatchNormalization c,b,b,b,b -> y; out y f32",
     "ConvTranspose", "ConvBNFusion"},
    {17, ONV_REWRITE_BASIC,
     "in x f32[1,4,8,8]; weight w f32[4,3,3,3]; weight b f32[3,1,1]; ConvTranspose x,w -> c; Mul "
     "c,b -> y; out y f32",
     "ConvTranspose Mul", ""},
    {17, ONV_REWRITE_BASIC,
     "in x f32[1,3,8,8]; weight w f32[4,3,3,3]; weight b f32[4,1,1]; Conv x,w -> c; Mul c,b -> y; "
     "out y f32",
     "Conv", "ConvMulFusion"},
    {17, ONV_REWRITE_BASIC,
     "in x f32[1,2,8,8]; weight w f32[2,2,1,1]; floats b 1,2.5; float half 0.5; "
     "Conv x,w,b -> c; Mul c,half -> d; Conv d,w,b -> e; Mul e,half -> y; out y f32",
     "Conv Conv", "ConstantSharing"},
    {17, ONV_REWRITE_BASIC,
     "in x f32[1,3,8,8]; weight w f32[4,3,3,3]; weight b f32[4,1,1]; Conv x,w -> c; Mul c,b -> y; "
     "out y f32; out c f32",
     "Conv Mul", ""},
    {17, ONV_REWRITE_BASIC,
     "in x f32[1,3,8,8]; weight w f32[4,3,3,3]; weight b f32[4,1,1]; Conv x,w -> c; Mul c,b -> a; "
     "Relu a "
     "-> y; out y f32",
     "Conv Relu", "ConvMulFusion"},
    {17, ONV_REWRITE_BASIC,
     "in x f32[1,3,8,8]; weight w f32[4,3,3,3]; weight b f32[1,4,1,1]; Conv x,w -> c; Mul c,b -> "
     "a; Relu a -> y; out y f32",
     "Conv Relu", "ConvMulFusion"},
    {17, ONV_REWRITE_BASIC,
     "in x f32[1,3,8]; weight w f32[4,3,3]; weight b f32[4,1]; Conv x,w -> c; Mul c,b -> a; Relu a "
     "-> y; out y f32",
     "Conv Relu", "ConvMulFusion"},
    {17, ONV_REWRITE_BASIC,
     "in x f32[1,3,8,8]; weight w f32[4,3,3,3]; weight b f32[2,4,1,1]; Conv x,w -> c; Mul c,b -> "
     "a; "
     "Relu a -> y; out y f32",
     "Conv Mul Relu", ""},
    {17, ONV_REWRITE_BASIC,
     "in x f32[1,3,8,8]; weight w f32[4,3,3,3]; weight s f32[4]; weight m f32[4]; Conv x,w -> c; "
     "BatchNormalization c,s,m,s,m -> b; Relu b -> y; out y f32",
     "Conv Relu", "ConvBNFusion"},
    {17, ONV_REWRITE_BASIC,
     "in x f32[1,3,8,8]; weight w f32[4,3,3,3]; weight s f32[4]; weight m f32[4]; Conv x,w -> c; "
     "BatchNormalization c,s,m,s,m -> b; Add b,c -> y; out y f32",
     "Add BatchNormalization Conv", ""},
    {17, ONV_REWRITE_BASIC,
     "in x f32[1,3,8,8]; weight w f32[4,3,3,3]; ints p 0,0,1,1,0,0,1,1; Pad x,p -> a; Conv a,w -> "
     "c "
     "pads=[0,0,0,0]; Relu c -> y; out y f32",
     "Conv Relu", "Pad_Fusion"},
    {17, ONV_REWRITE_BASIC,
     "in x f32[4,8]; weight w f32[8,16]; weight s f32[16]; MatMul x,w -> c; BatchNormalization "
     "c,s,s,s,s -> b epsilon=0.001; Relu b -> y; out y f32",
     "Gemm Relu", "MatMul_BatchNormalization_Fusion"},

    /* Equal things */
    {17, ONV_REWRITE_BASIC, "in x f32[4]; Abs x -> a; Abs x -> b; Add a,b -> y; out y f32",
     "Abs Add", "CommonSubexpressionElimination"},
    {17, ONV_REWRITE_BASIC,
     "in x f32[4,4]; Softmax x -> a axis=0; Softmax x -> b axis=1; Add a,b -> y; out y f32",
     "Add Softmax Softmax", ""},
    {17, ONV_REWRITE_BASIC,
     "in x i64[n]; int a 3; int b 3; Mul x,a -> c; Mul x,b -> d; Add c,d -> y; out y i64",
     "Add Mul", "ConstantSharing"},
    {17, ONV_REWRITE_BASIC,
     "in x f32[2,3]; ints s 3,2; ints t 3,2; ints u 1,6; Reshape x,s -> p; Reshape x,t -> q; "
     "Reshape x,u -> r; Add p,q -> y; Abs r -> z; out y f32; out z f32",
     "Abs Add Reshape Reshape", "ConstantSharing"},

    /* Constants */
    {17, ONV_REWRITE_BASIC,
     "weight w i8[16,8]; weight s f32; in x f32[4,16]; Cast w -> c to=1; Mul c,s -> m; MatMul x,m "
     "-> y; "
     "out y f32",
     "MatMul", "ConstantFolding"},
    {17, ONV_REWRITE_BASIC,
     "in x f32[4,6]; ints z 0,1; Shape x -> s; Gather s,z -> d; Relu x -> r; Add r,x -> q; Expand "
     "q,d -> y; out y "
     "f32",
     "Add Expand Relu", "ConstantFolding"},
    {17, ONV_REWRITE_BASIC, "in x f32[n,6]; Shape x -> y; Relu x -> z; out y i64; out z f32",
     "Relu Shape", ""},
    {17, ONV_REWRITE_BASIC,
     "weight w f16[8]; weight v f16[8]; in x f16[4,8]; Mul w,v -> m; Add x,m -> y; out y f16",
     "Add Mul", ""},

    {17, ONV_REWRITE_BASIC, "weight w f32[2]; in x f32[2]; Abs w -> a; Neg a -> y; out y f32",
     "Abs Neg", ""}, /* nothing would be left */

    /* Gemm of a product and a sum */
    {17, ONV_REWRITE_BASIC,
     "in x f32[n,8]; weight w f32[8,16]; weight b f32[16]; MatMul x,w -> m; Add m,b -> a; Relu a "
     "-> y; "
     "out y f32",
     "Gemm Relu", "MatMulAddFusion"},
    {17, ONV_REWRITE_BASIC,
     "in x f32[2,3,8]; weight w f32[8,16]; weight b f32[16]; MatMul x,w -> m; Add m,b -> a; Relu a "
     "-> y; "
     "out y f32",
     "Gemm Relu Reshape Reshape", "MatMulAddFusion"},
    {17, ONV_REWRITE_BASIC,
     "in x f32[n,3,8]; weight w f32[8,16]; weight b f32[16]; MatMul x,w -> m; Add m,b -> a; Relu a "
     "-> y; "
     "out y f32",
     "Add MatMul Relu", ""},

    /* Reshapes */
    {17, ONV_REWRITE_BASIC,
     "in x f32[n,m,8]; int zero 0; ints ax 0; ints rest -1,4,2; Shape x -> s; Gather s,zero -> g; "
     "Unsqueeze g,ax -> u; Concat u,rest -> t axis=0; Reshape x,t -> r; Relu r -> y; out y f32",
     "Relu Reshape", "ReshapeFusion"},
    {17, ONV_REWRITE_BASIC,
     "in x f32[2,12]; ints a 4,6; ints b 0; Reshape x,a -> r; Unsqueeze r,b -> u; Relu u -> y; out "
     "y f32",
     "Relu Reshape", "ReshapeFusion"},

    /* Weights and biases that a quantizer left: the CPU has the kernel of int32 */
    {17, ONV_REWRITE_BASIC,
     "in x f32[1,2,4,4]; weight w f32[2,2,1,1]; float s 0.5; QuantizeLinear x,s -> q; "
     "DequantizeLinear q,s -> d; Conv d,w -> c; QuantizeLinear c,s -> u; DequantizeLinear u,s "
     "-> y; out y f32",
     "Conv DequantizeLinear DequantizeLinear DequantizeLinear QuantizeLinear QuantizeLinear",
     "WeightBiasQuantization"},
    {17, ONV_REWRITE_BASIC,
     "in x f32[1,2,4,4]; weight w i8[4,2,1,1]; weight b f32[4]; weight ws f32[4]; float s 0.5; "
     "QuantizeLinear x,s -> q; DequantizeLinear q,s -> d; DequantizeLinear w,ws -> e axis=0; "
     "Conv d,e,b -> c; Relu c -> r; QuantizeLinear r,s -> u; DequantizeLinear u,s -> y; out y f32",
     "Conv DequantizeLinear DequantizeLinear DequantizeLinear DequantizeLinear MemcpyFromHost "
     "QuantizeLinear QuantizeLinear Relu",
     "WeightBiasQuantization"},
    {17, ONV_REWRITE_BASIC,
     "in x f32[1,2,4,4]; weight w f32[2,2,1,1]; float s 0.5; QuantizeLinear x,s -> q; "
     "DequantizeLinear q,s -> d; Conv d,w -> c; Tanh c -> y; out y f32",
     "Conv DequantizeLinear QuantizeLinear Tanh", ""},

    {17, ONV_REWRITE_EXTENDED,
     "in x f32[n,64]; weight w u8[32,2,16]; weight s f32[32,2]; weight b f32[32]; "
     "com.microsoft::MatMulNBits x,w,s -> h K=64 N=32 block_size=32 bits=4; Add b,h -> a; Tanh a "
     "-> y; out y f32",
     "MatMulNBits Tanh", "MatMulNBitsFusion"},
    {17, ONV_REWRITE_EXTENDED,
     "in x f32[n,64]; weight w u8[32,2,16]; weight s f32[32,2]; weight b f32[1,32]; "
     "com.microsoft::MatMulNBits x,w,s -> h K=64 N=32 block_size=32 bits=4; Add h,b -> a; Tanh a "
     "-> y; out y f32",
     "Add MatMulNBits Tanh", ""},

    /* Values that a OneHot reads are the host's */
    {13, ONV_REWRITE_DISABLED,
     "in x i64[n]; in v f32[2]; int d 5; Abs v -> a; OneHot x,d,a -> y; out y f32",
     "Abs MemcpyToHost OneHot", ""},

    /* What CUDA has no kernel of since opset 22, and recurrent layers that cuDNN does not compute */
    {21, ONV_REWRITE_DISABLED,
     "in x f32[n,8,6,6]; Relu x -> r; MaxPool r -> y kernel_shape=[2,2]; out y f32", "MaxPool Relu",
     ""},
    {22, ONV_REWRITE_DISABLED,
     "in x f32[n,8,6,6]; Relu x -> r; MaxPool r -> y kernel_shape=[2,2]; out y f32",
     "MaxPool MemcpyToHost Relu", ""},
    {22, ONV_REWRITE_DISABLED, "in x f32[n]; Relu x -> r; Elu r -> y; out y f32",
     "Elu MemcpyToHost Relu", ""},
    {14, ONV_REWRITE_DISABLED,
     "in x f32[5,n,6]; weight w f32[1,12,6]; weight u f32[1,12,4]; Relu x -> r; GRU r,w,u -> y "
     "hidden_size=4; out y f32",
     "GRU MemcpyToHost Relu", ""},
    {14, ONV_REWRITE_DISABLED,
     "in x f32[5,n,6]; weight w f32[1,12,6]; weight u f32[1,12,4]; Relu x -> r; GRU r,w,u -> y "
     "hidden_size=4 linear_before_reset=1; out y f32",
     "GRU Relu", ""},

    /* Quantization: those of com.microsoft are of float16 alone, and 16 bits are the CPU's. */
    {13, ONV_REWRITE_DISABLED,
     "in x f32[4]; weight s f32; Relu x -> r; com.microsoft::QuantizeLinear r,s -> q; "
     "com.microsoft::DequantizeLinear q,s -> d; Relu d -> y; out y f32",
     "DequantizeLinear MemcpyFromHost MemcpyToHost QuantizeLinear Relu Relu", ""},
    {13, ONV_REWRITE_DISABLED,
     "in x f16[4]; weight s f16; Relu x -> r; com.microsoft::QuantizeLinear r,s -> q; "
     "com.microsoft::DequantizeLinear q,s -> d; Relu d -> y; out y f16",
     "DequantizeLinear QuantizeLinear Relu Relu", ""},
    {21, ONV_REWRITE_DISABLED,
     "in x f32[4]; weight s f32; Relu x -> r; QuantizeLinear r,s -> q output_dtype=4; Cast q -> y "
     "to=1; out y f32",
     "Cast MemcpyFromHost MemcpyToHost QuantizeLinear Relu", ""},

    /* Functions of ONNX without a kernel */
    {18, ONV_REWRITE_ALL,
     "in x f32[n,8,h,6]; weight s f32[2]; weight b f32[2]; GroupNormalization x,s,b -> y "
     "num_groups=2; out y f32",
     "Add Add Cast Cast Cast Concat Div Div Mul Mul Mul ReduceMean ReduceMean Reshape Reshape "
     "Reshape Reshape Reshape Shape Shape Shape Shape Sqrt Sub Sub",
     ""},
    {18, ONV_REWRITE_ALL, "in x f32[n]; Mish x -> y; out y f32", "Mul Softplus Tanh", ""},
    {24, ONV_REWRITE_ALL, "in x f16[n]; Swish x -> y alpha=1.5; out y f16", "Cast Mul Mul Sigmoid",
     ""},
    {15, ONV_REWRITE_ALL, "in x f32[n]; Bernoulli x -> y; out y f32",
     "Cast Greater RandomUniformLike", ""},
    {18, ONV_REWRITE_ALL, "in x f32[n,8]; ints h 5,9; CenterCropPad x,h -> y; out y f32",
     "Add Concat Div Div Max Pad Shape Shape Slice Sub Sub Sub", ""},
    {18, ONV_REWRITE_ALL,
     "in x f32[n,8,8]; ints h 5,9; CenterCropPad x,h -> y axes=[1,2]; out y f32",
     "Add Concat Div Div Gather Gather Max Pad Shape Shape Slice Sub Sub Sub", ""},
    {22, ONV_REWRITE_ALL, "in x f32[n,8]; Relu x -> r; LpNormalization r -> y; out y f32",
     "LpNormalization Relu", ""},
    {22, ONV_REWRITE_ALL, "in x f64[n,8]; Relu x -> r; LpNormalization r -> y; out y f64",
     "LpNormalization MemcpyToHost Relu", ""},
    {21, ONV_REWRITE_ALL,
     "in x f16[n,8,h,6]; weight s f16[8]; weight b f16[8]; GroupNormalization x,s,b -> y "
     "num_groups=2; out y f16",
     "Add Add Cast Cast Cast Cast Cast Concat Div Div Mul Mul Mul ReduceMean ReduceMean Reshape "
     "Reshape Reshape Reshape Reshape Reshape Reshape Shape Shape Shape Shape Sqrt Sub Sub",
     ""},
};

/* What is not modelled is named, and nothing is rewritten. */
static const rewrite_case not_modelled[] = {
    {17, ONV_REWRITE_BASIC,
     "in x f32[4]; float s 0.5; QuantizeLinear x,s -> q; DequantizeLinear q,s -> d; "
     "QuantizeLinear d,s -> r; DequantizeLinear r,s -> f; Relu f -> y; out y f32",
     "DequantizeLinear DequantizeLinear QuantizeLinear QuantizeLinear Relu",
     "DoubleQDQPairsRemover"},
    {17, ONV_REWRITE_BASIC,
     "in x f32[4]; float s 0.5; QuantizeLinear x,s -> q; DequantizeLinear q,s -> d; Relu d -> "
     "y; out y f32",
     "DequantizeLinear QuantizeLinear Relu", ""},
    {17, ONV_REWRITE_BASIC,
     "in x f32[2,4]; ints t 4,2; float s 0.5; QuantizeLinear x,s -> q; DequantizeLinear q,s ->"
     " d; Reshape d,t -> r; Relu r -> y; out y f32",
     "DequantizeLinear QuantizeLinear Relu Reshape", "QDQPropagationTransformer"},
    {17, ONV_REWRITE_BASIC,
     "in x f32[2,4]; ints t 4,2; float s 0.5; QuantizeLinear x,s -> q; DequantizeLinear q,s ->"
     " d; Reshape d,t -> r; QuantizeLinear r,s -> u; DequantizeLinear u,s -> y; out y f32",
     "DequantizeLinear DequantizeLinear QuantizeLinear QuantizeLinear Reshape", ""},
    {17, ONV_REWRITE_BASIC,
     "in x f32[1,3,8,8]; ints ax 2,3; ints e 8,8; ints st 2,2; ints a 0,0; ints b 1,0; ints c "
     "0,1; ints d 1,1; Slice x,a,e,ax,st -> p; Slice x,b,e,ax,st -> q; Slice x,c,e,ax,st -> r;"
     " Slice x,d,e,ax,st -> s; Concat p,q,r,s -> y axis=1; out y f32",
     "Concat Slice Slice Slice Slice", "SliceConcatToSpaceToDepthFusion"},
    {17, ONV_REWRITE_BASIC, "in x f32[4]; in z f32[4]; Concat x,z -> y axis=0; out y f32", "Concat",
     ""},
    {17, ONV_REWRITE_EXTENDED,
     "in x f32[2,4]; weight b f32[4]; float p 0.5; bool t 1; Add x,b -> a; Dropout a,p,t -> y;"
     " out y f32",
     "Add Dropout", "BiasDropoutFusion"},
    {21, ONV_REWRITE_EXTENDED,
     "in x f32[2,32]; weight w u4[32,8]; weight s f32[1,8]; DequantizeLinear w,s -> d axis=0 "
     "block_size=32; MatMul x,d -> y; out y f32",
     "DequantizeLinear MatMul", "QDQSelectorActionTransformer"},
    {17, ONV_REWRITE_DISABLED, "in x f16[2,2]; Det x -> y; out y f16", "Det",
     "CastFloat16Transformer"},
    {17, ONV_REWRITE_EXTENDED,
     "in x f32[1,s,8]; in n i32[1]; in t i32; in pos i64[1,s]; in pk f32[1,2,p,4]; in pv "
     "f32[1,2,p,4]; weight c f32[9,2]; weight d f32[9,2]; weight wq f32[8,8]; weight wk "
     "f32[8,8]; weight wv f32[8,8]; MatMul x,wq -> q0; MatMul x,wk -> k0; MatMul x,wv -> v; "
     "com.microsoft::RotaryEmbedding q0,pos,c,d -> q num_heads=2; "
     "com.microsoft::RotaryEmbedding k0,pos,c,d -> k num_heads=2; "
     "com.microsoft::GroupQueryAttention q,k,v,pk,pv,n,t -> y,ok,ov num_heads=2 "
     "kv_num_heads=2; out y f32; out ok f32; out ov f32",
     "GroupQueryAttention MatMul MatMul MatMul RotaryEmbedding RotaryEmbedding",
     "GroupQueryAttentionFusion"},
};

TEST(rules_rewrite_what_they_say)
{
    check_rewrites(ONV_PROVIDER_CUDA, cases, sizeof cases / sizeof cases[0]);
}

TEST(what_is_not_modelled_is_named)
{
    check_rewrites(ONV_PROVIDER_CUDA, not_modelled, sizeof not_modelled / sizeof not_modelled[0]);
}

/* Measured: ONNX Runtime 1.31, CUDA build over a substitute for the driver, six operators behind each: with numbers the first
 * run asks for 4 buffers, and for one of each output where a size is not known. */
TEST(a_size_with_a_name_hides_the_others)
{
    check_seen("in x f32[b,64,8,8]; Shape x -> s; Reshape x,s -> r; Exp r -> y; out y f32",
               "[?, ?, ?, ?]");
    check_seen("in x f32[2,64,8,8]; Shape x -> s; Reshape x,s -> r; Exp r -> y; out y f32",
               "[2, 64, 8, 8]");
    check_seen("in x f32[b,64,8,8]; Shape x -> s; ConstantOfShape s -> r; Add x,r -> y; out y f32",
               "[?, 64, 8, 8]");
    check_seen("in x f32[b,8]; in z f32[b,1]; ints one 1; Shape x -> s; Gather s,one -> n; "
               "Expand z,n -> y; out y f32",
               "[b, ?]");
    check_seen("in x f32[b,8]; ints one 1; ints zero 0; Shape x -> s; Gather s,one -> n; "
               "Slice x,zero,n,one -> y; out y f32",
               "[?, ?]");
}

/* As ONNX's own shape inference has it: a factor, 1 too, makes a size with a name one without. */
TEST(a_factor_of_an_axis_hides_its_name)
{
    check_seen("in x f32[b,3,h,8]; ints n 1,1,2,2; Cast n -> s to=1; Resize x,-,s -> y; out y f32",
               "[?, 3, ?, 16]");
    check_seen("in x f32[b,3,h,8]; ints n 1,1,1,2; Tile x,n -> y; out y f32", "[?, 3, ?, 16]");
    check_seen("in x f32[b,3,h,8]; ints n 0,0,1,1,0,0,1,1; Pad x,n -> y; out y f32",
               "[b, 3, ?, 10]");
}

/* Files after ONNX Runtime's quantizers call the batch of each layer by another name. */
TEST(a_name_that_the_file_declares_is_kept)
{
    check_seen("in x f32[b,8]; Exp x -> y; out y f32[c,8]", "[c, 8]");
    check_seen("in x f32[2,8]; Exp x -> y; out y f32[c,8]", "[2, 8]");
}

/* Bodies are rewritten by what ONNX hands them: a Scan the sizes of its states and of a step, a Loop none beside those that its body
 * declares. As ONNX Runtime 1.31 saves them. */
static const rewrite_case bodies[] = {
    {17, ONV_REWRITE_ALL,
     "weight w f32[8,8]; in h f32[4,8]; in x f32[16,4,8]; begin body; in s f32; in r f32; MatMul "
     "s,w -> m; Add m,r -> t; "
     "Relu t -> u; out t f32; out u f32; end; Scan h,x -> hn,y num_scan_inputs=1; out y f32",
     "Gemm Relu Scan", "MatMulAddFusion"},
    {17, ONV_REWRITE_ALL,
     "weight w f32[8,8]; weight b f32[8]; int n 5; bool go 1; in h f32[2,4,8]; begin body; in i "
     "i64[]; in c bool[]; "
     "in s f32[2,4,8]; Identity c -> d; MatMul s,w -> m; Add m,b -> t; out d bool; out t f32; end; "
     "Loop n,go,h -> y; out y f32",
     "Gemm Identity Loop Reshape Reshape", "MatMulAddFusion"},
    {17, ONV_REWRITE_ALL,
     "weight w f32[8,8]; weight b f32[8]; int n 5; bool go 1; in h f32[2,4,8]; begin body; in i "
     "i64[]; in c bool[]; "
     "in s f32; Identity c -> d; MatMul s,w -> m; Add m,b -> t; out d bool; out t f32; end; Loop "
     "n,go,h -> y; out y f32",
     "Add Identity Loop MatMul", ""},
};

#define SCANNED(sizes, axes)                                                                       \
    "in h f32[4,8]; in x f32[" sizes                                                               \
    "]; begin body; in s f32; in r f32; Add s,r -> t; Relu t -> u; "                               \
    "out t f32; out u f32; end; Scan h,x -> hn,y num_scan_inputs=1" axes "; out hn f32; out y f32"
#define LOOPED(type)                                                                               \
    "int n 5; bool go 1; in h f32[4,8]; begin body; in i i64[]; in c bool[]; in s " type           \
    "; Identity c -> d; Add s,s -> t; Relu t -> u; out d bool; out t f32; out u f32; end; "        \
    "Loop n,go,h -> hn,y; out hn f32; out y f32"
#define BRANCHES(no)                                                                               \
    "in c bool[]; in h f32[4,8]; ints one 1; ints zero 0; begin then_branch; Add h,h -> p; out p " \
    "f32; end; begin "                                                                             \
    "else_branch; " no " -> q; out q f32; end; If c -> y; out y f32"

TEST(bodies_are_rewritten_by_what_they_are_given)
{
    check_rewrites(ONV_PROVIDER_CUDA, bodies, sizeof bodies / sizeof bodies[0]);
    check_seen(SCANNED("16,4,8", ""), "[16, 4, 8]");
    check_seen(SCANNED("4,16,8", " scan_input_axes=[1] scan_output_axes=[-1]"), "[4, 8, 16]");
    check_seen(LOOPED("f32[4,8]"), "[?, 4, 8]");
    check_seen(LOOPED("f32"), "[...]");
    check_seen(BRANCHES("Mul h,h"), "[4, 8]");
    check_seen(BRANCHES("Slice h,zero,one"), "[?, 8]");
    check_seen(BRANCHES("Gather h,zero"), "[?, 8]");
    check_seen(BRANCHES("Unsqueeze h,zero"), "[...]");
}

/* Rules start at numbers of names. */
static void rewrite_for_cuda(model *m, onv_model *before, onv_rewritten *r)
{
    onv_error err = {0};
    infer_model(m, before);
    assert_int_equal(onv_rewrite_model(before, ONV_PROVIDER_CUDA, ONV_REWRITE_ALL, r, &err),
                     ONV_OK);
}

/* Bytes of the weights that a session has. */
static uint64_t loaded(const char *graph, onv_rewrite_level level)
{
    onv_error err = {0};
    onv_model before;
    onv_rewritten r;
    uint64_t bytes = 0;
    OWNED_MODEL m = read_graph(&(rewrite_case){.opset = 17, .graph = graph});
    infer_model(m, &before);
    assert_int_equal(onv_rewrite_model(&before, ONV_PROVIDER_CUDA, level, &r, &err), ONV_OK);
    for (size_t i = 0; i < r.model.values.count; i++) {
        const onv_value *value = &r.model.values.at[i];
        if (onv_value_is_held(value) && value->type.rank == 2) bytes += value->tensor->bytes;
    }
    onv_rewritten_cleanup(&r);
    onv_model_cleanup(&before);
    return bytes;
}

#define FACTORS                                                                                    \
    "begin then_branch; weight v f32[8,64]; MatMul x,v -> p; out p f32; end; begin else_branch; "  \
    "weight w f32[8,32]; MatMul x,w -> q; out q f32; end; If c -> y; out y f32"

/* Measured, ONNX Runtime 1.31, CUDA build without a GPU. */
TEST(branches_that_no_run_takes_are_loaded_but_for_those_of_constants)
{
    const char *by_size = "in x f32[4,8]; int n 100; Size x -> e; Less e,n -> c; " FACTORS;
    const char *constant = "in x f32[4,8]; bool c 1; " FACTORS;
    assert_int_equal(loaded(by_size, ONV_REWRITE_ALL), (64 + 32) * 8 * 4);
    assert_int_equal(loaded(constant, ONV_REWRITE_ALL), 64 * 8 * 4);
    assert_int_equal(loaded(constant, ONV_REWRITE_DISABLED), (64 + 32) * 8 * 4);
}

/* As ONNX Runtime lists what reads a value: by the numbers of nodes. */
TEST(the_first_reader_keeps_the_dequantize_that_is_there)
{
    const char *text =
        "in x i8[4]; weight s f32; DequantizeLinear x,s -> d; Abs d -> a; Neg d -> b; "
        "Exp d -> y; out a f32; out b f32; out y f32";
    OWNED_MODEL m = read_graph(&(rewrite_case){.opset = 17, .graph = text});
    onv_model before;
    onv_rewritten r;
    rewrite_for_cuda(m, &before, &r);
    uint32_t maker[3] = {0};
    for (uint32_t i = 0; i < r.model.nodes.count; i++) {
        const onv_node *node = &r.model.nodes.at[i];
        if (node->code == ONV_OP_DequantizeLinear) continue;
        uint32_t reader = node->code == ONV_OP_Abs ? 0 : node->code == ONV_OP_Neg ? 1 : 2;
        maker[reader] = onv_model_value(&r.model, node->inputs[0])->producer.index;
    }
    assert_true(maker[0] < maker[1] && maker[1] < maker[2]);
    onv_rewritten_cleanup(&r);
    onv_model_cleanup(&before);
}

/* As ONNX Runtime numbers them, by which it orders nodes. */
TEST(copies_are_made_by_name)
{
    OWNED_MODEL m = read_graph(&(rewrite_case){
        .opset = 17, .graph = "in x f32[4]; Asin x -> b; Acos x -> a; Add a,b -> y; out y f32"});
    onv_model before;
    onv_rewritten r;
    rewrite_for_cuda(m, &before, &r);
    for (uint32_t i = 0; i < r.model.nodes.count; i++) {
        const onv_node *node = &r.model.nodes.at[i];
        if (node->code != ONV_OP_Add) continue;
        assert_true(onv_model_value(&r.model, node->inputs[0])->producer.index <
                    onv_model_value(&r.model, node->inputs[1])->producer.index);
    }
    assert_int_equal(r.n_copies, 2);
    onv_rewritten_cleanup(&r);
    onv_model_cleanup(&before);
}

/* Backend test test_constant: an edit would leave no node. */
TEST(constants_alone_are_taken_as_they_are)
{
    OWNED_MODEL m = model_new(17);
    model_constant(m, "c", "f32[5,5]");
    model_output(m, "c", "f32[5,5]");
    OWNED_ANALYSIS a = model_analyse(m, NULL);
    onv_answer_info answer;
    onv_analysis_answer(a, &answer);
    assert_true(answer.high_bytes >= 100);
}
