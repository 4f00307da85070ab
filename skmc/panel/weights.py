r"""Weights of never-treated units and of earlier times.

With weights :math:`\omega` of the units and :math:`\lambda` of the times before the
treatment, each of which sum to one, the outcome of a unit without its treatment is

.. math::

    \hat{X}_{t} = \sum_j \omega_j X_{jt}
    + \sum_{s < T_0} \lambda_s \left(X_s - \sum_j \omega_j X_{js}\right).

It is linear in :math:`X`, and exact if units and times have additive effects.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from scipy.linalg import cholesky, solve, solve_triangular
from scipy.optimize import nnls
from scipy.special import multigammaln

from skmc.cells import Entries
from skmc.completers import SoftImputeCompleter

Weighting = Literal["synthetic", "averaged"]
WEIGHTINGS = get_args(Weighting)
LEAST_BEFORE = 2  # times, between which outcomes differ
TIME_RIDGE = 1e-6  # in standard deviations; makes the weights of times unique
ROUNDING = 1e-10  # relative to the largest deviation in the panel
TAIL = 4  # degrees of freedom of Student's t, which bound the influence of a unit
NOISES = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0)  # variances relative to a step of the walk
SHRINKAGES = 2.0 ** np.arange(11)  # observations that the prior counts for
FIT_STEPS = 100


@dataclass(frozen=True)
class Cohort:
    """Units that are treated at the same times, and their weights.

    Parameters
    ----------
    units : ndarray of int
        The treated units.
    times : bool ndarray of shape (n_times,)
        When they are treated.
    controls : ndarray of int
        The never-treated units.
    unit_weights : ndarray of shape (n_controls,)
        Weights of the controls, which sum to one.
    time_weights : ndarray of shape (n_before,)
        Weights of the times before the treatment, which sum to one.
    """

    units: np.ndarray
    times: np.ndarray
    controls: np.ndarray
    unit_weights: np.ndarray
    time_weights: np.ndarray

    def predict(
        self,
        cells: np.ndarray,  # (n_all_units, n_times)
    ) -> np.ndarray:  # (n_units, n_times)
        """Outcomes of the units without treatment."""
        path = self.unit_weights @ cells[self.controls]
        until = len(self.time_weights)
        levels = (cells[self.units, :until] - path[:until]) @ self.time_weights
        outcomes: np.ndarray = path + levels[:, None]
        return outcomes

    def sums(
        self,
        cells: np.ndarray,  # (n_all_units, n_times)
    ) -> np.ndarray:  # (n_units,)
        """Effects of each unit, summed over its treated times."""
        gaps = cells[self.units] - self.predict(cells)
        sums: np.ndarray = gaps[:, self.times].sum(1)
        return sums


@dataclass(frozen=True)
class WeightedPrediction:
    """A prediction by weights, and what it came from.

    Parameters
    ----------
    whole : ndarray of shape (n_units, n_times)
        Outcomes of the treated units without treatment, NaN for other units.
    cells : ndarray of shape (n_units, n_times)
        The outcomes, with missing ones filled.
    cohorts : list of Cohort
        The weights.
    """

    whole: np.ndarray
    cells: np.ndarray
    cohorts: list[Cohort]

    @classmethod
    def of(
        cls,
        cells: np.ndarray,  # (n_units, n_times)
        treated: np.ndarray,  # (n_units, n_times)
        kind: Weighting,
    ) -> WeightedPrediction:
        """Choose the weights and predict."""
        controls = np.flatnonzero(~treated.any(1) & ~np.isnan(cells).all(1))
        filled, predicted = without_gaps(cells, treated), np.full(cells.shape, np.nan)
        cohorts = choose(filled, treated, controls, kind)
        for cohort in cohorts:
            predicted[cohort.units] = cohort.predict(filled)
        return cls(predicted, filled, cohorts)

    def mean_weights(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights of units and times, means over the treated units."""
        units, times = np.zeros(self.cells.shape[0]), np.zeros(self.cells.shape[1])
        n_treated = sum(len(cohort.units) for cohort in self.cohorts)
        for cohort in self.cohorts:
            share = len(cohort.units) / n_treated
            units[cohort.controls] += share * cohort.unit_weights
            times[: len(cohort.time_weights)] += share * cohort.time_weights
        return units, times


