/* Models as lines of text: each line is one call of onnx_writer.h. */
#include "support/onnx_writer.h"
#include "support/test.h"

/* `text` up to its first blank, which becomes its end; moves `text` behind it. */
static char *next_word(char **text)
{
    char *word = *text;
    size_t length = strcspn(word, " ");
    *text = word + length + (word[length] == ' ');
    word[length] = '\0';
    return word;
}

/* "y z = Split(x s) name axis=1 ...": without a name the attributes follow. */
static void add_node(model *m, char *line)
{
    char *equals = strstr(line, " = "), *open = strchr(line, '('), *close = strchr(line, ')');
    if (equals == NULL || open == NULL || close == NULL) fail_msg("no line of a model: '%s'", line);
    *equals = *open = *close = '\0';
    char *rest = close[1] == ' ' ? close + 2 : close + 1, *name = "";
    if (strcspn(rest, " ") <= strcspn(rest, "=")) name = next_word(&rest);
    model_node(m, equals + 3, name, open + 1, line, rest);
}

static void add_import(model *m, const char *domain, const char *version)
{
    model_import(m, domain, strtoll(version, NULL, 10));
}

static void add_int(model *m, const char *name, const char *value)
{
    model_int(m, name, strtoll(value, NULL, 10));
}

static void add_bool(model *m, const char *name, const char *value)
{
    model_bool(m, name, *value == '1');
}

static void add_float(model *m, const char *name, const char *value)
{
    model_float(m, name, strtof(value, NULL));
}

static void add_ints(model *m, const char *name, const char *values)
{
    int64_t list[64];
    size_t n = 0;
    for (char *end; n < 64 && *values != '\0'; values = end) list[n++] = strtoll(values, &end, 10);
    model_ints(m, name, n, list);
}

static void add_line(model *m, char *line)
{
    static const struct {
        const char *word;
        void (*rest)(model *, const char *);
        void (*word_and_rest)(model *, const char *, const char *);
    } words[] = {
        {"in", NULL, model_input},
        {"out", NULL, model_output},
        {"weight", NULL, model_weight},
        {"constant", NULL, model_constant},
        {"ints", NULL, add_ints},
        {"int", NULL, add_int},
        {"bool", NULL, add_bool},
        {"float", NULL, add_float},
        {"info", NULL, model_value_info},
        {"import", NULL, add_import},
        {"source", NULL, model_source},
        {"class", NULL, model_class},
        {"call", NULL, model_call},
        {"role", NULL, model_role},
        {"folded", NULL, model_folded},
        {"begin", model_begin, NULL},
        {"trace", model_trace, NULL},
        {"rules", model_rules, NULL},
        {"parameters", model_parameters, NULL},
    };
    if (strcmp(line, "end") == 0) {
        model_end(m);
        return;
    }
    size_t length = strcspn(line, " ");
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strlen(words[i].word) != length || strncmp(line, words[i].word, length) != 0 ||
            strncmp(line + length, " = ", 3) == 0)
            continue;
        char *rest = line + length + 1;
        if (words[i].rest != NULL) {
            words[i].rest(m, rest);
        } else {
            char *word = next_word(&rest);
            words[i].word_and_rest(m, word, rest);
        }
        return;
    }
    add_node(m, line);
}

void model_add_lines(model *m, const char *const *lines, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char *line = strdup(lines[i]);
        assert_non_null(line);
        add_line(m, line);
        free(line);
    }
}

void model_add_text(model *m, const char *text)
{
    char *copy = strdup(text), *rest = copy;
    assert_non_null(copy);
    for (char *line; (line = strtok_r(rest, ";", &rest)) != NULL;)
        if (line[strspn(line, " ")] != '\0') add_line(m, line + strspn(line, " "));
    free(copy);
}

model *model_of_lines(int64_t opset, const char *const *lines, size_t n)
{
    model *m = model_new(opset);
    model_add_lines(m, lines, n);
    return m;
}
