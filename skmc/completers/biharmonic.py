"""Biharmonic inpainting, which has no parameters to choose."""

from __future__ import annotations

from dataclasses import KW_ONLY

import numpy as np
import torch

from skmc.base import BaseCompleter, CompleterTags, Completion, Outcome, ScaledRows
from skmc.cells import Given, pixels
from skmc.completers.costs import Cost, Variant
from skmc.loop import FitTasks
from skmc.new_rows import FoldIn, RowIndex
from skmc.parameters import Count


class BiharmonicCompleter(BaseCompleter):
    r"""Fill holes with the smoothest surface that continues their surroundings.

    .. math::

        \Delta^2 X = 0 \text{ at missing cells,} \qquad P(X) = P(M)

    where :math:`\Delta` is the Laplacian of the pixel grid and :math:`P` keeps the
    observed cells. This is `skimage.restoration.inpaint_biharmonic`: one sparse linear
    system, without parameters to choose. Values are clipped to the range of the
    observed ones, channel by channel. For pictures: neighboring rows and columns of the
    matrix must be similar. It continues edges and shades across scratches, letters and
    single pixels; it cannot continue a texture.

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

    Raises
    ------
    ImportError
        At `fit`, if scikit-image is not installed (``pip install 'skmc[plot]'``).

    Notes
    -----
    The sparse system has 13 coefficients for each missing pixel, and its factorization
    takes several times their memory. A picture in the blocks of
    `skmc.pictures.complete` needs little.

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
    cost = Cost(0.003, cells=8e-7, holes=9.5e-8)
    stacked = (Variant("biharmonic", needs="skimage"),)

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
    """Fill the pixels of ``mask (h, w)`` in ``picture (h, w, channels)``."""
    try:
        from skimage.restoration import inpaint_biharmonic
    except ImportError as error:
        raise ImportError(
            "BiharmonicCompleter needs scikit-image: pip install 'skmc[plot]'."
        ) from error
    if not mask.any():
        return picture
    values = np.where(mask[:, :, None], 0, picture)
    # The function fails for a mask that is not contiguous.
    mask = np.ascontiguousarray(mask)
    return inpaint_biharmonic(values, mask, channel_axis=-1)
