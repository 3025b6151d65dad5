"""Of convolution problems, those whose answer trees are not sure of: what is worth asking next.

    python unsure.py FOLDER SETTING LEAVES < problems > some     # SETTING: 90-tf32, ...; FOLDER as for fit.py

Three trees of at most LEAVES leaves are grown, each from a random half of the answers in FOLDER; a problem on which they name
different kernels is written.  Held-out problems and those of the tables are passed over.  Needs numpy and scikit-learn.
"""
import os
import sys

import numpy as np
from sklearn.tree import DecisionTreeClassifier

import fit

FITTED = "fvp"
SPLITS = (0, 12, 17)  # knobs that count parts, not kernels


def kernels(name, which):
    """Problems that were asked, and the engine and tile of each answer."""
    problems, rows, chosen = {}, [], []
    with open(name + ".in") as file:
        for line in file:
            fields = line.split()
            if fields[1] == which and fields[0][0] in FITTED:
                problems[fields[0]] = fields
    with open(name + ".out") as file:
        for line in file:
            fields = line.split()
            if len(fields) >= 6 and int(fields[4]) >= 0 and fields[0] in problems:
                rows.append(fit.Row(problems[fields[0]], int(fields[4])))
                knobs = fields[5].split(",") if len(fields) > 6 else []
                chosen.append(fields[3] + " " + ",".join(k for k in knobs if int(k.split("=")[0]) not in SPLITS))
    return rows, chosen


def main(folder, setting, leaves):
    lines = [line for line in sys.stdin if line[0] in FITTED]
    random = np.random.RandomState(0)
    os.chdir(folder)
    for which in "fdw":
        asked = [line for line in lines if line.split(None, 2)[1] == which]
        rows, chosen = kernels(setting, which)
        if not asked or not rows:
            continue
        number = {kernel: i for i, kernel in enumerate(sorted(set(chosen)))}
        table, classes = np.array([fit.features(r) for r in rows], np.float32), np.array([number[k] for k in chosen])
        weights = np.array([(r.x + r.y + r.w) ** .4 for r in rows])
        pool = np.array([fit.features(fit.Row(line.split(), 0)) for line in asked], np.float32)
        named = []
        for seed in range(3):
            half = random.rand(len(rows)) < .5
            tree = DecisionTreeClassifier(max_leaf_nodes=leaves, min_samples_leaf=2, criterion="entropy", max_features=.6,
                                          random_state=seed)
            named.append(tree.fit(table[half], classes[half], weights[half]).predict(pool))
        sys.stdout.writelines(line for line, names in zip(asked, zip(*named)) if len(set(names)) > 1)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