def choose(
    cells: np.ndarray,  # (n_units, n_times)
    treated: np.ndarray,  # (n_units, n_times)
    controls: np.ndarray,
    kind: Weighting,
) -> list[Cohort]:
    """Choose the weights for each set of units that are treated at the same times."""
    # The weights do not depend on units, and squares stay finite.
    middle = cells[controls].mean()
    cells = cells - middle
    cells = cells / (np.abs(cells[controls]).max() or 1)
    others = cells[controls]
    drift = LocalLevel(others) if kind == "averaged" else None
    patterns, member = np.unique(treated, axis=0, return_inverse=True)
    cohorts = []
    for k, times in enumerate(patterns):
        if not times.any():
            continue
        units = np.flatnonzero(member == k)
        treated_path = cells[units, : times.argmax()].mean(0)
        pair = synthetic_weights(others, treated_path, times, len(units))
        if drift is not None:
            second = drift.weights(treated_path)
            pair = (pair[0] + second[0]) / 2, (pair[1] + second[1]) / 2
        cohorts.append(Cohort(units, times, controls, *pair))
    return cohorts


def without_gaps(
    cells: np.ndarray,  # (n_units, n_times)
    treated: np.ndarray,  # (n_units, n_times)
) -> np.ndarray:  # (n_units, n_times)
    """Fill the missing cells from which weights are chosen."""
    ever = treated.any(1)
    first = np.where(ever, treated.argmax(1), treated.shape[1])
    used = np.arange(treated.shape[1]) < first[:, None]
    if not np.isnan(cells[used]).any():
        return cells
    rest = np.where(treated, np.nan, cells)
    completer = SoftImputeCompleter(fixed_effects="both", random_state=0)
    completed = completer.fit(Entries.of_matrix(rest, one_unit=True)).reconstruction_
    return np.where(np.isnan(rest), completed, rest)


def leave_one_out(
    cells: np.ndarray,  # (n_units, n_times)
    treated: np.ndarray,  # (n_units, n_times)
    found: list[Cohort],
) -> np.ndarray | None:  # (n_members,)
    """Average effects without each unit in turn, with the weights kept."""
    if min(len(cohort.units) for cohort in found) < 2:
        return None
    total, count = np.zeros(len(cells)), np.full(len(cells), treated.sum())
    for cohort in found:
        sums = cohort.sums(cells)
        total += sums.sum()
        total[cohort.units] -= sums
        count[cohort.units] -= cohort.times.sum()
        for j, control in enumerate(cohort.controls):
            rest = np.delete(cohort.unit_weights, j)
            if not rest.sum() > ROUNDING:
                return None
            others = np.delete(cohort.controls, j)
            less = replace(cohort, controls=others, unit_weights=rest / rest.sum())
            total[control] += less.sums(cells).sum() - sums.sum()
    averages: np.ndarray = (total / count)[_members(found)]
    return averages


def _members(found: list[Cohort]) -> np.ndarray:
    """Return the units that take part, in their order."""
    return np.sort(np.concatenate([found[0].controls, *(c.units for c in found)]))


