/* The rows of the table of GPUs and the search by name. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "runtime/gpu.h"

#define MIB(n) (UINT64_C(n) << 20)
#define GIB(n) (UINT64_C(n) << 30)

/* Where the usable bytes are from. */
#define QUOTED(where) "nvidia-smi total, as quoted in " where
#define MODAL         QUOTED("modal-labs/modal-client pull request 2797")
#define LOGS          "nvidia-smi total, as printed in several public logs"
#define ONE_LOG       "nvidia-smi total, as printed in a public log"
#define NOMINAL       "nominal: NVIDIA's specification; the driver keeps a part"
#define SHARED        "; shared with the CPU"

/* name, model, nominal, usable, compute capability, source, aliases. Compute capabilities are
 * those of developer.nvidia.com/cuda-gpus and its page of legacy GPUs. */
// clang-format off
const onv_gpu onv_gpus[] = {
    /* Data center */
    {"K80", NULL, GIB(12), MIB(11441), 3, 7, LOGS "; each of the two GPUs on the board", {NULL}},
    {"P100 12GB", "P100", GIB(12), GIB(12), 6, 0, NOMINAL, {"P100-PCIE-12GB"}},
    {"P100 16GB", "P100", GIB(16), MIB(16384), 6, 0, QUOTED("wookayin/gpustat issue 130"),
     {"P100-PCIE-16GB", "P100-SXM2-16GB"}},
    {"P40", NULL, GIB(24), MIB(23040), 6, 1, ONE_LOG ", ECC on; 24576 MiB with ECC off", {NULL}},
    {"V100 16GB", "V100", GIB(16), MIB(16384), 7, 0, LOGS, {"V100-SXM2-16GB", "V100-PCIE-16GB"}},
    {"V100 32GB", "V100", GIB(32), MIB(32768), 7, 0, LOGS,
     {"V100-SXM2-32GB", "V100-PCIE-32GB", "V100-SXM3-32GB", "V100S", "V100S-PCIE-32GB"}},
    {"T4", NULL, GIB(16), MIB(15360), 7, 5, MODAL, {NULL}},
    {"A2", NULL, GIB(16), MIB(15356), 8, 6, LOGS, {NULL}},
    {"A10", NULL, GIB(24), MIB(23028), 8, 6, MODAL, {NULL}},
    {"A10G", NULL, GIB(24), MIB(23028), 8, 6, LOGS, {NULL}},
    {"A16", NULL, GIB(16), MIB(15356), 8, 6, LOGS "; each of the four GPUs on the board", {NULL}},
    {"A30", NULL, GIB(24), MIB(24576), 8, 0, LOGS, {NULL}},
    {"A40", NULL, GIB(48), MIB(46068), 8, 6, ONE_LOG ", ECC on", {NULL}},
    {"A100 40GB", "A100", GIB(40), MIB(40960), 8, 0, MODAL,
     {"A100-SXM4-40GB", "A100-PCIE-40GB", "A100-SXM-40GB"}},
    {"A100 80GB", "A100", GIB(80), MIB(81920), 8, 0, MODAL,
     {"A100-SXM4-80GB", "A100-PCIE-80GB", "A100-SXM-80GB", "A100 80GB PCIe"}},
    {"L4", NULL, GIB(24), MIB(23034), 8, 9, MODAL, {NULL}},
    {"L40", NULL, GIB(48), MIB(46068), 8, 9, ONE_LOG, {NULL}},
    {"L40S", NULL, GIB(48), MIB(46068), 8, 9, MODAL, {NULL}},
    {"H20", NULL, GIB(96), MIB(97871), 9, 0, QUOTED("NVIDIA/nvtrust issue 128"), {NULL}},
    {"H100", NULL, GIB(80), MIB(81559), 9, 0, MODAL,
     {"H100 PCIe", "H100 SXM", "H100 SXM5", "H100 80GB HBM3"}},
    {"H100 NVL", NULL, GIB(94), MIB(95830), 9, 0, ONE_LOG, {NULL}},
    {"H200", NULL, GIB(141), MIB(143771), 9, 0, LOGS, {"H200 SXM", "H200 NVL"}},
    {"GH200 96GB", "GH200", GIB(96), MIB(97871), 9, 0, LOGS, {"GH200 120GB", "GH200 480GB"}},
    {"GH200 144GB", "GH200", GIB(144), GIB(144), 9, 0, NOMINAL, {"GH200 144G HBM3e"}},
    {"B200", NULL, GIB(180), MIB(183359), 10, 0, QUOTED("NVIDIA/TensorRT-LLM issue 10278"), {NULL}},
    {"GB200", NULL, GIB(186), MIB(189471), 10, 0, LOGS "; each GPU", {NULL}},
    /* Workstation */
    {"RTX A2000 6GB", "RTX A2000", GIB(6), MIB(6138), 8, 6, ONE_LOG, {NULL}},
    {"RTX A2000 12GB", "RTX A2000", GIB(12), MIB(12282), 8, 6, ONE_LOG, {NULL}},
    {"RTX A4000", NULL, GIB(16), MIB(16376), 8, 6, LOGS, {NULL}},
    {"RTX A4500", NULL, GIB(20), MIB(20470), 8, 6, LOGS, {NULL}},
    {"RTX A5000", NULL, GIB(24), MIB(24564), 8, 6, LOGS, {NULL}},
    {"RTX A5500", NULL, GIB(24), GIB(24), 8, 6, NOMINAL, {NULL}},
    {"RTX A6000", NULL, GIB(48), MIB(49140), 8, 6, LOGS ", ECC off", {NULL}},
    {"RTX 2000 Ada", NULL, GIB(16), MIB(16380), 8, 9, ONE_LOG, {NULL}},
    {"RTX 4000 Ada", NULL, GIB(20), MIB(20475), 8, 9, LOGS, {"RTX 4000 SFF Ada"}},
    {"RTX 4500 Ada", NULL, GIB(24), MIB(24570), 8, 9, LOGS, {NULL}},
    {"RTX 5000 Ada", NULL, GIB(32), MIB(32760), 8, 9, LOGS, {NULL}},
    {"RTX 6000 Ada", NULL, GIB(48), MIB(49140), 8, 9, LOGS ", ECC off", {NULL}},
    {"RTX PRO 4000 Blackwell", NULL, GIB(24), MIB(24467), 12, 0, LOGS, {"RTX PRO 4000"}},
    {"RTX PRO 4500 Blackwell", NULL, GIB(32), MIB(32623), 12, 0, ONE_LOG, {"RTX PRO 4500"}},
    {"RTX PRO 5000 Blackwell 48GB", "RTX PRO 5000 Blackwell", GIB(48), MIB(48935), 12, 0, ONE_LOG,
     {"RTX PRO 5000 48GB"}},
    {"RTX PRO 5000 Blackwell 72GB", "RTX PRO 5000 Blackwell", GIB(72), GIB(72), 12, 0, NOMINAL,
     {"RTX PRO 5000 72GB"}},
    {"RTX PRO 6000 Blackwell", NULL, GIB(96), MIB(97887), 12, 0, LOGS,
     {"RTX PRO 6000", "RTX PRO 6000 Blackwell Workstation Edition",
      "RTX PRO 6000 Blackwell Max-Q Workstation Edition",
      "RTX PRO 6000 Blackwell Server Edition"}},
    /* Consumer */
    {"GTX 1060 3GB", "GTX 1060", GIB(3), MIB(3072), 6, 1, LOGS, {NULL}},
    {"GTX 1060 6GB", "GTX 1060", GIB(6), MIB(6144), 6, 1, ONE_LOG, {NULL}},
    {"GTX 1070", NULL, GIB(8), MIB(8192), 6, 1, ONE_LOG, {NULL}},
    {"GTX 1070 Ti", NULL, GIB(8), MIB(8192), 6, 1, LOGS, {NULL}},
    {"GTX 1080", NULL, GIB(8), MIB(8192), 6, 1, LOGS, {NULL}},
    {"GTX 1080 Ti", NULL, GIB(11), MIB(11264), 6, 1, LOGS, {NULL}},
    {"RTX 2060 6GB", "RTX 2060", GIB(6), MIB(6144), 7, 5, LOGS, {NULL}},
    {"RTX 2060 12GB", "RTX 2060", GIB(12), GIB(12), 7, 5, NOMINAL, {NULL}},
    {"RTX 2060 SUPER", NULL, GIB(8), MIB(8192), 7, 5, LOGS, {NULL}},
    {"RTX 2070", NULL, GIB(8), GIB(8), 7, 5, NOMINAL, {NULL}},
    {"RTX 2070 SUPER", NULL, GIB(8), MIB(8192), 7, 5, LOGS, {NULL}},
    {"RTX 2080", NULL, GIB(8), MIB(8192), 7, 5, LOGS, {NULL}},
    {"RTX 2080 SUPER", NULL, GIB(8), MIB(8192), 7, 5, LOGS, {NULL}},
    {"RTX 2080 Ti", NULL, GIB(11), MIB(11264), 7, 5, LOGS, {NULL}},
    {"RTX 3050 6GB", "RTX 3050", GIB(6), MIB(6144), 8, 6, LOGS, {NULL}},
    {"RTX 3050 8GB", "RTX 3050", GIB(8), MIB(8192), 8, 6, LOGS, {NULL}},
    {"RTX 3060 8GB", "RTX 3060", GIB(8), GIB(8), 8, 6, NOMINAL, {NULL}},
    {"RTX 3060 12GB", "RTX 3060", GIB(12), MIB(12288), 8, 6,
     QUOTED("geerlingguy/raspberry-pi-pcie-devices issue 790"), {NULL}},
    {"RTX 3060 Ti", NULL, GIB(8), MIB(8192), 8, 6, LOGS, {NULL}},
    {"RTX 3070", NULL, GIB(8), MIB(8192), 8, 6, ONE_LOG, {NULL}},
    {"RTX 3070 Ti", NULL, GIB(8), MIB(8192), 8, 6, ONE_LOG, {NULL}},
    {"RTX 3080 10GB", "RTX 3080", GIB(10), MIB(10240), 8, 6, LOGS, {NULL}},
    {"RTX 3080 12GB", "RTX 3080", GIB(12), GIB(12), 8, 6, NOMINAL, {NULL}},
    {"RTX 3080 Ti", NULL, GIB(12), MIB(12288), 8, 6, LOGS, {NULL}},
    {"RTX 3090", NULL, GIB(24), MIB(24576), 8, 6, QUOTED("noonghunna/club-3090 issue 741"), {NULL}},
    {"RTX 3090 Ti", NULL, GIB(24), MIB(24564), 8, 6, LOGS, {NULL}},
    {"RTX 4060", NULL, GIB(8), MIB(8188), 8, 9, LOGS, {NULL}},
    {"RTX 4060 Ti 8GB", "RTX 4060 Ti", GIB(8), MIB(8188), 8, 9, LOGS, {NULL}},
    {"RTX 4060 Ti 16GB", "RTX 4060 Ti", GIB(16), MIB(16380), 8, 9, LOGS, {NULL}},
    {"RTX 4070", NULL, GIB(12), MIB(12282), 8, 9, LOGS, {NULL}},
    {"RTX 4070 SUPER", NULL, GIB(12), MIB(12282), 8, 9, LOGS, {NULL}},
    {"RTX 4070 Ti", NULL, GIB(12), MIB(12282), 8, 9, LOGS, {NULL}},
    {"RTX 4070 Ti SUPER", NULL, GIB(16), MIB(16376), 8, 9, LOGS, {NULL}},
    {"RTX 4080", NULL, GIB(16), MIB(16376), 8, 9, ONE_LOG, {NULL}},
    {"RTX 4080 SUPER", NULL, GIB(16), MIB(16376), 8, 9, LOGS, {NULL}},
    {"RTX 4090", NULL, GIB(24), MIB(24564), 8, 9, QUOTED("vllm-project/vllm issue 7553"), {NULL}},
    {"RTX 5060", NULL, GIB(8), MIB(8151), 12, 0, LOGS, {NULL}},
    {"RTX 5060 Ti 8GB", "RTX 5060 Ti", GIB(8), MIB(8151), 12, 0, LOGS, {NULL}},
    {"RTX 5060 Ti 16GB", "RTX 5060 Ti", GIB(16), MIB(16311), 12, 0, LOGS, {NULL}},
    {"RTX 5070", NULL, GIB(12), MIB(12227), 12, 0, LOGS, {NULL}},
    {"RTX 5070 Ti", NULL, GIB(16), MIB(16303), 12, 0, LOGS, {NULL}},
    {"RTX 5080", NULL, GIB(16), MIB(16303), 12, 0, LOGS, {NULL}},
    {"RTX 5090", NULL, GIB(32), MIB(32607), 12, 0, QUOTED("noonghunna/club-3090 issue 741"),
     {NULL}},
    /* Embedded */
    {"Jetson Xavier NX 8GB", "Jetson Xavier NX", GIB(8), MIB(6832), 7, 2,
     "CUDA total of a Xavier with 8 GB, as printed in public logs" SHARED, {NULL}},
    {"Jetson Xavier NX 16GB", "Jetson Xavier NX", GIB(16), MIB(14886), 7, 2,
     "CUDA total of a Xavier with 16 GB, as printed in a public log" SHARED, {NULL}},
    {"Jetson AGX Xavier 16GB", "Jetson AGX Xavier", GIB(16), MIB(14886), 7, 2,
     "CUDA total of a Xavier with 16 GB, as printed in a public log" SHARED, {NULL}},
    {"Jetson AGX Xavier 32GB", "Jetson AGX Xavier", GIB(32), GIB(32), 7, 2, NOMINAL SHARED, {NULL}},
    {"Jetson AGX Xavier 64GB", "Jetson AGX Xavier", GIB(64), GIB(64), 7, 2, NOMINAL SHARED, {NULL}},
    {"Jetson Orin Nano 4GB", "Jetson Orin Nano", GIB(4), GIB(4), 8, 7, NOMINAL SHARED, {NULL}},
    {"Jetson Orin Nano 8GB", "Jetson Orin Nano", GIB(8), MIB(7607), 8, 7,
     "CUDA total of an Orin with 8 GB, as printed in public logs" SHARED, {NULL}},
    {"Jetson Orin NX 8GB", "Jetson Orin NX", GIB(8), MIB(7607), 8, 7,
     "CUDA total of an Orin with 8 GB, as printed in public logs" SHARED, {NULL}},
    {"Jetson Orin NX 16GB", "Jetson Orin NX", GIB(16), GIB(16), 8, 7, NOMINAL SHARED, {NULL}},
    {"Jetson AGX Orin 32GB", "Jetson AGX Orin", GIB(32), GIB(32), 8, 7, NOMINAL SHARED, {NULL}},
    {"Jetson AGX Orin 64GB", "Jetson AGX Orin", GIB(64), MIB(62827), 8, 7,
     "CUDA total of an Orin with 64 GB, as printed in a public log" SHARED, {NULL}},
    {"Jetson Thor T4000", "Jetson Thor", GIB(64), GIB(64), 11, 0, NOMINAL SHARED, {"Jetson T4000"}},
    {"Jetson Thor T5000", "Jetson Thor", GIB(128), MIB(125748), 11, 0,
     "CUDA total of a Thor with 128 GB, as printed in public logs" SHARED,
     {"Jetson T5000", "Jetson AGX Thor"}},
};
// clang-format on

