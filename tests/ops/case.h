/* Operator tests as a table: one line is one node, what goes in and what must come out.
 *
 *     {"MatMul", 13, "f32[batch,2,3] f32[3,4]", "", "f32[batch,2,4]", "24*batch"},
 *     {"Shape", 15, "f32[batch,3]", "start=1", "i64[1]={3}"},
 *     {"MatMul", 13, "f32[2,3] f32[4,5]", "", "!inner"},
 *     {"Unique", 11, "f32[2,3]", "", "f32[unique#0]<=f32[6]"},
 *
 * Inputs and outputs are lists of values, separated by spaces outside of brackets:
 *
 *     f32[2,seq,?]          a tensor; `?` an unknown dim, `f32[]` a scalar, `f32[...]` unknown rank
 *     i64[2]={0,batch}      with known contents (also `?` per element, `0.5*batch` in float types)
 *     seq(f32[2])           a sequence of unknown length; seq(f32[2])*3 of known length;
 *                           seq{f32[2], i64[3]} with known items
 *     opt(T) map(i64,T) sparse(f32[2,3])
 *     ?                     nothing is known          -      absent (an optional input or output)
 *
 * Dtypes: f16 f32 f64 bf16 i2 i4 i8 .. i64 u2 u4 u8 .. u64 bool str c64 c128 f8e4m3fn f8e4m3fnuz
 * f8e5m2 f8e5m2fnuz f8e8m0 f6e2m3 f6e3m2 f4e2m1. Dims of inputs are expressions: batch, 2*seq+1,
 * floor(h/2), max(a,b), inf.
 *
 * Attributes, separated by spaces: axis=1 alpha=0.5 alpha=2f mode='linear' perm=[0,2,1]
 * scales=[1.0,2] names=['a','b'] to=f32 (a dtype as an int) value=i64[1]={7} (a tensor)
 * type=type(seq(f32[2])) empty=[]f (no floats) body=graph(2: f32[3] i64[]={1}) (a graph of 2 inputs
 * whose outputs are always those; the rule sees it through run_subgraph).
 *
 * Expected outputs are compared as text, without spaces: dims as onv_dim_text writes them, contents
 * where at least one element is known. Writing `T<=U` says that T becomes U when data-dependent
 * symbols take their bounds. "!text": the rule must fail with a message that holds the text.
 * "*": anything, as long as it is sound.
 *
 * Every case gets a model, an operator row found by name and version ("com.microsoft:Gelu": with a
 * domain), and runs infer, fold, traits_fn and macs.
 */
#ifndef ONV_TESTS_OPS_CASE_H
#define ONV_TESTS_OPS_CASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The last columns of a case are often left out. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

/* `macs` and `traits` are not compared where they are NULL. Traits are words like "view=0",
 * "inplace=0,1", "save_in=" or "save_out=0", "weights=24" (bytes in attributes); those that stand are compared. */
typedef struct onv_case {
    const char *op;
    int32_t version;
    const char *in, *attrs, *out;
    const char *macs, *traits;
} onv_case;

/* Runs one case; false with the reason in message[] where it does not hold. */
bool onv_case_run(const onv_case *test, char *message, size_t message_bytes);

/* Each cases_<family>.c defines its table, ended by {0}, and has its line in cases.def. */
#define CASES(family) extern const onv_case onv_cases_##family[];
#include "ops/cases.def"
#undef CASES

#endif
