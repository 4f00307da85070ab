"""The estimator contract of matrix sensing."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn

from skmc.base import (
    FitSummary,
    diverged,
    out_of_time,
    record,
    unfinished,
    warn_user,
)
from skmc.compatibility import (
    CallbackSupportMixin,
    fit_context,
    page_of_class,
    with_callbacks,
)
from skmc.linalg import Randomness, resolve_device, seed_of
from skmc.loop import CallbackHooks, Solution, Status, solve, time_limit
from skmc.parameters import Count, NonNegative, Positive, constrained
from skmc.sensing.checks import check_plain, is_shape
from skmc.sensing.dense import DenseMeasurements, ScaledMeasurements
from skmc.sensing.measured import Measured
from skmc.sensing.measurements import Measurements
from skmc.solvers import GradientFlow, Result, Solver
from skmc.terms import MeasurementError

FLOATS = [np.float64, np.float32]
# A flow that reaches max_iter with a smaller residual is close enough to its limit.
SLOW = 1e-2


@constrained
@dataclass(eq=False, repr=False)
class BaseSensingRegressor(FitSummary, RegressorMixin, BaseEstimator):
    """Base class that reads measurements and predicts others, without an intercept.

    Subclasses define `_recover`.

    Parameters
    ----------
    shape : tuple of int or None, default=None
        Shape ``(n_rows, n_cols)`` of matrices that are given as flat rows.
    device : str or torch.device, default="auto"
        Device of the computation; "auto" is CUDA if it is available.
    """

    # Exact methods compute in double precision, and return that of the data.
    in_double: ClassVar[bool] = True
    _doc_link_module = "skmc"
    _doc_link_template = property(page_of_class)

    _: KW_ONLY
    shape: Annotated[tuple[int, int], "array-like"] | None = None
    device: str | torch.device = "auto"

    @abstractmethod
    def _recover(
        self, operator: Measurements, y: Tensor
    ) -> tuple[Tensor, Solution | None]:
        """Return the matrix, (n_rows, n_cols), and the solution if it is iterative."""

    @with_callbacks
    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, A: ArrayLike | Measurements, y: ArrayLike) -> Self:
        """Recover the matrix.

        Parameters
        ----------
        A : array of shape (n_samples, n_rows, n_cols) or (n_samples, n_rows * \
n_cols), or `Measurements`
            Matrices ``A_i``. Matrices that are flattened row by row need the
            parameter ``shape``; without it they are measurements of a single row, of
            shape (1, n_features), and this is a plain linear model. `Measurements` are
            used without a copy, in the floating-point type of ``y``.
        y : array of shape (n_samples,)
            Results ``y_i = <A_i, X>``, up to noise.

        Returns
        -------
        self
        """
        operator, results = self._read(A, y, fits=True)
        targets = torch.from_numpy(results)
        dtype = torch.float64 if self.in_double else targets.dtype
        device = resolve_device(self.device)
        X, solution = self._recover(
            operator.to(device, dtype), targets.to(device, dtype)
        )
        self.matrix_ = X.to("cpu", targets.dtype).numpy()
        self._report(solution)
        return self

    def _report(self, solution: Any) -> None:
        """Set attributes that describe an iterative fit."""

    def predict(self, A: ArrayLike | Measurements) -> np.ndarray:
        """Predict ``<A_i, matrix_>``.

        Parameters
        ----------
        A : array or `Measurements`, as in `fit`
            Other measurements, of matrices of the same shape.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        X = torch.from_numpy(self.matrix_)
        operator, _ = self._read(A)
        return operator.to("cpu", X.dtype).forward(X).numpy()

    def _read(
        self, A: Any, y: object = None, *, fits: bool = False
    ) -> tuple[Measurements, Any]:
        """Read measurements, and in `fit` their results and ``n_features_in_``."""
        if isinstance(A, Measurements):
            shape = self._matrix_shape(A.matrix_shape, fits)
            if fits:
                self.n_features_in_ = shape[0] * shape[1]
                self.__dict__.pop("feature_names_in_", None)
            return A, self._read_results(y, A) if fits else None
        A, y = _array("A", A), _array("y", y)
        if isinstance(A, list | tuple):
            A = np.asarray(A)
        of_matrices = None
        if getattr(A, "ndim", 2) == 3:
            of_matrices = self._matrix_shape(A.shape[1:], fits)
            A = np.asarray(A).reshape(len(A), of_matrices[0] * of_matrices[1])
        # DenseMeasurements rejects NaN and infinity, and names their position.
        how = {"dtype": FLOATS, "ensure_all_finite": False}
        if fits:
            flat, y = validate_data(self, A, y, y_numeric=True, **how)
            y = np.array(y, flat.dtype)
        elif of_matrices:  # of matching shape, and without names as in `fit`
            flat = check_array(A, **how)
        else:
            if (
                getattr(A, "shape", None)
                == self.matrix_.shape
                != (1, self.n_features_in_)
            ):
                raise ValueError(
                    f"A has shape {A.shape}, that of one matrix and not of several "
                    "measurements; A[None] is one measurement."
                )
            flat = validate_data(self, A, reset=False, **how)
        shape = of_matrices or self._matrix_shape((1, flat.shape[1]), fits, flat=True)
        return DenseMeasurements(flat.reshape(-1, *shape)), y

    def _matrix_shape(
        self, given: Sequence[int], fits: bool, flat: bool = False
    ) -> tuple[int, int]:
        """Return the matrix shape, if measurements of shape ``given`` match it."""
        if not fits:
            wanted = self.matrix_.shape
        elif self.shape is None:
            wanted = tuple(given)
        else:
            wanted = tuple(self.shape)
            if not is_shape(wanted):
                raise ValueError(
                    f"shape must be (n_rows, n_cols) or None, got {self.shape!r}."
                )
        agrees = np.prod(wanted) == np.prod(given) if flat else wanted == tuple(given)
        if not agrees:
            raise ValueError(
                f"A has {given[1]} columns, which is not a matrix of shape {wanted}"
                if flat
                else f"A measures matrices of shape {tuple(given)}, not {wanted}; "
                "correct one of the two."
            )
        return int(wanted[0]), int(wanted[1])

    def _read_results(self, y: Any, A: Measurements) -> np.ndarray:
        """Read results of `Measurements`, which scikit-learn does not check."""
        if y is None:
            raise ValueError(
                "fit requires y to be passed: one result for each measurement."
            )
        y = column_or_1d(_array("y", y), warn=True)
        y = check_array(y, ensure_2d=False, dtype=FLOATS, input_name="y")
        if len(y) != len(A):
            raise ValueError(
                f"A has {len(A)} measurements and y {len(y)} results; each needs one."
            )
        return np.array(y)


