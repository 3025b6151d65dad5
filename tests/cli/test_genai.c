/* Folders of onnxruntime-genai: what the answer counts, and configurations that are none. */
#include <sys/stat.h>

#include "cli/program.h"
#include "support/test.h"

static char text[PROGRAM_TEXT];

#define EXPECT(arguments, status, ...)                                                             \
    program_expect_parts(arguments, status, (const char *const[]){__VA_ARGS__, NULL}, text)

/* A decoder of one layer, as the builder names things. */
static void write_decoder(const char *path)
{
    model *m =
        model_read(18, "in input_ids i64[batch_size,sequence_length]",
                   "in attention_mask i64[batch_size,total_sequence_length]",
                   "in past_key_values.0.key f16[batch_size,2,past_sequence_length,kv_cache_dim]",
                   "in past_key_values.0.value f16[batch_size,2,past_sequence_length,kv_cache_dim]",
                   "weight embedding f16[1000,64]", "weight head f16[64,1000]",
                   "hidden = Gather(embedding input_ids) g", "logits = MatMul(hidden head) m",
                   "present.0.key = Neg(past_key_values.0.key) k",
                   "present.0.value = Neg(past_key_values.0.value) v",
                   "out logits f16[batch_size,sequence_length,1000]", "out present.0.key f16",
                   "out present.0.value f16");
    program_write_model(path, m);
}

#define DECODER "{\"filename\": \"model.onnx\", \"head_size\": 64, \"num_key_value_heads\": 2"
#define CUDA    ", \"session_options\": {\"provider_options\": [{\"cuda\": {}}]}"
#define MODEL   "\"vocab_size\": 1000, \"context_length\": 4096"

static void write_config(const char *config)
{
    program_write("llm/genai_config.json", config, strlen(config));
}

static void enter(void)
{
    mkdir("llm", 0777);
    write_decoder("llm/model.onnx");
}

/* Two caches of 1 MiB are regions of 1 and 2 MiB, which leaves room for ids and mask; logits of 8,192,000 bytes are one of 8 MiB,
 * with the scores of the last token. */
TEST(caches_are_one_buffer_or_two)
{
    enter();
    write_config("{\"model\": {" MODEL ", \"decoder\": " DECODER CUDA "}}, \"search\": "
                 "{\"past_present_share_buffer\": true}}");
    EXPECT("--genai llm", 0, "batch 1, prompts of 4096, context of 4096",
           "  weights                    250.0 KiB", "  cache, one buffer          2.0 MiB",
           "  cache, inputs, logits      11.0 MiB", "  libraries                  128.3 MiB",
           "Together, by batch and context");
    EXPECT("--genai llm -q -d prompt=16 -d context=2048 -b 2", 0,
           "batch 2, prompts of 16, context of 2048", "  cache, one buffer          2.0 MiB",
           "  cache, inputs, logits      3.0 MiB");
    assert_null(strstr(text, "Together, by"));
    write_config("{\"model\": {" MODEL ", \"decoder\": " DECODER CUDA "}}}");
    EXPECT("--genai llm -q", 0, "  cache, past and present    4.0 MiB");
}

/* A window of 512 has 1/8 of a context of 4,096; measured, onnxruntime-genai 0.18 without a GPU. */
TEST(caches_of_a_sliding_window_are_as_long_as_it)
{
#define WINDOW(rest)                                                                               \
    "{\"model\": {" MODEL ", \"decoder\": " DECODER CUDA                                           \
    ", \"sliding_window\": {\"window_size\": 512" rest "}}}, \"search\": "                         \
    "{\"past_present_share_buffer\": true}}"
    enter();
    write_config(WINDOW(", \"layers\": [0, 2]"));
    EXPECT("--genai llm -q", 0, "  cache, one buffer          256.0 KiB");
    write_config(WINDOW(", \"cache_slack\": 512"));
    EXPECT("--genai llm -q", 0, "  cache, one buffer          512.0 KiB");
    write_config(WINDOW(", \"layers\": [1]"));
    EXPECT("--genai llm -q", 0, "  cache, one buffer          2.0 MiB");
    static const char *const wrong[] = {WINDOW(", \"layers\": [\"0\"]"),
                                        WINDOW(", \"layers\": [-1]"),
                                        WINDOW(", \"layers\": [4096]")};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        write_config(wrong[i]);
        EXPECT("--genai llm -q", 1, "numbers from 0 to 4095");
    }
}

