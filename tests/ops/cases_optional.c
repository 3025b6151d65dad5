#include "ops/case.h"

const onv_case onv_cases_optional[] = {
    {"Optional", 15, "f32[n]", "", "opt(f32[n])", "0", "view=1"},
    {"Optional", 15, "seq(f32[n])*2", "", "opt(seq(f32[n])*2)"},
    {"Optional", 15, "", "type=type(f32[2])", "opt(f32[2])"},
    {"Optional", 28, "-", "type=type(seq(f32[2]))", "opt(seq(f32[2]))"},
    {"Optional", 15, "", "", "!'type'"},
    {"OptionalGetElement", 15, "opt(f32[n])", "", "f32[n]", "0", "view=1"},
    {"OptionalGetElement", 18, "i64[2]={3,n}", "", "i64[2]={3,n}"},
    {"OptionalGetElement", 18, "seq(f32[n])*2", "", "seq(f32[n])*2"},
    {"OptionalGetElement", 18, "?", "", "?"},
    {"OptionalGetElement", 15, "f32[n]", "", "!not an optional"},
    {"OptionalHasElement", 15, "opt(f32[n])", "", "bool[]"},
    {"OptionalHasElement", 18, "f32[n]", "", "bool[]={1}"},
    {"OptionalHasElement", 18, "seq(f32[n])", "", "bool[]={1}"},
    {"OptionalHasElement", 18, "", "", "bool[]={0}"},
    {"OptionalHasElement", 18, "-", "", "bool[]={0}"},
    {"OptionalHasElement", 18, "?", "", "bool[]"},
    {0},
};
