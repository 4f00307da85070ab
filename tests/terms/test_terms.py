"""Terms: the gradient is the derivative, the prox is the argmin, batch = loop.

Terms are discovered: every subclass of `Term` at the door of `skmc.terms` needs a line
in `EXAMPLES`.
"""

from __future__ import annotations

import copy
import inspect

import numpy as np
import pytest
import torch
from term_examples import EXAMPLES, TRANSFORMS
from torch import Tensor

from skmc import Observed, terms
from skmc.linalg import Randomness
from skmc.loop import solve
from skmc.models import FactorProduct
from skmc.solvers import Descent, GradientFlow
from skmc.terms import (
    AdaptiveDirichletEnergy,
    Blocks,
    DirichletEnergy,
    Rows,
    SquaredError,
    SquaredNorm,
    Sum,
    Term,
    TotalVariation,
)

SHAPE = 7, 6
CLASSES = [
    member
    for member in vars(terms).values()
    if inspect.isclass(member) and issubclass(member, Term) and member is not Term
]


def draw(*shape, seed=0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def examples(*batch) -> dict[str, Term]:
    """All examples of all terms, by names."""
    found = {}
    for cls in CLASSES:
        seeds = range(int(np.prod(batch)))
        rng = Randomness.of(seeds, batch, torch.float64)
        for number, term in enumerate(EXAMPLES[cls](SHAPE, rng)):
            found[f"{cls.__name__} {number}"] = term
    return found


TERMS, BATCHED = examples(), examples(3)

every_term = pytest.mark.parametrize("name", TERMS)


def term_of(name) -> Term:
    return copy.deepcopy(TERMS[name])


def test_terms_are_found():
    assert {SquaredError, AdaptiveDirichletEnergy, Sum} <= set(CLASSES)
    assert len(TERMS) >= len(CLASSES)


@every_term
def test_closed_form_gradients_are_the_derivatives(name):
    X = draw(*SHAPE, seed=5)
    term, reference = term_of(name), term_of(name)
    value, grad = term.value_and_grad(X)
    expected, expected_grad = Term.value_and_grad(reference, X)
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(grad, expected_grad)
    for ours, theirs in zip(term.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad)
    # ... and autograd's derivative is that of finite differences.
    assert torch.autograd.gradcheck(lambda X: term(X), X.requires_grad_())


@every_term
def test_terms_use_current_parameters_or_declare_a_lag(name):
    X, term = draw(*SHAPE, seed=5), term_of(name)
    old, _ = term.value_and_grad(X)
    with torch.no_grad():
        for p in term.parameters():
            p += draw(*p.shape, seed=7)
    value, grad = term.value_and_grad(X)
    new, new_grad = Term.value_and_grad(copy.deepcopy(term), X)
    if term.lags:
        torch.testing.assert_close(value, old)
        assert not torch.allclose(value, new)
    else:
        torch.testing.assert_close(value, new)
        torch.testing.assert_close(grad, new_grad)


@every_term
def test_the_value_is_available_after_the_gradient(name):
    """Together they are `value_and_grad`, also where the term lags."""
    term, reference = term_of(name), term_of(name)
    for seed in (5, 6):
        X = draw(*SHAPE, seed=seed)
        value, expected = reference.value_and_grad(X)
        torch.testing.assert_close(term.grad(X), expected)
        torch.testing.assert_close(term.value(X), value)
        for ours, theirs in zip(term.parameters(), reference.parameters(), strict=True):
            torch.testing.assert_close(ours.grad, theirs.grad)
            ours.detach().add_(1.0, alpha=0.1 * seed)
            theirs.detach().copy_(ours)


@every_term
def test_gradients_of_parameters_accumulate(name):
    X, term = draw(*SHAPE, seed=5), term_of(name)
    term.value_and_grad(X)
    once = [p.grad.clone() for p in term.parameters()]
    for _ in range(term.every):
        term.value_and_grad(X)
    for first, p in zip(once, term.parameters(), strict=True):
        torch.testing.assert_close(p.grad, 2 * first)


@every_term
def test_gradients_can_be_changed_in_place(name):
    """They share no memory with the term or the point."""
    X, term = draw(*SHAPE, seed=5), term_of(name)
    value, grad = term.value_and_grad(X)
    expected, before = grad.clone(), X.clone()
    grad.zero_()
    torch.testing.assert_close(X, before, rtol=0, atol=0)
    again, grad = term.value_and_grad(X)
    torch.testing.assert_close(grad, expected)
    torch.testing.assert_close(again, value)


@every_term
def test_prox_is_the_argmin(name):
    term, V, step = term_of(name), 2 * draw(*SHAPE, seed=6), 0.4
    try:
        X = term.prox(V, step)
    except NotImplementedError as error:
        assert type(term).__name__ in str(error)
        with pytest.raises(NotImplementedError, match=type(term).__name__):
            term.prox_and_value(V, step)
        return

    def objective(X):
        return step * term(X) + 0.5 * (X - V).square().sum()

    best = objective(X)
    for seed in range(20):
        for size in (1e-3, 1e-1, 1.0):
            assert objective(X + size * draw(*SHAPE, seed=seed)) > best
    same, value = term.prox_and_value(V, step)
    torch.testing.assert_close(same, X)
    torch.testing.assert_close(value, term(X))
    # Where the term is smooth, the gradient at the argmin is zero.
    if isinstance(term, SquaredError | SquaredNorm | DirichletEnergy):
        grad = step * term.value_and_grad(X)[1] + X - V
        torch.testing.assert_close(grad, torch.zeros_like(grad), atol=1e-10, rtol=0)


def member(term, k):
    """One of the members of a batched term, without a batch axis."""
    alone = copy.deepcopy(term)
    alone.select(torch.tensor(k))
    return alone


@pytest.mark.parametrize("weight", [None, 0.0])
@pytest.mark.parametrize("name", BATCHED)
def test_batched_terms_equal_separate_ones(name, weight):
    X, together = draw(3, *SHAPE, seed=8), copy.deepcopy(BATCHED[name])
    for part in together.modules():
        for buffer in dict(part.named_buffers(recurse=False)).values():
            if weight is not None and buffer.shape == (3,):
                buffer[0] = weight
    alone = [member(together, k) for k in range(3)]
    values, grads = together.value_and_grad(X)
    torch.testing.assert_close(together(X), values)
    for k in range(3):
        value, grad = alone[k].value_and_grad(X[k])
        torch.testing.assert_close(values[k], value)
        torch.testing.assert_close(grads[k], grad)
        for p, q in zip(together.parameters(), alone[k].parameters(), strict=True):
            assert p.shape == (3, *q.shape)
            torch.testing.assert_close(p.grad[k], q.grad)


@pytest.mark.parametrize("name", BATCHED)
def test_batched_prox_equals_separate_ones(name):
    """This holds for a common step length and for one of each member."""
    V, together = draw(3, *SHAPE, seed=8), BATCHED[name]
    for steps in (torch.tensor([0.2, 0.4, 1.0], dtype=V.dtype), 0.4):
        try:
            X, values = together.prox_and_value(V, steps)
        except NotImplementedError:
            return
        for k in range(3):
            step = steps if isinstance(steps, float) else steps[k]
            one, value = member(together, k).prox_and_value(V[k], step)
            torch.testing.assert_close(X[k], one)
            torch.testing.assert_close(values[k], value)


@pytest.mark.parametrize("name", BATCHED)
def test_members_can_be_removed(name):
    """Before the first evaluation and between two."""
    X, together = draw(3, *SHAPE, seed=8), copy.deepcopy(BATCHED[name])
    for members in (torch.tensor([0, 2]), torch.tensor([False, True])):
        values, grads = copy.deepcopy(together).value_and_grad(X)
        together.value_and_grad(X)
        together.select(members)
        X = X[members]
        fewer, fewer_grads = together.value_and_grad(X)
        torch.testing.assert_close(fewer, values[members])
        torch.testing.assert_close(fewer_grads, grads[members])


class Bending(Term):
    """A term from outside the package: all it has is a weight and ``forward``."""

    def __init__(self, weight):
        super().__init__()
        self.add_weight("weight", weight)

    def forward(self, X):
        down = X.diff(n=2, dim=-2).square().sum((-2, -1))
        return self.weight.to(X) / 2 * down


@pytest.mark.parametrize("solver", ["descent", "flow"])
@torch.no_grad()
def test_a_term_from_outside_in_a_batch_with_weights_of_its_members(solver):
    weights = torch.tensor([0.0, 0.5, 4.0])
    values = draw(3, 8, 5, seed=1)
    mask = draw(3, 8, 5, seed=2) > -0.5

    def solver_for(data, weight, rng):
        model = FactorProduct.random((8, 5), 2, 5, 0.1, rng)
        parts = [SquaredError(data), Bending(weight)]
        if solver == "flow":
            return GradientFlow(model, parts)
        return Descent(model, parts, lr=0.02, horizon=60)

    data = Observed(values, mask)
    rng = Randomness.of(range(3), (3,), torch.float64)
    batched = solver_for(data, weights, rng)
    state = batched.init(data)
    for _ in range(20):
        state = batched.step(data, state)
    chosen = torch.tensor([0, 2])
    state, data = batched.select(state, chosen), data.select(chosen)
    for _ in range(20):
        state = batched.step(data, state)
    for k, X in zip((0, 2), state.X, strict=True):
        one = Observed(values[k], mask[k])
        rng = Randomness.of([k], (), torch.float64)
        alone = solve(solver_for(one, weights[k], rng), one, max_iter=40)
        torch.testing.assert_close(alone.X, X)


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


def test_blocks_contain_the_cells_of_a_block():
    X = torch.arange(24.0).view(4, 6)
    items = Blocks(2)(X)
    assert items[0].tolist() == [0, 1, 6, 7]
    assert items[-1].tolist() == [16, 17, 22, 23]


@pytest.mark.parametrize("adjacency", ["row", "global"])
def test_learned_laplacians_have_the_properties_of_laplacians(adjacency):
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
