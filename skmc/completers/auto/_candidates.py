"""The candidates of `AutoCompleter`: their names, and which are tried on which data."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.base import clone
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer

import skmc.completers
from skmc.base import BOUNDS_AND_MARKS, TakesGraphs, refuse_parameters
from skmc.cells import Container, Entries, Layout
from skmc.completers import closest
from skmc.completers._stacked import (
    FEW,
    FEW_CELLS,
    INFORMED,
    MOST_COLUMNS,
    NAMED,
    PER_COLUMN,
    RATINGS,
    SPARSE,
    TABLE,
    WIDE,
)
from skmc.completers.gaussian import GaussianCompleter
from skmc.completers.knn import KNNCompleter
from skmc.linalg import Seed, resolve_device, seed_of

# Parameters of candidates, which would concern standardized cells.
OF_STACK = {
    **dict.fromkeys(
        (*BOUNDS_AND_MARKS, "like_observed"), "pass {name} to AutoCompleter"
    ),
    **dict.fromkeys(("lower_limit", "upper_limit"), "use the completer alone"),
}


def plan(n_rows: int, n_cols: int, n_observed: int) -> Sequence[str]:
    """The candidates for a matrix, by its shape and its observed cells."""
    if n_observed <= FEW_CELLS:
        return FEW
    if n_cols <= MOST_COLUMNS:
        return TABLE
    return RATINGS if n_observed <= SPARSE * n_rows * n_cols else WIDE


class Candidate(NamedTuple):
    """An estimator to try.

    ``takes`` names the features and graphs of rows and columns that its ``fit`` gets,
    ``comparing`` holds parameters that make a fit for the comparison cheaper. A member
    ``of_sample`` is never fitted to other rows than those that are compared.
    """

    name: str
    estimator: Any
    comparing: Mapping[str, Any] = MappingProxyType({})
    takes: tuple[str, ...] = ()
    of_sample: bool = False

    def clone(self, layout: Layout | None = None, *, comparing: bool = False) -> Any:
        """An unfitted clone of the estimator, for the matrix of a table if it is."""
        copy = clone(self.estimator)
        if comparing and self.comparing:
            copy.set_params(**self.comparing)
        if layout is not None and layout.categories and type(copy) is IterativeImputer:
            return CellImputer.like(copy, layout.first_columns)
        return copy

    def scaled_by(self, how: str | None) -> Candidate:
        """The candidate, with its ``scaling="auto"`` replaced."""
        params = getattr(self.estimator, "get_params", dict)(deep=False)
        if params.get("scaling") != "auto":
            return self
        return self._replace(estimator=clone(self.estimator).set_params(scaling=how))

    def chosen_by(self, fit: Any) -> Candidate:
        """The candidate with the prior that a fit has chosen, which takes longest."""
        if not isinstance(self.estimator, GaussianCompleter):
            return self
        return self._replace(estimator=self.estimator._with_choice_of(fit))

    @property
    def of_all(self) -> bool:
        """Whether it has all rows when it is compared: more make it far better."""
        return isinstance(self.estimator, KNNCompleter)

    @property
    def weighted(self) -> str | None:
        """Name of the argument of ``fit`` for weights: of rows, else of cells."""
        accepted = self._accepted
        names = [name for name in ("sample_weight", "cell_weight") if name in accepted]
        return names[0] if names else None

    @property
    def _accepted(self) -> Iterable[str]:
        fit = getattr(self.estimator, "fit", None)
        return () if fit is None else inspect.signature(fit).parameters

    def informed(self, known: Iterable[str]) -> Candidate | None:
        """The candidate with side information; None if it takes none."""
        if isinstance(self.estimator, TakesGraphs):
            return None  # it fills empty rows with means despite a graph
        accepted = self._accepted
        takes = tuple(name for name in known if name in accepted)
        return (
            self._replace(name=f"{self.name}-informed", takes=takes) if takes else None
        )

    def arguments(self, known: Mapping[str, Any], X: Any) -> dict[str, Any]:
        """What ``fit`` takes besides ``X``, by the names of its arguments."""
        arguments = {name: known[name] for name in self.takes}
        weights = known.get("sample_weight")
        if weights is not None and self.weighted == "sample_weight":
            arguments["sample_weight"] = weights
        elif weights is not None and isinstance(X, Entries):
            arguments["cell_weight"] = weights[X.rows]
        elif weights is not None:
            arguments["cell_weight"] = np.repeat(weights[:, None], X.shape[1], 1)
        return arguments


def candidates_for(
    X: Container, *, random_state: Seed = None, device: str | torch.device = "auto"
) -> dict[str, Any]:
    """List the candidates of `AutoCompleter` for a matrix.

    Parameters
    ----------
    X : matrix of any container, or `Entries`
        Matrix, whose shape and number of observed cells decide.
    random_state : int, RandomState instance or None, default=None
        Seed of the candidates.
    device : str or torch.device, default="auto"
        Device of the candidates.

    Returns
    -------
    dict of str to estimator
        Unfitted completers and imputers of scikit-learn, by the names that
        ``leaderboard_`` of `AutoCompleter` shows; cheap ones come first.

    See Also
    --------
    skmc.AutoCompleter : Compares and combines these candidates.
    skmc.model_selection.compare : Compares them.

    Examples
    --------
    >>> import numpy as np
    >>> from skmc.completers import candidates_for
    >>> from skmc.model_selection import compare
    >>> X = np.outer(np.arange(1.0, 13), np.arange(1.0, 11))
    >>> found = candidates_for(X, random_state=0)
    >>> list(found)
    ['mean', 'knn', 'gaussian', 'ialm']
    >>> len(compare(found, X, cv=1)) == len(found)
    True
    """
    cells = X if isinstance(X, Entries) else Entries(X)
    seed, place = seed_of(random_state), str(resolve_device(device))
    names = plan(*cells.matrix_shape, len(cells))
    return {name: named(name, seed, place).estimator for name in names}


def all_candidates() -> dict[str, Any]:
    """List all candidates that `AutoCompleter` knows by name."""
    return {name: named(name, 0, "cpu").estimator for name in NAMED}


class CellImputer(IterativeImputer):
    """Imputer that predicts no column from others of the same cell of a table.

    The columns that represent a category are missing together. In training they would
    predict each other perfectly, and no other column would be used.
    """

    _first_columns: np.ndarray | None = None  # for each column, the first of its cell

    @classmethod
    def like(cls, imputer: IterativeImputer, first_columns: np.ndarray) -> CellImputer:
        """Make an unfitted imputer with the parameters of another one."""
        of_cells = cls(**imputer.get_params(deep=False))
        of_cells._first_columns = first_columns
        return of_cells

    def __sklearn_clone__(self) -> CellImputer:
        imputer = IterativeImputer(**self.get_params(deep=False))
        assert self._first_columns is not None
        return CellImputer.like(clone(imputer), self._first_columns)

    def _get_neighbor_feat_idx(
        self, n_features: int, feat_idx: int, abs_corr_mat: Any
    ) -> np.ndarray:
        neighbors = super()._get_neighbor_feat_idx(n_features, feat_idx, abs_corr_mat)
        first = self._first_columns
        if first is None:
            return neighbors
        return neighbors[first[neighbors] != first[feat_idx]]


def named(name: str, seed: int, device: str | torch.device) -> Candidate:
    """The candidate of a name."""
    title, params, comparing = NAMED[name]
    estimator = getattr(skmc.completers, title)(**params)
    common: dict[str, Any] = {"random_state": seed, "device": device}
    known = estimator.get_params(deep=False)
    estimator.set_params(**{k: common[k] for k in common if k in known})
    return Candidate(name, estimator, comparing)


def selected(
    wanted: Any,
    cells: np.ndarray,
    known: Sequence[str],
    seed: int,
    device: str | torch.device,
) -> list[Candidate]:
    """The candidates that the parameter ``candidates`` selects.

    ``known`` names the side information; a candidate that takes it is tried with it,
    and without.
    """
    if isinstance(wanted, Mapping):
        for estimator in wanted.values():
            refuse_parameters(estimator, "AutoCompleter", OF_STACK)
        found = [Candidate(*item) for item in wanted.items()]
    else:
        place = str(resolve_device(device))
        names = _names(wanted, cells)
        if known and isinstance(wanted, str):
            names = list(dict.fromkeys([*names, *INFORMED]))
        found = [named(name, seed, place) for name in names]
        if isinstance(wanted, str):
            found = [c._replace(of_sample=c.name in PER_COLUMN) for c in found]
    if not found:
        raise ValueError("candidates is empty; give at least one.")
    informed = [c.informed(known) for c in found]
    return [*found, *(c for c in informed if c is not None)]


def _names(wanted: Any, cells: np.ndarray) -> Sequence[str]:
    all_names = sorted(NAMED)
    if isinstance(wanted, str) and wanted == "auto":
        n_observed = int(np.count_nonzero(~np.isnan(cells)))
        return plan(cells.shape[0], cells.shape[1], n_observed)
    names = [wanted] if isinstance(wanted, str) else list(wanted)
    if unknown := [name for name in names if name not in all_names]:
        near = closest(str(unknown[0]), all_names)
        hint = f"did you mean {near!r}? The" if near else "the"
        raise ValueError(
            f"candidates contains {unknown[0]!r}; {hint} names are {all_names}. "
            "Pass other estimators in a mapping of names to estimators."
        )
    if isinstance(wanted, str):
        raise ValueError(
            f"candidates is {wanted!r}; pass a list of names: [{wanted!r}]."
        )
    return [name for name in NAMED if name in names]
