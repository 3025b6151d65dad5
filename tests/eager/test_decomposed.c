/* Operations that torch.export takes apart, and calls that stand for views or write into other memory: what training keeps of
 * them, and what their backward makes on its way. Figures are those of PyTorch's formulas (derivatives.yaml). */
#include "eager/trainer.h"
#include "lower/lower.h"
#include "support/test.h"

/* a and b are products of the input, [4, 8, 8]; F: one of them, M: a mask of it. */
enum { F = 4 * 8 * 8 * 4, M = F / 4 };

#define LINEAR "torch.nn.modules.linear.Linear"

typedef struct row {
    const char *name; /* of the operation that gives y */
    uint64_t kept, temps;
    /* Nodes, "results Operator operands attributes @call": lists of results have commas. PyTorch's operation is called as the
     * call is, without its number; ".Overload" may follow, or "=" and another name. */
    const char *nodes;
    const char *line; /* of Python that calls all of them, where it matters */
} row;

/* |a - b|, and where it is below 1. */
#define DISTANCE "d Sub a b @sub.Tensor; z Abs d @abs_1; lt Less z one @lt.Scalar;"

static const row rows[] = {
    {"threshold", F, 0,
     "m LessOrEqual a one @le.Scalar;"
     "y Where m one a @where.ScalarSelf",
     NULL},
    {"softshrink", F, 0,
     "z Abs a @abs_1;"
     "m Greater z one @gt.Scalar;"
     "s Sign a @sign;"
     "p Mul s one @mul.Tensor;"
     "d Sub a p @sub.Tensor;"
     "q Mul a two @mul_1.Tensor;"
     "y Where m d q @where.self",
     NULL},
    {"nansum", F, 2 * M,
     "m IsNaN a @isnan;"
     "z Where m one a @where.self;"
     "y ReduceSum z last keepdims=0 @sum_1.dim_IntList",
     NULL},
    {"huber_loss", 2 * F, 0,
     DISTANCE "p Mul z one @mul.Tensor;"
              "q Mul p z @mul_1.Tensor;"
              "s Sub z one @sub_1.Tensor;"
              "y Where lt q s @where.self",
     NULL},
    /* Reduced in the same line. */
    {"huber_loss", 2 * F, 0,
     DISTANCE "p Mul z one @mul.Tensor;"
              "q Mul p z @mul_1.Tensor;"
              "s Sub z one @sub_1.Tensor;"
              "w Where lt q s @where.self;"
              "y ReduceMean w keepdims=0 @mean",
     NULL},
    {"smooth_l1_loss", 2 * F, 0,
     DISTANCE "p Pow z two @pow_1.Tensor_Scalar;"
              "q Mul p one @mul.Tensor;"
              "s Sub z one @sub_1.Tensor;"
              "y Where lt q s @where.self",
     NULL},
    {"bce_with_logits", 2 * F, F,
     "d Sub one b @sub.Tensor;"
     "p Mul d a @mul.Tensor;"
     "s Sigmoid a @log_sigmoid;"
     "q Log s @log_sigmoid;"
     "y Sub p q @sub_1.Tensor",
     NULL},
    /* b is a weight of the positive targets, which is made with their sum. */
    {"bce_with_logits_weighted", 2 * F, 2 * F,
     "d Sub one b @sub.Tensor;"
     "p Mul d a @mul.Tensor;"
     "w Mul wu b @mul_1.Tensor;"
     "v Add w one @add.Tensor;"
     "s Sigmoid a @log_sigmoid;"
     "q Log s @log_sigmoid;"
     "r Mul v q @mul_2.Tensor;"
     "y Sub p r @sub_1.Tensor",
     NULL},
    /* Constants are on the host, where they are as small as these labels. */
    {"multi_margin_loss", F, 0,
     "p Reshape a tall @view;"
     "t Unsqueeze labels axis @unsqueeze;"
     "g GatherElements p t axis=1 @gather;"
     "d Sub one g @sub.Tensor;"
     "s Add d p @add.Tensor;"
     "c Clip s one @clamp_min.Tensor;"
     "e Equal places_of_classes t @ne.Tensor;"
     "n Not e @ne.Tensor;"
     "w Where n c one @where.self;"
     "y ReduceMean w axis keepdims=0 @mean.dim",
     NULL},
    /* Of classes, unreduced: the logarithms, and a number. */
    {"nll_loss", F + 4, 0,
     "p Reshape a tall @view;"
     "y SoftmaxCrossEntropyLoss p labels reduction='none' @cross_entropy_loss",
     NULL},
    /* Masks: no kernel makes truth of numbers first. */
    {"any", 0, 0,
     "t Cast a to=9 @convert=prims.convert_element_type.default;"
     "i Cast t to=7 @any_1.dim;"
     "y ReduceMax i last keepdims=0 @any_1.dim",
     NULL},
    {"exp2", F, F, "y Pow two a @exp2", NULL},
    {"fmod", 2 * F, 2 * F, "y Mod a b fmod=1 @fmod.Tensor", NULL},
    /* A parameter is an operand, too. */
    {"remainder", F + 8 * 8 * 4, 3 * F - 8 * 8 * 4,
     "d Div a wb @remainder.Tensor;"
     "f Floor d @remainder.Tensor;"
     "p Mul f wb @remainder.Tensor;"
     "y Sub a p @remainder.Tensor",
     NULL},
    {"logaddexp", 2 * F, 3 * F,
     "p Exp a @logaddexp;"
     "q Exp b @logaddexp;"
     "s Add p q @logaddexp;"
     "y Log s @logaddexp",
     NULL},
    {"mse_loss", 2 * F, 0,
     "d Sub a b @mse_loss;"
     "y Mul d d @mse_loss",
     NULL},
    {"max_pool", 2 * F, 0,
     "t Transpose a perm=[0,2,1] @transpose.int;"
     "u Unsqueeze t two_ints @unsqueeze;"
     "y MaxPool u kernel_shape=[1,2] strides=[1,2] @max_pool2d",
     NULL},
    {"vector_norm_2", F + 4, F,
     "d Sub a b @sub.Tensor;"
     "r Reshape d last @linalg_vector_norm;"
     "y ReduceL2 r keepdims=0 @linalg_vector_norm",
     "y = distance(a, b) + torch.norm(a - b)"},
    {"prod", F + 4, F, "y ReduceProd a keepdims=0 @prod", NULL},
    /* Factors: each gradient of a product is multiplied once more. */
    {"addmm", 2 * F, F,
     "p Reshape a tall @view;"
     "q Reshape b wide @view_1;"
     "y Gemm p q wc alpha=2.0 @addmm",
     NULL},
    /* A copy of the columns that do not stand behind each other, for the gradient of b's part. */
    {"bmm", 2 * F, F / 2,
     "p Slice a zero four two_ints two_ints @slice_1.Tensor;"
     "q Slice b zero four axis two_ints @slice_2.Tensor;"
     "y MatMul p q @bmm",
     NULL},
    {"div.Tensor_mode", 2 * F, 0,
     "p Div a b @div.Tensor_mode;"
     "y Floor p @div.Tensor_mode",
     NULL},
    {"scatter_reduce", 3 * F + 2 * F, 0,
     "y ScatterElements a elements b reduction='add' @scatter_reduce.two", NULL},
    {"scatter_reduce", 3 * F + 2 * F, 11 * F + 2 * M,
     "y ScatterElements a elements b reduction='mul' @scatter_reduce.two", NULL},
    /* Bounds that are tensors. */
    {"clamp.Tensor", 3 * F, 2 * M + F,
     "p Max a x @clamp.Tensor;"
     "y Min p b @clamp.Tensor",
     NULL},
    {"linalg_vector_norm", F + 4 * 8 * 4, F + 4 * 8 * 4,
     "p Abs a @norm=aten.linalg_vector_norm.default;"
     "q Pow p two @norm=aten.linalg_vector_norm.default;"
     "s ReduceSum q last keepdims=0 @norm=aten.linalg_vector_norm.default;"
     "y Pow s one @norm=aten.linalg_vector_norm.default",
     NULL},
    {"vector_norm_inf", F + 4 * 8 * 4, 2 * F + 5 * M + 4 * 8 * 8 + 4 * 8 * 4,
     "p Abs a @norm=aten.linalg_vector_norm.default;"
     "y ReduceMax p last keepdims=0 @norm=aten.linalg_vector_norm.default",
     NULL},
    /* Lists of tensors, as hstack has them. */
    {"cat", 0, 0,
     "s SequenceConstruct a b @atleast_1d.Sequence;"
     "p SequenceAt s n0 @getitem=getitem;"
     "q SequenceAt s n1 @getitem_1=getitem;"
     "y Concat p q axis=1 @cat",
     NULL},
    {"cat", 0, 0,
     "e SequenceEmpty @stack;"
     "s SequenceInsert e a @stack;"
     "t SequenceInsert s b @stack;"
     "y ConcatFromSequence t axis=1 new_axis=1 @stack",
     NULL},
    /* In lines of two modules it is what it looks like: the mask alone is kept. */
    {"where", M, 0,
     "m LessOrEqual a one @elsewhere=aten.le.Scalar;"
     "y Where m one a @where.ScalarSelf",
     NULL},
};

