"""Matrix sensing: operators, solvers and regressors."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from conftest import make
from scipy import sparse
from sklearn.base import clone
from sklearn.callback import ScoringMonitor
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score

from skmc import Observed
from skmc.loop import solve
from skmc.sensing import (
    CellMeasurements,
    DenseMeasurements,
    DiagonalMeasurements,
    FactorizedSensingRegressor,
    LinearSensingRegressor,
    Measured,
    NuclearSensingRegressor,
    RankOneMeasurements,
    SpectralSensingRegressor,
)
from skmc.sensing.dense import ScaledMeasurements
from skmc.sensing.nuclear import ProximalGradient
from skmc.terms import MeasurementError, NuclearNorm, SquaredError, SquaredNorm

REGRESSORS = [
    FactorizedSensingRegressor,
    LinearSensingRegressor,
    NuclearSensingRegressor,
    SpectralSensingRegressor,
]


def quick(cls, **params):
    """An instance that converges on small problems at once."""
    return make(cls, **{"max_iter": 1000, **params})


def make_limit():
    """The nuclear norm's other solver."""
    return NuclearSensingRegressor(0, device="cpu")


every_regressor = pytest.mark.parametrize("cls", REGRESSORS)
# A network takes seconds.
every_quick_regressor = pytest.mark.parametrize(
    "cls",
    [
        pytest.param(cls, marks=[pytest.mark.long] * (cls is SpectralSensingRegressor))
        for cls in REGRESSORS
    ],
)
SHAPE = 5, 4


