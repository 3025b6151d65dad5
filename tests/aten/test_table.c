/* The table of ATen operators against what PyTorch itself says of them (tests/truth/aten.txt, which tests/aten/truth.py
 * writes): what autograd keeps, and which operators give views or overwrite their argument. */
#include "aten/aten.h"
#include "eager/eager.h"
#include "support/test.h"

enum { MAX_LINE = 400, N_FIELDS = 6, LEAST_OPERATORS = 250, LEAST_CASTS = 100 };
enum { NAME, ARGUMENTS, WANTS, KEPT_IN, KEPT_OUT, ALIASES };

/* Cuts a line at " | "; fields are trimmed. */
static void cut(char *line, char *fields[N_FIELDS])
{
    char *at = line;
    for (uint32_t i = 0; i < N_FIELDS; i++) {
        fields[i] = at;
        char *end = strchr(at, '|');
        at = end != NULL ? end + 1 : at + strlen(at);
        if (end != NULL) *end = '\0';
        while (*fields[i] == ' ') fields[i]++;
        for (char *last = fields[i] + strlen(fields[i]);
             last > fields[i] && (last[-1] == ' ' || last[-1] == '\n');)
            *--last = '\0';
    }
}

/* The place of a word in a list, or UINT32_MAX. */
static uint32_t place_of(const char *list, const char *word, size_t length)
{
    uint32_t place = 0;
    for (const char *at = list; at != NULL && *at != '\0'; place++) {
        size_t n = strcspn(at, " ");
        if (n == length && memcmp(at, word, n) == 0) return place;
        at += n + (at[n] == ' ');
    }
    return UINT32_MAX;
}

/* Bits of the row's letters for names of arguments. Overloads may call them otherwise: then their places count. */
static uint32_t letters_of(const onv_aten_op *op, const char *arguments, const char *names)
{
    uint32_t bits = 0;
    for (const char *at = names; *at != '\0';) {
        size_t n = strcspn(at, " ");
        uint32_t place = place_of(op->in, at, n);
        if (place == UINT32_MAX) place = place_of(arguments, at, n);
        if (place < ONV_ATEN_MOST_TENSORS) bits |= UINT32_C(1) << place;
        at += n + (at[n] == ' ');
    }
    return bits;
}

static uint32_t numbers_of(const char *text)
{
    uint32_t bits = 0;
    for (; *text != '\0'; text++)
        if (*text >= '0' && *text < '0' + ONV_ATEN_MOST_TENSORS)
            bits |= UINT32_C(1) << (*text - '0');
    return bits;
}

/* _trilinear leaves out what no other argument's gradient reads, each for itself; polar keeps a result that the samples do not
 * show. */
