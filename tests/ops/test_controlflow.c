/* Loops whose states change: the body is a function here, so that it can depend on what goes in. */
#include "ops/case_parse.h"
#include "ops/op.h"
#include "support/test.h"

enum { MAX_STATES = 3 };

/* A Loop node over a body that computes `out` (condition, states, stacked values) from `in`
 * (iteration, condition, states). */
typedef void (*body_fn)(onv_op_ctx *c, const onv_op_value *in, onv_op_value *out);

typedef struct fixture {
    onv_model model;
    onv_error error;
    onv_attr attr;
    onv_node node;
    onv_op_ctx c;
    onv_op_value in[2 + MAX_STATES], out[MAX_STATES + 1];
    bool present[2 + MAX_STATES];
    onv_value_id inputs[2 + MAX_STATES], outputs[MAX_STATES + 1];
    case_parser parser;
    body_fn body;
    unsigned runs;
} fixture;

static onv_status run_body(onv_op_ctx *c, onv_graph_id graph, const onv_op_value *in, uint32_t n_in,
                           onv_op_value *out, uint32_t n_out)
{
    fixture *f = c->driver;
    (void)graph;
    (void)n_in;
    f->runs++;
    for (uint32_t i = 0; i < n_out; i++) out[i] = (onv_op_value){.type = {.rank = -1}};
    out[0].type = in[1].type;
    out[0].known = in[1].known;
    f->body(c, in, out);
    return ONV_OK;
}

/* `inputs` are M, the condition and the states, in the language of case.h. */
static void run_loop(fixture *f, const char *inputs, uint32_t n_stacked, body_fn body)
{
    case_value values[CASE_MAX_VALUES];
    memset(f, 0, sizeof *f);
    onv_model_init(&f->model, 64u << 20);
    f->parser.model = &f->model;
    uint32_t n = case_parse_values(&f->parser, inputs, values);
    assert_null(f->parser.error);
    assert_in_range(n, 2, 2 + MAX_STATES);
    onv_graph graph = {.n_inputs = n, .n_outputs = n - 1 + n_stacked};
    assert_true(onv_vec_push(&f->model.graphs, graph));
    f->body = body;
    f->attr = (onv_attr){.name = "body", .kind = ONV_ATTR_GRAPH, .graph = {0}};
    f->node = (onv_node){.name = "node",
                         .domain = "",
                         .n_inputs = n,
                         .n_outputs = n - 2 + n_stacked,
                         .n_attrs = 1,
                         .inputs = f->inputs,
                         .outputs = f->outputs,
                         .attrs = &f->attr};
    onv_node_set_op(&f->node, "Loop");
    for (uint32_t i = 0; i < n; i++) {
        f->in[i] = values[i].value;
        f->present[i] = values[i].present;
        f->inputs[i] = f->present[i] ? (onv_value_id){i} : ONV_NO_VALUE;
    }
    for (uint32_t i = 0; i < f->node.n_outputs; i++) f->outputs[i] = (onv_value_id){n + i};
    onv_op_index index;
    assert_true(onv_op_index_init(&index, &f->model.arena));
    f->c = (onv_op_ctx){.model = &f->model,
                        .node = &f->node,
                        .op = onv_op_find(&index, "", "Loop", 13),
                        .version = 13,
                        .dims = &f->model.dims,
                        .arena = &f->model.arena,
                        .n_in = n,
                        .n_out = f->node.n_outputs,
                        .in = f->in,
                        .in_present = f->present,
                        .out = f->out,
                        .run_subgraph = run_body,
                        .driver = f,
                        .err = &f->error};
    assert_non_null(f->c.op);
    assert_int_equal(f->c.op->infer(&f->c), ONV_OK);
    assert_in_range(f->runs, 1, 11);
}

static void expect(fixture *f, uint32_t k, const char *text)
{
    assert_string_equal(case_value_text(&f->model, &f->out[k], false), text);
}

static void expect_bound(fixture *f, uint32_t k, const char *text)
{
    assert_string_equal(case_value_text(&f->model, &f->out[k], true), text);
}

static onv_type vector(onv_op_ctx *c, onv_dim size)
{
    onv_type type = {.kind = ONV_TYPE_TENSOR,
                     .dtype = ONV_FLOAT,
                     .rank = 1,
                     .dims = onv_arena_copy(c->arena, &size, sizeof size)};
    assert_non_null(type.dims);
    return type;
}

static onv_dim size_of(const onv_op_value *value)
{
    return value->type.rank == 1 ? value->type.dims[0] : ONV_DIM_UNKNOWN;
}