const size_t onv_n_gpus = sizeof onv_gpus / sizeof onv_gpus[0];

enum { KEY_BYTES = 80 }; /* no name in the table is near it */

static char lower(char c)
{
    if (c < 'A' || c > 'Z') return c;
    return (char)(c - 'A' + 'a');
}

static bool drop_front(char *key, const char *word)
{
    size_t length = strlen(word);
    if (strncmp(key, word, length) != 0) return false;
    memmove(key, key + length, strlen(key + length) + 1);
    return true;
}

static bool drop_end(char *key, const char *word)
{
    size_t length = strlen(word), whole = strlen(key);
    if (whole < length || strcmp(key + whole - length, word) != 0) return false;
    key[whole - length] = '\0';
    return true;
}

/* What is left of a name once everything that people spell differently is gone. False if that is
 * nothing, or more than any name has. A final "g" stays: it is part of A10G. */
static bool make_key(const char *name, char key[KEY_BYTES])
{
    static const char *const front[] = {"nvidia", "geforce", "tesla", "jetson", "rtx", "gtx"};
    size_t length = 0;
    for (const char *c = name; *c; c++) {
        if (*c == ' ' || *c == '\t' || *c == '-' || *c == '_') continue;
        if (length == KEY_BYTES - 1) return false;
        key[length++] = lower(*c);
    }
    key[length] = '\0';
    for (size_t i = 0; i < sizeof front / sizeof front[0]; i++) drop_front(key, front[i]);
    drop_end(key, "generation");
    if (!drop_end(key, "gib")) drop_end(key, "gb");
    return key[0] != '\0';
}

