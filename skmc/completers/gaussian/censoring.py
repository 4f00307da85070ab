r"""Cells that are missing because they lie beyond a limit of detection.

A cell beyond a limit is always missing, and a cell within the limits ``c`` and ``C`` is
missing with the probability ``p``. So a missing cell ``x`` multiplies the density of
its row by

.. math::

    t(x) = \begin{cases} 1 & x < c \text{ or } x > C, \\ p & c \le x \le C.
    \end{cases}

Expectation propagation replaces each :math:`t` by a Gaussian *site*
:math:`\exp(\nu x - \tau x^2 / 2)`, for which the mean and the variance of the cell are
those of its *tilted* distribution: the *cavity*, what all else says of the cell, times
:math:`t`. A site that would widen the distribution of its cell has :math:`\tau = 0`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import torch
from scipy.special import log_ndtr
from scipy.stats import skew
from torch import Tensor

from skmc.base import Limits, limits_of, warn_user
from skmc.cells import Observed
from skmc.completers.gaussian.distributions import (
    Expected,
    FactorGaussian,
    Gaussian,
    Patterns,
    Sites,
)
from skmc.completers.gaussian.em import (
    EM,
    EMState,
    FactorEM,
    FactorEMState,
    FactorSums,
    GaussianResult,
    row_weights,
)
from skmc.exceptions import LimitsWarning
from skmc.linalg import Parts, truncated_normal

DAMPING = 0.5  # of the steps of the sites
SWEEPS = 30  # over the sites of rows under a fitted model
PRIOR_CELLS = 10  # cells of each column, of which its share is missing
FAR = -25.0  # deviations; series replace differences of nearly equal numbers there
TINY_MASS = 1e-12  # of an interval
MOST_SKEWED = 2  # skewness of the exponential distribution, the limit of a tail


@dataclass(frozen=True, eq=False)
class CensoredCells(Observed):
    """Observed cells, and limits beyond which the missing ones may lie.

    Parameters
    ----------
    low, high : float64 Tensor of shape (n_rows, n_cols)
        Limits of the missing cells, infinite where there is none.
    share : float64 Tensor of shape (n_cols,)
        Probability that a cell within its limits is missing, at first and on average
        under its prior.
    """

    low: Tensor
    high: Tensor
    share: Tensor

    def first_rows(self, n: int) -> CensoredCells:
        if not self.mask[:n].any():
            return self
        found = cast(CensoredCells, super().first_rows(n))
        return replace(found, low=self.low[:n], high=self.high[:n])

    def to(self, *args: Any) -> CensoredCells:
        found = cast(CensoredCells, super().to(*args))
        limits = self.censoring.to(found.device)
        return replace(found, low=limits.low, high=limits.high, share=limits.share)

    @classmethod
    def of(
        cls,
        data: Observed,
        limits: Censoring,
        used: Tensor,  # (n_rows,)
    ) -> CensoredCells:
        """Add the limits of the ``used`` rows to their scaled cells."""
        if len(limits.low) > 1:
            limits = limits.rows(used)
        limits = limits.at(~data.mask.cpu()).to(data.device)
        return cls(
            data.values,
            data.mask,
            limits.low,
            limits.high,
            limits.share,
            weights=data.weights,
            free_means=data.free_means,
        )

    @property
    def censoring(self) -> Censoring:
        """The limits of these cells."""
        return Censoring(self.low, self.high, self.share, self.share)


@dataclass(frozen=True, eq=False)
class Tilted(Parts):
    """Moments of cells times the factors of their limits.

    Parameters
    ----------
    mean, variance : Tensor of shape (n_rows, n_cols)
        Moments of each cell; those before where there is no limit.
    within : Tensor of shape (n_rows, n_cols)
        Probability that the cell lies within its limits; 0 where there is no limit.
    log_factor : Tensor of shape (n_rows,)
        Logarithm of the factors of a row relative to its sites.
    sites : Sites
        The next sites.
    """

    mean: Tensor
    variance: Tensor
    within: Tensor
    log_factor: Tensor
    sites: Sites

    @classmethod
    def joined(cls, parts: list[Tilted]) -> Tilted:
        """Join the moments of parts of the rows."""
        return parts[0].map(lambda *x: torch.cat(x), *parts[1:])


@dataclass(frozen=True, eq=False)
class Censoring(Parts):
    """Limits of scores, beyond which cells are missing.

    Parameters
    ----------
    low, high : float64 Tensor of shape (n_rows, n_cols), or (1, n_cols) before `at`
        Limits, infinite where there is none.
    share : float64 Tensor of shape (n_cols,)
        Probability that a cell within its limits is missing.
    prior : float64 Tensor of shape (n_cols,)
        Mean of this probability under its prior. 0 if no such cell is missing.
    """

    low: Tensor
    high: Tensor
    share: Tensor
    prior: Tensor

    def at(
        self,
        missing: Tensor,  # (n_rows, n_cols)
    ) -> Censoring:
        """The limits of missing cells alone."""
        low = torch.where(missing, self.low, -torch.inf)
        high = torch.where(missing, self.high, torch.inf)
        return replace(self, low=low, high=high)

    def of(
        self,
        missing: Tensor,  # (n_rows, n_cols)
    ) -> Tensor:  # (n_rows, n_cols)
        """Which of the missing cells have a limit."""
        return missing & (self.low.isfinite() | self.high.isfinite())

    def rows(self, rows: Any) -> Censoring:
        """The limits of some rows."""
        return replace(self, low=self.low[rows], high=self.high[rows])

    def tilt(
        self,
        mean: Tensor,  # (n_rows, n_cols)
        variance: Tensor,  # (n_rows, n_cols)
        sites: Sites,
        missing: Tensor,  # (n_rows, n_cols)
    ) -> Tilted:
        """Moments of cells from those with sites, and better sites."""
        at = self.of(missing).nonzero(as_tuple=True)
        m, v, tau, nu = (x[at] for x in (mean, variance, sites.precision, sites.linear))
        cavity = 1 / v - tau
        m_c, v_c = (m / v - nu) / cavity, 1 / cavity
        low, high = self.low[at], self.high[at]
        share = self.share.expand_as(mean)[at]
        m_t, v_t, within, log_total = _tilted(m_c, v_c, low, high, share)
        precision = (1 / v_t - cavity).clamp_min(0)
        linear = m_t * (cavity + precision) - m_c * cavity
        of_site = ((v / v_c).log() + m.square() / v - m_c.square() / v_c) / 2
        log_factor = torch.zeros_like(mean)
        log_factor[at] = log_total - of_site
        found, spread = mean.clone(), variance.clone()
        found[at], spread[at] = m_t, v_t
        probable = torch.zeros_like(mean)
        probable[at] = within
        pairs = (sites.precision, precision), (sites.linear, linear)
        moved = []
        for old, new in pairs:
            old = old.clone()
            old[at] = old[at].lerp(new, DAMPING)
            moved.append(old)
        return Tilted(found, spread, probable, log_factor.sum(1), Sites(*moved))

    def shares(
        self,
        within: Tensor,  # (n_rows, n_cols)
        times: Tensor,  # (n_rows, n_cols)
        weights: Tensor,  # (n_rows,)
    ) -> Tensor:  # (n_cols,)
        """The most probable shares, given which cells lie within limits."""
        missing = weights @ within + PRIOR_CELLS * self.prior
        observed = times.sum(0) + PRIOR_CELLS * (1 - self.prior)
        return torch.where(self.prior > 0, missing / (missing + observed), 0.0)

    def log_prior(
        self,
        times: Tensor,  # (n_rows, n_cols)
    ) -> Tensor:  # ()
        """Logarithm of the prior of the shares, and that cells are observed."""
        missing = PRIOR_CELLS * self.prior
        observed = times.sum(0) + PRIOR_CELLS - missing
        return (missing.xlogy(self.share) + observed * (-self.share).log1p()).sum()

    def completed(
        self,
        model: Gaussian | FactorGaussian,
        values: Tensor,  # (n_rows, n_cols)
        seen: Tensor,  # (n_rows, n_cols)
        n_sweeps: int = SWEEPS,
    ) -> Tilted:
        """Moments of the missing cells of rows under a fitted model."""
        zero = torch.zeros_like(values)
        sites, patterns = Sites(zero, zero), Patterns.of_each(seen, zero[:, 0] + 1)
        for _ in range(n_sweeps):
            if isinstance(model, FactorGaussian):
                parts = model.scores(values, seen, sites)
                pairs = [model.cells(part, sites)[:2] for part in parts]
                mean, variance = (torch.cat(x) for x in zip(*pairs, strict=True))
            else:
                expected = model.expect(values, patterns, sites)
                mean = model.mean + expected.deviations
                assert expected.variances is not None
                variance = torch.where(seen, 1.0, expected.variances)
            found = self.tilt(mean, variance, sites, ~seen)
            sites = found.sites
        return found

    def drawn(
        self,
        mean: np.ndarray,  # (k,)
        std: float,
        least: float,
        largest: float,
        rows: Tensor,  # (n_rows,)
        col: int,
        rng: np.random.RandomState,
    ) -> np.ndarray:  # (k,)
        """Draw missing cells of a column from normal ones times the factors."""
        low, high = (x[rows, col].clamp(least, largest) for x in (self.low, self.high))
        ends = np.stack(
            [np.full(len(mean), least), low, high, np.full(len(mean), largest)]
        )
        with np.errstate(divide="ignore"):
            share = np.log(float(self.share[col]))
        upto = np.cumsum(_masses((ends - mean) / std, share), 0)
        region = (rng.random_sample(len(mean)) * upto[-1] >= upto[:-1]).sum(0)
        k = np.arange(len(mean))
        return truncated_normal(mean, std, ends[region, k], ends[region + 1, k], rng)


def _masses(ends: np.ndarray, log_share: float) -> np.ndarray:
    """Relative masses of the three intervals between ascending ends, (3, n)."""
    low, high = ends[:-1], ends[1:]
    flip = low > 0  # the upper tail is as exact as the lower one
    low, high = np.where(flip, -high, low), np.where(flip, -low, high)
    with np.errstate(divide="ignore", invalid="ignore"):
        above, below = log_ndtr(high), log_ndtr(low)
        found = above + np.log1p(-np.exp(below - above))
        found = np.where(high > low, found, -np.inf)
        found[1] += log_share
        return np.exp(found - found.max(0))


def _tilted(
    mean: Tensor, variance: Tensor, low: Tensor, high: Tensor, share: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Mean, variance, probability within the limits, and log of the integral.

    The density is a normal one, multiplied by ``share`` within the limits.
    """
    std = variance.sqrt()
    a, b = (low - mean) / std, (high - mean) / std
    below, above = torch.special.log_ndtr(a), torch.special.log_ndtr(-b)
    inside = (1 - below.exp() - above.exp()).clamp_min(0)
    logs = torch.stack([below, share.log() + inside.log(), above])
    total = logs.logsumexp(0)
    parts = (logs - total).exp()
    firsts, spreads = (
        torch.stack(x) for x in zip(_below(a), _between(a, b), _above(b), strict=True)
    )
    first = (parts * firsts).sum(0)
    spread = (parts * (spreads + (firsts - first).square())).sum(0)
    return mean + std * first, variance * spread, parts[1], total


