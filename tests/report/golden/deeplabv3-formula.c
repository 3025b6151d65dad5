/* deeplabv3_resnet50.onnx: bytes, for sizes of at least 1 */
#include <stdint.h>

static inline int64_t floordiv(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
static inline int64_t modulo(int64_t a, int64_t b) { return a - b * floordiv(a, b); }
static inline int64_t min2(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t max2(int64_t a, int64_t b) { return a > b ? a : b; }

static inline int64_t peak_bytes(int64_t batch, int64_t height, int64_t width)
{
    return max2(batch*floordiv(height + 1, 2)*floordiv(width + 1, 2)*256 + batch*height*width*12 + 97296,
        max2(batch*floordiv(height + 1, 2)*floordiv(width + 1, 2)*512 + 97296,
        max2(batch*floordiv(height + 3, 4)*floordiv(width + 3, 4)*2304 + 96784,
        max2(batch*floordiv(height + 3, 4)*floordiv(width + 3, 4)*3072 + 95760,
        max2(batch*floordiv(height + 3, 4)*floordiv(width + 3, 4)*1024 + batch*floordiv(height + 7, 8)*floordiv(width + 7, 8)*4096 + 92176,
        max2(batch*floordiv(height + 7, 8)*floordiv(width + 7, 8)*6144 + 90128,
        max2(batch*floordiv(height + 7, 8)*floordiv(width + 7, 8)*10240 + 78864,
        max2(batch*floordiv(height + 7, 8)*floordiv(width + 7, 8)*12288 + 74768,
        max2(batch*floordiv(height + 7, 8)*floordiv(width + 7, 8)*20480 + 39952,
        max2(batch*floordiv(height + 7, 8)*floordiv(width + 7, 8)*24576 + 31760,
        batch*floordiv(height + 7, 8)*floordiv(width + 7, 8)*84 + batch*height*width*84 + 32))))))))));
}

static inline int64_t total_bytes(int64_t batch, int64_t height, int64_t width)
{
    return 158344900 + peak_bytes(batch, height, width);
}

static inline int64_t input_bytes(int64_t batch, int64_t height, int64_t width)
{
    return batch*height*width*12;
}

static inline int64_t output_bytes(int64_t batch, int64_t height, int64_t width)
{
    return batch*height*width*84;
}

static inline int64_t activation_bytes(int64_t batch, int64_t height, int64_t width)
{
    return batch*10240 + batch*floordiv(height + 1, 2)*floordiv(width + 1, 2)*512 + batch*floordiv(height + 3, 4)*floordiv(width + 3, 4)*14592 + batch*floordiv(height + 7, 8)*floordiv(width + 7, 8)*261204 + batch*height*width*84 + 97696;
}

static inline int64_t macs(int64_t batch, int64_t height, int64_t width)
{
    return batch*524288 + batch*floordiv(height + 1, 2)*floordiv(width + 1, 2)*9408 + batch*floordiv(height + 3, 4)*floordiv(width + 3, 4)*245760 + batch*floordiv(height + 7, 8)*floordiv(width + 7, 8)*38802688;
}
