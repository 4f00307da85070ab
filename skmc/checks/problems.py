"""Small problems, their containers, and fast completers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.base import clone

from skmc import patterns
from skmc.base import BaseCompleter, Estimator
from skmc.cells import Entries

E = TypeVar("E", bound=Estimator)
QUICK: Mapping[str, Any] = {
    "random_state": 0,
    "max_iter": 60,
    "n_draws": 20,
    "n_burn_in": 5,
    "n_estimators": 5,
    "device": "cpu",
    "candidates": ("mean", "svd", "knn"),
}
NAMES = list("abcdef")  # names of the columns of the small problem


def quick(estimator: E, **params: Any) -> E:
    """Clone an estimator, and make it fast and reproducible.

    A device that the estimator names is kept.
    """
    copy: E = clone(estimator)
    given = copy.get_params(deep=False)
    wanted = {**QUICK, **params}
    if given.get("device", "auto") != "auto" and "device" not in params:
        del wanted["device"]
    return copy.set_params(**{k: v for k, v in wanted.items() if k in given})


def low_rank(
    n_rows: int = 60, n_cols: int = 40, rank: int = 2, seed: int = 0
) -> np.ndarray:
    """Draw a matrix of low rank."""
    rng = np.random.RandomState(seed)
    return rng.randn(n_rows, rank) @ rng.randn(rank, n_cols)


def rank_two() -> tuple[np.ndarray, np.ndarray]:
    """The problem of ``completer_tags.recovers``: 60 x 40 of rank 2, 30 % hidden."""
    truth = low_rank()
    return truth, patterns.random(truth, 0.3, random_state=1)


def small_problem() -> tuple[np.ndarray, np.ma.MaskedArray]:
    """A matrix in which every fifth cell is missing."""
    truth = low_rank(12, 6) + 3
    hidden = patterns.random(truth, 0.2, spare=True, random_state=0)
    return truth, np.ma.masked_array(np.where(hidden, 1e9, truth), hidden)


class Case:
    """A completer to check, with data that several checks need.

    Parameters
    ----------
    estimator : BaseCompleter
        Completer, which is cloned before each fit.
    """

    def __init__(self, estimator: BaseCompleter):
        self.estimator, self.cls = estimator, type(estimator)
        self.name, self.tags = self.cls.__name__, estimator.completer_tags
        self.params = frozenset(estimator.get_params(deep=False))
        self._fitted: BaseCompleter | None = None

    def make(self, **params: Any) -> Any:
        """Make a fast clone; see `quick`."""
        return quick(self.estimator, **params)

    @property
    def fitted(self) -> Any:
        """A fast clone fitted to the small problem, for reading only."""
        if self._fitted is None:
            self._fitted = self.make().fit(small_problem()[1])
        return self._fitted


def devices(estimator: Estimator | None = None) -> list[str]:
    """Devices of this machine, and the one that an estimator names."""
    available = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
    named = str(getattr(estimator, "device", "auto"))
    return available if named in ("auto", *available) else [*available, named]


def _sparse(masked: np.ma.MaskedArray) -> Any:
    rows, cols = np.nonzero(~masked.mask)
    return sp.csr_array((masked.data[rows, cols], (rows, cols)), shape=masked.shape)


def _nan(masked: np.ma.MaskedArray) -> np.ndarray:
    filled: np.ndarray = masked.filled(np.nan)
    return filled


def _with_none(masked: np.ma.MaskedArray) -> list[list[float | None]]:
    rows = _nan(masked).tolist()
    return [[None if np.isnan(cell) else cell for cell in row] for row in rows]


def _pandas(masked: np.ma.MaskedArray) -> Any:
    return import_module("pandas").DataFrame(_nan(masked), columns=NAMES)


def _polars(masked: np.ma.MaskedArray) -> Any:
    polars = import_module("polars")
    return polars.DataFrame(_nan(masked), schema=NAMES, nan_to_null=True)


CONTAINERS: dict[str, Callable[[np.ma.MaskedArray], Any]] = {
    "masked": lambda masked: masked,
    "array": _nan,
    "list with None": _with_none,
    "fortran": lambda masked: np.asfortranarray(_nan(masked)),
    "sparse csr": _sparse,
    "sparse coo": lambda masked: _sparse(masked).tocoo(),
    "tensor": lambda masked: torch.tensor(_nan(masked)),
    "entries": Entries,
}
if find_spec("pandas"):
    CONTAINERS["pandas"] = _pandas
    CONTAINERS["pandas NA"] = lambda masked: _pandas(masked).astype("Float64")
if find_spec("polars"):
    CONTAINERS["polars"] = _polars
