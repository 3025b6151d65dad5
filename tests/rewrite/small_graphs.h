/* Rewrites of small graphs, for tests: one row each. */
#ifndef ONV_TESTS_SMALL_GRAPHS_H
#define ONV_TESTS_SMALL_GRAPHS_H

#include "rewrite/rewrite.h"
#include "support/onnx_writer.h"

/* A graph is statements with a semicolon between:
 *     in x f32[2,8]        weight w f32[8,8]     ints s 2,-1     int n 0     bool b 1     out y f32
 *     float half 0.5       floats b 1,2.5        begin body; ...; end     a subgraph of the next node
 *     Conv x w -> y pads=[0,0,0,0] group=1       node; names of inputs and outputs with a comma between
 * Operators after the rewriting are sorted by name. */
typedef struct rewrite_case {
    int64_t opset;
    onv_rewrite_level level;
    const char *graph;
    const char *operators;
    const char *counted; /* "" : nothing */
} rewrite_case;

/* Fails the test where a session of that provider does not rewrite a row as it says. */
void check_rewrites(onv_provider provider, const rewrite_case *cases, size_t n_cases);

/* The graph of a case, and what is inferred of it. */
model *read_graph(const rewrite_case *c);
void infer_model(model *m, onv_model *inferred);

/* Fails where what ONNX Runtime knows of the shape of y, before it runs, is not the text. */
void check_seen(const char *graph, const char *shape);

#endif