/* --- Bodies ------------------------------------------------------------------------------------ */

/* The state grows by 3; stacked: nothing. */
static void grow(onv_op_ctx *c, const onv_op_value *in, onv_op_value *out)
{
    out[1].type = vector(c, onv_dim_add(c->dims, size_of(&in[2]), onv_dim_const(3)));
}

static void grow_by_symbol(onv_op_ctx *c, const onv_op_value *in, onv_op_value *out)
{
    out[1].type = vector(c, onv_dim_add(c->dims, size_of(&in[2]), onv_dim_symbol(c->dims, "s")));
}

static void shrink(onv_op_ctx *c, const onv_op_value *in, onv_op_value *out)
{
    out[1].type = vector(c, onv_dim_fresh(c->dims, "kept", size_of(&in[2])));
}

static void lose_one(onv_op_ctx *c, const onv_op_value *in, onv_op_value *out)
{
    out[1].type = vector(c, onv_dim_add(c->dims, size_of(&in[2]), onv_dim_const(-1)));
}

static void twice(onv_op_ctx *c, const onv_op_value *in, onv_op_value *out)
{
    out[1].type = vector(c, onv_dim_mul(c->dims, size_of(&in[2]), onv_dim_const(2)));
}

/* By as much as the number of the iteration, which is no constant step. */
static void grow_by_iteration(onv_op_ctx *c, const onv_op_value *in, onv_op_value *out)
{
    onv_dim number = in[0].known != NULL ? in[0].known->elems[0].i : ONV_DIM_UNKNOWN;
    out[1].type = vector(c, onv_dim_add(c->dims, size_of(&in[2]), number));
}

/* The first grows, the second is what the first was. */
static void follow(onv_op_ctx *c, const onv_op_value *in, onv_op_value *out)
{
    out[1].type = vector(c, onv_dim_add(c->dims, size_of(&in[2]), onv_dim_const(1)));
    out[2].type = in[2].type;
}

static void swap(onv_op_ctx *c, const onv_op_value *in, onv_op_value *out)
{
    (void)c;
    out[1] = in[3];
    out[2] = in[2];
}

/* One more axis each time. */
static void wrap(onv_op_ctx *c, const onv_op_value *in, onv_op_value *out)
{
    onv_dim dims[ONV_MAX_RANK];
    out[1].type = in[2].type;
    if (in[2].type.rank < 0 || in[2].type.rank == ONV_MAX_RANK) return;
    for (int i = 0; i <= in[2].type.rank; i++) dims[i] = onv_dim_const(1);
    out[1].type.rank++;
    out[1].type.dims = onv_arena_copy(c->arena, dims, sizeof dims);
}

/* Appends a vector of 4 to a sequence; a stacked scalar beside. */
static void append(onv_op_ctx *c, const onv_op_value *in, onv_op_value *out)
{
    onv_type item = vector(c, onv_dim_const(4));
    onv_dim length = onv_type_elements(&in[2].type).length;
    out[1].type = onv_type_of_elements(
        c->arena, ONV_TYPE_SEQUENCE,
        (onv_elements){.type = onv_arena_copy(c->arena, &item, sizeof item),
                       .length = onv_dim_add(c->dims, length, onv_dim_const(1))});
    out[2].type = (onv_type){.kind = ONV_TYPE_TENSOR, .dtype = ONV_INT64};
}

/* Contents: the first element stays, the second changes with every iteration. */
static void count(onv_op_ctx *c, const onv_op_value *in, onv_op_value *out)
{
    out[1] = in[2];
    if (in[2].known == NULL) return;
    onv_known *known = onv_arena_copy(c->arena, in[2].known, sizeof *known);
    onv_scalar *elems = onv_arena_copy(c->arena, known->elems, known->count * sizeof *known->elems);
    elems[1] = onv_scalar_int(onv_dim_add(c->dims, elems[1].i, onv_dim_const(1)));
    known->elems = elems;
    out[1].known = known;
}

/* --- Tests ------------------------------------------------------------------------------------- */

TEST(growth_is_counted)
{
    fixture f;
    run_loop(&f, "i64[]={4} bool[]={1} f32[2]", 0, grow);
    expect(&f, 0, "f32[14]");
    onv_model_cleanup(&f.model);
    run_loop(&f, "i64[]={m} bool[]={1} f32[n]", 0, grow);
    expect(&f, 0, "f32[m*3+n]");
    onv_model_cleanup(&f.model);
    run_loop(&f, "i64[]={4} bool[]={1} f32[2]", 0, grow_by_symbol);
    expect(&f, 0, "f32[s*4+2]");
    onv_model_cleanup(&f.model);
    run_loop(&f, "i64[]={3} bool[]={1} f32[n]", 0, lose_one);
    expect(&f, 0, "f32[n-3]");
    onv_model_cleanup(&f.model);
}

