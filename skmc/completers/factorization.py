"""Factorization with biases, by alternating least squares."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from sklearn.utils._param_validation import Interval, StrOptions
from torch import Tensor

from skmc.base import (
    CompleterTags,
    FactoredCompleter,
    ReadsStored,
    Recommends,
    Trials,
    WarmStart,
    resolve_device,
)
from skmc.blocks import BlockALS, BlockObserved
from skmc.cells import SparseObserved
from skmc.completers._rank import checked_rank, choose_rank
from skmc.linalg import Randomness
from skmc.solvers import ALS, Solver

FACTOR_RANKS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
FIRST_RANK = 16  # for which the weight is chosen
WEIGHTS = tuple(0.32 * 0.7**k for k in range(32))
TRIAL_SWEEPS = 10


class FactorizationCompleter(WarmStart, ReadsStored, Recommends, FactoredCompleter):
    r"""Low-rank factors with biases, for any number of ratings, never made dense.

    The model is :math:`X = \text{mean} + U V^\top + b 1^\top + 1 c^\top`. Factors and
    biases minimize

    .. math::

        \tfrac{1}{2} \|P(X - M)\|_F^2
        + \tfrac{\lambda}{2} \sum_i p_i (\|u_i\|^2 + b_i^2)
        + \tfrac{\lambda}{2} \sum_j q_j (\|v_j\|^2 + c_j^2)

    The first term is half a *sum* over the observed cells of the scaled data, which
    :math:`P` selects; the others are *sums* over rows and over columns. Alternating
    least squares updates all columns given the rows, then all rows given the columns,
    each as a batch of small systems. With ``per_cell=False`` and without biases this is
    the factored form of :math:`\lambda \|X\|_*`, see `SoftImputeCompleter`.

    Parameters
    ----------
    rank : int in [1, min(n_samples, n_features)] or "auto", default="auto"
        Number of columns of ``U`` and ``V``. "auto" tries 1, 2, 3, 4, 6, ... 64 on a
        held-out tenth of the observed cells.
    lambda_ridge : float > 0 or "auto", default="auto"
        :math:`\lambda`, for data whose variance is 1 after scaling. "auto" tries .32,
        .224, .157, ... on the same held-out cells, at rank 16 if ``rank`` is "auto"
        too.
    biases : {"both", "rows", "columns"} or None, default="both"
        Which of ``b`` and ``c`` the model has. The mean comes with ``scaling``.
    per_cell : bool, default=True
        Whether :math:`p_i` and :math:`q_j` are the numbers of observed cells of the row
        and of the column. False sets them to 1.
    max_iter : int >= 1, default=200
        Maximum number of sweeps over columns and rows.
    tol : float >= 0, default=1e-3
        Stop when the gradient with respect to the columns' factors ``V`` is at most
        ``tol |P(M)|^2 / |V|``. The gradient with respect to the rows' factors is zero.
    {warm_start}
        A choice of "auto" is made again. If the rank changes, the factors start anew.
    {scaling}
    {device}
    random_state : int, RandomState instance or None, default=None
        Draws the initial factors and the held-out cells of "auto".
    {reading}

    Attributes
    ----------
    rank_ : int
        The rank that was used.
    lambda_ridge_ : float
        The weight that was used.
    row_factors_, col_factors_ : ndarray of shape (n_samples, k), (n_features, k)
        Their product is the scaled completion. They include the biases: those of rows
        are the last but one column of ``row_factors_``, those of columns the last
        column of ``col_factors_``.
    reconstruction_ : ndarray of shape (n_samples, n_features)
        The model's value of every cell, computed at each access.
    history_ : dict of ndarray
        "n_iter", "objective" and "residual" at every sweep.
    {solve}

    Notes
    -----
    `fit` also takes ratings that are not in memory, see `Entries.from_parquet`. Their
    identifiers are then the attributes ``row_ids_`` and ``col_ids_``, in the order of
    the rows of the factors. A tenth of the ratings is held out for "auto", as in
    memory, but not the same tenth.

    All rows, including new ones, are completed by the ridge regression on the columns'
    factors that the sweeps use. Results have the dtype of the input: ``float32``
    ratings take half the memory and time.

    Memory grows with the observed cells and with ``(n_samples + n_features) rank``;
    systems of rows are solved in blocks. ``reconstruction_`` and `transform` are dense.

    References
    ----------
    Zhou, Wilkinson, Schreiber, Pan. Large-scale parallel collaborative filtering for
    the Netflix prize. AAIM (2008).
    Hastie, Mazumder, Lee, Zadeh. Matrix completion and low-rank SVD via fast
    alternating least squares. Journal of Machine Learning Research 16 (2015).

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import FactorizationCompleter
    >>> rng = np.random.RandomState(0)
    >>> X = np.add.outer(rng.randn(20), rng.randn(10))
    >>> truth, X[3, 4] = X[3, 4], np.nan
    >>> completer = FactorizationCompleter(random_state=0)
    >>> bool(abs(completer.fit_transform(X)[3, 4] - truth) < 0.1)
    True
    """

    completer_tags = CompleterTags(recovers=0.01)
    _parameter_constraints: ClassVar[dict] = {
        "rank": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "lambda_ridge": [
            Interval(Real, 0, None, closed="neither"),
            StrOptions({"auto"}),
        ],
        "biases": [StrOptions({"both", "rows", "columns"}), None],
        "per_cell": ["boolean"],
    }

    def __init__(
        self,
        rank: int | Literal["auto"] = "auto",
        *,
        lambda_ridge: float | Literal["auto"] = "auto",
        biases: Literal["both", "columns", "rows"] | None = "both",
        per_cell: bool = True,
        max_iter: int = 200,
        tol: float = 1e-3,
        warm_start: bool = False,
        scaling: Literal["auto", "columns", "global"] | None = "auto",
        device: str | torch.device = "auto",
        random_state: int | np.random.RandomState | None = None,
        missing_values: float = np.nan,
        add_indicator: bool = False,
        keep_empty_features: bool = True,
        keep_observed: bool = True,
    ) -> None:
        self.rank = rank
        self.lambda_ridge = lambda_ridge
        self.biases = biases
        self.per_cell = per_cell
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.scaling = scaling
        self.device = device
        self.random_state = random_state
        self.missing_values = missing_values
        self.add_indicator = add_indicator
        self.keep_empty_features = keep_empty_features
        self.keep_observed = keep_observed

    def _choose(self, data: SparseObserved, trials: Trials) -> dict[str, Any]:
        most, rng = min(data.shape), trials.rng
        sweeps = min(self.max_iter, TRIAL_SWEEPS)
        rank = min(FIRST_RANK, most)
        weight: Any = self.lambda_ridge
        if self.rank != "auto":
            rank = checked_rank(self.rank, data.shape)
        if weight == "auto":
            weight = trials.best(
                WEIGHTS,
                lambda weight, _: self._als(data, rank, weight, rng),
                max_iter=sweeps,
            )
        if self.rank == "auto":
            rank = choose_rank(
                "auto",
                data,
                trials,
                lambda rank, _: self._als(data, rank, weight, rng),
                ranks=FACTOR_RANKS,
                max_iter=sweeps,
                patience=len(FACTOR_RANKS),  # the small ranks of ratings are similar
            )
        return {"rank": rank, "lambda_ridge": weight}

    def _make_solver(
        self, data: SparseObserved, params: Any, rng: Randomness
    ) -> Solver:
        last = self._factors().left.to(data.values) if self._resumes(data) else None
        return self._als(data, params.rank, params.lambda_ridge, rng, last)

    def _als(
        self,
        data: SparseObserved,
        rank: int,
        weight: float,
        rng: Randomness,
        last: Tensor | None = None,
    ) -> ALS:
        start = rng.stream(rank).normal(data.shape[0], rank, std=rank**-0.5)
        row_biases, biases = self.biases in ("both", "rows"), None
        if last is not None and last.shape[1] == rank + 1 + row_biases:
            start, biases = last[:, :rank], last[:, rank] if row_biases else None
        options: dict[str, Any] = {
            "row_biases": row_biases,
            "col_biases": self.biases in ("both", "columns"),
            "per_cell": self.per_cell,
            "start_biases": biases,
        }
        if isinstance(data, BlockObserved):
            device = self.device if data.remote else resolve_device(self.device)
            return BlockALS(start, weight, device=device, **options)
        return ALS(start, weight, **options)