def draw(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def basis(n, k, seed):
    return torch.linalg.qr(draw(n, k, seed=seed))[0]


OPERATORS = {
    "dense": lambda n: DenseMeasurements(draw(n, *SHAPE)),
    "diagonal": lambda n: DiagonalMeasurements(
        basis(5, 3, 1), draw(n, 3, seed=2), basis(4, 3, 3)
    ),
    "rank one": lambda n: RankOneMeasurements(draw(n, 5, seed=4), draw(n, 4, seed=5)),
    "cells": lambda n: CellMeasurements(  # some come twice
        torch.arange(n) % 3, torch.arange(n) % 4, SHAPE
    ),
    "scaled": lambda n: ScaledMeasurements(DenseMeasurements(draw(n, *SHAPE)), -0.3),
}
every_operator = pytest.mark.parametrize("name", OPERATORS)
few_and_many = pytest.mark.parametrize("n", [1, 13, 30])  # of a matrix with 20 cells


@every_operator
@few_and_many
def test_adjoint(name, n):
    A = OPERATORS[name](n)
    X, r = draw(2, *SHAPE, seed=6), draw(2, n, seed=7)
    assert A.forward(X).shape == (2, n)
    assert A.adjoint(r).shape == (2, *SHAPE)
    torch.testing.assert_close((A.forward(X) * r).sum(), (X * A.adjoint(r)).sum())


@every_operator
@few_and_many
def test_operators_equal_their_dense_form(name, n):
    A = OPERATORS[name](n)
    dense = DenseMeasurements(A.dense())
    X, y = draw(*SHAPE, seed=6), draw(n, seed=7)
    assert (len(A), A.shape, A.matrix_shape) == (n, (n,), SHAPE)
    torch.testing.assert_close(A.forward(X), dense.forward(X))
    torch.testing.assert_close(A.adjoint(y), dense.adjoint(y))
    torch.testing.assert_close(A.energy, dense.energy)
    torch.testing.assert_close(A.gram(), dense.gram())
    torch.testing.assert_close(A.norm, torch.linalg.matrix_norm(dense.A.flatten(1), 2))
    flat = dense.A.flatten(1).numpy()
    expected = np.linalg.lstsq(flat, y.numpy())[0].reshape(SHAPE)
    torch.testing.assert_close(A.least_norm(y), torch.from_numpy(expected))


@every_operator
def test_slices_and_casts(name):
    A = OPERATORS[name](9)
    whole = A.dense()
    A.norm, A.least_norm(draw(9))  # what is remembered of A is not A's part's
    for index in (slice(2, 5), np.array([7, 0, 0]), np.arange(9) < 4):
        part = A[index]
        torch.testing.assert_close(part.dense(), whole[index])
        torch.testing.assert_close(part.norm, DenseMeasurements(whole[index]).norm)
    X = draw(*SHAPE, seed=1)
    single = A.to("cpu", torch.float32).forward(X.float())
    assert single.dtype == torch.float32
    torch.testing.assert_close(single, A.forward(X).float())
    assert "9" in repr(A)
    if name != "scaled":
        with pytest.raises(TypeError, match="array of indices"):
            A[3]


def test_measured_cells_equal_observed_cells():
    values, mask = draw(*SHAPE), draw(*SHAPE, seed=1) > 0
    cells = Observed(values, mask)
    rows, cols = mask.nonzero().unbind(1)
    data = Measured.of(CellMeasurements(rows, cols, SHAPE), values[mask])
    X = draw(*SHAPE, seed=2)
    torch.testing.assert_close(data.values, cells.values)
    torch.testing.assert_close(data.residual(X), cells.residual(X))
    torch.testing.assert_close(data.misfit(X), cells.misfit(X))
    torch.testing.assert_close(data.energy, cells.energy)
    torch.testing.assert_close(data.n_observed, cells.n_observed)
    term, known = MeasurementError(data.operator, data.y), SquaredError(cells)
    for ours, theirs in zip(
        term.value_and_grad(X), known.value_and_grad(X), strict=True
    ):
        torch.testing.assert_close(ours, theirs)


def test_measured_data_stay_measured():
    """Moved, cast, or without some of the measurements."""
    rng = np.random.RandomState(0)
    A = DenseMeasurements(rng.randn(12, *SHAPE))
    y, X = torch.from_numpy(rng.randn(12)), torch.from_numpy(rng.randn(*SHAPE))
    data = Measured.of(A, y)
    single = data.to(torch.float32)
    assert isinstance(single, Measured)
    assert {single.values.dtype, single.y.dtype, single.operator.A.dtype} == {
        torch.float32
    }
    torch.testing.assert_close(
        single.misfit(X.float()), data.misfit(X).float(), rtol=1e-5, atol=0
    )
    assert single.to("cpu", torch.float64).y.dtype == torch.float64
    assert data.to("cpu").y.dtype == torch.float64
    hidden = torch.arange(12) % 3 == 0
    rest = data.hide(hidden)
    expected = (A.forward(X) - y)[~hidden].square().sum()
    torch.testing.assert_close(rest.misfit(X), expected)
    torch.testing.assert_close(
        rest.residual(X), A[~hidden].adjoint((A.forward(X) - y)[~hidden])
    )
    assert rest.n_observed == 8
    with pytest.raises(ValueError, match=r"hidden has shape .* one for each measure"):
        data.hide(torch.zeros(SHAPE, dtype=torch.bool))


def test_operators_copy_their_data():
    array, tensor = draw(4, *SHAPE).numpy(), draw(4, *SHAPE).requires_grad_()
    for given in (array, tensor):
        A = DenseMeasurements(given)
        norm, energy = float(A.norm), float(A.energy)
        with torch.no_grad():
            given *= 2
        assert (A[:].norm, A.energy) == pytest.approx((norm, energy))
        assert not A.forward(torch.ones(SHAPE).double()).requires_grad
    places = np.array([0, 1])
    cells = CellMeasurements(places, torch.from_numpy(places), SHAPE)
    places[:] = 3
    assert cells.rows.tolist() == cells.cols.tolist() == [0, 1]


def test_forms_of_an_operator():
    a, b = draw(4, 5).numpy(), draw(4, 4, seed=1).numpy()
    X = draw(*SHAPE)
    expected = RankOneMeasurements(a, b).forward(X)
    frozen = a.copy()
    frozen.flags.writeable = False
    turned = a[::-1].copy()[::-1]  # of negative strides
    unmasked = np.ma.masked_array(a, mask=False)
    for same in (
        a.tolist(),
        frozen,
        turned,
        pd.DataFrame(a),
        unmasked,
        a.astype(">f8"),
    ):
        A = RankOneMeasurements(same, b)
        assert A.a.dtype == torch.float64
        torch.testing.assert_close(A.forward(X), expected)
    for kind, kept in (
        (np.float32, torch.float32),
        (np.float16, torch.float64),
        (np.int8, torch.float64),
        (bool, torch.float64),
    ):
        assert RankOneMeasurements(a.astype(kind), b).a.dtype == kept
    assert (
        RankOneMeasurements(torch.from_numpy(a).bfloat16(), b).a.dtype == torch.double
    )


@pytest.mark.parametrize("kind", ["u1", "i1", "u2", "u4", "u8", ">i4"])
def test_positions_may_be_any_integers(kind):
    rows, cols = np.array([100, 3], kind), np.array([0, 2], kind)[::-1]
    A = CellMeasurements(rows, cols, np.array([300, 400]))
    X = torch.arange(300 * 400).view(300, 400)
    assert A.forward(X).tolist() == [100 * 400 + 2, 3 * 400]


def test_bad_operators():
    ok = torch.ones(3, 2)
    masked = np.ma.masked_array(ok, mask=np.eye(3, 2)[::-1])
    empty = torch.ones(1, 0, 2)
    ints = torch.ones(2).int()
    for error, match, build in (
        (ValueError, "A must be 3-dimensional", lambda: DenseMeasurements(ok)),
        (ValueError, "and not empty", lambda: DenseMeasurements(empty)),
        (ValueError, "rows must be 1-dim.* not empty", lambda: CellMeasurements(
            [], [], SHAPE)),
        (ValueError, r"a is masked at \(1, 1\)", lambda: RankOneMeasurements(
            masked, ok)),
        (ValueError, r"rows is masked at \(1,\)", lambda: CellMeasurements(
            np.ma.masked_array([0, 1], mask=[0, 1]), [0, 1], SHAPE)),
        (TypeError, "a is sparse.*toarray", lambda: RankOneMeasurements(
            sparse.csr_array(ok), ok)),
        (TypeError, "A is sparse.*toarray", lambda: DenseMeasurements(
            [sparse.csr_array(ok)])),
        *(
            (ValueError, r"matrix_shape must be \(n_rows, n_cols\)", lambda shape=shape:
                CellMeasurements([0], [0], shape))
            for shape in ((2.7, 2), (2,), 2, (2, 0), (True, 2), None, (2, 2, 2))
        ),
        (TypeError, "cols has dtype torch.bool.*integers", lambda: CellMeasurements(
            ints, ints > 0, SHAPE)),
        (ValueError, r"rows contains 200 .*0\.\.4", lambda: CellMeasurements(
            np.array([200], "u1"), [0], SHAPE)),
        (TypeError, "A is complex", lambda: DenseMeasurements(ok[None] * 1j)),
        (ValueError, r"b contains NaN.* at \(0, 0\)", lambda: RankOneMeasurements(
            ok, ok * np.nan)),
        (ValueError, "a has 3 rows and b 2", lambda: RankOneMeasurements(ok, ok[:2])),
        (ValueError, "Phi must have orthonormal", lambda: DiagonalMeasurements(
            ok, ok, ok)),
        (ValueError, "Phi has 3 columns and values 2", lambda: DiagonalMeasurements(
            torch.eye(3), ok, torch.eye(2))),
        (ValueError, r"cols contains 4 at position 1.*0\.\.3", lambda: CellMeasurements(
            [0, 0], [1, 4], SHAPE)),
        (TypeError, "rows has dtype torch.float64.*integers", lambda: CellMeasurements(
            [0.5], [1], SHAPE)),
        (ValueError, "rows has length 2 and cols 1", lambda: CellMeasurements(
            [0, 1], [1], SHAPE)),
    ):  # fmt: skip
        with pytest.raises(error, match=match):
            build()


# The solvers


def gaussian(n, shape=(10, 10), rank=2, noise=0.0, seed=0):
    """Measurements, their results and the matrix, as arrays."""
    rng = np.random.RandomState(seed)
    X = rng.randn(shape[0], rank) @ rng.randn(rank, shape[1])
    A = rng.randn(n, *shape)
    y = np.tensordot(A, X)
    return A, y + noise * y.std() * rng.randn(n), X


def error(matrix, truth):
    return np.linalg.norm(matrix - truth) / np.linalg.norm(truth)


def test_proximal_gradient_of_a_squared_norm_is_ridge():
    """This works for any regularizer with ``prox_and_value``."""

    class Ridge(SquaredNorm):
        def prox_and_value(self, V, step):
            X = self.prox(V, step)
            return X, self(X)

    A, y = DenseMeasurements(draw(12, *SHAPE)), draw(12, seed=1)
    solver = ProximalGradient(MeasurementError(A, y), Ridge(0.5), A.norm.square())
    data = Measured.of(A, y)
    solution = solve(solver, data, max_iter=5000, tol=1e-10)
    flat = A.dense().flatten(1)
    eye = torch.eye(flat.shape[1], dtype=flat.dtype)
    expected = torch.linalg.solve(flat.mT @ flat + 0.5 * eye, flat.mT @ y).view(SHAPE)
    assert solution.status[0] == "converged"
    torch.testing.assert_close(solution.X, expected)


def test_restarts_keep_the_objective_falling():
    A, y, _ = gaussian(60, noise=0.1)
    operator, y = DenseMeasurements(A), torch.from_numpy(y)
    data = Measured.of(operator, y)
    solver = ProximalGradient(
        MeasurementError(operator, y),
        NuclearNorm(0.01 * torch.linalg.matrix_norm(data.values, 2)),
        operator.norm.square(),
    )
    solution = solve(solver, data, max_iter=3000, tol=1e-9, check_every=1)
    assert solution.status[0] == "converged"
    assert len(solution.history["objective"]) < 700
    objective = solution.history["objective"]
    assert objective.argmin() > len(objective) - 50
    torch.testing.assert_close(solver.init(data).objective, 0.5 * data.energy)


def test_kkt_of_the_penalized_problem():
    """``A*(y - A X)`` is ``lambda U V'`` and, beside it, at most ``lambda``."""
    A, y, _ = gaussian(100, (10, 12), noise=0.1)
    model = NuclearSensingRegressor(0.05).fit(A, y)
    weight = 0.05 * np.linalg.norm(np.tensordot(y, A, 1), 2)
    certificate = np.tensordot(y - model.predict(A), A, 1) / weight
    U, s, Vh = np.linalg.svd(model.matrix_)
    rank = (s > 1e-8 * s[0]).sum()
    assert 2 <= rank < 9
    U, Vh = U[:, :rank], Vh[:rank]
    np.testing.assert_allclose(U.T @ certificate, Vh, atol=1e-4)
    np.testing.assert_allclose(certificate @ Vh.T, U, atol=1e-4)
    assert np.linalg.norm(certificate, 2) < 1 + 1e-4
    assert np.linalg.norm(certificate - U @ Vh, 2) < 1 - 1e-3  # where X has no part


def test_kkt_of_the_limit():
    """Some combination of the ``A_i`` is ``U V'`` and, beside it, at most 1."""
    A, y, X = gaussian(50)  # too few for recovery
    model = NuclearSensingRegressor(0, tol=1e-8).fit(A, y)
    np.testing.assert_allclose(model.predict(A), y, atol=1e-6)
    assert error(model.matrix_, X) > 0.05
    U, s, Vh = np.linalg.svd(model.matrix_)
    rank = (s > 1e-8 * s[0]).sum()
    assert 2 < rank < 10
    # The multipliers, from the part where the certificate is known, ...
    P, Q = U[:, rank:], Vh[rank:]
    parts = A - P @ (P.T @ A @ Q.T) @ Q
    target = U[:, :rank] @ Vh[:rank]
    found = np.linalg.lstsq(parts.reshape(50, -1).T, target.ravel())
    certificate = np.tensordot(found[0], A, 1)
    np.testing.assert_allclose(U[:, :rank].T @ certificate, Vh[:rank], atol=1e-5)
    # ... which hold where it is only bounded.
    assert np.linalg.norm(P.T @ certificate @ Q.T, 2) <= 1 + 1e-5


@pytest.mark.long
def test_the_limit_is_that_of_weights_tending_to_zero():
    A, y, _ = gaussian(50, noise=0.05)
    limit = NuclearSensingRegressor(0).fit(A, y).matrix_
    distances = [
        error(NuclearSensingRegressor(weight).fit(A, y).matrix_, limit)
        for weight in (1e-2, 1e-3, 1e-4)
    ]
    assert distances[1] < 0.2 * distances[0]
    assert distances[2] < 0.2 * distances[1] < 1e-2


def test_weights_of_one_and_nothing_to_fit():
    A, y, _ = gaussian(30)
    assert np.abs(NuclearSensingRegressor(1.0).fit(A, y).matrix_).max() < 1e-12
    assert np.abs(NuclearSensingRegressor(0.99).fit(A, y).matrix_).max() > 1e-6
    for model in (
        LinearSensingRegressor(),
        NuclearSensingRegressor(),
        NuclearSensingRegressor(0),
        FactorizedSensingRegressor(),
        SpectralSensingRegressor(random_state=0),
    ):
        for A_, y_ in ((A, 0 * y), (0 * A, y)):
            assert np.abs(model.fit(A_, y_).matrix_).max() < 1e-5
            if hasattr(model, "history_"):
                assert set(model.history_) == {"n_iter", "objective", "residual"}


# The regressors


def test_a_start_in_a_subspace_finds_other_singular_vectors():
    """``sum_i y_i A_i`` is of rank one here, and the answer too, but another."""
    A = np.stack([np.diag([1.0, 0.0]), np.diag([1.0, 2.0])])
    model = SpectralSensingRegressor(init="spectral", random_state=0)
    np.testing.assert_allclose(model.fit(A, [2.0, 0.0]).predict(A), [2, 0], atol=1e-3)


@every_regressor
def test_units_of_single_precision(cls):
    A, y, _ = gaussian(30, (6, 4))
    A, y = A.astype("f"), y.astype("f")
    expected = quick(cls).fit(A, y).matrix_
    for unit in (1e18, 1e-25):
        found = quick(cls).fit(A * np.float32(unit), y).matrix_ * unit
        np.testing.assert_allclose(found, expected, atol=1e-2)


@pytest.mark.parametrize(
    "cls", [c for c in REGRESSORS if "max_iter" in c().get_params()]
)
def test_numbers_whose_squares_overflow(cls):
    A, y, _ = gaussian(8, (3, 4))
    with pytest.raises(ValueError, match="Squares of A overflow"):
        quick(cls).fit(1e200 * A, y)
    with pytest.raises(ValueError, match="Squares of y overflow"):
        quick(cls).fit(A, 1e200 * y)


def test_least_squares():
    """The least-norm matrix fits few measurements exactly, and many approximately."""
    A, y, X = gaussian(60)
    few = LinearSensingRegressor().fit(A, y)
    np.testing.assert_allclose(few.predict(A), y)
    np.testing.assert_allclose(
        few.matrix_.ravel(), np.linalg.pinv(A.reshape(60, -1)) @ y
    )
    A, y, X = gaussian(200)
    assert error(LinearSensingRegressor().fit(A, y).matrix_, X) < 1e-10


def test_the_convex_solution_recovers():
    A, y, X = gaussian(100, (10, 12))
    assert error(NuclearSensingRegressor(0).fit(A, y).matrix_, X) < 1e-5
    assert error(NuclearSensingRegressor(1e-4).fit(A, y).matrix_, X) < 1e-3
    default = NuclearSensingRegressor().fit(A, y)
    assert error(default.matrix_, X) < 0.05
    assert error(LinearSensingRegressor().fit(A, y).matrix_, X) > 0.3
    assert np.linalg.matrix_rank(default.matrix_, 1e-6) < 6


@pytest.mark.long
@pytest.mark.parametrize(
    "model",
    [
        SpectralSensingRegressor(init="spectral", width=6, random_state=0),
        FactorizedSensingRegressor(),
        FactorizedSensingRegressor(2),
        FactorizedSensingRegressor(4),
        FactorizedSensingRegressor(6),
        SpectralSensingRegressor(random_state=0),
        SpectralSensingRegressor((3, 2), "sigmoid", random_state=0),
        SpectralSensingRegressor((1,), "truncated_relu", random_state=0),
        SpectralSensingRegressor(init="spectral", random_state=0),
    ],
    ids=repr,
)
def test_flows_recover_matrices_that_least_squares_does_not(model):
    A, y, X = gaussian(70)
    linear = LinearSensingRegressor().fit(A, y)
    assert error(model.fit(A, y).matrix_, X) < 0.03
    assert error(linear.matrix_, X) > 0.4


def test_a_deep_product_is_of_lower_rank_than_a_free_matrix():
    """Depth 1 is descent on a free matrix from nearly zero: least squares."""
    A, y, X = gaussian(60)
    free = FactorizedSensingRegressor(1, init_scale=1e-6).fit(A, y)
    linear = LinearSensingRegressor().fit(A, y)
    assert error(free.matrix_, linear.matrix_) < 1e-4
    assert error(free.matrix_, X) > 0.4
    narrow = FactorizedSensingRegressor(2, width=2).fit(A, y)
    assert np.linalg.matrix_rank(narrow.matrix_, 1e-8) == 2
    assert error(narrow.matrix_, X) < 0.01


@pytest.mark.parametrize("cls", [LinearSensingRegressor, FactorizedSensingRegressor])
def test_forms_of_the_same_measurements(cls):
    A, y, _ = gaussian(30, (6, 4))
    expected = quick(cls).fit(A, y)
    assert expected.matrix_.shape == (6, 4)
    assert expected.n_features_in_ == 24
    names = [f"cell {k}" for k in range(24)]
    for same, shape in (
        (A.reshape(30, 24), (6, 4)),
        (pd.DataFrame(A.reshape(30, 24), columns=names), [6, 4]),
        (A.tolist(), None),
        (torch.from_numpy(A), (6, 4)),
        (np.asfortranarray(A), None),
        (DenseMeasurements(A), None),
    ):
        model = quick(cls, shape=shape).fit(same, y)
        np.testing.assert_allclose(model.matrix_, expected.matrix_, atol=1e-10)
        np.testing.assert_allclose(
            model.predict(same[:3] if shape is None else same)[:3],
            expected.predict(A[:3]),
            atol=1e-9,
        )
    flat = quick(cls).fit(A.reshape(30, 24), y)
    assert flat.matrix_.shape == (1, 24)


def test_unusual_forms():
    A, y, _ = gaussian(30, (6, 4))
    model = LinearSensingRegressor(shape=(6, 4), device="cpu")
    expected = model.fit(A, y).matrix_
    as_A = np.ma.masked_array(A, mask=False), torch.from_numpy(A).requires_grad_()
    as_y = y, np.ma.masked_array(y, mask=False), torch.from_numpy(y).requires_grad_()
    for same in (A, *as_A, DenseMeasurements(as_A[1])):
        for results in as_y:
            model.fit(same, results)
            np.testing.assert_allclose(model.matrix_, expected)
        np.testing.assert_allclose(model.predict(same), y)
    half = torch.from_numpy(A).bfloat16(), torch.from_numpy(y).bfloat16()
    as_half = model.fit(half[0].double().numpy(), half[1].double().numpy()).matrix_
    np.testing.assert_array_equal(model.fit(*half).matrix_, as_half)
    frame = pd.DataFrame(A.reshape(30, 24)).rename(columns=str)
    np.testing.assert_allclose(model.fit(frame, y).predict(A), y)


@every_regressor
@pytest.mark.parametrize("name", ["diagonal", "rank one", "cells"])
def test_operators_predict_like_their_dense_form(cls, name):
    A = OPERATORS[name](13)
    y = A.forward(draw(*SHAPE, seed=9)).numpy()
    sparse, dense = quick(cls).fit(A, y), quick(cls).fit(A.dense().numpy(), y)
    np.testing.assert_allclose(sparse.matrix_, dense.matrix_, atol=1e-6)
    np.testing.assert_allclose(sparse.predict(A), dense.predict(A.dense()), atol=1e-6)
    assert sparse.score(A, y) == pytest.approx(dense.score(A, y))


def test_completion_is_sensing_of_cells():
    """... where enough cells of a matrix of low rank are known to recover it."""
    rng = np.random.RandomState(0)
    X = rng.randn(30, 2) @ rng.randn(2, 20)
    rows, cols = np.nonzero(rng.rand(30, 20) < 0.6)
    model = NuclearSensingRegressor(0)
    model.fit(CellMeasurements(rows, cols, (30, 20)), X[rows, cols])
    assert error(model.matrix_, X) < 1e-4


@every_quick_regressor
def test_single_precision_is_kept(cls):
    A, y, _ = gaussian(96, (6, 4))
    double, single = quick(cls).fit(A, y), quick(cls).fit(A.astype("f"), y.astype("f"))
    assert double.matrix_.dtype == double.predict(A).dtype == np.float64
    assert single.matrix_.dtype == single.predict(A.astype("f")).dtype == np.float32
    # Draws differ, and products approach a matrix of lower rank slowly.
    near = 1e-2 if cls is FactorizedSensingRegressor else 1e-4
    np.testing.assert_allclose(single.matrix_, double.matrix_, atol=near)
    by_operator = quick(cls).fit(DenseMeasurements(A), y.astype("f"))
    assert by_operator.matrix_.dtype == np.float32
    whole = quick(cls).fit((9 * A).astype(int), y.astype(int))
    assert whole.matrix_.dtype == np.float64


@every_quick_regressor
def test_units_do_not_matter(cls):
    A, y, _ = gaussian(40, (6, 8), noise=0.1)
    expected = quick(cls).fit(A, y).matrix_
    for in_A, in_y in ((1e6, 1.0), (1.0, 1e-7), (1e-3, 1e5)):
        found = quick(cls).fit(in_A * A, in_y * y).matrix_ * (in_A / in_y)
        np.testing.assert_allclose(found, expected, atol=1e-5)


@every_regressor
def test_deterministic_picklable_cloneable(cls):
    A, y, _ = gaussian(30, (6, 4))
    model = quick(cls).fit(A, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(A), model.predict(A))
    state = torch.random.get_rng_state()
    np.testing.assert_array_equal(clone(model).fit(A, y).matrix_, model.matrix_)
    assert torch.equal(torch.random.get_rng_state(), state)


@every_regressor
def test_bad_input(cls):
    A, y, _ = gaussian(8, (3, 4))
    hole = A.copy()
    hole[5, 1, 2] = np.nan
    masked_A, masked_y = (np.ma.masked_array(part, mask=False) for part in (A, y))
    masked_A[5, 1, 2] = masked_y[6] = np.ma.masked
    model = quick(cls)
    cells = CellMeasurements([0, 1], [1, 0], (3, 4))
    for match, A_, y_ in (
        ("inconsistent numbers of samples", A, y[:-1]),
        ("2 measurements and y 3 results", cells, [1.0, 2.0, 3.0]),
        (r"A contains NaN or infinity at \(5, 1, 2\)", hole, y),
        (r"A is masked at \(5, 1, 2\); leave that measurement out", masked_A, y),
        (r"A is masked at \(5, 6\)", masked_A.reshape(8, 12), y),
        (r"y is masked at \(6,\)", A, masked_y),
        (r"y is masked at \(6,\)", cells, masked_y),
        ("y contains NaN", A, y * np.nan),
        ("y contains NaN", cells, [1.0, np.nan]),
        ("Complex data not supported", A * 1j, y),
        ("Complex data not supported", A, y * 1j),
        ("Complex data not supported", cells, np.array([1j, 1.0])),
        ("minimum of 1 is required", A[:0], y[:0]),
        ("minimum of 1 is required", cells[:0], []),
        ("requires y to be passed", A, None),
        ("y should be a 1d array", A, np.stack([y, y], 1)),
        ("dim 4", A[None], y[:1]),
    ):
        with pytest.raises(ValueError, match=match):
            model.fit(A_, y_)
    for flat in (sparse.csr_array(A[0]), [sparse.csr_array(a) for a in A]):
        with pytest.raises(TypeError, match=r"A is sparse.*toarray"):
            model.fit(flat, y)
    with pytest.raises(ValueError, match=r"shape must be \(n_rows, n_cols\)"):
        quick(cls, shape=(3, 2.5)).fit(A, y)
    with pytest.raises(ValueError, match=r"matrices of shape \(3, 4\), not \(4, 3\)"):
        quick(cls, shape=(4, 3)).fit(A, y)
    with pytest.raises(ValueError, match=r"has 12 columns.* shape \(3, 5\)"):
        quick(cls, shape=(3, 5)).fit(A.reshape(8, 12), y)
    model.fit(A, y)
    with pytest.raises(ValueError, match=r"of shape \(4, 3\), not \(3, 4\)"):
        model.predict(A.transpose(0, 2, 1))
    with pytest.raises(ValueError, match=r"A has shape \(3, 4\).*A\[None\]"):
        model.predict(A[0])
    with pytest.raises(ValueError, match=r"A is masked"):
        model.predict(masked_A)
    with pytest.raises(ValueError, match="6 features"):
        model.predict(A.reshape(8, 12)[:, :6])
    with pytest.raises(ValueError, match="device='nowhere' is not available"):
        quick(cls, device="nowhere").fit(A, y)


def test_searches_split_measurements():
    A, y, _ = gaussian(150, (8, 6), noise=0.5)
    grid = {"lambda_nuclear": [1e-4, 0.1, 1.0]}
    search = GridSearchCV(NuclearSensingRegressor(), grid, cv=3).fit(A, y)
    assert search.best_params_ == {"lambda_nuclear": 0.1}
    operator = GridSearchCV(NuclearSensingRegressor(), grid, cv=3)
    operator.fit(DenseMeasurements(A), y)
    np.testing.assert_allclose(
        operator.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"]
    )
    linear = cross_val_score(LinearSensingRegressor(), A, y, cv=3).mean()
    assert linear < search.best_score_ - 0.05


def test_history_and_callbacks():
    A, y, _ = gaussian(40, (6, 4), noise=0.1)
    monitor = ScoringMonitor(scoring={"r2": lambda model, A, y: model.score(A, y)})
    model = NuclearSensingRegressor(0.01).set_callbacks(monitor)
    model.fit(A, y)
    scores = monitor.get_logs().data_as_pandas["r2"].to_numpy()
    assert scores[-1] == pytest.approx(model.score(A, y))
    history = model.history_
    assert history["n_iter"][-1] == model.n_iter_ == 5 * (len(scores) - 1)
    assert history["residual"][-1] <= model.tol < history["residual"][0]
    assert history["objective"][-1] < history["objective"][0]
    assert model.status_ == "converged"


@pytest.mark.parametrize(
    ("model", "status", "match"),
    [
        (NuclearSensingRegressor(1e-4, max_iter=20), "max_iter", "raise max_iter or"),
        (NuclearSensingRegressor(0, max_iter=10), "max_iter", "raise max_iter or"),
        (
            FactorizedSensingRegressor(max_iter=2),
            "max_iter",
            "raise max_iter or",
        ),
        (
            SpectralSensingRegressor(max_iter=5, random_state=0),
            "max_iter",
            "raise max_iter or",
        ),
    ],
)
def test_unsuccessful_fits_warn(model, status, match):
    A, y, _ = gaussian(50)
    with pytest.warns(ConvergenceWarning, match=match):
        model.fit(A, y)
    assert model.status_ == status
    assert np.isfinite(model.matrix_).all()


def test_an_interrupted_fit_is_usable(monkeypatch):
    A, y, _ = gaussian(50)

    def step(self, data, state):
        if state.momentum.t > 5:
            raise KeyboardInterrupt
        return original(self, data, state)

    original = ProximalGradient.step
    monkeypatch.setattr(ProximalGradient, "step", step)
    model = NuclearSensingRegressor()
    with pytest.raises(KeyboardInterrupt):
        model.fit(A, y)
    assert model.status_ == "interrupted"
    assert 0 < model.score(A, y) < 1
