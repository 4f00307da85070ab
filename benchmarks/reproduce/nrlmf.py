"""Neighborhood regularized logistic matrix factorization, to compare with.

Liu, Wu, Miao, Zhao, Li. PLOS Computational Biology 12 (2016), in plain NumPy, with the
parameters that its authors' program has by default.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

IMPORTANCE = 5  # of a one, in cells
NEIGHBORS = 5
RANK = 50
RIDGE = 0.125  # of drugs and of targets
GRAPH = (0.25, 0.125)
STEP, MAX_ITER, TOL = 0.5, 100, 1e-5


def nrlmf(
    ones: np.ndarray,
    observed: np.ndarray,
    similarities: tuple[np.ndarray, np.ndarray],
    seed: int,
    logistic: bool = True,
) -> np.ndarray:
    """Log-odds of all pairs, from the pairs that are known to be ones.

    Pairs that are ``observed`` and not ones are zeros. In the authors' program, all
    pairs are observed. If not ``logistic``, the loss is half the squared error, and
    the values of pairs are returned.
    """
    rng = np.random.RandomState(seed)
    ones = ones * observed
    weights = np.where(ones > 0, IMPORTANCE, observed)
    factors = [rng.normal(scale=RANK**-0.5, size=(size, RANK)) for size in ones.shape]
    squares = [np.zeros_like(W) for W in factors]
    laplacians = [laplacian(S) for S in similarities]
    last = None
    for _ in range(MAX_ITER):
        for k in (0, 1):
            values = factors[0] @ factors[1].T
            off = weights * (ones - (expit(values) if logistic else values))
            pull = RIDGE * factors[k] + GRAPH[k] * laplacians[k] @ factors[k]
            slope = (off.T if k else off) @ factors[1 - k] - pull
            squares[k] += slope**2
            factors[k] = factors[k] + STEP * slope / np.sqrt(squares[k])
        values = factors[0] @ factors[1].T
        loss = (values - ones) ** 2 / 2
        if logistic:
            loss = np.logaddexp(0, values) - ones * values
        objective = (weights * loss).sum()
        for k, W in enumerate(factors):
            objective += RIDGE * (W**2).sum() / 2
            objective += GRAPH[k] * (W * (laplacians[k] @ W)).sum() / 2
        if last is not None and abs(objective - last) < TOL * last:
            break
        last = objective
    known = ones.any(1), ones.any(0)
    left, right = map(smoothed, factors, known, similarities)
    return left @ right.T


def laplacian(similarity: np.ndarray) -> np.ndarray:
    """The Laplacian of the graph of nearest neighbors."""
    graph = neighbors(similarity)
    return np.diag(graph.sum(1)) - graph


def neighbors(similarity: np.ndarray) -> np.ndarray:
    """The graph of nearest neighbors, made symmetric."""
    others = similarity - np.diag(np.diag(similarity))
    nearest = np.argsort(-others, axis=1, kind="stable")[:, :NEIGHBORS]
    graph = np.zeros_like(others)
    np.put_along_axis(graph, nearest, np.take_along_axis(others, nearest, 1), 1)
    return (graph + graph.T) / 2


def smoothed(W: np.ndarray, known: np.ndarray, similarity: np.ndarray) -> np.ndarray:
    """Factors, with means of the nearest known items for those without a one."""
    W, items = W.copy(), np.flatnonzero(known)
    for i in np.flatnonzero(~known):
        nearest = items[np.argsort(-similarity[i, items], kind="stable")[:NEIGHBORS]]
        W[i] = np.average(W[nearest], axis=0, weights=similarity[i, nearest])
    return W
