/* What Inductor's decompositions make of the tape's operations.
 *
 * A recipe is a list of statements, one for each operation:
 *
 *     d=po(x,m)    d is made of x and m by a pointwise operation, as large as the result
 *     >pr(m)       a result of forward that no variable names
 *     !p(d)        what depends on gradients reads d, and is pointwise
 *     !c1(x)       the same in a product, where input 1 gets a gradient
 *
 * Inputs are x, y, z, w, the result is o. Kinds are p (pointwise, and reductions), v (a view), g (a part
 * of a result of several tensors), c (products), n (kernels of their own); capitals have such a result.
 * Sizes are o, x, y (like these), a (all results of the tape's operation), q (o and b), r (its statistics: of each
 * row, each channel), R (two of them), b and m (a byte for each element of o and x), f (a float32), i
 * (an int64), 0 to 2 (the tape's extra storages), 3 (eight bytes). A variable that nothing defines (no
 * bias) is left out; a pointwise operation that it leaves with one operand of two is none.
 *
 * What backward computes without gradients follows the recipe of forward, and may read its variables:
 * equal operations of both are one, as after AOTAutograd's elimination of common subexpressions. */
#ifndef ONV_ATEN_RECIPES_H
#define ONV_ATEN_RECIPES_H

/* Those of channels, as PyTorch's batch_norm: the running statistics are results too. */
#define STATISTICS "V=PR(x) v=gr(V) m=gr(V) a=pr(v) s=pr(a) d=po(x,m) h=po(d,s) M=vr(m) S=vr(s) "
#define RUNNING    "q=pr(M) >pr(q) t=vr(v) u=pr(t) j=pr(u) >pr(j) "
#define AFFINE     "A=vy(y) B=vy(A) k=po(h,B) C=vy(z) D=vy(C) o=po(k,D)"
#define OF_CHANNELS                                                                                \
    "E=vr(M) F=vr(E) G=vr(F) H=po(x,G) !p(H) I=pr(S,S) !p(I) J=pr(S,y) K=vr(J) L=vr(K) N=vr(L) "   \
    "!p(N) !p(S)"
/* Of channels of each sample: weight and bias are repeated. */
#define REPEATED "e=nr(y) f=nr(z) A=vr(e) B=vr(A) k=po(h,B) C=vr(f) D=vr(C) o=po(k,D)"
#define OF_REPEATED                                                                                \
    "E=vr(M) F=vr(E) G=vr(F) H=po(x,G) !p(H) I=pr(S,S) !p(I) J=pr(S,e) K=vr(J) L=vr(K) N=vr(L) "   \
    "!p(N) !p(S)"
#define OF_ROWS        "e=pr(s) !p0(e) !p(h) !p0(y)"
#define ATTENTION      "A=Ca(x,y,z,w) o=go(A) l=g0(A) s=g1(A) t=g2(A)"
#define OF_ATTENTION   "!c(x,y,z,w,o,l,s,t)"
#define GELU           "a=po(x) b=po(x) e=po(b) f=po(e) o=po(a,f)"
#define OF_GELU        "g=po(f) h=po(x,x) i=po(h) j=po(i) k=po(j) l=po(x,k) q=po(g,l) !p(q)"
#define ELU            "g=pb(x) m=po(x) e=po(m) k=po(e) o=po(g,x,k)"
#define OF_ELU         "l=pm(x) !p(l) n=po(x) q=po(n) !p(q)"
#define HARD_SIGMOID   "a=po(x) b=po(a) c=po(b) "
#define SOFTPLUS       "e=po(x) l=po(e) g=pb(x) o=po(g,x,l)"
#define OF_SOFTPLUS    "q=po(x) e=po(q) !p(e) h=pb(q) !p(h)"
#define MISH           "e=po(x) l=po(e) t=po(l) o=po(x,t)"
#define OF_MISH        "e=po(x) l=po(e) t=po(l) !p(x,t)"
#define SOFTMAX        "a=pr(x) d=po(x,a) e=po(d) t=pr(e) o=po(e,t)"
#define OF_SOFTMAX     "n=po(o) !p(n) !p(o)"
#define LOG_SOFTMAX    "a=pr(x) d=po(x,a) e=po(d) t=pr(e) l=pr(t) o=po(d,l)"
#define OF_LOG_SOFTMAX "e=po(o) !p(e)"
#define HARD_SWISH     HARD_SIGMOID "d=po(x,c) o=po(d)"
#define OF_HARD_SWISH  "l=pm(x) k=pm(x) e=po(x) f=po(e) !p(l,k,f)"
#define OF_CLAMP       "l=pm(x) k=pm(x) m=pm(l,k) !p(m)"
#define OF_EXTREME     "m=pm(x,o) !p(m) c=po(m) !p(c)"
#define MAX_POOL       "A=Nq(x) o=go(A) j=gb(A)"
#define SHUFFLE        "a=vx(x) b=vx(a) c=po(b) o=vo(c)"
#define RANDOM         "s=n3() o=no(s)"
#define DROPOUT        "s=n3() u=nf(s) k=pb(u) a=po(k,x) o=po(a)"
#define OF_DROPOUT     "c=po(k) d=po(c) !p(d)"

#endif
