/* Fusions and moved Transposes, one small graph each. What stands beside a pattern and keeps it from being fused
 * is the second row of its rule. */
#include "rewrite/small_graphs.h"
#include "support/test.h"

#define GELU                                                                                       \
    "in x f32[n,m,8]; float r 1.41421356; float one 1; float half 0.5; Abs x -> a; Div a,r -> d; " \
    "Erf d -> e; Add e,one -> p; Mul a,p -> q; Mul q,half -> g; "
#define FAST_GELU                                                                                  \
    "float three 3; float c 0.044715; float k 0.7978846; float one 1; float half 0.5; Pow "        \
    "a,three -> "                                                                                  \
    "p; Mul p,c -> q; Add a,q -> s; Mul s,k -> t; Tanh t -> h; Add h,one -> o; Mul a,half -> z; "  \
    "Mul z,o -> g; "
#define NORM                                                                                       \
    "weight w f32[8]; weight b f32[8]; float two 2; float eps 0.00001; ReduceMean a -> m "         \
    "axes=[-1]; Sub a,m -> s; Pow s,two -> p; ReduceMean p -> v axes=[-1]; Add v,eps -> e; Sqrt "  \
    "e -> r; Div s,r -> d; Mul d,w -> c; Add c,b -> l; "

static const rewrite_case cases[] = {
    /* GELU */
    {17, ONV_REWRITE_EXTENDED, GELU "Abs g -> y; out y f32", "Abs Abs Gelu", "GeluFusionL2"},
    {20, ONV_REWRITE_BASIC, GELU "Abs g -> y; out y f32", "Abs Abs Gelu", "GeluFusionL1"},
    {17, ONV_REWRITE_BASIC, GELU "Abs g -> y; out y f32", "Abs Abs Add Div Erf Mul Mul", ""},
    {17, ONV_REWRITE_EXTENDED, GELU "Add g,e -> y; out y f32", "Abs Add Add Div Erf Mul Mul", ""},
    {17, ONV_REWRITE_EXTENDED,
     "in x f32[n,m,8]; weight b f32[8]; float r 1.41421356; float one 1; float half 0.5; Add x,b "
     "-> a; Div a,r -> d; Erf d -> e; Add e,one -> p; Mul a,half -> q; Mul q,p -> g; Abs g -> y; "
     "out "
     "y f32",
     "Abs BiasGelu", "BiasGeluFusion"},
    {20, ONV_REWRITE_EXTENDED,
     "in x f32[n,m,8]; weight b f32[8]; Add x,b -> a; Gelu a -> g; Abs g -> y; out y f32",
     "Abs BiasGelu", "BiasGeluFusion"},
    {17, ONV_REWRITE_EXTENDED, "in x f32[n,m,8]; Abs x -> a; " FAST_GELU "Abs g -> y; out y f32",
     "Abs Abs FastGelu", "FastGeluFusion"},
    {17, ONV_REWRITE_EXTENDED, "in x f32[n,m,8]; Abs x -> a; " FAST_GELU "Add g,t -> y; out y f32",
     "Abs Add Add Add Mul Mul Mul Mul Pow Tanh", ""},
    /* Behind a product the half comes first, or it is none. */
    {17, ONV_REWRITE_EXTENDED,
     "in x f32[n,m,8]; float r 1.41421356; float one 1; float half 0.5; Mul x,x -> a; Div a,r -> "
     "d; Erf d -> e; Add e,one -> p; Mul a,p -> q; Mul q,half -> g; Abs g -> y; out y f32",
     "Abs Add Div Erf Mul Mul Mul", ""},
    {17, ONV_REWRITE_EXTENDED, "in x f32[n,m,8]; Abs x -> a; " FAST_GELU "Add g,z -> y; out y f32",
     "Abs Add FastGelu Mul", "FastGeluFusion"},
    {17, ONV_REWRITE_EXTENDED,
     "in x f32[n,m,8]; float c 0.044715; float k 0.7978846; float one 1; float half 0.5; Abs x -> "
     "a; Mul a,c -> p; Mul p,a -> q; Add one,q -> s; Mul k,a -> t; Mul s,t -> u; Tanh u -> h; Add "
     "h,one -> o; Mul half,a -> z; Mul o,z -> g; Abs g -> y; out y f32",
     "Abs Abs FastGelu", "FastGeluFusion"},
    {17, ONV_REWRITE_EXTENDED,
     "in x f16[n,m,8]; float half32 0.5; Cast half32 -> half16 to=10; Abs x -> b; Cast b -> a "
     "to=1; "
     "float three 3; float c 0.044715; float k 0.7978846; float one 1; Pow a,three -> p; Mul p,c "
     "-> q; Add a,q -> s; Mul s,k -> t; Tanh t -> h; Add h,one -> o; Mul b,half16 -> z; Cast z -> "
     "w "
     "to=1; Mul w,o -> g; Abs g -> y; out y f32",
     "Abs Abs Cast FastGelu", "FastGeluFusion"},
    {17, ONV_REWRITE_EXTENDED,
     "in x f32[n,8]; Abs x -> a; Sigmoid a -> s; Mul a,s -> g; Abs g -> y; out y f32",
     "Abs Abs QuickGelu", "QuickGeluFusion"},
    {17, ONV_REWRITE_EXTENDED,
     "in x f32[n,8]; float k 1.702; Abs x -> a; Mul a,k -> b; Sigmoid b -> s; Mul a,s -> g; Abs g "
     "-> y; out y f32",
     "Abs Abs QuickGelu", "QuickGeluFusion"},
    {17, ONV_REWRITE_EXTENDED,
     "in x f32[n,8]; in z f32[n,8]; Sigmoid x -> s; Mul z,s -> y; out y f32", "Mul Sigmoid", ""},

    /* Layer normalization */
    {17, ONV_REWRITE_BASIC, "in x f32[n,m,8]; Abs x -> a; " NORM "Abs l -> y; out y f32",
     "Abs Abs LayerNormalization", "LayerNormFusionL1"},
    {13, ONV_REWRITE_EXTENDED, "in x f32[n,m,8]; Abs x -> a; " NORM "Abs l -> y; out y f32",
     "Abs Abs LayerNormalization", "LayerNormFusionL2"},
    {17, ONV_REWRITE_EXTENDED,
     "in x f16[n,m,8]; Abs x -> z; Cast z -> a to=1; " NORM "Abs l -> y; out y f32",
     "Abs Abs LayerNormalization", "LayerNormFusionL1"},
    {17, ONV_REWRITE_EXTENDED,
     "in x f16[n,m,8]; weight w f32[8]; weight b f32[8]; float two 2; float eps 0.00001; Abs x -> "
     "a; ReduceMean a -> m axes=[-1]; Sub a,m -> s; Cast s -> u to=1; Pow u,two -> p; ReduceMean p "
     "-> v axes=[-1]; Add v,eps -> e; Sqrt e -> r; Div u,r -> d; Mul d,w -> c; Add c,b -> l; Abs l "
     "-> y; out y f32",
     "Abs Abs LayerNormalization", "LayerNormFusionL1"},
    {13, ONV_REWRITE_EXTENDED, "in x f32[n,m,8]; Abs x -> a; " NORM "Add l,m -> y; out y f32",
     "Abs Add Add ReduceMean SimplifiedLayerNormalization Sub", "SimplifiedLayerNormFusion"},
    {17, ONV_REWRITE_EXTENDED,
     "in x f32[n,m,8]; weight w f32[8]; float two 2; float eps 0.00001; Abs x -> a; Pow a,two -> "
     "p; "
     "ReduceMean p -> v axes=[-1]; Add v,eps -> e; Sqrt e -> r; Div a,r -> d; Mul d,w -> l; Abs l "
     "-> y; out y f32",
     "Abs Abs SimplifiedLayerNormalization", "SimplifiedLayerNormFusion"},
    {17, ONV_REWRITE_EXTENDED,
     "in x f32[n,m,8]; in z f32[n,m,8]; weight w f32[8]; Add x,z -> a; LayerNormalization a,w,w "
     "-> l; Abs l -> y; out y f32",
     "Abs SkipLayerNormalization", "SkipLayerNormFusion"},
    {17, ONV_REWRITE_EXTENDED,
     "in x f32[n,m,8]; in z f32[n,m,8]; weight w f32[8]; Add x,z -> a; LayerNormalization a,w,w "
     "-> l; Add l,a -> y; out y f32",
     "Add Add LayerNormalization", ""},
    {17, ONV_REWRITE_EXTENDED,
     "in x f32[n,m,8]; in z f32[n,k,8]; weight w f32[8]; Add x,z -> a; LayerNormalization a,w,w "
     "-> l; Abs l -> y; out y f32",
     "Abs Add LayerNormalization", ""},
    {17, ONV_REWRITE_EXTENDED,
     "in x f32[n,m,8]; in z f32[n,m,8]; weight w f32[8]; Abs z -> c; Add c,w -> b; Add x,b -> a; "
     "LayerNormalization a,w,w -> l; Abs l -> y; out y f32",
     "Abs Abs SkipLayerNormalization", "SkipLayerNormFusion"},

    /* Products */
    {17, ONV_REWRITE_EXTENDED,
     "in x f32[n,m,8]; in z f32[n,m,8]; Transpose z -> t perm=[0,2,1]; MatMul x,t -> c; Abs c -> "
     "y; out y f32",
     "Abs FusedMatMul", "MatmulTransposeFusion"},
    {17, ONV_REWRITE_EXTENDED,
     "in x f32[n,k,m,8]; in z f32[n,m,k,8]; Transpose z -> t perm=[0,2,3,1]; MatMul x,t -> c; Abs "
     "c -> y; out y f32",
     "Abs MatMul Transpose", ""},
    {17, ONV_REWRITE_EXTENDED,
     "in x f32[n,m,8]; in z f32[n,8,m]; float k 0.125; MatMul x,z -> a; Mul a,k -> c; Abs c -> y; "
     "out y f32",
     "Abs FusedMatMul", "MatMulScaleFusion"},
    {17, ONV_REWRITE_EXTENDED,
     "in x f32[n,m,8]; in z f32[n,8,m]; weight k f32[8]; Mul x,k -> a; MatMul a,z -> c; Abs c -> "
     "y; out y f32",
     "Abs MatMul Mul", ""},

    /* Softmax */
    {17, ONV_REWRITE_EXTENDED,
     "in x f32[n,4,m,m]; weight b f32[1,4,1,1]; in z f32[n,1,1,m]; Abs x -> a; Add a,z -> s; "
     "Softmax "
     "s -> y axis=-1; out y f32",
     "Abs BiasSoftmax", "BiasSoftmaxFusion"},
    {17, ONV_REWRITE_EXTENDED,
     "in x f32[n,4,m,m]; in z f32[n,1,k,m]; Abs x -> a; Add a,z -> s; Softmax s -> y axis=-1; out "
     "y "
     "f32",
     "Abs Add Softmax", ""},

    /* What is shared out */
    {17, ONV_REWRITE_EXTENDED,
     "in x f32[3,n,8]; int a 0; int b 1; int c 2; Abs x -> p; Gather p,a -> q; Gather p,b -> k; "
     "Gather p,c -> v; Add q,k -> s; Add s,v -> y; out y f32",
     "Abs Add Add Split Squeeze Squeeze Squeeze", "GatherSliceToSplitFusion"},
    {17, ONV_REWRITE_EXTENDED,
     "in x f32[3,n,8]; int a 0; int b 1; Abs x -> p; Gather p,a -> q; Gather p,b -> k; Add q,k -> "
     "y; out y f32",
     "Abs Add Gather Gather", ""},
    {17, ONV_REWRITE_EXTENDED,
     "in x f32[n,8]; ints z 0; ints h 4; ints e 9223372036854775807; ints ax 1; Abs x -> p; Slice "
     "p,z,h,ax -> a; Slice p,h,e,ax -> b; Add a,b -> y; out y f32",
     "Abs Add Split", "GatherSliceToSplitFusion"},
    {17, ONV_REWRITE_EXTENDED,
     "in x f32[9,8]; in s i64[]; in e i64[]; in d i64[]; Range s,e,d -> r; Gather x,r -> g; Abs g "
     "-> "
     "y; out y f32",
     "Abs MemcpyToHost MemcpyToHost MemcpyToHost Slice Unsqueeze Unsqueeze Unsqueeze",
     "GatherToSliceFusion"},

    /* Transposes */
    {17, ONV_REWRITE_BASIC,
     "in x f32[n,3,8]; Transpose x -> t perm=[0,2,1]; Abs t -> a; Transpose a -> b perm=[0,2,1]; "
     "Neg "
     "b -> y; out y f32",
     "Abs Neg", "TransposeOptimizer"},
    {17, ONV_REWRITE_BASIC,
     "in x f32[n,3,8]; Transpose x -> t perm=[0,2,1]; Abs t -> a; Softmax a -> y; MatMul y,x -> z; "
     "out z f32",
     "Abs MatMul Softmax Transpose", ""},
    {17, ONV_REWRITE_BASIC,
     "in x f32[n,3,8]; weight w f32[3]; Transpose x -> t perm=[0,2,1]; Add t,w -> a; Transpose a "
     "-> "
     "b perm=[0,2,1]; Neg b -> y; out y f32",
     "Add Neg", "TransposeOptimizer"},
    {17, ONV_REWRITE_BASIC,
     "in x f32[n,3,8]; Transpose x -> t perm=[0,2,1]; ReduceMean t -> a axes=[1]; Neg a -> y; out "
     "y f32",
     "Neg ReduceMean Transpose", "TransposeOptimizer"},
    {17, ONV_REWRITE_BASIC,
     "in x f32[37,32,64]; ints s 8,4,37,64; Transpose x -> t perm=[1,0,2]; Reshape t,s -> r; Neg r "
     "-> y; out y f32",
     "Neg Reshape Transpose", "TransposeOptimizer"},
    {17, ONV_REWRITE_BASIC,
     "in x f32[1,5,4,3]; ints s 1,3,20; Transpose x -> t perm=[0,3,1,2]; Reshape t,s -> r; Neg r "
     "-> "
     "y; out y f32",
     "Neg Reshape Transpose", ""},
    {17, ONV_REWRITE_BASIC,
     "in x f32[n,7,3,4,8]; int i 0; Abs x -> p; Transpose p -> t perm=[2,0,3,1,4]; Gather t,i -> g "
     "axis=0; Relu g -> y; out y f32",
     "Abs Gather Relu Transpose", "TransposeOptimizer"},
    {17, ONV_REWRITE_BASIC,
     "in x f32[n,3,8]; Transpose x -> t perm=[0,2,1]; Shape t -> y; Neg t -> z; out y i64; out z "
     "f32",
     "Gather Neg Shape Transpose", "TransposeOptimizer"},
};

TEST(fusions_do_what_they_say)
{
    check_rewrites(ONV_PROVIDER_CUDA, cases, sizeof cases / sizeof cases[0]);
}