/* Adds a word to a list. */
static void append(char *list, size_t size, const char *word)
{
    size_t length = strlen(list);
    snprintf(list + length, size - length, length > 0 ? " %s" : "%s", word);
}

/* "sub_1.Tensor" of the operation "aten.sub.Tensor". */
static void set_call(model *m, char *call)
{
    char aten[96];
    char *end = call + strcspn(call, ".="), mark = *end;
    if (mark != '\0') *end++ = '\0';
    const char *number = strrchr(call, '_');
    bool is_numbered = number != NULL && number[1 + strspn(number + 1, "0123456789")] == '\0';
    int length = (int)(is_numbered ? (size_t)(number - call) : strlen(call));
    if (mark == '=' || call[0] == '\0')
        snprintf(aten, sizeof aten, "%s", end);
    else
        snprintf(aten, sizeof aten, "aten.%.*s.%s", length, call, mark == '.' ? end : "default");
    model_source(m, strcmp(call, "elsewhere") == 0 ? "other" : "m", call);
    model_class(m, "Net", aten);
}

static void add_node(model *m, char *node, const char *line)
{
    char inputs[128] = "", attributes[128] = "", *rest = node;
    char *results = strtok_r(rest, " ", &rest);
    const char *op = strtok_r(rest, " ", &rest);
    for (char *word; (word = strtok_r(rest, " ", &rest)) != NULL;) {
        if (word[0] == '@')
            set_call(m, word + 1);
        else if (strchr(word, '=') != NULL)
            append(attributes, sizeof attributes, word);
        else
            append(inputs, sizeof inputs, word);
    }
    for (char *comma = results; (comma = strchr(comma, ',')) != NULL;) *comma = ' ';
    if (line != NULL) model_trace(m, line);
    model_node(m, op, results, inputs, results, attributes);
}