static bool is_apart(const char *name)
{
    static const char *const names[] = {"aten._trilinear.default", "aten.polar.default"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

static bool check_line(char *fields[N_FIELDS], const onv_aten_op *op, bool in_place)
{
    bool none = strcmp(fields[KEPT_IN], "-") == 0;
    uint32_t wants = letters_of(op, fields[ARGUMENTS], fields[WANTS]), in, out;
    uint32_t kept_in = none ? 0 : letters_of(op, fields[ARGUMENTS], fields[KEPT_IN]);
    uint32_t kept_out = none ? 0 : numbers_of(fields[KEPT_OUT]);
    if (onv_aten_grads(op)[0] == '\0' && op->rule != ONV_RULE_NONE) return true;
    onv_aten_saved(op, wants, &in, &out);
    in &= letters_of(op, fields[ARGUMENTS], fields[ARGUMENTS]); /* of numbers nothing is kept */
    if (in_place) in &= ~UINT32_C(1);                           /* a copy of it */
    if (in == kept_in && out == kept_out) return true;
    print_message("%s of %s: keeps arguments %#x, results %#x; the table says %#x, %#x\n",
                  fields[NAME], fields[WANTS], kept_in, kept_out, in, out);
    return false;
}

static bool check_aliases(char *fields[N_FIELDS], const onv_aten_op *op, bool in_place)
{
    bool is_view = strcmp(fields[ALIASES], "view") == 0;
    bool may_view = op->form == ONV_ATEN_VIEW || op->rule == ONV_RULE_RESHAPE ||
                    op->rule == ONV_RULE_EXPAND || op->rule == ONV_RULE_DETACH ||
                    op->rule == ONV_RULE_TAKES_PARTS || op->rule == ONV_RULE_CONTIGUOUS ||
                    op->rule == ONV_RULE_TO;
    bool names_write = strstr(fields[NAME], "_.") != NULL;
    bool good = (!is_view || may_view) && (!names_write || in_place);
    if (!good)
        print_message("%s: '%s' by its schema, not by the table\n", fields[NAME], fields[ALIASES]);
    return good;
}

TEST(holds_against_pytorch)
{
    char path[1000], line[MAX_LINE], last[MAX_LINE] = "";
    uint32_t operators = 0, wrong = 0, missing = 0;
    snprintf(path, sizeof path, "%s/tests/truth/aten.txt", ONV_SOURCE_DIR);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        char *fields[N_FIELDS];
        bool in_place;
        if (line[0] == '#' || line[0] == '=') continue;
        cut(line, fields);
        const onv_aten_op *op = onv_aten_find(fields[NAME], &in_place);
        bool is_new = strcmp(last, fields[NAME]) != 0;
        snprintf(last, sizeof last, "%s", fields[NAME]);
        if (op == NULL) {
            missing += is_new;
            if (is_new && getenv("ONV_MISSING") != NULL)
                print_message("no row: %s\n", fields[NAME]);
            continue;
        }
        operators += is_new;
        if (is_apart(fields[NAME])) continue;
        wrong += !check_line(fields, op, in_place) + !check_aliases(fields, op, in_place);
    }
    fclose(file);
    print_message("%u operators have a row, %u have none\n", operators, missing);
    assert_int_equal(wrong, 0);
    assert_true(operators >= LEAST_OPERATORS);
}

/* "= fp32 aten.exp.default" */
TEST(casts_as_autocast)
{
    static const struct {
        const char *name;
        onv_aten_cast cast;
    } lists[] = {{"low", ONV_CAST_LOW},
                 {"fp32", ONV_CAST_FLOAT32},
                 {"result", ONV_CAST_RESULT},
                 {"widest", ONV_CAST_WIDEST}};
    char path[1000], line[MAX_LINE], list[MAX_LINE], name[MAX_LINE];
    uint32_t operators = 0, wrong = 0;
    snprintf(path, sizeof path, "%s/tests/truth/aten.txt", ONV_SOURCE_DIR);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        bool in_place;
        if (sscanf(line, "= %399s %399s", list, name) != 2) continue;
        const onv_aten_op *op = onv_aten_find(name, &in_place);
        if (op == NULL) continue;
        operators++;
        for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
            if (strcmp(lists[i].name, list) != 0 || op->cast == lists[i].cast) continue;
            print_message("%s: '%s' of autocast, not of the table\n", name, list);
            wrong++;
        }
    }
    fclose(file);
    assert_int_equal(wrong, 0);
    assert_true(operators >= LEAST_CASTS);
}

/* A row that is not sorted into its family is not found. */
TEST(finds_every_row)
{
    for (int i = 1; i < ONV_ATEN_N_IDS; i++) {
        const onv_aten_op *op = &onv_aten_ops[i];
        if (onv_aten_named(op->name) != (onv_aten_id)i)
            fail_msg("%s is not at its place in the order of names", op->name);
        /* What it is on the tape is a row of its own, which alone has what belongs to the tape's operation. */
        assert_int_equal(onv_aten_ops[onv_aten_as(op)].as, ONV_ATEN_NONE);
        if (op->as != ONV_ATEN_NONE)
            assert_true(op->temps == NULL && op->recipe == NULL && !op->is_fused &&
                        op->counted_as == ONV_ATEN_NONE);
    }
    assert_int_equal(onv_aten_named("relu_"), ONV_ATEN_relu);
    assert_int_equal(onv_aten_named("no_such_operator"), ONV_ATEN_NONE);
    assert_int_equal(onv_aten_named(""), ONV_ATEN_NONE);
}

