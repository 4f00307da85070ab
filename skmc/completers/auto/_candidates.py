"""The candidates of `AutoCompleter` and what their fits cost."""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from skmc.base import resolve_device
from skmc.completers.air import AIRCompleter
from skmc.completers.bayesian import BayesianFactorizationCompleter
from skmc.completers.biharmonic import BiharmonicCompleter
from skmc.completers.costs import COSTS, INFORMED, Cost, Size
from skmc.completers.dmf import DMFCompleter
from skmc.completers.factorization import FactorizationCompleter
from skmc.completers.gaussian import GaussianCompleter
from skmc.completers.ialm import IALMCompleter
from skmc.completers.knn import KNNCompleter
from skmc.completers.mean import MeanCompleter
from skmc.completers.ncarl import NCARLCompleter
from skmc.completers.nonlocal_groups import NonlocalCompleter
from skmc.completers.patch_cnn import PatchCNNCompleter
from skmc.completers.soft_impute import SoftImputeCompleter
from skmc.completers.svd import SVDCompleter
from skmc.completers.trees import TreesCompleter
from skmc.completers.truncated import TNNRCompleter


class Candidate(NamedTuple):
    """An estimator to try.

    ``cost`` is the time of a fit in seconds. The times of the first fits correct it for
    the machine, and for this candidate. ``takes`` names features and graphs of rows and
    columns that its ``fit`` is given.
    """

    name: str
    estimator: Any
    cost: Callable[[Size], float] = Cost(0.0, cells=1e-6)
    takes: tuple[str, ...] = ()

    def arguments(self, known: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of ``fit`` among what is known about rows and columns."""
        return {name: known[name] for name in self.takes}


def informed(
    candidates: Sequence[Candidate], known: Mapping[str, Any]
) -> list[Candidate]:
    """The candidates, and once more with what is known those that take it."""
    found = list(candidates)
    for candidate in candidates:
        fit = getattr(candidate.estimator, "fit", None)
        accepted = {} if fit is None else inspect.signature(fit).parameters
        if takes := tuple(name for name in known if name in accepted):
            slower = INFORMED.get(type(candidate.estimator).__name__, 1.0)
            found.append(
                candidate._replace(
                    name=f"{candidate.name}, informed",
                    cost=partial(_times, slower, candidate.cost),
                    takes=takes,
                )
            )
    return found


def _times(factor: float, cost: Callable[[Size], float], size: Size) -> float:
    return factor * cost(size)


def family(seed: int, device: Any) -> list[Candidate]:
    """The candidates for any matrix; one line adds another.

    A candidate without a cost of its own takes as long as the default of its class.
    """
    from sklearn.ensemble import ExtraTreesRegressor
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    on: dict[str, Any] = {"device": device}
    seeds: dict[str, Any] = {"random_state": seed}
    both, chained = on | seeds, seeds | {"keep_empty_features": True}
    gaussian = GaussianCompleter(**both)
    nearest = KNNCompleter(**on)
    weighted = KNNCompleter(10, weights="distance", **on)
    copula = GaussianCompleter(marginals="copula", **both)
    bayesian = BayesianFactorizationCompleter(**both)
    implicit = BayesianFactorizationCompleter(
        implicit=True, heteroscedastic=True, **both
    )
    factors = FactorizationCompleter(**both)
    boosting = TreesCompleter("boosting", **seeds)
    rounds = TreesCompleter(max_iter=3, **seeds)
    linear = IterativeImputer(**chained)
    forest = ExtraTreesRegressor(50, min_samples_leaf=2, **seeds)
    chain = IterativeImputer(forest, max_iter=5, **chained)
    found: list[tuple[str, Any, Cost | None]] = [
        ("means", MeanCompleter(), None),
        ("KNN", nearest, None),
        ("KNN, weighted", weighted, None),
        ("SVD", SVDCompleter(**both), None),
        ("IALM", IALMCompleter(**on), None),
        ("NCARL", NCARLCompleter(**both), None),
        ("TNNR", TNNRCompleter(**both), None),
        ("Soft-Impute", SoftImputeCompleter(**both), None),
        ("AIR", AIRCompleter(**both), None),
        ("Gaussian", gaussian, None),
        ("copula", copula, None),
        ("Factorization", factors, None),
        ("Bayesian", bayesian, None),
        ("Bayesian, implicit", implicit, Cost(0.5, factors=5e-8)),
        ("trees", TreesCompleter(**seeds), None),
        ("trees, 3 rounds", rounds, Cost(0.0, columns=0.06, trees=1.2e-5)),
        ("boosting", boosting, Cost(0.0, columns=0.01, trees=6e-6)),
        ("chained, linear", linear, Cost(0.0, columns=0.02, trees=6e-7)),
        ("chained, trees", chain, Cost(0.0, columns=0.15, trees=2.5e-5)),
        ("DMF, TV", DMFCompleter("tv", **both), Cost(0.2, cells=8e-5)),
        ("nonlocal", NonlocalCompleter(**both), None),
        ("biharmonic", BiharmonicCompleter(), None),
        ("patch CNN", PatchCNNCompleter(**both), None),
    ]
    missing = set() if importlib.util.find_spec("skimage") else {"biharmonic"}
    return [
        Candidate(name, estimator, cost or COSTS[type(estimator).__name__])
        for name, estimator, cost in found
        if name not in missing
    ]


def selected(wanted: Any, seed: int, device: Any) -> list[Candidate]:
    """The candidates that the parameter ``candidates`` stands for."""
    if isinstance(wanted, Mapping):
        found = [Candidate(*item) for item in wanted.items()]
    else:
        found = family(seed, resolve_device(device))
        if not isinstance(wanted, str):
            names, known = list(wanted), [c.name for c in found]
            if unknown := [name for name in names if name not in known]:
                raise ValueError(
                    f"candidates contains {unknown[0]!r}; the names are {known}. "
                    "Pass other estimators in a mapping of names to estimators."
                )
            found = [c for c in found if c.name in names]
    if not found:
        raise ValueError("candidates is empty; give at least one.")
    return found
