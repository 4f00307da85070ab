"""Truncated nuclear norm minimization by weighted, shrinking subgradient steps."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from skmc.cells import Observed
from skmc.linalg import SVD, full_svd
from skmc.solvers.norms import norm, ratio
from skmc.solvers.solver import DecomposingSolver, State
from skmc.solvers.truncated import cleaned, tail


@dataclass(frozen=True, kw_only=True)
class WeightedState(State):
    """An iterate of `WeightedTruncated`.

    Parameters
    ----------
    objective : Tensor of shape (\\*batch,)
        The objective at this iterate.
    X : Tensor of shape (\\*batch, n_rows, n_cols)
        A completion.
    full : SVD
        The SVD of ``X``.
    length : Tensor of shape (\\*batch,)
        Length of the next step: the paper's ``1 / alpha``.
    """

    X: Tensor  # (*batch, n_rows, n_cols)
    full: SVD  # of X
    length: Tensor  # (*batch,), of the next step: the paper's 1 / alpha


class WeightedTruncated(DecomposingSolver[Observed, WeightedState]):
    r"""TNN-WRE: a single loop of weighted subgradient steps of decreasing length.

    .. math::

        \min_X \|X\|_* - \sum_{i \le r} \sigma_i(X)
        \quad\text{subject to } P(X) = P(M)

    by the steps ::

        X = X - 1/alpha (W U V' - W U_r V_r'),   P(X) = P(M),   alpha = growth alpha

    with the singular vectors ``U, V`` of X, the first ``rank`` of them in ``U_r, V_r``,
    and a diagonal matrix ``W`` of row weights. Zero singular values have no singular
    vectors here.

    The longest step ``1 / alpha`` is ``length`` times ``sqrt(max(m, n))`` times the
    root mean square of the observed values. Then the entries of the first step are
    about as large as those of the data. On pictures of 300 x 300 in 0..255 with a root
    mean square of 115, that is the paper's ``alpha = 5e-4``. The unit is ours. With it,
    the completion does not depend on the unit of the data.

    Rows with fewer observed cells move further: ``w_i = 2 - k_i / n_cols`` for ``k_i``
    observed cells, divided by the mean of all rows, which preserves the meaning of
    ``alpha``. The paper requires smaller weights for rows with more cells. This formula
    is ours, and so is the single ``W`` for both terms.

    Parameters
    ----------
    rank : int >= 0
        Number of singular values without penalty; 0 gives the nuclear norm.
    length : float > 0, default=1
        Length of the first step, see above.
    growth : float > 1, default=1.15
        Factor of ``alpha`` after every step. The default makes ``alpha`` 1.2e6 times as
        large in 100 steps.

    References
    ----------
    Liu, Lai, Zhou, Kuang, Jin. A truncated nuclear norm regularization method based on
    weighted residual error for matrix completion. IEEE TIP 25 (2016).
    """

    def __init__(self, rank: int, *, length: float = 1.0, growth: float = 1.15):
        self.rank = rank
        self.length = length
        self.growth = growth

    def init(self, data: Observed) -> WeightedState:
        spread = norm(data.values) / data.n_observed.sqrt()
        return self._state(data.values, self.length * spread * max(data.shape) ** 0.5)

    def step(self, data: Observed, state: WeightedState) -> WeightedState:
        r, full = self.rank, state.full
        rest = (full.U[..., r:] * (full.s > 0)[..., None, r:]) @ full.V[..., r:].mT
        move = self.weights(data) * rest
        X = data.fill(state.X - state.length[..., None, None] * move)
        return self._state(X, state.length / self.growth)

    def _state(self, X: Tensor, length: Tensor) -> WeightedState:
        full = cleaned(full_svd(X))
        return WeightedState(
            X=X, objective=tail(full.s, self.rank), full=full, length=length
        )

    def weights(self, data: Observed) -> Tensor:
        """Row weights ``w`` with a mean of one, shape (\\*batch, n_rows, 1).

        Parameters
        ----------
        data : Observed
            The observed cells.

        Returns
        -------
        Tensor of shape (\\*batch, n_rows, 1)
        """
        weights = 2 - data.indicator.mean(-1, keepdim=True)
        return weights / weights.mean(-2, keepdim=True)

    def residual(
        self, data: Observed, previous: WeightedState, current: WeightedState
    ) -> Tensor:
        """Bound of the change of X in all further steps, relative to ``P(M)``.

        A step moves X by at most ``max(w) sqrt(min(m, n) - rank) / alpha``. The lengths
        of all further steps sum to ``growth / (growth - 1)`` times the next one. So
        this bounds the distance to the end of the schedule, which need not be a
        stationary point.

        Parameters
        ----------
        data : Observed
            The observed cells.
        previous : State
            The state before the last step.
        current : WeightedState
            The state after it.

        Returns
        -------
        Tensor of shape (\\*batch,)
        """
        most = self.weights(data).amax((-2, -1)) * (min(data.shape) - self.rank) ** 0.5
        reach = most * current.length * self.growth / (self.growth - 1)
        return ratio(reach, norm(data.values))