def _array(name: str, values: object) -> Any:
    """Convert tensors to arrays, and keep other objects."""
    if not isinstance(values, Tensor):
        return check_plain(name, values)
    values = values.detach().cpu()
    return (values.double() if values.dtype == torch.bfloat16 else values).numpy()


@constrained
@dataclass(eq=False, repr=False)
class IterativeSensingRegressor(CallbackSupportMixin, BaseSensingRegressor):
    """Base class that recovers the matrix by the iteration loop.

    Subclasses define `_make_solver`. The problem is solved in units in which the
    entries of the ``A_i`` and the ``y_i`` have root mean square 1; ``X`` then has a
    Frobenius norm of about 1, if the ``A_i`` cover all directions evenly.

    Parameters
    ----------
    shape : tuple of int or None, default=None
        Shape ``(n_rows, n_cols)`` of matrices that are given as flat rows.
    device : str or torch.device, default="auto"
        Device of the computation; "auto" is CUDA if it is available.
    max_iter : int >= 1, default=3000
        Maximum number of iterations.
    max_time : float > 0 or None, default=None
        Time limit of `fit` in seconds.
    tol : float >= 0, default=1e-6
        Stop when the residual of the solver is at most ``tol``.
    """

    check_every: ClassVar[int] = 25

    _: KW_ONLY
    max_iter: Count = 3000
    max_time: Positive | None = None
    tol: NonNegative = 1e-6

    @abstractmethod
    def _make_solver(self, data: Measured, rng: Randomness) -> Solver:
        """Make the solver for scaled measurements."""

    def _recover(
        self, operator: Measurements, y: Tensor
    ) -> tuple[Tensor, Solution | None]:
        n_cells = operator.matrix_shape[0] * operator.matrix_shape[1]
        # In double precision, squares of single-precision numbers do not overflow.
        energy = float(operator.to(operator.device, torch.float64).energy)
        size = _unit(energy / (len(y) * n_cells), y)
        unit = _unit(float(y.double().square().mean()), y)
        for name, number in (("A", size), ("y", unit)):
            if number == float("inf"):
                raise ValueError(f"Squares of {name} overflow; divide {name} by 1e100.")
        data = Measured.of(ScaledMeasurements(operator, 1 / size), y / unit)
        seed = seed_of(getattr(self, "random_state", 0))
        rng = Randomness.of([seed], dtype=y.dtype)

        def fitted(result: Result) -> dict:
            return {"matrix_": (result.X * (unit / size)).cpu().numpy()}

        hooks = CallbackHooks(self, operator, y.cpu().numpy(), fitted)
        hooks.begin()
        if data.values.any():
            with time_limit(self.max_time):
                solution = solve(
                    self._make_solver(data, rng),
                    data,
                    max_iter=self.max_iter,
                    tol=self.tol,
                    stop=[hooks],
                    check_every=self.check_every,
                )
        else:  # the least-norm solution is zero
            solution = _zero(data)
        hooks.end(solution.result)
        return solution.X * (unit / size), solution

    def _report(self, solution: Solution) -> None:
        """Set attributes that describe the fit, and warn if it did not end well."""
        for name, value in record(solution).items():
            setattr(self, name, value)
        advice = self._advice(solution)
        if advice:
            warn_user(f"{type(self).__name__} {advice}", ConvergenceWarning)
        if solution.status[0] is Status.INTERRUPTED:
            raise KeyboardInterrupt

    def _advice(self, solution: Solution) -> str | None:
        """Make a warning about a fit that did not end well, with advice."""
        return (
            out_of_time(solution, self.max_time, False)
            or diverged(solution, "check A and y")
            or unfinished(solution, self.tol)
        )


