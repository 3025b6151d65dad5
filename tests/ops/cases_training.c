#include "ops/case.h"

#define TRAIN "ai.onnx.preview.training:"

const onv_case onv_cases_training[] = {
    {TRAIN "Adagrad", 1, "f32[] i64[] f32[2,n] f32[2,n] f32[2,n]", "", "f32[2,n] f32[2,n]"},
    {TRAIN "Adam", 1, "f32[] i64[] f32[2] f32[2] f32[2] f32[2]", "", "f32[2] f32[2] f32[2]"},
    {TRAIN "Adam", 1, "f32[] i64[] f32[2] f64[3] f32[2] f64[3] f32[2] f64[3] f32[2] f64[3]", "",
     "f32[2] f64[3] f32[2] f64[3] f32[2] f64[3]"},
    {TRAIN "Momentum", 1, "f32[] i64[] f32[2] f32[3] f32[2] f32[3] f32[2] f32[3]", "",
     "f32[2] f32[3] f32[2] f32[3]"},
    {TRAIN "Momentum", 1, "f32[] i64[] f32[2] f32[2]", "", "!not multiples"},
    {TRAIN "Gradient", 1, "f32[2,n] f32[3] f32[4]", "xs=['a','b'] zs=['c'] y='y'",
     "f32[2,n] f32[3]"},
    {TRAIN "Gradient", 1, "f32[2] f32[3]", "xs=['a'] y='y'", "!1 xs and 0 zs for 2 inputs"},
    {0},
};
