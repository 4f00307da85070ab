"""Whether observed cells can determine a matrix of low rank."""

from __future__ import annotations

from numbers import Integral

import numpy as np
import torch
from numpy.typing import ArrayLike

from skmc.cells import SparseObserved
from skmc.linalg import Elimination

DAMPING = 0.0, 1e-11, 1e-9  # the first one that rounding allows
PRECISE, MOST_STEPS = 1e-12, 3000  # of conjugate gradients
STILL = 1e-7  # change of a cell that only rounding changes


def is_determined(observed: ArrayLike, rank: int) -> np.ndarray:
    r"""Whether observed cells can determine each cell of a matrix of known rank.

    A cell is determined if no small change of the matrix, of the same rank and with the
    same values at the observed cells, changes it. This holds for nearly all matrices of
    a rank, or for nearly none of them: it depends on which cells are observed, not on
    their values. If it does not hold, no method can recover the cell. If it holds, the
    cell has a finite number of possible values, mostly one.

    Parameters
    ----------
    observed : array-like of shape (n_rows, n_cols)
        True at the observed cells, as ``~np.isnan(X)``. This is the opposite of the
        masks of `skmc.patterns.random` and of masked arrays.
    rank : int in [1, min(n_rows, n_cols)]
        Rank of the matrix.

    Returns
    -------
    bool ndarray of shape (n_rows, n_cols)
        True at the cells that are determined, the observed ones among them.

    Raises
    ------
    ValueError
        ``observed`` is not a boolean matrix, or the rank is too small or too large.

    See Also
    --------
    skmc.LogDetCompleter : Finds the matrix, and certifies it.

    Notes
    -----
    The derivative of the observed cells with respect to the factors of a random matrix
    of this rank has a kernel. A random element of it changes every cell that is not
    determined. A row needs as many observed cells as the rank, and the matrix needs
    ``rank (n_rows + n_cols - rank)``; this is necessary, not sufficient.

    References
    ----------
    Singer, Cucuringu. Uniqueness of low-rank matrix completion by rigidity theory. SIAM
    Journal on Matrix Analysis and Applications 31 (2010).

    Examples
    --------
    >>> import numpy as np
    >>> from skmc.patterns import is_determined
    >>> observed = np.ones((6, 5), bool)
    >>> observed[0, 1:] = False
    >>> is_determined(observed, rank=1).all()
    np.True_
    >>> is_determined(observed, rank=2).all(axis=1)
    array([False,  True,  True,  True,  True,  True])
    """
    observed = np.asarray(observed)
    if observed.ndim != 2 or observed.dtype != bool:
        raise ValueError(
            f"observed must be a boolean matrix, got shape {observed.shape} and type "
            f"{observed.dtype}; pass ~np.isnan(X)."
        )
    largest = min(observed.shape)
    if not isinstance(rank, Integral) or not 1 <= rank <= largest:
        raise ValueError(
            f"rank={rank!r} must be an integer from 1 to min(n_rows, n_cols)={largest}."
        )
    if observed.shape[0] < observed.shape[1]:
        return is_determined(observed.T, rank).T
    rng = np.random.RandomState(0)
    present = [np.ones(size, bool) for size in observed.shape]
    factors = [rng.randn(size, rank) for size in observed.shape]
    changes = [rng.randn(size, rank) for size in observed.shape]
    # A row or column with at most as many cells as the rank does not restrict others.
    removed = []
    while True:
        seen = observed & present[0][:, None] & present[1]
        few = [present[axis] & (seen.sum(1 - axis) <= rank) for axis in (0, 1)]
        if not few[0].any() and not few[1].any():
            break
        axis = 0 if few[0].any() else 1
        removed.append((axis, few[axis].nonzero()[0], present[1 - axis].copy()))
        present[axis] &= ~few[axis]
    if seen.any():
        _change_core(seen, factors, changes)
    for axis, added, others in reversed(removed):
        lines = observed if axis == 0 else observed.T
        for i in added:
            at = (lines[i] & others).nonzero()[0]
            F, others_changes = factors[1 - axis][at], changes[1 - axis][at]
            # A random solution of F x = -known f.
            x = changes[axis][i]
            right = others_changes @ factors[axis][i] + F @ x
            changes[axis][i] = x - np.linalg.lstsq(F, right)[0]
    change = changes[0] @ factors[1].T + factors[0] @ changes[1].T
    return observed | (np.abs(change) < STILL)


def _change_core(
    seen: np.ndarray, factors: list[np.ndarray], changes: list[np.ndarray]
) -> None:
    """Make the random changes of factors such that the seen cells stay as they are."""
    rows, cols = seen.nonzero()
    cells = SparseObserved.of(rows, cols, np.ones(len(rows)), seen.shape)
    U, W = map(torch.from_numpy, factors)
    D = torch.from_numpy(changes[1])
    system = Elimination.of(cells, W, U)
    # Least squares leave over what does not change the cells.
    for damping in DAMPING:
        solve = system.inverse(damping, PRECISE, MOST_STEPS)
        if solve is not None:
            D = D - solve(system.system(D))
            break
    changes[0][:] = system.change(D).left[:, : len(U.T)].numpy()
    changes[1][:] = D.numpy()