static model *build(const row *r)
{
    const int64_t last = -1, zero = 0, four = 8, axis = 1;
    model *m = model_read(18, "in x f32[4,8,8]", "weight wa f32[8,8]", "weight wb f32[8,8]",
                          "weight square f32[8,8]");
    model_ints(m, "last", 1, &last);
    model_ints(m, "zero", 1, &zero);
    model_ints(m, "four", 1, &four);
    model_ints(m, "axis", 1, &axis);
    model_add(m, "ints two_ints 2", "ints shape 4 8 8", "ints tall 32 8", "ints wide 8 32",
              "n0 = Constant() n0 value_int=0", "n1 = Constant() n1 value_int=1",
              "weight labels i64[32]", "weight places_of_classes i64[8]");
    model_ints(m, "zero_int", 1, &zero);
    model_add(m, "ints three_ints 3", "ints column 8 1", "ints line 1 8", "ints offset_shape 4 8 1",
              "ints turned_shape 8 32", "ints rows_shape 32 4 8", "weight turned f32[8,4,8]",
              "weight wu f32[8]", "weight wv f32[8]", "role wu PARAMETER", "role wv PARAMETER",
              "weight zeros f32[4,8,8]", "weight places i64[3,1]", "weight offsets i64[4,8,1]",
              "weight elements i64[4,8,8]", "weight wc f32[32,32]", "role wc PARAMETER",
              "role wa PARAMETER", "role wb PARAMETER", "one = Constant() one value_float=1.0",
              "two = Constant() two value_float=2.0");
    for (int k = 0; k < 2; k++) {
        model_source(m, k == 0 ? "fa" : "fb", k == 0 ? "linear" : "linear_1");
        model_class(m, LINEAR, "aten.linear.default");
        model_node(m, "MatMul", k == 0 ? "a" : "b", k == 0 ? "x wa" : "x wb", k == 0 ? "a" : "b",
                   "");
    }
    char nodes[1024], *rest = nodes;
    assert_true(snprintf(nodes, sizeof nodes, "%s", r->nodes) < (int)sizeof nodes);
    for (char *node; (node = strtok_r(rest, ";", &rest)) != NULL;) add_node(m, node, r->line);
    model_output(m, "y", "f32");
    return m;
}

TEST(each_is_one_operation)
{
    uint32_t n_wrong = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        OWNED_TRAINER t;
        onv_eager eager;
        onv_lower_options options = {.loss = ONV_LOSS_NONE, .no_inplace = true};
        OWNED_MODEL m = build(&rows[i]);
        trainer_open_model(&t, m);
        trainer_lower(&t, &options, &eager);
        const onv_eager_op *op = &eager.ops.at[eager.ops.count - 1];
        uint64_t kept = 0;
        for (uint32_t k = 0; k < op->n_saved; k++)
            for (uint32_t j = 0; j <= k; j++) { /* each storage once */
                if (j == k) kept += eager.storages.at[op->saved[k]].bytes;
                if (op->saved[j] == op->saved[k]) break;
            }
        uint64_t made = onv_eager_backward_temps(&eager, op);
        bool is_wrong = strcmp(op->name, rows[i].name) != 0 || kept != rows[i].kept ||
                        made < rows[i].temps || made > rows[i].temps + 8;
        if (is_wrong)
            print_error("%s: %s keeps %llu bytes, not %llu; backward makes %llu, not %llu\n",
                        rows[i].name, op->name, (unsigned long long)kept,
                        (unsigned long long)rows[i].kept, (unsigned long long)made,
                        (unsigned long long)rows[i].temps);
        n_wrong += is_wrong;
        onv_eager_cleanup(&eager);
    }
    assert_int_equal(n_wrong, 0);
}