def synthetic_weights(
    controls: np.ndarray,  # (n_controls, n_times)
    own: np.ndarray,  # (n_before,)
    times: np.ndarray,  # (n_times,)
    n_treated: int,
) -> tuple[np.ndarray, np.ndarray]:
    r"""Weights of synthetic difference in differences.

    .. math::

        \min_{\omega, c} \sum_{t < T_0} \left(c + \sum_j \omega_j X_{jt} - x_t\right)^2
        + \zeta^2 T_0 \|\omega\|^2, \quad
        \zeta = (n T)^{1/4} \sigma

    over the simplex, for the mean ``x`` of ``n`` units that are treated at ``T`` times;
    :math:`\sigma` is the standard deviation of the differences of controls between
    consecutive times before. Weights of the times predict the mean of the treated times
    from those before, for the controls, with a very small ridge.
    """
    n_before = len(own)
    before, after = controls[:, :n_before], controls[:, times].mean(1)
    steps = np.diff(before, axis=1)
    sigma = steps.std(ddof=1) if steps.size > 1 else abs(steps).max()
    # Parallel straight lines have steps of one size, and any weights fit them.
    sigma = max(sigma, ROUNDING * np.abs(controls - controls.mean()).max())
    ridge = sigma**2 * np.sqrt(n_treated * times.sum()) * n_before
    time_ridge = (TIME_RIDGE * sigma) ** 2 * len(controls)
    return simplex(before.T, own, ridge), simplex(before, after, time_ridge)


def simplex(
    A: np.ndarray,  # (m, n)
    b: np.ndarray,  # (m,)
    ridge: float,
) -> np.ndarray:  # (n,)
    r"""Minimize :math:`\|c + A w - b\|^2 + r \|w\|^2` over ``c`` and the simplex.

    As :math:`A w - b = (A - b 1^\top) w`, the minimum is the point :math:`C w` of a
    polytope that is closest to zero. For :math:`u = s w`, the minimum of
    :math:`\|C u\|^2 + (1^\top u - 1)^2` over ``s`` is :math:`q / (1 + q)` with
    :math:`q = \|C w\|^2`. It increases with ``q``, so nonnegative least squares for
    ``u`` solves the problem exactly.
    """
    n = A.shape[1]
    C = A - b[:, None]
    C = np.concatenate([C - C.mean(0), np.sqrt(ridge) * np.eye(n)])
    size = np.abs(C).max()
    if size == 0:
        return np.full(n, 1 / n)
    C = np.concatenate([C / size, np.ones((1, n))])
    u, _ = nnls(C, np.append(np.zeros(len(C) - 1), 1.0), maxiter=100 * n)
    weights: np.ndarray = u / u.sum()
    return weights


