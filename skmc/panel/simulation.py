"""Which estimator is best for a panel, by treatments without an effect."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from skmc.base import BaseCompleter
from skmc.cells import Container
from skmc.completers import SoftImputeCompleter
from skmc.linalg import Seed
from skmc.metrics import check_level
from skmc.panel.effect import Panel, is_weighting, placebo_units, predictor
from skmc.panel.result import half_width
from skmc.panel.weights import WEIGHTINGS, Weighting


def simulate(
    X: Container,
    treated: Container | str,
    estimators: Mapping[str, BaseCompleter | Weighting] | None = None,
    *,
    unit: Hashable = None,
    time: Hashable = None,
    outcome: Hashable = None,
    covariates: Sequence[Any] = (),
    n_draws: int | None = None,
    random_state: Seed = None,
) -> PanelSimulation:
    """Compare estimators of an effect on the untreated units of a panel.

    Never-treated units take the place of the treated ones, as the placebos of `effect`
    do. There is no effect, so each estimate is an error. An effect that is added to
    their outcomes would change all estimates by the same amount. All estimators see the
    same draws.

    Parameters
    ----------
    X : DataFrame, array or other container of shape (n_units, n_times)
        Outcomes, see `effect`.
    treated : container of bool of shape (n_units, n_times), or column of ``X``
        The treated cells.
    estimators : mapping of str to completer, "synthetic" or "averaged", default=None
        Estimators by name: completers, or values of ``weights`` in `effect`. None means
        both weights and "MC-NNM", the default completer of `effect`.
    unit, time, outcome : column of ``X`` or None, default=None
        Columns of a long table, see `effect`.
    covariates : sequence of containers of shape (n_units, n_times), or columns of ``X``
        Covariates, see `effect`.
    n_draws : int >= 1 or None, default=None
        Number of groups that take the place. None means the number of never-treated
        units, which is the largest for one treated unit.
    random_state : int, RandomState instance or None, default=None
        Source of the groups.

    Returns
    -------
    PanelSimulation

    Raises
    ------
    ValueError
        The panel is not valid, see `effect`; ``estimators`` has another value;
        ``n_draws`` is below 1; there are too few never-treated units.
    TypeError
        ``n_draws`` is another object.

    See Also
    --------
    effect : Estimates an effect.
    skmc.model_selection.compare : Compares completers on held-out cells.

    Notes
    -----
    The estimator with the least error here is the best guess for the treated units, if
    they are like the others. With few never-treated units, differences of some percent
    are chance. Choose before you look at the effect.

    References
    ----------
    Arkhangelsky, Athey, Hirshberg, Imbens, Wager. Synthetic difference-in-differences.
    American Economic Review 111 (2021), section 3.

    Examples
    --------
    >>> import numpy as np
    >>> from skmc.panel import simulate
    >>> rng = np.random.RandomState(0)
    >>> X = rng.randn(20, 1) + np.cumsum(rng.randn(20, 15), axis=1)
    >>> treated = np.zeros(X.shape, bool)
    >>> treated[0, 10:] = True
    >>> found = simulate(X, treated, {"a": "synthetic", "b": "averaged"})
    >>> found.errors["a"].shape
    (19,)
    """
    if estimators is None:
        estimators = {
            "averaged": "averaged",
            "synthetic": "synthetic",
            "MC-NNM": SoftImputeCompleter(fixed_effects="both", random_state=0),
        }
    if not isinstance(estimators, Mapping) or not estimators:
        raise ValueError(
            "estimators must be a dict of names and completers or weights, such as "
            f"{{'mine': 'averaged'}}, got {estimators!r}."
        )
    for name, estimator in estimators.items():
        if not isinstance(estimator, BaseCompleter) and not is_weighting(estimator):
            raise ValueError(
                f"estimators[{name!r}] must be a completer or of {WEIGHTINGS}, got "
                f"{estimator!r}."
            )
    if not isinstance(n_draws, Integral | None):
        raise TypeError(f"n_draws must be an integer or None, got {n_draws!r}.")
    if n_draws is not None and n_draws < 1:
        raise ValueError(f"n_draws must be at least 1, got {n_draws}.")
    panel = Panel.read(X, treated, unit, time, outcome, covariates)
    if any(is_weighting(estimator) for estimator in estimators.values()):
        panel.check_weighted()
    seed = check_random_state(random_state).randint(2**31)
    gaps = {}
    for name, estimator in estimators.items():
        rng = np.random.RandomState(seed)
        predict = predictor(estimator)
        placebos = placebo_units(predict, panel.cells, panel.treated, n_draws, rng)
        gaps[name] = np.array([mean[0] for mean, _ in placebos])
        if not len(gaps[name]):
            raise ValueError(
                "There are too few never-treated units with observed cells to take the "
                "place of the treated ones; add units."
            )
    count = panel.treated.sum(0)
    return PanelSimulation(gaps=gaps, count=count)


@dataclass(eq=False, repr=False, kw_only=True)
class PanelSimulation:
    """Errors of estimators where there is no effect, see `simulate`.

    Parameters
    ----------
    gaps : dict of str to ndarray of shape (n_draws, n_times)
        Mean errors of each draw at the treated times, NaN at others.
    count : int ndarray of shape (n_times,)
        Number of treated units at each time, which weights the times.

    See Also
    --------
    simulate : Makes it.
    """

    gaps: Mapping[str, np.ndarray]
    count: np.ndarray

    @property
    def errors(self) -> dict[str, np.ndarray]:
        """Errors of the average effect, (n_draws,), by estimator."""
        return {name: self._mean(gaps) for name, gaps in self.gaps.items()}

    @property
    def rmse(self) -> dict[str, float]:
        """Root mean square of `errors`."""
        return {k: float(np.sqrt(np.mean(e**2))) for k, e in self.errors.items()}

    @property
    def rmse_by_time(self) -> dict[str, float]:
        """Mean over the draws of the root mean square error over the times."""
        squares = {name: self._mean(gaps**2) for name, gaps in self.gaps.items()}
        return {name: float(np.sqrt(some).mean()) for name, some in squares.items()}

    @property
    def bias(self) -> dict[str, float]:
        """Mean of `errors`."""
        return {name: float(errors.mean()) for name, errors in self.errors.items()}

    def _mean(self, gaps: np.ndarray) -> np.ndarray:
        weights = np.where(np.isnan(gaps), 0, self.count)
        averages: np.ndarray = (np.nan_to_num(gaps) * weights).sum(1) / weights.sum(1)
        return averages

    def half_width(self, level: float = 0.9) -> dict[str, float]:
        """Half the width of the intervals of `effect`, by estimator.

        Parameters
        ----------
        level : float in (0, 1), default=0.9
            Probability of the intervals.

        Returns
        -------
        dict of str to float
            An effect is found where its absolute value is larger. Infinite for few
            draws.
        """
        check_level(level)
        return {name: half_width(errors, level) for name, errors in self.errors.items()}

    def summary(self) -> str:
        """Report the errors, the smallest first.

        Returns
        -------
        str
            Text of several lines.
        """
        half, rmse = self.half_width(), self.rmse
        n = len(next(iter(self.gaps.values())))
        width = max(len("estimator"), *map(len, self.gaps))
        lines = [
            f"Errors of the average effect in {n} draws without an effect",
            f"{'estimator':<{width}} {'rmse':>10} {'by time':>10} {'bias':>10} "
            f"{'90 %':>10}",
        ]
        lines += [
            f"{name:<{width}} {rmse[name]:10.4g} {self.rmse_by_time[name]:10.4g} "
            f"{self.bias[name]:10.4g} {_plus_minus(half[name]):>10}"
            for name in sorted(rmse, key=lambda name: rmse[name])
        ]
        return "\n".join(lines)

    __str__ = summary

    def __repr__(self) -> str:
        return f"<PanelSimulation: {', '.join(self.gaps)}>"


def _plus_minus(half: float) -> str:
    return f"+-{half:.4g}" if math.isfinite(half) else "infinite"
