"""Terms: the gradient is the derivative, the prox is the argmin, batch = loop.

A new term is a new row of the table.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from skmc import Observed
from skmc.sensing import DenseMeasurements
from skmc.terms import (
    AdaptiveDirichletEnergy,
    Blocks,
    Box,
    Columns,
    DirichletEnergy,
    L1Norm,
    MeasurementError,
    NuclearNorm,
    Rows,
    SquaredError,
    SquaredNorm,
    Term,
    TotalVariation,
    graph_laplacian,
)

SHAPE = 7, 6
TRANSFORMS = [Rows(), Columns(), Blocks(2), Blocks(3)]


def draw(*shape, seed=0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def laplacian_of(k, seed=1):
    A = draw(k, k, seed=seed).abs()
    return graph_laplacian(A + A.mT)


def measured(k):
    """Of five matrices; ``k`` picks members of three sets of results."""
    return MeasurementError(DenseMeasurements(draw(5, *SHAPE)), draw(3, 5, seed=1)[k])


def observed(*batch):
    return Observed(draw(*batch, *SHAPE, seed=2), draw(*batch, *SHAPE, seed=3) > -0.5)


TERMS = {
    "squared error": lambda: SquaredError(observed()),
    "measurement error": lambda: measured(0),
}
for t in TRANSFORMS:
    k = t.n_items(*SHAPE)
    TERMS[f"dirichlet {t.name}"] = lambda t=t, k=k: DirichletEnergy(
        laplacian_of(k), t, 0.7
    )
    for adjacency in ("row", "global"):
        TERMS[f"adaptive {t.name} {adjacency}"] = lambda t=t, k=k, a=adjacency: (
            AdaptiveDirichletEnergy(draw(k, k, seed=4), t, 1.3, a)
        )
TERMS["total variation"] = lambda: TotalVariation(0.7, 1.3)
TERMS["l1 norm"] = lambda: L1Norm(0.7)
TERMS["box"] = lambda: Box(3.0)
TERMS["squared norm"] = lambda: SquaredNorm(0.7)
TERMS["nuclear norm"] = lambda: NuclearNorm(0.7)

every_term = pytest.mark.parametrize("name", TERMS)


@every_term
def test_closed_form_gradients_are_the_derivatives(name):
    X = draw(*SHAPE, seed=5)
    term, reference = TERMS[name](), TERMS[name]()
    value, grad = term.value_and_grad(X)
    expected, expected_grad = Term.value_and_grad(reference, X)
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(grad, expected_grad)
    for ours, theirs in zip(term.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad)
    # ... and autograd's derivative is that of finite differences.
    assert torch.autograd.gradcheck(lambda X: term(X), X.requires_grad_())


@every_term
def test_gradients_of_parameters_accumulate(name):
    X, term = draw(*SHAPE, seed=5), TERMS[name]()
    term.value_and_grad(X)
    once = [p.grad.clone() for p in term.parameters()]
    term.value_and_grad(X)
    for first, p in zip(once, term.parameters(), strict=True):
        torch.testing.assert_close(p.grad, 2 * first)


@every_term
def test_prox_is_the_argmin(name):
    term, V, step = TERMS[name](), 2 * draw(*SHAPE, seed=6), 0.4
    try:
        X = term.prox(V, step)
    except NotImplementedError as error:
        assert type(term).__name__ in str(error)
        return

    def objective(X):
        return step * term(X) + 0.5 * (X - V).square().sum()

    best = objective(X)
    for seed in range(20):
        for size in (1e-3, 1e-1, 1.0):
            assert objective(X + size * draw(*SHAPE, seed=seed)) > best
    # Where the term is smooth, the slope at the argmin is zero.
    if isinstance(term, SquaredError | SquaredNorm):
        slope = step * term.value_and_grad(X)[1] + X - V
        torch.testing.assert_close(slope, torch.zeros_like(slope), atol=1e-10, rtol=0)


BATCHED = {
    "squared error": lambda k: SquaredError(Observed(*member(k))),
    "measurement error": measured,
    "dirichlet": lambda k: DirichletEnergy(laplacian_of(7), Rows(), weight(k)),
    "adaptive row": lambda k: AdaptiveDirichletEnergy(
        draw(3, 7, 7)[k], Rows(), weight(k), "row"
    ),
    "adaptive global": lambda k: AdaptiveDirichletEnergy(
        draw(3, 6, 6)[k], Columns(), weight(k), "global"
    ),
    "adaptive blocks": lambda k: AdaptiveDirichletEnergy(
        draw(3, 9, 9)[k], Blocks(2), weight(k), "row"
    ),
    "total variation": lambda k: TotalVariation(weight(k), weight(k) + 1),
    "l1 norm": lambda k: L1Norm(weight(k)),
    "squared norm": lambda k: SquaredNorm(weight(k)),
    "nuclear norm": lambda k: NuclearNorm(weight(k)),
}


def member(k):
    data = observed(3)
    return data.values[k], data.mask[k]


def weight(k):
    return torch.tensor([0.0, 0.5, 2.0], dtype=torch.float64)[k]


@pytest.mark.parametrize("name", BATCHED)
def test_batched_is_looped(name):
    X, every = draw(3, *SHAPE, seed=8), slice(None)
    together = BATCHED[name](every)
    values, grads = together.value_and_grad(X)
    torch.testing.assert_close(together(X), values)
    for k in range(3):
        alone = BATCHED[name](k)
        value, grad = alone.value_and_grad(X[k])
        torch.testing.assert_close(values[k], value)
        torch.testing.assert_close(grads[k], grad)
        for p, q in zip(together.parameters(), alone.parameters(), strict=True):
            torch.testing.assert_close(p.grad[k], q.grad)


@pytest.mark.parametrize("transform", TRANSFORMS, ids=lambda t: t.name)
def test_adjoint(transform):
    """``<T(X), Y> = <X, T*(Y)>``."""
    X = draw(2, *SHAPE, seed=9)
    items = transform(X)
    assert items.shape[-2] == transform.n_items(*SHAPE)
    Y = draw(*items.shape, seed=10)
    torch.testing.assert_close(
        (items * Y).sum(), (X * transform.adjoint(Y, *SHAPE)).sum()
    )


def test_blocks_are_blocks():
    X = torch.arange(24.0).view(4, 6)
    items = Blocks(2)(X)
    assert items[0].tolist() == [0, 1, 6, 7]
    assert items[-1].tolist() == [16, 17, 22, 23]


@pytest.mark.parametrize("adjacency", ["row", "global"])
def test_learned_laplacians_are_laplacians(adjacency):
    term = AdaptiveDirichletEnergy(draw(8, 8), Rows(), 1.0, adjacency)
    L = term.laplacian().detach()
    torch.testing.assert_close(L, L.mT)
    torch.testing.assert_close(L.sum(-1), torch.zeros(8, dtype=L.dtype))
    assert (L - torch.diag(L.diagonal()) <= 0).all()
    assert torch.linalg.eigvalsh(L).min() > -1e-12
    # The energy is the weighted sum of squared distances, each pair counted twice.
    X = draw(8, 5, seed=3)
    pairs = (-L * torch.cdist(X, X).square()).sum() / 2
    torch.testing.assert_close(term(X).detach(), pairs)


def test_the_papers_gradient():
    """Proposition 2 of the AIR paper, for its own parametrisation and weight 1.

    For every W the differential in its proof gives, with ``C`` there and
    ``A' = exp(W) / sum exp(W)``, ``dR/dW = (C + C') o A' - <C, A' + A''> A'``.
    """
    W, X = draw(5, 5, seed=1), draw(5, 4, seed=2)
    term = AdaptiveDirichletEnergy(W.clone(), Rows(), 1.0, "global")
    term.value_and_grad(X)
    gram = X @ X.mT
    C = torch.diag(gram)[:, None] - gram
    A = W.exp() / W.exp().sum()
    torch.testing.assert_close(term.W.grad, (C + C.mT) * A - (C * (A + A.mT)).sum() * A)


def test_the_papers_limit():
    """Theorem 2: under gradient flow only identical rows stay connected."""
    X = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    term = AdaptiveDirichletEnergy(torch.zeros(4, 4), Rows(), 1.0, "global")
    optimizer = torch.optim.SGD(term.parameters(), lr=20.0)
    for _ in range(3000):
        optimizer.zero_grad()
        energy, _ = term.value_and_grad(X)
        optimizer.step()
    L = term.laplacian().detach()
    assert energy < 5e-3  # Corollary 1: the energy vanishes
    assert L[0, 1] < -0.2
    rest = L - torch.diag(L.diagonal())
    rest[0, 1] = rest[1, 0] = 0
    assert rest.abs().max() < 1e-2


def test_total_variation_of_a_step():
    X = torch.zeros(4, 5)
    X[:, 3:] = 2.0
    assert TotalVariation(1.0, 1.0)(X) == 4 * 2
    assert TotalVariation(1.0, 0.0)(X) == 0
    assert np.isclose(TotalVariation(0.0, 0.5)(X), 4)