/* Is `query` this name, alone or with the capacity behind it? */
static bool spells(const char *query, const char *name, uint64_t nominal_bytes)
{
    char key[KEY_BYTES], size[24];
    if (!name || !make_key(name, key)) return false;
    size_t length = strlen(key);
    if (strncmp(query, key, length) != 0) return false;
    const char *rest = query + length;
    if (!*rest) return true;
    size_t digits =
        (size_t)snprintf(size, sizeof size, "%llu", (unsigned long long)(nominal_bytes >> 30));
    if (strncmp(rest, size, digits) != 0) return false;
    return strcmp(rest + digits, "") == 0 || strcmp(rest + digits, "g") == 0;
}

/* Is `query` some of the words of this name, one behind the other? "5" is no word of "Thor T5000". */
static bool contains(const char *query, const char *name, uint64_t nominal_bytes)
{
    (void)nominal_bytes;
    for (const char *word = name; word != NULL; word = strpbrk(word, " -")) {
        word += strspn(word, " -");
        char key[KEY_BYTES];
        size_t length = 0;
        for (const char *c = word; *c != '\0' && length < KEY_BYTES - 1; c++) {
            if (*c != ' ' && *c != '-') key[length++] = lower(*c);
            key[length] = '\0';
            bool is_end = c[1] == '\0' || c[1] == ' ' || c[1] == '-';
            if (is_end && strcmp(key, query) == 0) return true;
        }
    }
    return false;
}