/* Three layers, as an exporter of a pair names them; measured, onnxruntime-genai 0.18 without a GPU. */
static void write_layers(const char *path, int layers)
{
    static char lines[3][4][128];
    model *m = model_read(
        18, "in input_ids i64[batch_size,sequence_length]",
        "in attention_mask i64[batch_size,total_sequence_length]", "weight embedding f16[65536,64]",
        "weight head f16[64,65536]", "hidden = Gather(embedding input_ids) g",
        "logits = MatMul(hidden head) m", "out logits f16[batch_size,sequence_length,65536]");
    for (int i = 0; i < layers; i++)
        for (int k = 0; k < 2; k++) {
            const char *what = k == 0 ? "key" : "value";
            snprintf(lines[i][0], sizeof lines[i][0], "in past_key_values.%d.%s f16[b,4,past,64]",
                     i, what);
            snprintf(lines[i][1], sizeof lines[i][1],
                     "present.%d.%s = Neg(past_key_values.%d.%s) %c%d", i, what, i, what, *what, i);
            snprintf(lines[i][2], sizeof lines[i][2], "out present.%d.%s f16", i, what);
            for (int line = 0; line < 3; line++) model_add(m, lines[i][line]);
        }
    program_write_model(path, m);
}

#define WORDS  "\"vocab_size\": 65536, \"context_length\": 8192"
#define CACHES "\"head_size\": 64, \"num_key_value_heads\": 4" CUDA "}"

/* What chooses the first word finds no room beside the logits of a prompt of 100 and of 4,000. */
TEST(what_samples_has_a_region)
{
    enter();
    write_layers("llm/model.onnx", 3);
    write_config("{\"model\": {" WORDS ", \"decoder\": {\"filename\": \"model.onnx\", " CACHES
                 "}, \"search\": {\"past_present_share_buffer\": true}}");
    EXPECT("--genai llm -q -d prompt=100 -d context=4096", 0, "logits      63.0 MiB");
    EXPECT("--genai llm -q -d prompt=2000 -d context=4096", 0, "logits      527.0 MiB");
    EXPECT("--genai llm -q -d prompt=3000 -d context=4096", 0, "logits      527.0 MiB");
    EXPECT("--genai llm -q -d prompt=4000 -d context=4096 --json", 0, "\"kept_bytes\": 1089470465");
}

/* Arenas that are refused a region ask for less. Measured on devices of 400 and 700 MiB, two requests each: 1,346 and 4,097 words are
 * served, 1,347 and 4,098 are not. The budget has 600 MiB more for the context. */
TEST(refused_arenas_ask_for_less)
{
    enter();
    write_layers("llm/model.onnx", 3);
    write_config("{\"model\": {" WORDS ", \"decoder\": {\"filename\": \"model.onnx\", " CACHES
                 "}, \"search\": {\"past_present_share_buffer\": true}}");
    EXPECT("--genai llm -q --margin 0 --budget 1000MiB,1300MiB -d context=1346", 0,
           "1000.0 MiB: fits; longest context at batch 1: 1346\n",
           "1.27 GiB: fits; longest context at batch 1: 4097\n");
    EXPECT("--genai llm -q --margin 0 --budget 1000MiB -d context=1347", 3, "does not fit");
}