def _zero(data: Measured) -> Solution:
    none = torch.zeros_like(data.n_observed)
    history = {"n_iter": none, "objective": data.energy / 2, "residual": none}
    return Solution(
        result=Result(X=data.zero()),
        status=[Status.CONVERGED],
        n_iter=none,
        residual=none,
        history={name: value[None] for name, value in history.items()},
    )


class FlowSensingRegressor(IterativeSensingRegressor):
    """Gradient flow of a model of the matrix on ``1/2 sum_i (y_i - <A_i, X>)^2``.

    Subclasses define `_model`.
    """

    in_double: ClassVar[bool] = False

    @abstractmethod
    def _model(self, data: Measured, rng: Randomness) -> nn.Module:
        """Make the initial model, whose ``forward()`` is the matrix."""

    def _make_solver(self, data: Measured, rng: Randomness) -> Solver:
        terms = [MeasurementError(data.operator, data.y)]
        return GradientFlow(self._model(data, rng), terms)

    def _advice(self, solution: Solution) -> str | None:
        if solution.status[0] is Status.MAX_ITER and float(solution.residual) < SLOW:
            return None  # with noise, convergence is very slow
        return super()._advice(solution)


def _unit(square: float, like: Tensor) -> float:
    """The root of a mean square, or 1 if its inverse overflows."""
    unit = square**0.5
    return unit if unit > 1 / torch.finfo(like.dtype).max else 1.0
