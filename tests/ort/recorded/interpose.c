/* Preloaded under ONNX Runtime by record.py: writes down what its CPU allocator asks of the C
 * library (aligned_alloc; nothing else in it uses that) and which of those blocks it frees. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_BLOCKS = 1 << 20 };

static FILE *out;
static void *blocks[MAX_BLOCKS];
static unsigned n_blocks;

void record_open(const char *path)
{
    out = fopen(path, "w");
    n_blocks = 0;
}

void record_mark(const char *text)
{
    fprintf(out, "%s\n", text);
}

void record_close(void)
{
    FILE *file = out;
    out = NULL;
    fclose(file);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    static void *(*next)(size_t, size_t);
    if (next == NULL) *(void **)&next = dlsym(RTLD_NEXT, "aligned_alloc");
    void *pointer = next(alignment, bytes);
    if (out == NULL || pointer == NULL || n_blocks == MAX_BLOCKS) return pointer;
    blocks[n_blocks] = pointer;
    fprintf(out, "alloc,%u,%zu\n", n_blocks++, bytes);
    return pointer;
}

void free(void *pointer)
{
    static void (*next)(void *);
    if (next == NULL) *(void **)&next = dlsym(RTLD_NEXT, "free");
    for (unsigned i = out != NULL && pointer != NULL ? n_blocks : 0; i-- > 0;) {
        if (blocks[i] != pointer) continue;
        blocks[i] = NULL;
        fprintf(out, "free,%u\n", i);
        break;
    }
    next(pointer);
}
