#include "ops/case.h"

#define MS "com.microsoft:"

const onv_case onv_cases_contrib_text[] = {
    /* As ONNX Runtime 1.31 gives them when it runs the node. */
    {MS "WordConvEmbedding", 1, "i32[6,9] f32[7,1,3,4] f32[7] f32[30,4]", "", "f32[6,7]"},

    {MS "BeamSearch", 1, "i32[b,s] i32[1]={50} i32[1]={1} i32[1]={4} i32[1]={2}",
     "model_type=0 vocab_size=50257 decoder=graph(0: f32[3])",
     "i32[b,2,50] f32[b,2] f32[-s+50,b,4,50257]"},
    {MS "BeamSearch", 1, "i32[b,s] i32[1]={50} - i32[1]={4} i32[1]={1}",
     "model_type=1 vocab_size=32128 encoder=graph(0: f32[3]) decoder=graph(0: f32[3])",
     "i32[b,1,50] f32[b,1] f32[49,b,4,32128]"},
    {MS "BeamSearch", 1, "i32[b,s] i32[1] - i32[1] i32[1]", "", "i32[b,?,?] f32[b,?]"},
    {MS "BeamSearch", 1, "i32[b,s] i32[1]={-1} - i32[1] i32[1]", "", "!which is not a size"},
    {MS "WhisperBeamSearch", 1, "f32[b,80,3000] i32[1]={448} - i32[1]={5} i32[1]={1}",
     "model_type=2 decoder=graph(0: f32[3])", "i32[b,1,448] f32[b,1] - - f32[b]"},
    {MS "GreedySearch", 1, "i32[b,s] i32[1]={n}", "decoder=graph(0: f32[3])", "i32[b,n]"},
    {MS "Sampling", 1, "i32[b,s] i32[1]={64}", "vocab_size=50257 decoder=graph(0: f32[3])",
     "i32[b,64] f32[b,50257]"},
    {MS "Tokenizer", 1, "str[b]", "mark=1", "str[b,tokens#1]"},
    {MS "Tokenizer", 1, "str[b,n]", "mark=1", "str[b,n,tokens#2]"},
    {MS "Tokenizer", 1, "str[b,n,2]", "mark=1", "!rank"},
    {0},
};
