/* Asks cuDNN's heuristics which engine they choose for a convolution and what workspace it takes.
 *
 *     cc -I.../cudnn/include ask.c -lcudnn -o ask; ask [PLANS] < problems > answers
 *
 * A line of problems: id, pass (f, d, w), type (0 float32, 2 float16, 9 bfloat16), NHWC (0, 1), TF32 (0, 1), rank, batch,
 * channels, filters, groups, then input, output, kernel, stride, padding, dilation by axis. A line of answers: id,
 * heuristics (0 the asked ones, 1 fallback), index, engine, workspace bytes, knobs, whether it uses tensor cores.
 * HM chooses the heuristics: 0 instant (as PyTorch), 1 mode B (as ONNX Runtime), 3 mode A. */
#include <cudnn.h>
#include <cudnn_backend.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef cudnnBackendDescriptor_t D;
static cudnnHandle_t h;
static D mk(cudnnBackendDescriptorType_t t)
{
    D d = 0;
    if (cudnnBackendCreateDescriptor(t, &d)) {
        fprintf(stderr, "create\n");
        exit(1);
    }
    return d;
}
static int set(D d, cudnnBackendAttributeName_t n, cudnnBackendAttributeType_t t, int64_t c,
               const void *p)
{
    return cudnnBackendSetAttribute(d, n, t, c, p);
}
static D tensor(int dt, int nd, const int64_t *dim, const int64_t *str, int64_t uid)
{
    D d = mk(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    int64_t al = 32;
    set(d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &dt);
    set(d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, nd, dim);
    set(d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, nd, str);
    set(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid);
    set(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &al);
    if (cudnnBackendFinalize(d)) return 0;
    return d;
}
static void strides(int nd, const int64_t *dim, int cl, int64_t *s)
{
    if (!cl) {
        int64_t a = 1;
        for (int i = nd - 1; i >= 0; i--) {
            s[i] = a;
            a *= dim[i];
        }
    } else {
        int64_t a = 1;
        s[1] = 1;
        a = dim[1];
        for (int i = nd - 1; i >= 2; i--) {
            s[i] = a;
            a *= dim[i];
        }
        s[0] = a;
    }
}
int main(int argc, char **argv)
{
    int maxc = argc > 1 ? atoi(argv[1]) : 1; // how many plans to print
    if (cudnnCreate(&h)) {
        fprintf(stderr, "handle\n");
        return 1;
    }
    cudnnSetStream(h, 0);
    char line[4096];
    while (fgets(line, sizeof line, stdin)) {
        // id pass dtype cl tf32 r N C K G in.. out.. k.. s.. p.. d..
        char id[64], pass;
        int dt, cl, tf, r, off = 0;
        int64_t v[40];
        if (sscanf(line, "%63s %c %d %d %d %d%n", id, &pass, &dt, &cl, &tf, &r, &off) < 6) continue;
        char *q = line + off;
        int nv = 0;
        for (; nv < 4 + 6 * r; nv++) {
            v[nv] = strtoll(q, &q, 10);
        }
        int64_t N = v[0], C = v[1], K = v[2], G = v[3], *in = v + 4, *out = in + r, *kk = out + r,
                *st = kk + r, *pd = st + r, *dl = pd + r;
        int64_t xd[5] = {N, C}, yd[5] = {N, K}, wd[5] = {K, C / G}, xs[5], ys[5], ws[5];
        for (int i = 0; i < r; i++) {
            xd[2 + i] = in[i];
            yd[2 + i] = out[i];
            wd[2 + i] = kk[i];
        }
        strides(r + 2, xd, cl, xs);
        strides(r + 2, yd, cl, ys);
        strides(r + 2, wd, cl, ws);
        D x = tensor(dt, r + 2, xd, xs, 120), y = tensor(dt, r + 2, yd, ys, 121),
          w = tensor(dt, r + 2, wd, ws, 119);
        D cd = mk(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
        int ct = CUDNN_DATA_FLOAT, mode = CUDNN_CROSS_CORRELATION;
        int64_t r64 = r;
        set(cd, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &ct);
        set(cd, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
        set(cd, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &r64);
        set(cd, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, r, pd);
        set(cd, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, r, pd);
        set(cd, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, r, dl);
        set(cd, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, r, st);
        cudnnBackendFinalize(cd);
        float al = 1, be = 0;
        D op, g;
        int b = pass == 'f' ? 0 : pass == 'd' ? 1 : 2;
        op = mk(b == 0   ? CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR
                : b == 1 ? CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR
                         : CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR);
#define A(f, d_, w_) (b == 0 ? f : b == 1 ? d_ : w_)
        set(op,
            A(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X),
            CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &x);
        set(op,
            A(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW),
            CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &w);
        set(op,
            A(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY),
            CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &y);
        set(op,
            A(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC),
            CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &cd);
        set(op,
            A(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA),
            CUDNN_TYPE_FLOAT, 1, &al);
        set(op,
            A(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA),
            CUDNN_TYPE_FLOAT, 1, &be);
        int s1 = cudnnBackendFinalize(op);
        g = mk(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
        set(g, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &op);
        set(g, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &h);
        int s2 = cudnnBackendFinalize(g);
        int printed = 0;
        for (int hm = 0; hm < 2 && printed < maxc && !s1 && !s2; hm++) {
            D he = mk(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
            int m = hm == 0 ? (getenv("HM") ? atoi(getenv("HM")) : 0) : 2;
            set(he, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &g);
            set(he, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &m);
            if (cudnnBackendFinalize(he)) {
                cudnnBackendDestroyDescriptor(he);
                continue;
            }
            int64_t cnt = 0;
            cudnnBackendGetAttribute(he, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                     CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &cnt, NULL);
            if (cnt > 64) cnt = 64;
            D cf[64];
            for (int i = 0; i < cnt; i++) cf[i] = mk(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
            int64_t got = 0;
            cudnnBackendGetAttribute(he, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                     CUDNN_TYPE_BACKEND_DESCRIPTOR, cnt, &got, cf);
            for (int i = 0; i < got && printed < maxc; i++) {
                D en = mk(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
                int64_t c1 = 0, gi = -1;
                cudnnBackendGetAttribute(cf[i], CUDNN_ATTR_ENGINECFG_ENGINE,
                                         CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &c1, &en);
                cudnnBackendGetAttribute(en, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1,
                                         &c1, &gi);
                int notes[32];
                int64_t nn = 0;
                cudnnBackendGetAttribute(en, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                         CUDNN_TYPE_NUMERICAL_NOTE, 32, &nn, notes);
                int tc = 0, dc = 0;
                for (int j = 0; j < nn; j++) {
                    tc |= notes[j] == CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
                    dc |= notes[j] == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;
                }
                int skip = (dt == 0 && (dc || (!tf && tc)));
                if (!skip) {
                    int64_t cws = -1, cn = 0;
                    int rc = getenv("NOFAST")
                                 ? 1
                                 : cudnnBackendGetAttribute(cf[i], (cudnnBackendAttributeName_t)303,
                                                            CUDNN_TYPE_INT64, 1, &cn, &cws);
                    int fast = !rc && cws >= 0;
                    D pl = mk(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
                    set(pl, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &h);
                    set(pl, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                        1, &cf[i]);
                    if (fast || !cudnnBackendFinalize(pl)) {
                        int64_t wsz = cws;
                        if (!fast)
                            cudnnBackendGetAttribute(pl, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                                     CUDNN_TYPE_INT64, 1, &c1, &wsz);
                        printf("%s %d %d eng%ld %ld ", id, hm, i, (long)gi, (long)wsz);
                        D kn[32];
                        for (int j = 0; j < 32; j++)
                            kn[j] = mk(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
                        int64_t nk = 0;
                        cudnnBackendGetAttribute(cf[i], CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, 32, &nk, kn);
                        for (int j = 0; j < nk; j++) {
                            int kt = -1;
                            int64_t kv = -1;
                            cudnnBackendGetAttribute(kn[j], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE,
                                                     CUDNN_TYPE_KNOB_TYPE, 1, &c1, &kt);
                            cudnnBackendGetAttribute(kn[j], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE,
                                                     CUDNN_TYPE_INT64, 1, &c1, &kv);
                            printf("%s%d=%ld", j ? "," : "", kt, (long)kv);
                        }
                        for (int j = 0; j < 32; j++) cudnnBackendDestroyDescriptor(kn[j]);
                        printf(" %d\n", tc);
                        printed++;
                    }
                    cudnnBackendDestroyDescriptor(pl);
                }
                cudnnBackendDestroyDescriptor(en);
            }
            for (int i = 0; i < cnt; i++) cudnnBackendDestroyDescriptor(cf[i]);
            cudnnBackendDestroyDescriptor(he);
        }
        if (!printed) printf("%s -1 -1 none -1 - 0\n", id);
        fflush(stdout);
        cudnnBackendDestroyDescriptor(g);
        cudnnBackendDestroyDescriptor(op);
        cudnnBackendDestroyDescriptor(cd);
        if (x) cudnnBackendDestroyDescriptor(x);
        if (y) cudnnBackendDestroyDescriptor(y);
        if (w) cudnnBackendDestroyDescriptor(w);
    }
}
