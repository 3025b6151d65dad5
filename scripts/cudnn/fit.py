"""Fits the trees of src/kernels/cudnn_conv_rules.h to answers of cuDNN and prints how far they meet held-out layers.

    python fit.py FOLDER > report     # FOLDER: networks.json, in.NAME and out/NAME of each set in CFG; writes FOLDER/rules.h

Names: 90-tf32 (compute capability, setting), j...: variations of the layers that are fitted to, k...: more of them,
patch embeddings (kernel = stride) and stems (few channels, strided) of random sizes, B...: heuristics' mode B,
M...: the largest workspace of all plans.  Needs numpy and scikit-learn.
"""
import os, sys
os.chdir(sys.argv[1])
import math,collections,os
def load(name,full=False):
    ins={}
    for l in open('in.'+name):
        a=l.split(); ins[a[0]]=a
    rows=[]
    p='out/'+name
    if not os.path.exists(p): p+='.tmp'
    for l in open(p):
        a=l.split()
        if len(a)<7: continue
        i=ins[a[0]]
        if any('.' in q for q in i[1:]): continue
        r=int(i[5]); v=list(map(int,i[6:])); 
        N,C,K,G=v[:4]; z=v[4:]; inn,out,k,s,pd,dl=[z[j*r:(j+1)*r] for j in range(6)]
        es=4 if i[2]=='0' else 2
        d=dict(id=a[0],ps=i[1],dt=int(i[2]),cl=int(i[3]),r=r,N=N,C=C,K=K,G=G,inn=inn,out=out,k=k,s=s,p=pd,d=dl,es=es,hm=int(a[1]),eng=a[3],ws=int(a[4]),kn=a[5],tc=int(a[6]))
        d['x']=N*C*math.prod(inn)*es; d['y']=N*K*math.prod(out)*es; d['w']=K*(C//G)*math.prod(k)*es
        d['shape']=int(a[0].split('.')[0]) if a[0][0] not in 'jk' else -1
        rows.append(d)
    return rows
def kn(d): return dict(tuple(map(int,q.split('='))) for q in d['kn'].split(',')) if d['kn'] not in('-','') and '=' in d['kn'] else {}
def cls(d):
    if d['G']==d['C'] and d['G']>1: return 'dw'
    if d['G']>1: return 'grp'
    k=math.prod(d['k'])
    if k==1: return '1x1' if math.prod(d['s'])==1 else '1x1s'
    return f"{d['r']}d"
import numpy as np, json, hashlib
from sklearn.tree import DecisionTreeClassifier
MB=1<<20
def pad(c,m): return (c+m-1)//m*m
def p2(v):
    f=16
    while f<v: f*=2
    return f
BASES=['none','x+y+w','x+w','y+w','x+y','x','y','w','X+Y+W','X+W','Y+W','X+Y','X','Y','W','N*w','2x','2y','wino','fft','2N*w','wt']
def fft(d):
    F=p2(max(a+2*q for a,q in zip(d['inn'],d['p']))) if d['r']==2 else 0
    u=16*F*(F//2+1); G=d['G']; C=d['C']//G; K=d['K']//G; N=d['N']
    if d['ps']=='f': v=d['w']+u*max(N*K,C*(N+K))*G
    elif d['ps']=='d': v=d['w']+u*max(N*C,K*(N+C))*G
    else: v=d['y']+u*max(C*K,N*(C+K))*G
    return v+(d['x']+d['y'] if G>1 else 0)
def wino(d):
    if d['r']!=2: return 0
    t=d['N']*math.prod(-(-o//4) for o in (d['out'] if d['ps']!='d' else d['inn']))
    return 36*4*(t*(d['C']+d['K'])+d['C']*d['K']//d['G'])
def bases(d):
    es=d['es']; m=4 if es==4 else 8
    I=math.prod(d['inn']);O=math.prod(d['out']);S=math.prod(d['k']);G=d['G']
    cg=pad(d['C']//G,m);kg=pad(d['K']//G,m);N=d['N']
    x,y,w=d['x'],d['y'],d['w'];X=N*cg*G*I*es;Y=N*kg*G*O*es;W=kg*G*cg*S*es
    return [0,x+y+w,x+w,y+w,x+y,x,y,w,X+Y+W,X+W,Y+W,X+Y,X,Y,W,N*w,2*x,2*y,wino(d),fft(d),2*N*w,100*(d['C']//G)*d['K'] if S==9 and d['r']==2 else 0]
def label(d):
    ws=d['ws']
    if ws<=8192: return 0,ws
    B=bases(d)
    for i in range(1,len(BASES)):
        if B[i]>0 and 0<=ws-B[i]<=1300: return i,ws-B[i]
    S=math.prod(d['k']); W=B[14]
    for i in ((8,1) if S>1 or d['G']>1 else (11,4)):
        t=ws-B[i]
        if t>=0 and (t<=40*MB or t<=300*W): return i,t
    for i in (9,10,11,14,15):
        t=ws-B[i]
        if t>=0 and t<=20*MB and B[i]>ws/2: return i,t
    return 0,ws
LOWER={8:1,9:2,10:3,11:4,12:5,13:6,14:7}
def lab(d):
    i,t=label(d); B=bases(d)
    if i in LOWER and B[i]==B[LOWER[i]]: i=LOWER[i]
    tb=0 if t<=1300 else 1+int(round(2*math.log2(t/1024)))
    return i,tb,t
FE=['batch','in channels of a group','out channels of a group','groups','in elems','out elems','kernel elems','stride elems','dilation','rank','x','y','w','m','k','align c','align k','align out','kernel max','macs','tiles','align in','width','pad','out tiles of data']
def feats(d):
    G=d['G'];cg=d['C']//G;kg=d['K']//G;I=math.prod(d['inn']);O=math.prod(d['out']);S=math.prod(d['k']);N=d['N']
    al=lambda c: 32 if c%32==0 else (c&-c)
    return [N,cg,kg,G,I,O,S,math.prod(d['s']),max(d['d']),d['r'],N*d['C']*I,N*d['K']*O,d['K']*cg*S,N*O,cg*S,al(cg),al(kg),al(O),max(d['k']),N*O*d['K']*cg*S,-(-N*O//128)*-(-kg//128),al(I),d['inn'][-1],max(d['p']),-(-N*I//128)*-(-cg//128)]
corp=json.load(open('networks.json'))
sid={};side={}
for n,rs in corp['nets'].items():
    h=int(hashlib.md5(n.split('@')[0].encode()).hexdigest(),16)%2
    for r in rs:
        i=sid.setdefault(json.dumps(r),len(sid)); side[i]=side.get(i,1)&h
def rows(names,ps):
    R=[]
    for n in names:
        if not os.path.exists('in.'+n): continue
        if not (os.path.exists('out/'+n) or os.path.exists('out/'+n+'.tmp')): continue
        R+= [d for d in load(n) if d['ps']==ps and d['ws']>=0]
    return R
def load2(name):
    R=load(name); return R
class Model: pass
def fit(R,nl,wexp=.4,minleaf=3):
    L=[lab(d) for d in R]
    tr=np.array([d['id'].startswith('j') or side[int(d['id'].split('.')[0])]==0 for d in R]); ALL=tr.copy()
    tr&=np.array([not(i==0 and t>64*MB) for i,_,t in L])
    wt=np.array([(d['x']+d['y']+d['w'])**wexp for d in R])
    # A tail's bucket is kept where it matters
    key=[f"{i}|{tb if t>0.04*max(bases(d)[i],1) and t>65536 else 0}" for (i,tb,t),d in zip(L,R)]
    names=sorted(set(key)); ki={k:i for i,k in enumerate(names)}; y=np.array([ki[k] for k in key])
    X=np.array([feats(d) for d in R],np.float32)
    T=DecisionTreeClassifier(max_leaf_nodes=nl,min_samples_leaf=minleaf,criterion='entropy',random_state=0).fit(X[tr],y[tr],wt[tr])
    m=Model(); m.T=T.tree_; m.leaf={}; ap=T.apply(X)
    by=collections.defaultdict(list)
    for i in np.where(tr)[0]: by[ap[i]].append(i)
    for lf,idx in by.items():
        c=collections.Counter(); 
        for i in idx: c[key[i]]+=wt[i]
        tot=sum(c.values()); top=c.most_common(2)
        def tail(k): 
            v=sorted(L[i][2] for i in idx if key[i]==k); return v[len(v)//2]
        k0=top[0][0]; k1=top[1][0] if len(top)>1 and top[1][1]>=.1*tot else k0
        b0=int(k0.split('|')[0]); t0=tail(k0); b1=int(k1.split('|')[0]); t1=tail(k1)
        ok=sum(1 for i in idx if key[i]==k0 and abs(L[i][2]-t0)<=2048)
        m.leaf[lf]=(b0,t0,b1,t1,len(idx)>=5 and ok==len(idx))
    m.ap=ap;m.tr=tr;m.held=~ALL
    return m
def predict(m,R):
    P=[];lo=[];hi=[];su=[]
    for d,a in zip(R,m.ap):
        b0,t0,b1,t1,s=m.leaf[a]; B=bases(d); p=B[b0]+t0; q=B[b1]+t1
        P.append(p);lo.append(min(p,q));hi.append(max(p,q));su.append(s)
    return P,lo,hi,su
def report(m,R,name,ps):
    P,lo,hi,su=predict(m,R); o=[]
    for part,msk in (('fitted',m.tr),('held out',m.held)):
        idx=np.where(msk)[0]
        if not len(idx): continue
        a=np.array([R[i]['ws'] for i in idx],float); p=np.array([P[i] for i in idx],float)
        near=(abs(a-p)<=.1*a)|(abs(a-p)<=65536); ex=abs(a-p)<=2048
        big=(a>32*MB)|(p>32*MB)
        ins=[(lo[i]*.9-65536<=R[i]['ws']<=hi[i]*1.1+65536) for i in idx]
        s=np.array([su[i] for i in idx])
        o.append(f"{part} n {len(idx)} exact {ex.mean():.1%} near {near.mean():.1%} big {near[big].mean() if big.any() else 1:.1%} of {big.sum()} bytes {abs(a-p).sum()/max(a.sum(),1):.1%} bias {(p-a).sum()/max(a.sum(),1):+.1%} inside {np.mean(ins):.1%} sure {s.mean():.0%}/{near[s].mean() if s.any() else 1:.1%}")
    print(name,ps,'|',' | '.join(o),flush=True)
CFG=[ # arch, mode, sets, leaves
 (90,'tf32',['90-tf32','j90-tf32','k90-tf32'],240),(90,'ieee',['90-notf32','j90-notf32','k90-notf32'],60),(90,'nhwc',['90-cl','j90-cl'],80),(90,'half',['90-fp16','j90-fp16'],80),(90,'half nhwc',['90-fp16cl'],50),
 (80,'tf32',['80-tf32','j80-tf32','k80-tf32'],120),(80,'ieee',['80-notf32'],50),(80,'nhwc',['80-cl'],60),(80,'half',['80-fp16'],60),
 (86,'tf32',['86-tf32','j86-tf32','k86-tf32'],120),(86,'ieee',['86-notf32'],50),(86,'nhwc',['86-cl'],60),(86,'half',['86-fp16'],60)]
CFG+=[(90,'mode b',['B90-tf32','jB90-tf32'],80),(80,'mode b',['B80-tf32'],50),(86,'mode b',['B86-tf32'],50),(90,'half mode b',['B90-fp16'],50),(90,'ieee mode b',['B90-notf32'],30),(90,'most',['M90-tf32'],40)]
nodes=[];leaves=[];leafi={};roots={}
def emit(m):
    T=type('T',(),m.T)
    def go(i):
        if T.children_left[i]<0:
            b0,t0,b1,t1,s=m.leaf[i]; k=(b0,b1,int(s),t0,t1)
            if k not in leafi: leafi[k]=len(leaves); leaves.append(k)
            nodes.append((255,0,leafi[k])); return
        at=len(nodes); nodes.append(None)
        go(T.children_left[i]); r=len(nodes); go(T.children_right[i])
        nodes[at]=(int(T.feature[i]),float(T.threshold[i]),r-at)
    start=len(nodes); go(0); return start
rep=[]
def one(job):
    arch,mode,sets,nl,pi=job; ps='fdw'[pi]
    R=rows(sets,ps)
    if mode in('nhwc','half nhwc'): R=[d for d in R if d['r']==2]
    if len(R)<700: return job,None
    m=fit(R,nl); report(m,R,f"{arch} {mode}",ps); m.T={k:getattr(m.T,k) for k in('children_left','children_right','feature','threshold')}
    m.ap=m.tr=m.held=None
    return job,m
from multiprocessing import Pool
jobs=[(a,b,c,d,i) for a,b,c,d in CFG for i in range(3)]
with Pool(3) as P:
    for job,m in P.map(one,jobs,chunksize=1):
        if m: roots[(job[0],job[1],job[4])]=emit(m)
import pickle
modes=['tf32','ieee','nhwc','half','half nhwc','mode b','ieee mode b','half mode b','most']
o=open('rules.h','w')
o.write("/* Made by scripts/cudnn/fit.py: which form a workspace takes, by the size of the problem.\n*/\n/* clang-format off */\n")
o.write("static const conv_leaf leaves[] = {\n")
for i in range(0,len(leaves),6): o.write("    "+" ".join("{%d, %d, %d, %d, %d},"%l for l in leaves[i:i+6])+"\n")
o.write("};\n\nstatic const conv_node nodes[] = {\n")
def fl(v):
    import math as M
    v=M.floor(v); s="%.7g"%v
    return s+('f' if ('e' in s or '.' in s) else '')
L=["{%d, %s, %d},"%(a,fl(b),c) for a,b,c in nodes]
line="   "
for q in L:
    if len(line)+1+len(q)>118: o.write(line+"\n"); line="   "
    line+=" "+q
o.write(line+"\n};\n\nstatic const int32_t roots[CONV_ARCHS][CONV_MODES][3] = {\n")
for a in (90,80,86):
    o.write("    {"+", ".join("{"+", ".join(str(roots.get((a,mo,pi),-1)) for pi in range(3))+"}" for mo in modes)+"},\n")
o.write("};\n/* clang-format on */\n"); o.close()
print(len(nodes),len(leaves))
