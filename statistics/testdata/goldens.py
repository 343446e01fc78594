"""Makes scipy.json, the values that the tests compare with.

    pip install scipy==1.17.1 statsmodels==0.15.0 && python goldens.py > scipy.json
"""

import json

import numpy as np
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

random = np.random.default_rng(9)


def sample(n, ties):
    values = random.normal(size=n)
    return (np.round(values * 2) / 2 if ties else values).tolist()


def pairs():
    for n, ties in [(3, False), (5, False), (12, True), (40, False), (94, True), (200, True)]:
        x, noise = sample(n, ties), sample(n, ties)
        y = [a * 0.5 + b for a, b in zip(x, noise)]
        yield {
            "x": x, "y": y,
            "pearson": list(stats.pearsonr(x, y)),
            "spearman": list(stats.spearmanr(x, y)),
            "kendall": list(stats.kendalltau(x, y, method="asymptotic")),
            "mann_whitney": list(stats.mannwhitneyu(x, [v + 0.3 for v in y], method="asymptotic")),
        }


def groups():
    for sizes, ties in [((5, 7), False), ((10, 3, 20), True), ((30, 30, 30, 4), True)]:
        all = [sample(n, ties) for n in sizes]
        yield {"groups": all, "kruskal": list(stats.kruskal(*all))}


def families():
    for p in [[0.01, 0.04, 0.03], [0.5], [0.9, 0.001, 0.02, 0.02, 0.3], [1, 1]]:
        yield {"p": p, "holm": multipletests(p, method="holm")[1].tolist(), "bonferroni": multipletests(p, method="bonferroni")[1].tolist()}


def rates():
    for k, n in [(0, 10), (10, 10), (3, 7), (69, 70), (1, 1000)]:
        yield {"successes": k, "trials": n, "wilson": list(proportion_confint(k, n, method="wilson"))}


def differences():
    for n, shift in [(4, 0.5), (9, 0.2), (13, 0.6), (60, 0.25), (94, 0.02)]:
        d = (np.array(sample(n, True)) + shift).tolist()
        moved = [v for v in d if v != 0]
        test = stats.permutation_test((np.array(moved),), np.sum, permutation_type="samples", n_resamples=200_000, rng=1)
        boot = stats.bootstrap((np.array(d),), np.mean, method="percentile", n_resamples=200_000, rng=1, batch=10_000)
        yield {"differences": d, "p": float(test.pvalue), "exact": len(moved) <= 13, "interval": list(boot.confidence_interval)}


print(json.dumps({k: list(f()) for k, f in {"pairs": pairs, "groups": groups, "families": families, "rates": rates, "differences": differences}.items()}, default=float, indent=1))