static bool is_sound(const char *temps)
{
    char open[ONV_ATEN_MOST_NESTED];
    size_t starts[ONV_ATEN_MOST_NESTED], depth = 0, n = 0;
    for (const char *c = temps; c != NULL && *c != '\0'; c++) {
        if (strchr(ONV_ATEN_TENSORS, *c) != NULL) {
            if (n++ == ONV_ATEN_MOST_TEMPS) return false;
        } else if (*c == '[' || *c == '(') {
            if (depth == ONV_ATEN_MOST_NESTED) return false;
            starts[depth] = n;
            open[depth++] = *c;
        } else if (*c == ']' || *c == ')') {
            if (depth == 0 || open[--depth] != (*c == ']' ? '[' : '(')) return false;
            n = starts[depth] + (*c == ']' && n > starts[depth]);
        } else if ((*c != '<' || c > temps) &&
                   (*c != '^' || c[1] == '\0' || strchr(ONV_ATEN_TENSORS, c[1]) == NULL)) {
            return false;
        }
    }
    return depth == 0;
}

TEST(temporaries_have_known_letters)
{
    for (int i = 1; i < ONV_ATEN_N_IDS; i++) {
        const onv_aten_op *op = &onv_aten_ops[i];
        const onv_aten_temps *temps = op->temps;
        if (temps != NULL && (!is_sound(temps->backward) || !is_sound(temps->of_second) ||
                              !is_sound(temps->forward)))
            fail_msg("%s: TEMPS have a letter, a bracket or more tensors at once than "
                     "src/emit/derivative.c knows",
                     op->name);
    }
    assert_true(is_sound("[ff](m)f^xy") && is_sound("<x"));
    assert_false(is_sound("k") || is_sound("[f)") || is_sound("f]") || is_sound("(f") ||
                 is_sound("x<") || is_sound("x^") || is_sound("[[[[[x]]]]]") ||
                 is_sound("xxxxxxxxxxxxxxxxx"));
}

/* What the formulas of a row make has a place in a list of the tape: a tensor for each letter, and a sum for each input. */
TEST(formulas_fit_their_list)
{
    for (int i = 1; i < ONV_ATEN_N_IDS; i++) {
        const onv_aten_op *op = &onv_aten_ops[i];
        const onv_aten_temps *t = op->temps;
        size_t n_in = 1, first = t != NULL && t->backward != NULL ? strlen(t->backward) : 1;
        size_t second = t != NULL && t->of_second != NULL ? strlen(t->of_second) : first;
        for (const char *c = op->in; c != NULL && *c != '\0'; c++) n_in += *c == ' ';
        if (first + second > 2 && (n_in - 1) * first + second + n_in > ONV_BACKWARD_TEMPS)
            fail_msg("%s: its TEMPS are more than ONV_BACKWARD_TEMPS", op->name);
    }
}

TEST(finds_overloads)
{
    bool in_place;
    assert_string_equal(onv_aten_find("aten.mul.Tensor", &in_place)->name, "mul");
    assert_false(in_place);
    assert_string_equal(onv_aten_find("aten.mul_.Scalar", &in_place)->name, "mul");
    assert_true(in_place);
    assert_string_equal(onv_aten_find("aten.pow.Tensor_Tensor", &in_place)->name,
                        "pow.Tensor_Tensor");
    assert_string_equal(onv_aten_find("aten.leaky_relu_.default", &in_place)->name, "leaky_relu_");
    assert_true(in_place);
    assert_string_equal(onv_aten_find("aten.__and__.Tensor", &in_place)->name, "__and__");
    assert_string_equal(onv_aten_find("transformers.grouped_mm_fallback.default", &in_place)->name,
                        "grouped_mm_fallback");
    assert_false(in_place);
    assert_null(onv_aten_find("aten.no_such_operator.default", &in_place));
    assert_null(onv_aten_find("aten.conv.default", &in_place)); /* a row, but of no operator */
    assert_null(onv_aten_find("", &in_place));
}