def _below(a: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance of a standard normal number that is below ``a``.

    They are 0 and 1 where ``a`` is infinite.
    """
    far = a < FAR
    x = torch.where(far | a.isinf(), 0.0, a)
    h = _density(x) / torch.special.log_ndtr(x).exp()  # ndtr is not exact in the tail
    near = -h, 1 - x * h - h.square()
    y = torch.where(far & a.isfinite(), a, FAR)
    tail = y + 1 / y - 2 / y**3, 1 / y**2 - 6 / y**4
    mean, variance = (torch.where(far, t, n) for t, n in zip(tail, near, strict=True))
    return torch.where(a.isinf(), 0.0, mean), torch.where(a.isinf(), 1.0, variance)


def _above(b: Tensor) -> tuple[Tensor, Tensor]:
    mean, variance = _below(-b)
    return -mean, variance


def _between(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance of a standard normal number between ``a`` and ``b``."""
    one_sided = _below(b), _above(a)
    x, y = (torch.where(z.isfinite(), z, 0.0) for z in (a, b))
    low, high = torch.special.log_ndtr(a), torch.special.log_ndtr(b)
    mass = high.exp() - low.exp()
    fa, fb = _density(a), _density(b)
    some = mass > TINY_MASS
    mass = torch.where(some, mass, 1.0)
    nearest = torch.where(b < 0, y, x)  # of the interval to the mean
    mean = torch.where(some, (fa - fb) / mass, nearest)
    variance = 1 + (x * fa - y * fb) / mass - mean.square()
    variance = torch.where(some, variance.clamp_min(TINY_MASS), 0.0)
    for infinite, (m, v) in zip((a.isinf(), b.isinf()), one_sided, strict=True):
        mean, variance = (
            torch.where(infinite, m, mean),
            torch.where(infinite, v, variance),
        )
    return mean, variance


def _density(x: Tensor) -> Tensor:
    return (-x.square() / 2).exp() / math.sqrt(2 * math.pi)


def detection_limits(
    lower: Limits | str,
    upper: Limits | str,
    cells: np.ndarray,  # (n_rows, n_cols)
    used: np.ndarray,  # (n_rows,)
    names: Sequence[Any],
) -> tuple[np.ndarray, np.ndarray]:
    """Read the limits beyond which missing cells may lie."""
    seen, found = np.where(used[:, None], cells, np.nan), []
    for name, given, word, end in (
        ("lower_limit", lower, "min", -np.inf),
        ("upper_limit", upper, "max", np.inf),
    ):
        if isinstance(given, str):
            if given != word:
                raise ValueError(f"{name}={given!r}; pass numbers, {word!r} or None.")
            extreme = np.fmin if word == "min" else np.fmax
            limit = extreme.reduce(seen, 0)
        elif not isinstance(given, Mapping) and np.ndim(given) == 2:  # type: ignore
            found.append(_of_cells(given, name, cells.shape, end))
            continue
        else:
            limit = limits_of(given, name, names, cells.shape[1])
        limit = np.where(np.isnan(limit), end, limit)
        beyond = cells < limit if word == "min" else cells > limit
        if beyond.any():
            row, col = np.argwhere(beyond)[0]
            label = f"column {col}" + (f" ({names[col]!r})" if len(names) else "")
            raise ValueError(
                f"X has the observed value {cells[row, col]:g} in row {row} of "
                f"{label}, beyond {name}={limit[col]:g}; correct the limit, or pass a "
                "matrix with the limit of each missing cell."
            )
        found.append(limit[None])
    low, high = np.broadcast_arrays(*found)
    wrong = np.isnan(cells) & (low > high)
    if wrong.any():
        row, col = np.argwhere(wrong)[0]
        raise ValueError(
            f"lower_limit is above upper_limit in row {row}, column {col}; exchange or "
            "correct them."
        )
    return low, high


def warn_of_limits(
    cells: np.ndarray,  # (n_rows, n_cols)
    censoring: Censoring,
) -> None:
    """Warn if columns with limits cannot come from a normal distribution.

    Most of them are too skewed, or some have only two values.
    """
    limited = censoring.of(torch.from_numpy(np.isnan(cells))).any(0).numpy()
    two = [k for k in np.flatnonzero(limited) if _n_values(cells[:, k]) == 2]
    if two:
        warn_user(
            f"Columns {[int(k) for k in two]} with a limit of detection have only two "
            "values, and a limit cuts a normal distribution; give them no limit.",
            LimitsWarning,
        )
    skewness = skew(cells[:, limited], nan_policy="omit")
    if np.mean(np.abs(skewness) > MOST_SKEWED) > 0.5:
        warn_user(
            "Most columns with a limit of detection have a skewness above 2, more than "
            "a normal distribution can have that is cut at a limit; take logarithms "
            "first.",
            LimitsWarning,
        )


def _n_values(x: np.ndarray) -> int:
    return len(np.unique(x[~np.isnan(x)]))


def _of_cells(given: Any, name: str, shape: tuple[int, ...], end: float) -> np.ndarray:
    try:
        limit = np.asarray(given, float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must have numbers: {error}.") from error
    if limit.shape != shape:
        raise ValueError(
            f"{name} has shape {limit.shape}; a matrix must have the shape of X, "
            f"{shape}."
        )
    return np.where(np.isnan(limit), end, limit)


@dataclass(frozen=True, kw_only=True)
class CensoredEMState(EMState):
    """A Gaussian, its expectations of the missing cells, and the sites of these.

    Parameters
    ----------
    sites : Sites
        Sites of the missing cells that have a limit.
    share : Tensor of shape (n_cols,)
        Probability that a cell within its limits is missing.
    """

    sites: Sites
    share: Tensor


@dataclass(frozen=True, eq=False, kw_only=True)
class CensoredResult(GaussianResult):
    """The same with the share of cells within their limits that are missing."""

    share: Tensor  # (n_cols,)


class CensoredEM(EM):
    r"""`EM` where missing cells may lie beyond limits.

    The objective has the logarithm of the factors :math:`t` in addition, as expectation
    propagation approximates it, and that of the prior of the shares ``p``. Each step
    also improves the sites, and sets

    .. math::

        p_j = \frac{\sum_i r_{ij} + 10 f_j}{\sum_i r_{ij} + n_j + 10}

    with the share :math:`f_j` of the column that is missing, the probabilities
    :math:`r_{ij}` that missing cells lie within their limits, and the number
    :math:`n_j` of observed cells.

    References
    ----------
    Minka. Expectation propagation for approximate Bayesian inference. Uncertainty in
    Artificial Intelligence (2001).
    """

    def init(self, data: Any) -> EMState:
        values = data.values.double()
        zero, eye = torch.zeros_like(values), torch.eye(values.shape[1]).to(values)
        model = self.start or Gaussian(eye.new_zeros(len(eye)), eye)
        patterns = Patterns.of_each(data.mask, row_weights(data))
        return self._tilt(data, model, patterns, Sites(zero, zero), data.share)

    def step(self, data: Any, state: Any) -> EMState:
        model = self._maximize(state)
        return self._tilt(data, model, state.patterns, state.sites, state.share)

    def _tilt(
        self,
        data: CensoredCells,
        model: Gaussian,
        patterns: Patterns,
        sites: Sites,
        share: Tensor,
    ) -> EMState:
        censoring, weights = replace(data.censoring, share=share), patterns.weights
        expected = model.expect(data.values.double(), patterns, sites)
        mean = model.mean + expected.deviations
        assert expected.variances is not None
        variance = torch.where(data.mask, 1.0, expected.variances)
        found = censoring.tilt(mean, variance, sites, ~data.mask)
        # Sites of precision 0 leave out a part of the variance.
        wider = (found.variance - variance).clamp_min(0)
        scatter = expected.scatter + (weights @ wider).diag()
        times = data.times.double()
        likelihood = expected.log_likelihood + weights @ found.log_factor
        likelihood = likelihood + censoring.log_prior(times)
        expected = Expected(expected.deviations, scatter, likelihood)
        return CensoredEMState(
            **vars(self._state(data, model, patterns, expected)),
            sites=found.sites,
            share=censoring.shares(found.within, times, weights),
        )

    def result(self, state: Any) -> CensoredResult:
        return CensoredResult(X=state.X, model=state.model, share=state.share)


@dataclass(frozen=True, kw_only=True)
class CensoredFactorEMState(FactorEMState):
    """A factor model, its expectations of the rows, and the sites of missing cells.

    Parameters
    ----------
    sites : Sites
        Sites of the missing cells that have a limit.
    share : Tensor of shape (n_cols,)
        Probability that a cell within its limits is missing.
    """

    sites: Sites
    share: Tensor


class CensoredFactorEM(FactorEM):
    """`FactorEM` where missing cells may lie beyond limits, as in `CensoredEM`.

    The regression of a column also has the missing cells with a limit, by their
    expectations.
    """

    def init(self, data: Any) -> FactorEMState:
        zero = torch.zeros_like(data.values.double())
        model = self.start or self._components(data)
        return self._tilt(data, model, Sites(zero, zero), data.share)

    def step(self, data: Any, state: Any) -> FactorEMState:
        return self._tilt(data, self._maximize(state), state.sites, state.share)

    def _tilt(
        self, data: CensoredCells, model: FactorGaussian, sites: Sites, share: Tensor
    ) -> FactorEMState:
        values, weights = data.values.double(), row_weights(data)
        censoring, missing = replace(data.censoring, share=share), ~data.mask
        at, observed = censoring.of(missing), data.times.double()
        times = weights[:, None] * (data.mask | at)
        sums, likelihood = FactorSums.zero(model), values.new_zeros(())
        every: list[Tilted] = []
        for part in model.scores(values, data.mask, sites):
            rows = part.rows
            mean, variance, slope = model.cells(part, sites)
            own = censoring.rows(rows).tilt(
                mean, variance, sites.rows(rows), missing[rows]
            )
            every.append(own)
            x = torch.where(data.mask[rows], values[rows], mean)
            sums.add(part, times[rows], x)
            # The cells with a limit covary with the factors, and have a variance.
            times_at = times[rows] * at[rows]
            along = torch.einsum("krs,js->kjr", part.covariance, model.loadings)
            sums.cross[:, :-1] += ((times_at * slope)[..., None] * along).sum(0)
            spread = torch.maximum(own.variance, variance)
            sums.squares.add_((times_at * spread).sum(0))
            likelihood = likelihood + weights[rows] @ part.log_likelihood
        found = Tilted.joined(every)
        likelihood = likelihood + weights @ found.log_factor
        likelihood = likelihood + censoring.log_prior(observed)
        return CensoredFactorEMState(
            objective=self._objective(data, model, likelihood),
            X=data.fill(found.mean.to(data.values)),
            model=model,
            sums=sums,
            sites=found.sites,
            share=censoring.shares(found.within, observed, weights),
        )

    def result(self, state: Any) -> CensoredResult:
        return CensoredResult(X=state.X, model=state.model, share=state.share)
