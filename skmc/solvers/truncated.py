"""The truncated nuclear norm, and the parts that its nested-loop solvers share."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import torch
from torch import Tensor

from skmc.cells import Observed
from skmc.linalg import SVD, full_svd
from skmc.solvers.norms import norm
from skmc.solvers.solver import DecomposingSolver, State


@dataclass(frozen=True, kw_only=True)
class TruncatedState(State):
    """A state between or inside of inner problems.

    Parameters
    ----------
    objective : Tensor of shape (\\*batch,)
        The objective at this iterate.
    X : Tensor of shape (\\*batch, n_rows, n_cols)
        A completion.
    low : SVD
        Last matrix whose singular values were shrunk.
    T : Tensor of shape (\\*batch, n_rows, n_cols)
        Matrix ``A'B`` of the inner problem.
    n_inner : Tensor of shape (\\*batch,)
        Number of steps since the inner problem began.
    """

    X: Tensor  # (*batch, n_rows, n_cols)
    low: SVD  # last matrix whose singular values were shrunk
    T: Tensor  # (*batch, n_rows, n_cols), A'B of the inner problem
    n_inner: Tensor  # (*batch,), steps in the inner problem


@dataclass(eq=False)
class TruncatedNorm(DecomposingSolver):
    """Two nested loops as one: each step is an inner step, and may end the problem.

    An inner problem is ``|X|_* - tr(A X B')`` with fixed ``A, B``, which is convex. It
    ends after ``inner_iter`` steps, or once a step moves X by ``inner_tol |P(M)|_F`` or
    less. Then ``A'B`` is recomputed from the singular vectors of the shrunk matrix.
    Free means of the columns are subtracted before singular values are shrunk, and
    added again.

    Parameters
    ----------
    rank : int >= 0
        Number of singular values without penalty.
    inner_iter : int >= 1, default=5
        Largest number of steps with the same ``A, B``.
    inner_tol : float >= 0, default=1e-4
        Relative change of X at which an inner problem ends.
    """

    rank: int
    _: KW_ONLY
    inner_iter: int = 5
    inner_tol: float = 1e-4

    def _begin(self, data: Observed) -> tuple[dict, Tensor]:
        """The first inner problem, from ``X = P(M)``, and the mean singular value."""
        low = cleaned(full_svd(data.centre(data.values)[1]))
        begun = {
            "low": low,
            "T": truncation(low, self.rank),
            "n_inner": torch.zeros_like(data.n_observed),
        }
        mean = low.s.mean(-1)
        return begun, torch.where(mean > 0, mean, 1.0)

    def _ended(self, data: Observed, X: Tensor, state: TruncatedState) -> Tensor:
        """Whether the step from ``state`` to ``X`` ends the inner problem."""
        moved = norm(X - state.X) <= self.inner_tol * norm(data.values)
        return moved | (state.n_inner + 1 >= self.inner_iter)


def tail(s: Tensor, rank: int) -> Tensor:
    """Sum of all singular values except the ``rank`` largest.

    Parameters
    ----------
    s : Tensor of shape (\\*batch, k)
        Singular values, descending.
    rank : int
        Number of singular values to leave out.

    Returns
    -------
    Tensor of shape (\\*batch,)
    """
    return s[..., rank:].sum(-1)


def truncation(low: SVD, rank: int) -> Tensor:
    """``A'B`` of the first ``rank`` pairs of singular vectors.

    Parameters
    ----------
    low : SVD
        A decomposition. Zero singular values have no singular vectors here.
    rank : int
        Largest number of pairs.

    Returns
    -------
    Tensor of shape (\\*batch, n_rows, n_cols)
    """
    first = low.first(rank)
    return (first.U * (first.s > 0)[..., None, :]) @ first.V.mT


def cleaned(found: SVD) -> SVD:
    """Replace singular values within the rounding error by zeros.

    Parameters
    ----------
    found : SVD
        A decomposition.

    Returns
    -------
    SVD
    """
    s = found.s
    size = max(found.U.shape[-2], found.V.shape[-2])
    noise = size * torch.finfo(s.dtype).eps * s[..., :1]
    return SVD(found.U, torch.where(s > noise, s, 0.0), found.V)