/* Settings of the folder's own sessions count; the command line's come after them. */
TEST(settings_are_those_of_the_folder)
{
    enter();
    write_config(
        "{\"model\": {" MODEL ", \"decoder\": " DECODER
        ", \"session_options\": {\"session.use_device_allocator_for_initializers\": \"1\", "
        "\"provider_options\": [{\"cuda\": {\"arena_extend_strategy\": "
        "\"kSameAsRequested\"}}]}}}}");
    EXPECT("--genai llm -q -d context=64", 0, "  sessions, decode           250.3 KiB");
    EXPECT("--genai llm -q -d context=64 --ort arena_extend_strategy=kNextPowerOfTwo", 0,
           "  sessions, decode           1.2 MiB");
    write_config("{\"model\": {" MODEL ", \"decoder\": " DECODER
                 ", \"session_options\": {\"enable_mem_pattern\": 3}}}}");
    EXPECT("--genai llm", 1, "\"enable_mem_pattern\" is to be text");
    write_config("{\"model\": {" MODEL ", \"decoder\": " DECODER
                 ", \"session_options\": {\"graph_optimization_level\": \"most\"}}}}");
    EXPECT("--genai llm", 2, "graph_optimization_level takes ORT_DISABLE_ALL");
}

/* A draft has caches, logits and handles of its own; what it drafts is verified at once. */
TEST(a_draft_is_a_second_decoder)
{
    enter();
    write_layers("llm/model.onnx", 3);
    write_layers("llm/draft.onnx", 1);
    write_config("{\"model\": {" WORDS ", \"decoder\": {\"filename\": \"model.onnx\", " CACHES
                 ", \"draft\": {\"filename\": \"draft.onnx\", " CACHES
                 "}, \"search\": {\"past_present_share_buffer\": true}}");
    EXPECT("--genai llm -q -d prompt=128 -d context=4096", 0,
           "  weights                    32.0 MiB", "  cache, one buffer          16.0 MiB",
           "  libraries                  192.5 MiB");
    EXPECT("--genai llm -q -d prompt=128 -d context=4096 -b 2", 2,
           "a decoder with a draft has a batch of 1, not of 2: leave out --batch");
    write_config("{\"model\": {" WORDS ", \"decoder\": {\"filename\": \"model.onnx\", " CACHES
                 ", \"draft\": {\"filename\": \"draft.onnx\"}}}");
    EXPECT("--genai llm", 1, "\"draft\" is to have a \"filename\" and the provider of \"decoder\"");
}

/* A search keeps what each beam may end with. */
TEST(beams_keep_all_ends)
{
    enter();
    write_config("{\"model\": {" MODEL ", \"decoder\": " DECODER CUDA
                 "}}, \"search\": {\"num_beams\": 3}}");
    EXPECT("--genai llm -q -d prompt=16 -d context=64", 0, "logits      1.0 MiB");
    EXPECT("--genai llm -q -d prompt=16 -d context=4096", 0, "logits      257.0 MiB");
    EXPECT("--genai llm -q -d prompt=16 -d context=1099511627776", 1, "keeps more than any device");
}

TEST(the_longest_context_is_what_fits)
{
    char longest[64];
    enter();
    write_config("{\"model\": {" MODEL ", \"decoder\": " DECODER CUDA "}}, \"search\": "
                 "{\"past_present_share_buffer\": true}}");
    EXPECT("--genai llm -q --budget 740MiB,L4", 0, "740.0 MiB: does not fit", "L4: fits");
    const char *at = strstr(text, "at batch 1: ");
    assert_non_null(at);
    long context = strtol(at + strlen("at batch 1: "), NULL, 10);
    assert_true(context > 64 && context < 4096);
    snprintf(longest, sizeof longest, "--genai llm -q --budget 740MiB -d context=%ld", context);
    EXPECT(longest, 0, "740.0 MiB: fits");
    snprintf(longest, sizeof longest, "--genai llm -q --budget 740MiB -d context=%ld", context + 1);
    EXPECT(longest, 3, "740.0 MiB: does not fit");
}

/* The configuration tells how large heads are, and nothing else may. */
TEST(sizes_of_heads_agree)
{
    enter();
    write_config("{\"model\": {" MODEL ", \"decoder\": " DECODER CUDA "}}}");
    EXPECT("--genai llm -q -d kv_cache_dim=64", 0, "  cache, past and present    4.0 MiB");
    EXPECT("--genai llm -q -d kv_cache_dim=32", 2,
           "'past_key_values.0.key' has 32 for 'kv_cache_dim', and \"head_size\"",
           "is 64: make them equal");
    write_config("{\"model\": {" MODEL
                 ", \"decoder\": {\"filename\": \"model.onnx\", \"head_size\": 64, "
                 "\"num_key_value_heads\": 4" CUDA "}}}");
    EXPECT("--genai llm", 2,
           "has 2 for '2', and \"num_key_value_heads\" of genai_config.json is 4");
    write_config("{\"model\": {" MODEL ", \"decoder\": {\"filename\": \"model.onnx\"" CUDA "}}}");
    EXPECT("--genai llm", 2, "has dimensions without a size");
}

