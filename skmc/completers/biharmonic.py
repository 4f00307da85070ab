"""Biharmonic inpainting, which has no parameters to choose."""

from __future__ import annotations

from dataclasses import KW_ONLY

import numpy as np
import scipy.sparse as sp
import torch
from scipy.sparse.linalg import splu
from torch import Tensor

from skmc.base import BaseCompleter, CompleterTags, Completion, Outcome, ScaledRows
from skmc.cells import Given, pixels
from skmc.completers.costs import Cost, Variant
from skmc.linalg import conjugate_gradients
from skmc.loop import FitTasks
from skmc.new_rows import FoldIn, RowIndex
from skmc.parameters import Count

TOL, MAX_STEPS = 1e-9, 1000  # of conjugate gradients


class BiharmonicCompleter(BaseCompleter):
    r"""Fill holes with the smoothest surface that continues their surroundings.

    .. math::

        \Delta^2 X = 0 \text{ at missing cells,} \qquad P(X) = P(M)

    where :math:`\Delta` is the Laplacian of the pixel grid and :math:`P` keeps the
    observed cells. The result is that of `skimage.restoration.inpaint_biharmonic`: the
    solution of one sparse linear system, without parameters to choose. Values are
    clipped to the range of the observed ones, channel by channel. For pictures:
    neighboring rows and columns of the matrix must be similar. It continues edges and
    shades across scratches, letters and single pixels; it cannot continue a texture.

    `transform` treats rows one by one, as in every completer: rows that were not in
    `fit` are completed by least squares on the row space of the completed matrix.

    Parameters
    ----------
    channels : int >= 1, default=1
        Channels per pixel. The matrix has shape ``(height, width * channels)``, and a
        row holds its pixels in order (``picture.reshape(height, -1)``). Each channel is
        filled independently.
    {reading}

    Attributes
    ----------
    {reconstruction_}
    {input}

    Notes
    -----
    The system is solved by conjugate gradients, preconditioned by a factorization of
    the Laplacian of the missing pixels. Time and memory grow a little faster than their
    number.

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
    advice = "pictures with scratches or scattered holes, in a second"
    cost = Cost(0.003, cells=7e-7, holes=3e-8)
    stacked = (Variant("biharmonic"),)

    _: KW_ONLY
    channels: Count = 1

    def _fit_cells(self, given: Given, y: object = None) -> Outcome:
        with FitTasks(self, given.read, y):
            filled = self._inpainted(given)
        cells, statistics = given.matrix, given.statistics
        whole = filled.reshape(cells.shape).astype(cells.dtype)
        # The row space takes longer than the fit, so it is computed at the first new
        # row.
        fold_in = FoldIn.later(torch.from_numpy(whole), given.data)
        unscaled = given.data.scaling_of(None).to(torch.float64)
        rows = ScaledRows(unscaled, np.ones(cells.shape[1], bool), fold_in)
        index = RowIndex(cells)
        return Outcome(Completion(statistics, whole, index, rows, whole_answer=True))

    def _inpainted(self, given: Given) -> np.ndarray:
        """Fill the channels, all at once if they have the same holes."""
        picture = pixels(given.matrix, self.channels).astype(float)
        mask = np.isnan(picture)
        if (mask == mask[:, :, :1]).all():
            return _inpainted(picture, mask[:, :, 0])
        filled = np.full(picture.shape, given.statistics.mean)
        for k in np.flatnonzero(~mask.all((0, 1))):
            one = slice(k, k + 1)
            filled[:, :, one] = _inpainted(picture[:, :, one], mask[:, :, k])
        return filled


def _inpainted(picture: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Fill the pixels of ``mask (h, w)`` in ``picture (h, w, channels)``.

    With the Laplacian ``L`` of the whole picture, whose edges are reflected, the
    missing pixels ``x`` minimize ``|L u|^2``: ``A x = b`` with ``A = D^2 + C' C``,
    where ``D`` is the part of ``-L`` among missing pixels, and ``C`` that from missing
    to observed ones. A factorization of ``A`` takes much time and memory, that of ``D``
    little. For ``y = D x``, the system is ``(1 + K' K) y = D^-1 b`` with
    ``K = C D^-1``, which conjugate gradients solve in a few dozen steps, whatever the
    size of the holes.
    """
    if not mask.any():
        return picture
    missing = mask.ravel()
    flat = picture.reshape(len(missing), -1)
    known = flat[~missing]
    L = _laplacian(*mask.shape)
    outside, C = L[~missing], L[~missing][:, missing]
    D = -L[missing][:, missing]
    factor = splu(
        D.tocsc(),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    # Of each observed pixel, L has a part at observed and one at missing pixels.
    b = D @ (L[missing][:, ~missing] @ known) - C.T @ (outside[:, ~missing] @ known)

    def system(Y: Tensor) -> Tensor:
        y = Y.numpy()
        return Y + torch.from_numpy(factor.solve(C.T @ (C @ factor.solve(y))))

    right = torch.from_numpy(factor.solve(b))
    accuracy = right.square().sum(0) * TOL**2
    Y, _ = conjugate_gradients(system, right, None, MAX_STEPS, accuracy)
    filled = picture.copy()
    found = factor.solve(Y.numpy())
    filled[mask] = found.clip(known.min(0), known.max(0))
    return filled


def _laplacian(height: int, width: int) -> sp.csr_array:
    """Differences of each pixel from its four neighbors, ``(pixels, pixels)``.

    Neighbors beyond an edge are the pixel itself.
    """

    def along(n: int) -> sp.spmatrix:
        ones, center = np.ones(n - 1), np.zeros(n)
        center[1:] -= 1
        center[:-1] -= 1
        return sp.diags([ones, center, ones], [-1, 0, 1], shape=(n, n))

    down = sp.kron(along(height), sp.identity(width))
    across = sp.kron(sp.identity(height), along(width))
    return sp.csr_array(down + across)
