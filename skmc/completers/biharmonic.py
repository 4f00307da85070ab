"""Biharmonic inpainting, which has no parameters to choose."""

from __future__ import annotations

from dataclasses import KW_ONLY

import numpy as np
import scipy.sparse as sp
import torch
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu
from torch import Tensor

from skmc.base import BaseCompleter, CompleterTags, Completion, Outcome, ScaledRows
from skmc.cells import Given, pixels
from skmc.linalg import conjugate_gradients
from skmc.loop import FitTasks
from skmc.new_rows import FoldIn, RowIndex
from skmc.parameters import Count

TOL, MAX_STEPS = 1e-9, 1000  # of conjugate gradients
# A factorization is faster up to this many connected unknowns, and for the last level.
LARGE, FEW = 2**16, 4000
# Steps of Jacobi. Their product leaves less than a third of any error that the next
# level does not represent.
STEPS = 1.0, 0.55, 0.8
SMOOTHING = 2 / 3  # step of Jacobi that smooths the interpolation


class BiharmonicCompleter(BaseCompleter):
    r"""Fill holes with the smoothest surface that continues their surroundings.

    For pictures with scratches or scattered holes, in a second; not for texture or wide
    holes, and not for matrices without similar neighbors.

    .. math::

        \Delta^2 X = 0 \text{ at missing cells,} \qquad P(X) = P(M)

    where :math:`\Delta` is the Laplacian of the pixel grid and :math:`P` keeps the
    observed cells. The result is that of `skimage.restoration.inpaint_biharmonic`: the
    solution of one sparse linear system, without parameters to choose. Values are
    clipped to the range of the observed ones, channel by channel.

    `transform` treats rows one by one, as in every completer: rows that were not in
    `fit` are completed by least squares on the row space of the completed matrix.

    Parameters
    ----------
    channels : int >= 1, default=1
        Channels per pixel. The matrix has shape ``(height, width * channels)``, and a
        row holds its pixels in order (``picture.reshape(height, -1)``). Each channel is
        filled independently.
    missing_values : float, default=numpy.nan
        A number that marks missing cells, in addition to NaN and to the container's own
        marks.
    add_indicator : bool, default=False
        Whether to append the columns of `sklearn.impute.MissingIndicator`: which cells
        were missing, for each column with a missing cell in `fit`.
    keep_empty_features : bool, default=True
        Whether to keep columns without an observed cell. They are filled with the row
        means if all cells have one unit, and otherwise with 0, as by scikit-learn's
        imputers. False drops them.
    keep_observed : bool, default=True
        Whether to return observed cells unchanged. False returns the values of
        ``reconstruction_`` for them.

    Attributes
    ----------
    reconstruction_ : ndarray of shape (n_samples, n_features)
        The model's value of every cell.
    n_features_in_ : int
        Number of columns seen in `fit`.
    feature_names_in_ : ndarray of str
        Names of the columns, if the input has names.
    indicator_ : MissingIndicator or None
        `sklearn.impute.MissingIndicator` whose columns ``add_indicator`` appends.

    See Also
    --------
    NonlocalCompleter : More accurate where texture and edges recur; slower.
    skmc.pictures.complete : Completes large pictures and pictures with channels.

    Notes
    -----
    The system is solved by conjugate gradients, preconditioned by a factorization of
    the Laplacian of the missing pixels, or by multigrid if more than 65536 of them are
    connected. Time and memory are about linear in their number.

    References
    ----------
    Damelin, Hoang. On surface completion and image inpainting by biharmonic functions:
    numerical aspects. International Journal of Mathematics and Mathematical Sciences
    (2018).

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import BiharmonicCompleter
    >>> slope = np.add.outer(np.arange(9.0), np.arange(7.0))
    >>> slope[3:6, 2:4] = np.nan
    >>> BiharmonicCompleter().fit_transform(slope)[4].round(2)
    array([ 4.,  5.,  6.,  7.,  8.,  9., 10.])
    """

    completer_tags = CompleterTags(
        recovers=1.2,
        pictures=True,
        interpolates=True,
        unweighted="it interpolates the observed cells, whatever they weigh",
    )

    _: KW_ONLY
    channels: Count = 1

    def _fit_cells(self, given: Given, y: object = None) -> Outcome:
        with FitTasks(self, given.read, y):
            picture = pixels(given.matrix, self.channels).astype(float)
            missing = np.isnan(picture)
            some = ~missing.all((0, 1))
            filled = np.full(picture.shape, given.statistics.mean)
            filled[:, :, some] = inpainted(picture[:, :, some], missing[:, :, some])
        cells, statistics = given.matrix, given.statistics
        completion = filled.reshape(cells.shape).astype(cells.dtype)
        # The row space takes longer than the fit, so it is computed at the first new
        # row.
        fold_in = FoldIn.later(torch.from_numpy(completion), given.data)
        unscaled = given.data.scaling_of(None).to(torch.float64)
        rows = ScaledRows(unscaled, np.ones(cells.shape[1], bool), fold_in)
        index = RowIndex(cells)
        return Outcome(
            Completion(statistics, completion, index, rows, whole_answer=True)
        )


