#include "ops/case.h"

#define NCHWC(op) "com.microsoft.nchwc:" op
#define NHWC(op)  "com.ms.internal.nhwc:" op

const onv_case onv_cases_nchwc[] = {
    {NCHWC("ReorderInput"), 1, "f32[n,32,h,w]", "", "f32[n,32,h,w]"},
    {NCHWC("ReorderInput"), 1, "f32[n,h,w,32]", "channels_last=1", "f32[n,32,h,w]"},
    {NCHWC("ReorderInput"), 1, "f32[2,24,7,7]", "", "f32[2,channels#0,7,7]<=f32[2,32,7,7]"},
    {NCHWC("ReorderInput"), 1, "f32[...]", "", "f32[...]"},
    {NCHWC("ReorderInput"), 1, "f32[4]", "", "!rank"},
    {NCHWC("ReorderOutput"), 1, "f32[2,32,7,7]", "channels=24", "f32[2,24,7,7]"},
    {NCHWC("ReorderOutput"), 1, "f32[2,32,7,9]", "channels=24 channels_last=1", "f32[2,7,9,24]"},
    {NCHWC("ReorderOutput"), 1, "f32[2,32,7,7]", "", "!channels"},
    {NCHWC("Conv"), 1, "f32[n,32,8,8] f32[64,32,3,3] f32[64] f32[n,64,8,8]",
     "kernel_shape=[3,3] pads=[1,1,1,1] activation='Relu'", "f32[n,64,8,8]", "n*1179648"},
    {NCHWC("Conv"), 1, "f32[n,3,8,8] f32[16,3,3,3]", "strides=[2,2] pads=[1,1,1,1]",
     "f32[n,16,4,4]"},
    {NCHWC("MaxPool"), 1, "f32[n,32,8,8]", "kernel_shape=[2,2] strides=[2,2]", "f32[n,32,4,4]"},
    {NCHWC("AveragePool"), 1, "f32[n,32,8,8]", "kernel_shape=[3,3]", "f32[n,32,6,6]"},
    {NCHWC("GlobalAveragePool"), 1, "f32[n,32,8,8]", "", "f32[n,32,1,1]"},
    {NCHWC("GlobalMaxPool"), 1, "f32[n,32,8,8]", "", "f32[n,32,1,1]"},
    {NCHWC("Upsample"), 1, "f32[n,32,8,h]", "scales=[1,1,2,3]", "f32[n,32,16,h*3]"},
    {NCHWC("Upsample"), 1, "f32[n,32,8,8]", "scales=[2,2]", "!2 scales"},
    {NCHWC("Upsample"), 1, "f32[n,32]", "scales=[1,0]", "!scale of 0"},
    {NHWC("Conv"), 1, "f32[b,10,12,3] f32[16,3,3,3] f32[16]", "", "f32[b,8,10,16]"},
    {NHWC("MaxPool"), 1, "f16[b,10,12,3]", "kernel_shape=[2,2] strides=[2,2]", "f16[b,5,6,3]"},
    {NHWC("QLinearConvTranspose"), 1, "u8[b,5,5,4] f32[] u8[] u8[4,3,2,2] f32[] u8[] f32[] u8[]",
     "", "u8[b,6,6,3]"},
    {NHWC("BatchNormalization"), 1, "f32[b,5,6,3] f32[3] f32[3] f32[3] f32[3]", "", "f32[b,5,6,3]"},
    {NHWC("DepthToSpace"), 1, "f32[b,5,6,12]", "blocksize=2", "f32[b,10,12,3]"},
    {NHWC("GridSample"), 1, "f32[b,5,6,3] f32[b,8,9,2]", "", "f32[b,8,9,3]"},
    {NHWC("Resize"), 1, "f32[b,5,6,3] - f32[4]={1,2,2,1}", "mode='nearest'", "f32[b,10,12,3]"},
    {0},
};