/* The figures of the text by the keys of reports; in a process of its own, too. */
TEST(the_answer_is_json_as_well)
{
    enter();
    write_config("{\"model\": {" MODEL ", \"decoder\": " DECODER CUDA "}}, \"search\": "
                 "{\"past_present_share_buffer\": true}}");
    EXPECT("--genai llm --json --budget 740MiB,L4", 0, "\"kind\": \"onnxruntime-genai\"",
           "\"weight_bytes\": 256000", "\"cache_bytes\": 2097152", "\"kept_bytes\": 11534337",
           "\"shares_cache\": true", "\"budget_bytes\": 775946240", "\"fits\": false",
           "\"device\": \"L4\"", "\"longest_context\": 4096");
    EXPECT("--genai llm -q --budget L4", 0, ", L4\n", "L4: fits");
    EXPECT("--genai llm -q --untrusted --json=answer.json", 0,
           "  weights                    250.0 KiB");
    EXPECT("--genai llm -q --untrusted --json", 0, "\"weight_bytes\": 256000");
    assert_null(strstr(text, "weights   "));
}

/* Without a provider it is the CPU's: no handles, no context. */
TEST(the_cpu_has_no_context)
{
    enter();
    write_config("{\"model\": {" MODEL ", \"decoder\": " DECODER "}}}");
    EXPECT("--genai llm -q -d context=128", 0, ", on the CPU");
    assert_null(strstr(text, "context  "));
    assert_null(strstr(text, "libraries"));
    EXPECT("--genai llm -q -d context=128 --budget T4", 2, "genai_config.json: it runs on the CPU",
           "'T4' is a GPU", "--budget 64GiB");
    EXPECT("--genai llm -q -d context=128 --budget 64GiB", 0, "fits");
}

TEST(broken_folders_are_named)
{
    static const struct {
        const char *config, *says;
    } rows[] = {
        {"", "is not JSON: line"},
        {"[]", "it has no \"model\" with a \"decoder\""},
        {"{\"model\": {\"decoder\": {}}}", "its decoder has no \"filename\""},
        {"{\"model\": {\"decoder\": {\"filename\": \"../model.onnx\"}}}",
         "is to be the name of a file in the folder"},
        {"{\"model\": {\"decoder\": {\"filename\": 3}}}", "the name of a file in the folder"},
        {"{\"model\": {" MODEL ", \"decoder\": {\"filename\": \"none.onnx\"}}}", "none.onnx"},
        {"{\"model\": {\"context_length\": -1, \"decoder\": " DECODER "}}}",
         "\"context_length\" is to be a number from 0 to 2^40"},
        {"{\"model\": {\"decoder\": " DECODER "}}}", "are to be 1 or more"},
        {"{\"model\": {" MODEL ", \"decoder\": " DECODER
         ", \"inputs\": {\"past_key_names\": \"past\"}}}}",
         "is to have %d where the number of the layer is"},
        {"{\"model\": {" MODEL ", \"decoder\": " DECODER
         ", \"session_options\": {\"provider_options\": [{\"qnn\": {}}]}}}}",
         "its provider is 'qnn'"},
    };
    enter();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        write_config(rows[i].config);
        EXPECT("--genai llm", 1, rows[i].says);
    }
    EXPECT("--genai nowhere", 1, "nowhere/genai_config.json: there is no such file");
    EXPECT("--genai llm llm/model.onnx", 2, "--genai names a folder");
    EXPECT("--genai llm --csv", 2, "--genai prints one answer, as text or --json");
}

TEST_GROUP(folder_enter, folder_leave)