typedef bool (*match_fn)(const char *query, const char *name, uint64_t nominal_bytes);

static bool row_matches(const onv_gpu *gpu, const char *query, match_fn match)
{
    if (match(query, gpu->name, gpu->nominal_bytes)) return true;
    if (match(query, gpu->model, gpu->nominal_bytes)) return true;
    for (const char *const *alias = gpu->aliases; *alias; alias++)
        if (match(query, *alias, gpu->nominal_bytes)) return true;
    return false;
}

static size_t search(const char *query, match_fn match, const onv_gpu **found, size_t capacity)
{
    size_t count = 0;
    for (size_t i = 0; i < onv_n_gpus; i++) {
        if (!row_matches(&onv_gpus[i], query, match)) continue;
        if (count < capacity) found[count] = &onv_gpus[i];
        count++;
    }
    return count;
}

const onv_gpu *onv_gpu_find(const char *name)
{
    char query[KEY_BYTES];
    const onv_gpu *found = NULL;
    if (!make_key(name, query)) return NULL;
    return search(query, spells, &found, 1) == 1 ? found : NULL;
}

size_t onv_gpu_candidates(const char *name, const onv_gpu **found, size_t capacity)
{
    char query[KEY_BYTES];
    if (!make_key(name, query)) return 0;
    size_t count = search(query, spells, found, capacity);
    return count > 0 ? count : search(query, contains, found, capacity);
}
