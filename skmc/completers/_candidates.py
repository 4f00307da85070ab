"""The candidates of `AutoCompleter` and what their fits cost."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from skmc.completers.air import AIRCompleter
from skmc.completers.bayesian import BayesianFactorizationCompleter
from skmc.completers.biharmonic import BiharmonicCompleter
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

MOST_PAIRED = 2000  # rows, or columns, of which `AIRCompleter` compares all pairs


class Size(NamedTuple):
    """Rows, columns and observed cells of a matrix, and what costs are made of."""

    n_rows: int
    n_cols: int
    n_observed: int

    @classmethod
    def of(cls, cells: np.ndarray) -> Size:
        """The size of ``cells``, which are NaN where missing."""
        n_rows, n_cols = cells.shape
        return cls(n_rows, n_cols, int(np.count_nonzero(~np.isnan(cells))))

    @property
    def cells(self) -> int:
        return self.n_rows * self.n_cols

    @property
    def svd(self) -> int:
        return self.cells * min(self.n_rows, self.n_cols)

    @property
    def trees(self) -> int:
        return self.cells * self.n_cols

    @property
    def pairs(self) -> int:
        return sum(n * min(n, MOST_PAIRED) for n in (self.n_rows, self.n_cols))

    @property
    def factors(self) -> int:
        """One sweep over factors of rank 30, which visits observed cells alone."""
        rank = min(30, self.n_rows, self.n_cols)
        return 2 * self.n_observed * rank**2 + (self.n_rows + self.n_cols) * rank**3


class Candidate(NamedTuple):
    """An estimator to try.

    ``cost`` is the time of a fit in seconds. The times of the first fits correct it for
    the machine, and for this candidate.
    """

    name: str
    estimator: Any
    cost: Callable[[Size], float] = lambda s: 1e-6 * s.cells


def family(seed: int, device: Any) -> list[Candidate]:
    """The candidates for any matrix; one line adds another.

    The costs were fitted by eye to run times on one core.
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
    implicit = BayesianFactorizationCompleter(implicit=True, **both)
    factors = FactorizationCompleter(**both)
    boosting = TreesCompleter("boosting", **seeds)
    rounds = TreesCompleter(max_iter=3, **seeds)
    linear = IterativeImputer(**chained)
    forest = ExtraTreesRegressor(50, min_samples_leaf=2, **seeds)
    chain = IterativeImputer(forest, max_iter=5, **chained)
    found: list[tuple[str, Any, Callable[[Size], float]]] = [
        ("means", MeanCompleter(), lambda s: 1e-3 + 1e-8 * s.cells),
        ("KNN", nearest, lambda s: 3e-3 + 7e-9 * s.n_rows * s.cells),
        ("KNN, weighted", weighted, lambda s: 3e-3 + 7e-9 * s.n_rows * s.cells),
        ("SVD", SVDCompleter(**both), lambda s: 0.05 + 2e-7 * s.svd),
        ("IALM", IALMCompleter(**on), lambda s: 0.02 + 1.5e-7 * s.svd),
        ("NCARL", NCARLCompleter(**both), lambda s: 0.2 + 2e-7 * s.svd),
        ("TNNR", TNNRCompleter(**both), lambda s: 0.1 + 7e-7 * s.svd),
        ("Soft-Impute", SoftImputeCompleter(**both), lambda s: 0.5 + 4e-4 * s.cells),
        ("AIR", AIRCompleter(**both), lambda s: 0.5 + 3e-6 * s.pairs + 5e-7 * s.svd),
        ("Gaussian", gaussian, lambda s: 0.05 + 2e-8 * s.trees * s.n_cols),
        ("copula", copula, lambda s: 0.05 + 2e-8 * s.trees * s.n_cols),
        ("Factorization", factors, lambda s: 0.2 + 2e-8 * s.factors),
        ("Bayesian", bayesian, lambda s: 0.2 + 5e-8 * s.factors),
        ("Bayesian, implicit", implicit, lambda s: 0.5 + 7e-8 * s.factors),
        ("trees", TreesCompleter(**seeds), lambda s: 0.03 * s.n_cols + 1e-5 * s.trees),
        ("trees, 3 rounds", rounds, lambda s: 0.06 * s.n_cols + 2.5e-5 * s.trees),
        ("boosting", boosting, lambda s: 0.01 * s.n_cols + 6e-6 * s.trees),
        ("chained, linear", linear, lambda s: 0.02 * s.n_cols + 6e-7 * s.trees),
        ("chained, trees", chain, lambda s: 0.15 * s.n_cols + 2.5e-5 * s.trees),
        ("DMF, TV", DMFCompleter("tv", **both), lambda s: 0.2 + 8e-5 * s.cells),
        ("nonlocal", NonlocalCompleter(**both), lambda s: 0.05 + 1e-4 * s.cells),
        ("biharmonic", BiharmonicCompleter(), lambda s: 0.05 + 1e-4 * s.cells),
        ("patch CNN", PatchCNNCompleter(**both), lambda s: 0.2 + 5e-4 * s.cells),
    ]
    missing = set() if importlib.util.find_spec("skimage") else {"biharmonic"}
    return [Candidate(*one) for one in found if one[0] not in missing]