/* While the body runs, the state is smaller than at the end. */
TEST(growth_has_a_bound)
{
    fixture f;
    run_loop(&f, "i64[]={4} bool[] f32[2]", 0, grow);
    expect_bound(&f, 0, "f32[14]");
    onv_model_cleanup(&f.model);
    run_loop(&f, "- bool[] f32[2]", 0, grow);
    expect_bound(&f, 0, "f32[?]");
    onv_model_cleanup(&f.model);
}

TEST(shrinking_keeps_the_start_as_bound)
{
    fixture f;
    run_loop(&f, "i64[]={4} bool[] f32[n]", 0, shrink);
    expect_bound(&f, 0, "f32[n]");
    assert_true(onv_dim_has_bound(f.c.dims, f.out[0].type.dims[0]));
    onv_model_cleanup(&f.model);
}

TEST(other_growth_is_unknown)
{
    fixture f;
    run_loop(&f, "i64[]={4} bool[]={1} f32[2]", 0, twice);
    expect(&f, 0, "f32[?]");
    onv_model_cleanup(&f.model);
    run_loop(&f, "i64[]={4} bool[]={1} f32[2]", 0, grow_by_iteration);
    expect(&f, 0, "f32[?]");
    onv_model_cleanup(&f.model);
    run_loop(&f, "i64[]={4} bool[]={1} f32[2] f32[3]", 0, swap);
    expect(&f, 0, "f32[?]");
    onv_model_cleanup(&f.model);
    run_loop(&f, "i64[]={4} bool[]={1} f32[2]", 0, wrap);
    expect(&f, 0, "f32[...]");
    onv_model_cleanup(&f.model);
}

TEST(a_dim_may_follow_another)
{
    fixture f;
    run_loop(&f, "i64[]={4} bool[] f32[2] f32[1]", 0, follow);
    expect_bound(&f, 0, "f32[6]");
    expect_bound(&f, 1, "f32[5]");
    onv_model_cleanup(&f.model);
}

TEST(equal_states_need_one_run)
{
    fixture f;
    run_loop(&f, "i64[]={4} bool[]={1} f32[2] f32[2]", 0, swap);
    expect(&f, 0, "f32[2]");
    assert_int_equal(f.runs, 1);
    onv_model_cleanup(&f.model);
}

TEST(sequences_grow)
{
    fixture f;
    run_loop(&f, "i64[]={5} bool[]={1} seq(f32[...])*0", 1, append);
    expect(&f, 0, "seq(f32[4])*5");
    expect(&f, 1, "i64[5]");
    onv_model_cleanup(&f.model);
    run_loop(&f, "i64[]={5} bool[]={0} seq(f32[...])*0", 1, append);
    expect(&f, 0, "seq(f32[...])*0");
    expect(&f, 1, "i64[0]");
    onv_model_cleanup(&f.model);
}

/* The start may be absent; the body gives a sequence in any case. */
static void replace_optional(onv_op_ctx *c, const onv_op_value *in, onv_op_value *out)
{
    onv_type item = vector(c, onv_dim_const(4));
    (void)in;
    out[1].type =
        onv_type_of_elements(c->arena, ONV_TYPE_SEQUENCE,
                             (onv_elements){.type = onv_arena_copy(c->arena, &item, sizeof item),
                                            .length = onv_dim_const(3)});
}

TEST(an_optional_may_become_what_it_holds)
{
    fixture f;
    run_loop(&f, "i64[] bool[] opt(seq(f32[4])*3)", 0, replace_optional);
    expect(&f, 0, "seq(f32[4])*3");
    onv_model_cleanup(&f.model);
    run_loop(&f, "i64[] bool[] opt(seq(f32[4]))", 0, replace_optional);
    expect(&f, 0, "seq(f32[4])");
    onv_model_cleanup(&f.model);
}

TEST(changing_contents_are_forgotten)
{
    fixture f;
    run_loop(&f, "i64[]={5} bool[]={1} i64[2]={7,0}", 0, count);
    expect(&f, 0, "i64[2]={7,?}");
    onv_model_cleanup(&f.model);
}