class LocalLevel:
    r"""Controls as random walks with noise around a common path.

    The steps of unit ``i`` between consecutive times, minus those of the common path,
    are normal with the covariance :math:`\Sigma / w_i`. The matrix :math:`\Sigma` has
    an inverse Wishart prior with ``shrinkage`` observations, whose mean is the
    covariance of the steps of a *local level*: a random walk with variance ``v``, plus
    independent noise with variance ``v noise``. As :math:`w_i` has a gamma prior, the
    steps have Student's t distribution, and a unit with large steps has little weight.

    For this mean, ``v``, ``noise``, the :math:`w_i` and the common path maximize the
    likelihood. Then the marginal likelihood chooses ``shrinkage``.

    Given the steps :math:`y` of another unit before a time, the conditional mean of its
    later steps is a weighted mean of those of the controls, by a ridge regression of
    :math:`y` on their steps. Its level is that of a local level: without noise the last
    gap, otherwise a mean of gaps whose weights decrease geometrically into the past.

    Parameters
    ----------
    controls : ndarray of shape (n_controls, n_times)
        Outcomes of never-treated units.
    """

    def __init__(self, controls: np.ndarray) -> None:
        self.controls = controls
        n, n_times = controls.shape
        self.size = np.ones(n)
        self.flat = True
        centered = controls - controls.mean()
        self.floor = ROUNDING * np.abs(centered).max()
        effects = centered.mean(0) + centered.mean(1)[:, None]
        if n < 2 or np.abs(centered - effects).max() <= self.floor:
            return
        fits = [self._fit(noise) for noise in NOISES]
        best = max(fits, key=lambda fit: fit[0])
        _, self.noise, self.size, variance = best
        self.flat = False
        self.covariance = variance * _steps(n_times - 1, self.noise)

    def _fit(self, noise: float) -> tuple[float, float, np.ndarray, float]:
        """Return the log likelihood, the noise, the weights and the variance."""
        n, p = len(self.controls), self.controls.shape[1] - 1
        root = cholesky(_steps(p, noise), lower=True)
        Z = solve_triangular(root, np.diff(self.controls, axis=1).T, lower=True).T
        size, variance = np.ones(n), np.inf
        for _ in range(FIT_STEPS):
            squares = np.square(Z - size @ Z / size.sum()).sum(1)
            last, variance = variance, size @ squares / ((n - 1) * p)
            # If most units have additive effects exactly, it would decrease to zero.
            variance = max(variance, self.floor**2)
            size = (TAIL + p) / (TAIL + squares / variance)
            if abs(last - variance) <= 1e-6 * variance:
                break
        likelihood = -(
            p * n * np.log(variance) / 2
            + n * np.log(np.diag(root)).sum()
            + (TAIL + p) / 2 * np.log1p(squares / variance / TAIL).sum()
        )
        return float(likelihood), noise, size, float(variance)

    @cached_property
    def steps(self) -> np.ndarray:
        """Steps minus those of the common path, scaled to equal covariances."""
        path = self.size @ self.controls / self.size.sum()
        differences: np.ndarray = np.diff(self.controls - path, axis=1)
        return differences * np.sqrt(self.size)[:, None]

    @cached_property
    def shrinkage(self) -> float:
        r"""Number of observations of the prior that maximizes the marginal likelihood.

        With whitened steps of singular values :math:`s_j`, up to constants, for ``k``
        prior observations and :math:`d = k + p + 1`,

        .. math::

            \log \frac{\Gamma_p((d + n) / 2)}{\Gamma_p(d / 2)}
            + \frac{d p}{2} \log k - \frac{d + n}{2} \sum_j \log(k + s_j^2).
        """
        n, p = self.steps.shape
        root = cholesky(self.covariance, lower=True)
        whitened = solve_triangular(root, self.steps.T, lower=True)
        squares = np.zeros(p)
        values = np.linalg.svd(whitened, compute_uv=False)
        squares[: len(values)] = values**2
        evidence = [
            multigammaln((k + p + 1 + n) / 2, p)
            - multigammaln((k + p + 1) / 2, p)
            + (k + p + 1) * p / 2 * np.log(k)
            - (k + p + 1 + n) / 2 * np.log(k + squares).sum()
            for k in SHRINKAGES
        ]
        return float(SHRINKAGES[np.argmax(evidence)])

    def weights(
        self,
        own: np.ndarray,  # (n_before,)
    ) -> tuple[np.ndarray, np.ndarray]:
        """Weights of the controls and of the times before, each of which sum to one."""
        common = self.size / self.size.sum()
        n_before = len(own)
        if self.flat:
            return common, np.full(n_before, 1 / n_before)
        until = n_before - 1
        D, prior = self.steps[:, :until], self.covariance[:until, :until]
        y = np.diff(own - common @ self.controls[:, :n_before])
        own_share = solve(self.shrinkage * prior + D.T @ D, y, assume_a="pos")
        moved = np.sqrt(self.size) * (D @ own_share)
        unit_weights = common + moved - common * moved.sum()
        # The noise of the last level is in the step that follows, too.
        change = solve(prior, self.covariance[:until, until], assume_a="pos")
        time_weights = np.zeros(n_before)
        time_weights[-1] = 1
        time_weights[1:] += change
        time_weights[:-1] -= change
        return unit_weights, time_weights


def _steps(n: int, noise: float) -> np.ndarray:
    """Covariance of the steps of a random walk with noise, relative to its variance."""
    beside: Any = np.eye(n, k=1) + np.eye(n, k=-1)
    covariance: np.ndarray = (1 + 2 * noise) * np.eye(n) - noise * beside
    return covariance
