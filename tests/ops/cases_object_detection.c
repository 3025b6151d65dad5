#include "ops/case.h"

#define BOXES "f32[2,100,4] f32[2,80,100] "

const onv_case onv_cases_object_detection[] = {
    /* At most batch * classes * min(max_output_boxes, boxes). */
    {"NonMaxSuppression", 10, BOXES "i64[]={10} f32[] f32[]", "", "i64[selected#0,3]<=i64[1600,3]"},
    {"NonMaxSuppression", 11, BOXES "i64[1]={200}", "center_point_box=1",
     "i64[selected#0,3]<=i64[16000,3]"},
    {"NonMaxSuppression", 11, BOXES "i64[]={9223372036854775807}", "",
     "i64[selected#0,3]<=i64[16000,3]"},
    {"NonMaxSuppression", 11, BOXES "i64[]", "", "i64[selected#0,3]<=i64[16000,3]"},
    {"NonMaxSuppression", 11, BOXES, "", "i64[0,3]"},
    {"NonMaxSuppression", 11, BOXES "i64[]={0}", "", "i64[0,3]"},
    {"NonMaxSuppression", 11, BOXES "i64[]={-5}", "", "i64[0,3]"},
    {"NonMaxSuppression", 11, "f32[b,n,4] f32[b,c,n] i64[]={0}", "", "i64[0,3]"},
    {"NonMaxSuppression", 11, "f32[2,0,4] f32[2,80,0] i64[]={10}", "", "i64[0,3]"},
    {"NonMaxSuppression", 11, "f32[1,n,4] f32[1,80,n] i64[]={10}", "",
     "i64[selected#1,3]<=i64[min(10,n)*80,3]"},
    {"NonMaxSuppression", 11, "f32[...] f32[1,80,100] i64[]={10}", "",
     "i64[selected#0,3]<=i64[800,3]"},
    {"NonMaxSuppression", 11, "f32[...] f32[...] i64[]={10}", "", "i64[selected#0,3]<=i64[?,3]"},
    {"NonMaxSuppression", 11, "f32[2,100,4] f32[3,80,100] i64[]={10}", "", "!batch"},
    {"NonMaxSuppression", 11, "f32[2,100,4] f32[2,80,99] i64[]={10}", "",
     "!axis 2 of input scores is 99, not n = 100"},
    {"NonMaxSuppression", 11, "f32[2,100,5] f32[2,80,100] i64[]={10}", "",
     "!axis 2 of input boxes is 5, not 4"},
    {"NonMaxSuppression", 11, "f32[100,4] f32[2,80,100] i64[]={10}", "", "!rank 3"},

    {"RoiAlign", 10, "f32[1,256,50,50] f32[n,4] i64[n]", "output_height=7 output_width=6",
     "f32[n,256,7,6]", NULL, "save_in=1,2"},
    {"RoiAlign", 16, "f16[1,256,50,50] f16[?,4] i64[10]", "sampling_ratio=2", "f16[10,256,1,1]"},
    {"RoiAlign", 22, "f32[...] f32[...] i64[...]", "output_height=7", "f32[?,?,7,1]"},
    {"RoiAlign", 16, "f32[1,256,50,50] f32[9,4] i64[10]", "", "!is 10, not n = 9"},
    {"RoiAlign", 16, "f32[1,256,50,50] f32[9,5] i64[9]", "", "!is 5, not 4"},
    {"RoiAlign", 16, "f32[256,50,50] f32[9,4] i64[9]", "", "!rank 4"},
    {0},
};
