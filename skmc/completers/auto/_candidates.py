"""The candidates of `AutoCompleter` and the costs of their fits."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.base import clone
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer

from skmc.base import TakesGraphs
from skmc.cells import Container, Entries, Layout
from skmc.completers import closest, completer_classes
from skmc.completers._trees import ExtraTrees
from skmc.completers.costs import Cost, Size, Variant
from skmc.linalg import Seed, resolve_device, seed_of

GENERIC = Cost(cells=1e-6)
MAX_TIME = 60.0  # seconds for all candidates


class Candidate(NamedTuple):
    """An estimator to try.

    ``cost`` is the time of a fit in seconds. The times of the first fits correct it for
    the machine, and for this candidate. ``takes`` names the features and graphs of rows
    and columns that its ``fit`` gets. ``comparing``, ``after`` and ``only_after`` are
    those of `Variant`.
    """

    name: str
    estimator: Any
    cost: Callable[[Size], float] = GENERIC
    takes: tuple[str, ...] = ()
    comparing: Mapping[str, Any] = MappingProxyType({})
    after: tuple[str, ...] = ()
    only_after: bool = True

    def clone(self, layout: Layout | None = None, *, comparing: bool = False) -> Any:
        """An unfitted clone of the estimator, for the matrix of a table if any."""
        own = clone(self.estimator)
        if comparing and self.comparing:
            own.set_params(**self.comparing)
        if layout is not None and layout.categories and type(own) is IterativeImputer:
            return CellImputer.like(own, layout.first_columns)
        return own

    def order(self, size: Size) -> float:
        """The cost, multiplied by the share of it that missing cells leave.

        Methods whose cost falls with them are made for few observed cells.
        """
        whole = self.cost(size._replace(n_observed=size.cells))
        return self.cost(size) ** 2 / whole

    @property
    def is_last(self) -> bool:
        """Whether it waits for the weights of others."""
        return bool(self.after) and self.only_after

    def scaled_by(self, how: str | None) -> Candidate:
        """The candidate, with its ``scaling="auto"`` replaced."""
        params = getattr(self.estimator, "get_params", dict)(deep=False)
        if params.get("scaling") != "auto":
            return self
        return self._replace(estimator=clone(self.estimator).set_params(scaling=how))

    @property
    def weighted(self) -> str | None:
        """Name of the argument of ``fit`` for weights: of rows, else of cells."""
        fit = getattr(self.estimator, "fit", None)
        accepted = {} if fit is None else inspect.signature(fit).parameters
        names = [name for name in ("sample_weight", "cell_weight") if name in accepted]
        return names[0] if names else None

    def arguments(self, known: Mapping[str, Any], X: Any) -> dict[str, Any]:
        """What ``fit`` takes besides ``X``, by the names of its arguments."""
        found = {name: known[name] for name in self.takes}
        weights = known.get("sample_weight")
        if weights is not None and self.weighted == "sample_weight":
            found["sample_weight"] = weights
        elif weights is not None and isinstance(X, Entries):
            found["cell_weight"] = weights[X.rows]
        elif weights is not None:
            found["cell_weight"] = np.repeat(weights[:, None], X.shape[1], 1)
        return found


class CellImputer(IterativeImputer):
    """Imputer that predicts no column from others of the same cell of a table.

    The columns that represent a category are missing together. In training they would
    predict each other perfectly, and no other column would be used.
    """

    _first_columns: np.ndarray | None = None  # for each column, the first of its cell

    @classmethod
    def like(cls, imputer: IterativeImputer, first_columns: np.ndarray) -> CellImputer:
        """Make an unfitted imputer with the parameters of another one."""
        own = cls(**imputer.get_params(deep=False))
        own._first_columns = first_columns
        return own

    def __sklearn_clone__(self) -> CellImputer:
        imputer = IterativeImputer(**self.get_params(deep=False))
        assert self._first_columns is not None
        return CellImputer.like(clone(imputer), self._first_columns)

    def _get_neighbor_feat_idx(
        self, n_features: int, feat_idx: int, abs_corr_mat: Any
    ) -> np.ndarray:
        found = super()._get_neighbor_feat_idx(n_features, feat_idx, abs_corr_mat)
        first = self._first_columns
        if first is None:
            return found
        return found[first[found] != first[feat_idx]]


def informed(
    candidates: Sequence[Candidate], known: Mapping[str, Any]
) -> list[Candidate]:
    """The candidates, and a second time with side information if they take it."""
    found = list(candidates)
    for candidate in candidates:
        fit = getattr(candidate.estimator, "fit", None)
        accepted = {} if fit is None else inspect.signature(fit).parameters
        if isinstance(candidate.estimator, TakesGraphs):
            continue  # it fills empty rows with means despite a graph
        if takes := tuple(name for name in known if name in accepted):
            slower = getattr(candidate.estimator, "cost", GENERIC).informed
            found.append(
                candidate._replace(
                    name=f"{candidate.name}-informed",
                    cost=partial(_times, slower, candidate.cost),
                    takes=takes,
                    after=(),
                )
            )
    return found


def _times(factor: float, cost: Callable[[Size], float], size: Size) -> float:
    return factor * cost(size)


def family(seed: int, device: str | torch.device) -> list[Candidate]:
    """The candidates for any matrix, which classes list in ``stacked``."""
    found = [
        _candidate(cls, variant, {"random_state": seed, "device": device})
        for cls in completer_classes()
        for variant in vars(cls).get("stacked", ())
    ]
    return [*found, _chained_trees(seed)]


def all_candidates() -> dict[str, Any]:
    """List all candidates of `AutoCompleter`, whatever their cost.

    Returns
    -------
    dict of str to estimator
        Unfitted completers and imputers of scikit-learn, by name.
    """
    return {candidate.name: candidate.estimator for candidate in family(0, "cpu")}


def _candidate(cls: Any, variant: Variant, common: dict[str, Any]) -> Candidate:
    """Make a candidate; without its own cost, it has that of the class."""
    estimator = cls(**variant.params)
    known = estimator.get_params()
    estimator.set_params(**{k: common[k] for k in common if k in known})
    cost = variant.cost or cls.cost
    return Candidate(
        variant.name,
        estimator,
        cost,
        comparing=variant.comparing,
        after=variant.after,
        only_after=variant.only_after,
    )


def _chained_trees(seed: int) -> Candidate:
    forest = ExtraTrees(20, min_samples_leaf=2, random_state=seed)
    chain = IterativeImputer(
        forest, max_iter=3, random_state=seed, keep_empty_features=True
    )
    cost = Cost(n_cols=0.08, trees=1.3e-5)
    fewer = {"estimator__n_estimators": 10}
    return Candidate("chained-trees", chain, cost, comparing=fewer)


def candidates_for(
    X: Container,
    *,
    max_time: float = MAX_TIME,
    random_state: Seed = None,
    device: str | torch.device = "auto",
) -> dict[str, Any]:
    """List the candidates of `AutoCompleter` that are fast enough for a matrix.

    Parameters
    ----------
    X : matrix of any container, or `Entries`
        Matrix whose shape and number of observed cells determine the time of fits.
    max_time : float > 0, default=60
        Seconds in which each candidate can be fitted once, and the last one again,
        according to the estimates of the classes. The fastest come first.
    random_state : int, RandomState instance or None, default=None
        Seed of the candidates.
    device : str or torch.device, default="auto"
        Device of the candidates.

    Returns
    -------
    dict of str to estimator
        Unfitted completers and imputers of scikit-learn, by the names that
        ``leaderboard_`` of `AutoCompleter` shows; there is at least one.

    See Also
    --------
    skmc.AutoCompleter : Tries these candidates.
    skmc.model_selection.compare : Compares them.

    Examples
    --------
    >>> import numpy as np
    >>> from skmc.completers import candidates_for
    >>> from skmc.model_selection import compare
    >>> X = np.outer(np.arange(1.0, 31), np.arange(1.0, 21))
    >>> found = candidates_for(X, max_time=0.2, random_state=0)
    >>> "svd" in found, "trees-linear" in found
    (True, False)
    >>> len(compare(found, X, cv=1)) == len(found)
    True
    """
    cells = X if isinstance(X, Entries) else Entries(X)
    size = Size(*cells.matrix_shape, len(cells))
    whole = family(seed_of(random_state), str(resolve_device(device)))
    found: dict[str, Any] = {}
    seconds = 0.0
    for candidate in sorted(whole, key=lambda c: c.cost(size)):
        cost = candidate.cost(size)
        if found and seconds + 2 * cost > max_time:
            break
        found[candidate.name] = candidate.estimator
        seconds += cost
    return found


def selected(wanted: Any, seed: int, device: str | torch.device) -> list[Candidate]:
    """The candidates that the parameter ``candidates`` selects."""
    if isinstance(wanted, Mapping):
        found = [Candidate(*item) for item in wanted.items()]
    else:
        found = family(seed, str(resolve_device(device)))
        if not (isinstance(wanted, str) and wanted == "auto"):
            names = [wanted] if isinstance(wanted, str) else list(wanted)
            known = [c.name for c in found]
            if unknown := [name for name in names if name not in known]:
                near = closest(str(unknown[0]), known)
                hint = f"did you mean {near!r}? The" if near else "the"
                raise ValueError(
                    f"candidates contains {unknown[0]!r}; {hint} names are {known}. "
                    "Pass other estimators in a mapping of names to estimators."
                )
            if isinstance(wanted, str):
                raise ValueError(
                    f"candidates is {wanted!r}; pass a list of names: [{wanted!r}]."
                )
            found = [c for c in found if c.name in names]
    if not found:
        raise ValueError("candidates is empty; give at least one.")
    return found