def inpainted(
    picture: np.ndarray,  # (height, width, channels)
    missing: np.ndarray,
) -> np.ndarray:  # (height, width, channels)
    """Fill the channels of a picture, all at once if they have the same holes."""
    if (missing == missing[:, :, :1]).all():
        return _inpainted(picture, missing[:, :, 0])
    channels = np.split(picture, picture.shape[2], axis=2)
    masks = np.moveaxis(missing, 2, 0)
    return np.concatenate(list(map(_inpainted, channels, masks)), axis=2)


def _inpainted(picture: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Fill the pixels of ``mask (h, w)`` in ``picture (h, w, channels)``.

    With the Laplacian of the whole picture, whose edges are reflected, the missing
    pixels ``x`` minimize ``|L x + k|^2``, where ``L`` is the part of it for missing
    pixels, and ``k`` is what the observed ones add. A factorization of ``L' L`` takes
    much time and memory. With the part ``D`` of ``-L`` among missing pixels, it is
    ``D D`` plus a part from missing to observed pixels. Preconditioned by the inverse
    of ``D D``, conjugate gradients take a few dozen steps, whatever the number of
    pixels, and a hundred where only one in a hundred is observed.
    """
    if not mask.any():
        return picture
    seen = picture[~mask]
    Lt = _laplacian(mask)
    rough = _differences(np.where(mask[..., None], 0, picture))
    D = -Lt[:, mask.ravel()]
    D.sum_duplicates()
    approximate = InverseSquare(D, mask)
    right = torch.from_numpy(-(Lt @ rough.reshape(mask.size, -1)))

    def system(X: Tensor) -> Tensor:
        return torch.from_numpy(Lt @ (Lt.T @ X.numpy()))

    def inverse(R: Tensor) -> Tensor:
        return torch.from_numpy(approximate(R.numpy()))

    start = inverse(right)
    accuracy = TOL**2 * (right * start).sum(0)
    at_holes, _ = conjugate_gradients(
        system, right, start, MAX_STEPS, accuracy, inverse
    )
    filled = picture.copy()
    filled[mask] = at_holes.numpy().clip(seen.min(0), seen.max(0))
    return filled


def _differences(values: np.ndarray) -> np.ndarray:
    """The Laplacian of a picture. Neighbors beyond an edge are the pixel itself."""
    wide = np.pad(values, [(1, 1), (1, 1), (0, 0)], mode="edge")
    across = wide[1:-1, :-2] + wide[1:-1, 2:]
    return across + wide[:-2, 1:-1] + wide[2:, 1:-1] - 4 * values


def _laplacian(mask: np.ndarray) -> sp.csr_array:
    """The rows of the Laplacian for the pixels of ``mask``, ``(n_missing, pixels)``."""
    pixels = np.arange(mask.size, dtype=np.int32).reshape(mask.shape)
    wide = np.pad(pixels, 1, mode="edge")
    near = [wide[:-2, 1:-1], wide[1:-1, :-2], pixels, wide[1:-1, 2:], wide[2:, 1:-1]]
    places = np.stack([each[mask] for each in near], axis=1)
    values = np.tile([1.0, 1.0, -4.0, 1.0, 1.0], len(places))
    ends = np.arange(0, places.size + 1, 5)
    shape = len(places), mask.size
    return sp.csr_array((values, places.ravel(), ends), shape=shape)


class InverseSquare:
    r"""Approximate solutions of ``A A x = b`` by half a V-cycle for each factor.

    The unknowns belong to pixels. Those of 2 x 2 pixels are one unknown of the next
    level, a step of Jacobi smooths the interpolation P from there, and the matrix of
    the next level is :math:`P^\top A P` (smoothed aggregation). The first half
    :math:`V^\top` has steps of Jacobi on the way to coarser levels, the second half V
    on the way back, so that :math:`V V^\top` is symmetric and its results are smooth.
    Time and memory are linear in the number of unknowns. Two solves with a
    factorization of A are exact, and are faster if no more than 65536 unknowns are
    connected.

    Parameters
    ----------
    A : sparse array of shape (n, n)
        Symmetric positive definite, with entries between neighboring pixels, such as
        the negative Laplacian.
    mask : bool ndarray of shape (height, width)
        Mask of the n pixels, which are numbered along rows.

    References
    ----------
    Vaněk, Mandel, Brezina. Algebraic multigrid by smoothed aggregation for second and
    fourth order elliptic problems. Computing 56 (1996).
    """

    def __init__(self, A: sp.csr_array, mask: np.ndarray) -> None:
        self._levels: list[tuple[sp.csr_array, sp.csr_array, sp.csr_array, np.ndarray]]
        self._levels = []
        if np.bincount(connected_components(A)[1]).max() > LARGE:
            A = A.astype(np.float32)  # enough for approximations, and faster
            while A.shape[0] > FEW:
                damped = 1 / A.diagonal()
                P, mask = _aggregates(mask)
                P = sp.csr_array(P - sp.diags(np.float32(SMOOTHING) * damped) @ (A @ P))
                R = sp.csr_array(P.T)
                self._levels.append((A, P, R, damped[:, None]))
                A = sp.csr_array(R @ (A @ P))
        self._dtype = A.dtype
        self._factor = splu(
            sp.csc_matrix(A, dtype=float),
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )

    def __call__(
        self,
        b: np.ndarray,  # (n, k)
    ) -> np.ndarray:  # (n, k)
        """Solve approximately."""
        half = self._cycle(b.astype(self._dtype, copy=False), 0, STEPS, ())
        return self._cycle(half, 0, (), STEPS[::-1]).astype(float, copy=False)

    def _cycle(
        self, b: np.ndarray, level: int, before: tuple[float, ...], after: tuple
    ) -> np.ndarray:
        if level == len(self._levels):
            solved = self._factor.solve(b.astype(float, copy=False))
            return solved.astype(b.dtype, copy=False)
        A, P, R, damped = self._levels[level]
        x, residual = np.zeros_like(b), b
        for step in before:
            x += np.float32(step) * damped * residual
            residual = b - A @ x
        x += P @ self._cycle(R @ residual, level + 1, before, after)
        for step in after:
            x += np.float32(step) * damped * (b - A @ x)
        return x


def _aggregates(mask: np.ndarray) -> tuple[sp.csr_array, np.ndarray]:
    """Ones from pixels to those of the picture at half the size, and their mask."""
    rows, cols = np.nonzero(mask)
    rows, cols = rows // 2, cols // 2
    half = np.zeros([-(-side // 2) for side in mask.shape], bool)
    half[rows, cols] = True
    numbers = half.ravel().cumsum().reshape(half.shape) - 1
    n, ones = len(rows), np.ones(len(rows), np.float32)
    parts = ones, numbers[rows, cols], np.arange(n + 1)
    return sp.csr_array(parts, shape=(n, int(half.sum()))), half