/* Operators that no saved tensors tell of have the names of native_functions.yaml, by which their arguments are found. */
TEST(names_arguments_as_pytorch)
{
    static const char *const rows[][2] = {
        {"aten.cudnn_convolution.default", "self weight"},
        {"aten.cudnn_convolution_transpose.default", "self weight"},
        {"aten._conv_depthwise2d.default", "self weight bias"},
        {"aten.conv_depthwise3d.default", "self weight bias"},
        {"aten.cudnn_grid_sampler.default", "self grid"},
        {"aten.heaviside.default", "self values"},
        {"aten.binomial.default", "count prob"},
        {"aten.inverse.default", "self"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bool in_place;
        const onv_aten_op *op = onv_aten_find(rows[i][0], &in_place);
        assert_non_null(op);
        assert_string_equal(op->in, rows[i][1]);
    }
}

/* A value that one formula of one argument reads is kept if that argument wants its gradient; others in any case. */
TEST(guards_what_one_formula_reads)
{
    const onv_aten_op mul = {.name = "mul", .in = "\0b:a a:b"};
    const onv_aten_op pow = {.name = "pow", .in = "\0b:abo a:ab"};
    const onv_aten_op conv = {.name = "conv", .in = "\0abc:ab"};
    uint32_t in, out;
    onv_aten_saved(&mul, 1, &in, &out);
    assert_int_equal(in, 2);
    onv_aten_saved(&mul, 3, &in, &out);
    assert_int_equal(in, 3);
    onv_aten_saved(&pow, 1, &in, &out);
    assert_int_equal(in, 3);
    assert_int_equal(out, 1); /* results are kept in any case */
    onv_aten_saved(&pow, 2, &in, &out);
    assert_int_equal(out, 1);
    onv_aten_saved(&conv, 4, &in, &out);
    assert_int_equal(in, 3);
    onv_aten_saved(&conv, 0, &in, &out);
    assert_int_equal(in, 0);
}

/* docs/extending.md shows a row; it is one, and nothing else says anything of that operator. */
TEST(documented_row_is_one)
{
    static const char family[] = ONV_SOURCE_DIR "/src/aten/pointwise.def";
    char line[MAX_LINE], row[MAX_LINE], shown[MAX_LINE] = "";
    bool is_found = false;
    FILE *docs = fopen(ONV_SOURCE_DIR "/docs/extending.md", "r"), *rows = fopen(family, "r");
    assert_true(docs != NULL && rows != NULL);
    while (shown[0] == '\0' && fgets(line, sizeof line, docs) != NULL)
        if (strncmp(line, "    OP(", 7) == 0) snprintf(shown, sizeof shown, "%s", line + 4);
    assert_true(shown[0] != '\0');
    while (!is_found && fgets(row, sizeof row, rows) != NULL) is_found = strcmp(row, shown) == 0;
    fclose(docs);
    fclose(rows);
    assert_true(is_found);
    const onv_aten_op *sinh = &onv_aten_ops[ONV_ATEN_sinh];
    assert_string_equal(sinh->name, "sinh");
    assert_string_equal(sinh->in, "self");
    assert_string_equal(onv_aten_grads(sinh), "a:a");
    assert_string_equal(sinh->temps->backward, "ff");
    assert_int_equal(sinh->form, ONV_ATEN_POINTWISE);
    assert_int_equal(sinh->cast, ONV_CAST_FLOAT32);
    assert_true(onv_aten_is_compiled(sinh));
}
