"""Terms with values of all their parameters, on which every term is tested."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from types import SimpleNamespace

import torch
from torch import Tensor

from skmc import Observed, terms
from skmc.linalg import Randomness
from skmc.terms import Blocks, Columns, Rows, Term, graph_laplacian

Example = Callable[[tuple[int, int], Randomness], Iterator[Term]]
TRANSFORMS = Rows(), Columns(), Blocks(2), Blocks(3)
LEARNED = [*product(TRANSFORMS, ("row", "global"), (1, 3))]


def random_weight(rng: Randomness) -> Tensor:
    """A weight between 0 and 2 for each member."""
    return rng.uniform(1, 1, 1.0)[..., 0, 0] + 1


def squared_error(shape, rng):
    values, mask = rng.normal(*shape, std=1.0), rng.normal(*shape, std=1.0) > -0.5
    weights = rng.normal(*shape, std=1.0).square()
    for some in (None, weights):
        yield terms.SquaredError(Observed(values, mask, weights=some))


def measurement_error(shape, rng):
    A = Randomness.of([0], (), rng.dtype).normal(5, shape[0] * shape[1], std=1.0)
    operator = SimpleNamespace(
        forward=lambda X: X.flatten(-2) @ A.mT,
        adjoint=lambda r: (r @ A).unflatten(-1, shape),
    )
    yield terms.MeasurementError(operator, rng.normal(1, 5, std=1.0)[..., 0, :])


def summed(shape, rng):
    parts = next(squared_error(shape, rng)), terms.L1Norm(random_weight(rng))
    yield terms.Sum(parts)


def total_variation(shape, rng):
    yield terms.TotalVariation(random_weight(rng), random_weight(rng))


def dirichlet(shape, rng):
    for transform in TRANSFORMS:
        k = transform.n_items(*shape)
        A = rng.normal(k, k, std=1.0).abs()
        L = graph_laplacian(A + A.mT)
        yield terms.DirichletEnergy(L, transform, random_weight(rng))
    shared = graph_laplacian(torch.ones(shape[0], shape[0], dtype=rng.dtype))
    yield terms.DirichletEnergy(shared, Rows(), random_weight(rng))


def sparse_dirichlet(shape, rng):
    for transform in TRANSFORMS:
        k = transform.n_items(*shape)
        each = torch.arange(k)
        cols = torch.stack([each, each.roll(1), each.roll(-1)], -1).flatten()
        values = torch.tensor([2.0, -1.0, -1.0], dtype=rng.dtype).repeat(k)
        graph = torch.arange(0, 3 * k + 1, 3), cols, values
        yield terms.SparseDirichletEnergy(*graph, transform, random_weight(rng))


def adaptive_dirichlet(shape, rng):
    for transform, adjacency, every in LEARNED:
        k = transform.n_items(*shape)
        W, weight = rng.normal(k, k, std=1.0), random_weight(rng)
        yield terms.AdaptiveDirichletEnergy(W, transform, weight, adjacency, every)


def neighbor_dirichlet(shape, rng):
    for transform, adjacency, every in LEARNED:
        k = transform.n_items(*shape)
        own = torch.eye(k, dtype=torch.bool)
        others = rng.normal(k, k, std=1.0).masked_fill_(own, -torch.inf)
        edges = others.argsort(-1)[..., : 2 + k // 2].flip(-2)
        W = rng.normal(k, edges.shape[-1], std=1.0)
        shared = transform, random_weight(rng), adjacency, every
        yield terms.NeighborDirichletEnergy(W, edges, *shared)


def weighted(cls: type[Term]) -> Example:
    return lambda shape, rng: iter([cls(random_weight(rng))])


EXAMPLES: dict[type[Term], Example] = {
    terms.AdaptiveDirichletEnergy: adaptive_dirichlet,
    terms.Box: lambda shape, rng: iter([terms.Box(4.0)]),
    terms.DirichletEnergy: dirichlet,
    terms.L1Norm: weighted(terms.L1Norm),
    terms.MeasurementError: measurement_error,
    terms.NeighborDirichletEnergy: neighbor_dirichlet,
    terms.NuclearNorm: weighted(terms.NuclearNorm),
    terms.SparseDirichletEnergy: sparse_dirichlet,
    terms.SquaredError: squared_error,
    terms.SquaredNorm: weighted(terms.SquaredNorm),
    terms.Sum: summed,
    terms.TotalVariation: total_variation,
}
