/* Loops whose states change: what comes out of them. */
#include "support/capture.h"
#include "support/onnx_writer.h"
#include "support/test.h"

/* A body goes on as long as it was told to; it reads its states s (and u) and the number of the iteration, and makes t (and v). */
#define BODY(states, nodes, results)                                                               \
    "; begin body; in i i64[]; in c bool[]; " states "; " nodes                                    \
    "; d = Identity(c); out d bool; " results "; end; "
#define ONE(nodes) BODY("in s f32", nodes, "out t f32") "y = Loop(M go x); out y f32"
#define TWO(nodes)                                                                                 \
    BODY("in s f32; in u f32", nodes, "out t f32; out v f32")                                      \
    "y z = Loop(M go x w); out y f32; out z f32"
#define GROW           ONE("t = Concat(s k) axis=0")
#define TRIPS(n)       "int M " n "; bool go 1; "
#define OPEN(n)        "int M " n "; in go bool[]; "
#define BY_A_VECTOR(x) "weight k f32[3]; in x " x

/* Of vectors of 4: one more each time, and the number of the iteration; or three in place of what there may be. */
#define APPENDED                                                                                   \
    "x = SequenceEmpty(); weight k f32[4]" BODY(                                                   \
        "in s seq-f32", "t = SequenceInsert(s k); v = Identity(i)",                                \
        "out t seq-f32; out v i64") "o z = Loop(M go x); out z i64; "
#define OPTIONAL                                                                                   \
    "weight k f32[4]; a = SequenceConstruct(k k k); x = Optional(a)" BODY(                         \
        "in s seq-f32", "t = SequenceConstruct(k k k)", "out t seq-f32") "o = Loop(M go x); "
#define LENGTH "l = SequenceLength(o); y = ConstantOfShape(l); out y f32"

#define MANY "1000000" /* more than are run one by one */

typedef struct row {
    const char *lines;
    const char *y, *z;       /* shapes; NULL: not looked at */
    uint64_t y_most, z_most; /* bytes that are bounds; 0: no bound */
} row;

static const row rows[] = {
    /* Growth is counted. */
    {TRIPS("4") BY_A_VECTOR("f32[2]") GROW, .y = "[14]"},
    {TRIPS(MANY) BY_A_VECTOR("f32[2]") GROW, .y = "[3000002]"},
    {"in q f32[m]; int zero 0; n = Shape(q); M = Gather(n zero); bool go 1; " BY_A_VECTOR("f32[n]")
         GROW,
     .y = "[m*3 + n]"},
    {TRIPS(MANY) "in k f32[s]; in x f32[2]" GROW, .y = "[s*1000000 + 2]"},
    {TRIPS(MANY) "ints cut 0 -1; in x f32[n]" ONE("t = Pad(s cut)"), .y = "[n - 1000000]"},
    /* While the body runs, the state is smaller than at the end. */
    {OPEN(MANY) BY_A_VECTOR("f32[2]") GROW, .y_most = 12000008},
    {"in M i64[]; in go bool[]; " BY_A_VECTOR("f32[2]") GROW, .y_most = ONV_SIZE_UNKNOWN},
    /* What shrinks has its start as a bound. */
    {OPEN(MANY) "in e bool[8]; in x f32[8]" ONE("t = Compress(s e) axis=0"), .y_most = 32},
    /* Other growth is unknown. */
    {TRIPS(MANY) "in x f32[2]" ONE("t = Concat(s s) axis=0"), .y = "[?]"},
    {TRIPS(MANY) "ints axes 0; in x f32[2]" ONE(
         "j = Unsqueeze(i axes); g = ConstantOfShape(j); t = Concat(s g) axis=0"),
     .y = "[?]"},
    {TRIPS(MANY) "in x f32[2]; in w f32[3]" TWO("t = Identity(u); v = Identity(s)"), .y = "[?]"},
    {TRIPS(MANY) "ints axes 0; in x f32[2]" ONE("t = Unsqueeze(s axes)"), .y = "[...]"},
    /* A dim may follow another one: the second state is what the first was. */
    {OPEN(MANY) "weight k f32[1]; in x f32[2]; in w f32[1]" TWO(
         "t = Concat(s k) axis=0; v = Identity(s)"),
     .y_most = 4000008, .z_most = 4000004},
    {TRIPS(MANY) "in x f32[2]; in w f32[2]" TWO("t = Identity(u); v = Identity(s)"), .y = "[2]",
     .z = "[2]"},
    /* Sequences grow, and know of what; what is stacked has as many rows as there are iterations. */
    {TRIPS(MANY) APPENDED LENGTH, .y = "[1000000]", .z = "[1000000]"},
    {TRIPS(MANY) APPENDED "int zero 0; y = SequenceAt(o zero); out y f32", .y = "[4]"},
    {"int M 5; bool go 0; " APPENDED LENGTH, .y = "[0]", .z = "[0]"},
    /* The start may be absent; the body gives a sequence in any case. */
    {OPEN(MANY) OPTIONAL LENGTH, .y = "[3]"},
    /* Contents that change with every iteration are forgotten. */
    {TRIPS(MANY) "ints x 7 0; ints k 0 1" BODY(
         "in s i64[2]", "t = Add(s k)",
         "out t i64[2]") "o = Loop(M go x); y = ConstantOfShape(o); out y f32",
     .y = "[7, ?]"},
};

static void check(const row *r, const onv_tensor_info *t)
{
    bool is_z = strcmp(t->name, "z") == 0;
    const char *shape = is_z ? r->z : r->y;
    uint64_t most = is_z ? r->z_most : r->y_most;
    if (!is_z && strcmp(t->name, "y") != 0) return;
    if ((shape != NULL && strcmp(t->shape, shape) != 0) || (most > 0 && t->bytes != most) ||
        t->bound != (most > 0))
        fail_msg("%s\n%s is %s, %llu bytes, bound %d\n", r->lines, t->name, t->shape,
                 (unsigned long long)t->bytes, t->bound);
}

TEST(states_change)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const row *r = &rows[i];
        OWNED_MODEL m = model_new(17);
        model_add_text(m, r->lines);
        OWNED_ANALYSIS a = model_analyse(m, NULL);
        onv_tensor_info info;
        for (size_t k = 0; onv_analysis_tensor(a, k, &info); k++) check(r, &info);
    }
}
