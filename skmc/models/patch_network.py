"""A convolutional network that predicts a cell from the patch around it."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from skmc.cells import Observed
from skmc.linalg import Randomness, relu_layer

CHANNELS = 32
HIDDEN = (128, 64)
WINDOW = 18  # cells of a 3 x 3 window in two channels
ENOUGH = 3  # known neighbors of eight, as at a flat side of a hole
BLOCK = 2**16  # largest number of cells of patches in memory
LARGEST = 1e30  # of the input in units; sums fit in single precision


class Patches:
    """Patches of a picture, cut out of a view of its reflection-padded copy.

    Parameters
    ----------
    picture : Tensor of shape (n_rows, n_cols, \\*channels)
        Picture, which is reflected repeatedly where a patch is larger.
    side : int
        Side of a patch, an odd number.
    """

    def __init__(self, picture: Tensor, side: int):
        self.side = side
        device = picture.device
        self.rows, self.cols = (
            _reflected(size, side // 2, device) for size in picture.shape[:2]
        )
        padded = picture[self.rows][:, self.cols].contiguous()
        m, n, *channels = padded.shape
        row, col, *rest = padded.stride()
        self.view = padded.as_strided(
            (m - side + 1, n - side + 1, side, side, *channels),
            (row, col, row, col, *rest),
        )

    def around(
        self,
        rows: Tensor,  # (n_cells,)
        cols: Tensor,  # (n_cells,)
    ) -> Tensor:
        """Patches around cells, shape ``(n_cells, side, side, *channels)``."""
        return self.view[rows, cols]

    def elsewhere(
        self,
        rows: Tensor,  # (n_cells,)
        cols: Tensor,  # (n_cells,)
    ) -> Tensor:  # (n_cells, side, side)
        """False where a patch shows the cell itself or one of its reflections."""
        window = torch.arange(self.side, device=rows.device)
        same_row = self.rows[rows[:, None] + window] == rows[:, None]
        same_col = self.cols[cols[:, None] + window] == cols[:, None]
        return ~(same_row[:, :, None] & same_col[:, None, :])


def _reflected(size: int, width: int, device: torch.device) -> Tensor:
    """Positions ``-width ... size + width - 1``, reflected into ``0 ... size - 1``."""
    period = max(2 * (size - 1), 1)
    position = torch.arange(-width, size + width, device=device) % period
    return torch.minimum(position, period - position) if size > 1 else 0 * position


def filling_order(mask: Tensor) -> Tensor:
    """The round in which each cell is filled, from the boundary of holes inward.

    Observed cells have round 0. A cell is filled as soon as 3 of its 8 neighbors are
    known, or one round after its first neighbors are known.

    Parameters
    ----------
    mask : bool Tensor of shape (n_rows, n_cols)
        True where the cell is known.

    Returns
    -------
    int64 Tensor of shape (n_rows, n_cols)

    See Also
    --------
    skmc.PatchCNNCompleter : Fills holes in this order.

    Examples
    --------
    >>> import torch
    >>> mask = torch.ones(1, 7, dtype=torch.bool)
    >>> mask[:, 1:6] = False
    >>> filling_order(mask)
    tensor([[0, 2, 4, 6, 4, 2, 0]])
    """
    filled, order = mask.clone(), torch.zeros(mask.shape, dtype=torch.long)
    order = order.to(mask.device)
    waited = torch.zeros_like(mask)
    ones = torch.ones(1, 1, 3, 3, device=mask.device)
    n_round = 0
    while not filled.all():
        n_round += 1
        count = F.conv2d(filled[None, None].float(), ones, padding=1)[0, 0].round()
        ready = ~filled & ((count >= ENOUGH) | waited)
        waited = ~filled & (count > 0)
        order[ready] = n_round
        filled |= ready
    return order


class PatchCNN(nn.Module):
    r"""A network that predicts a cell from the rest of the patch around it.

    The input has two channels of side s: the mask, and the values times the mask. A
    3 x 3 convolution without padding has 32 channels; dense layers 128 - 64 - 1 follow,
    with ReLU in between. The mean of a patch's known cells is subtracted from its
    values and added to the output, so that what is learned does not depend on the
    brightness.

    Parameters
    ----------
    side : int >= 3, odd
        Side of the patch.
    unit : float > 0
        Unit by which values are divided and predictions multiplied, so that the network
        sees numbers of order one. It always computes in single precision.
    rng : Randomness
        Source of the initial weights and biases, which are uniform within ``1 /
        sqrt(fan_in)``. Those of the last layer are zero: the first prediction is the
        mean.
    """

    def __init__(self, side: int, unit: float, rng: Randomness):
        super().__init__()
        self.side, self.unit = side, unit
        flat = CHANNELS * (side - 2) ** 2
        sizes = [(WINDOW, CHANNELS), *itertools.pairwise([flat, *HIDDEN, 1])]
        weights, biases = [], []
        for fan_in, n_out in sizes:
            weights.append(rng.uniform(n_out, fan_in, fan_in**-0.5))
            biases.append(rng.uniform(1, n_out, fan_in**-0.5)[0])
        weights[-1].zero_()
        biases[-1].zero_()
        self.weights, self.biases = nn.ParameterList(weights), nn.ParameterList(biases)
        self.float()

    def windows(
        self,
        patches: Tensor,  # (n_cells, side, side, 2)
        shown: Tensor,  # (n_cells, side, side)
    ) -> tuple[Tensor, Tensor]:
        """Input of the convolution, and the means of the patches."""
        values, shown_cells = (patches * shown[..., None]).unbind(-1)
        mean = values.sum((1, 2)) / shown_cells.sum((1, 2)).clamp_min(1)
        x = torch.stack([(values - mean[:, None, None]) * shown_cells, shown_cells], -1)
        n, p = len(x), self.side - 2
        patch, row, col, channel = x.stride()
        shape, strides = (n, p, p, 3, 6), (patch, row, col, row, channel)
        return x.as_strided(shape, strides).reshape(n, p * p, WINDOW), mean

    def forward(
        self,
        windows: Tensor,  # (n_cells, (side - 2)^2, 18)
        mean: Tensor,  # (n_cells,)
    ) -> Tensor:  # (n_cells,)
        """Predict cells from the `windows` of their patches, in units of ``unit``."""
        first, *hidden, last = zip(self.weights, self.biases, strict=True)
        x = relu_layer(windows.flatten(0, 1), *first).view(len(windows), -1)
        for layer in hidden:
            x = relu_layer(x, *layer)
        return F.linear(x, *last)[:, 0] + mean

    def picture(
        self,
        values: Tensor,  # (n_rows, n_cols)
        mask: Tensor,  # (n_rows, n_cols)
    ) -> Tensor:  # (n_rows, n_cols, 2)
        """The picture for `Patches`, zero where unknown."""
        shown = torch.where(mask, values / self.unit, 0.0).clamp(-LARGEST, LARGEST)
        return torch.stack([shown, mask.to(shown.dtype)], -1).float()

    @torch.no_grad()
    def predict(
        self,
        patches: Patches,
        rows: Tensor,  # (n_cells,)
        cols: Tensor,  # (n_cells,)
    ) -> Tensor:  # (n_cells,)
        """Predict cells from patches of a `picture`, in units of ``unit``."""
        size = max(1, BLOCK // self.side**2)
        return torch.cat(
            [
                self(*self.windows(patches.around(r, c), patches.elsewhere(r, c)))
                for r, c in zip(rows.split(size), cols.split(size), strict=True)
            ]
        )

    def fill(
        self,
        data: Observed,
        order: Tensor,  # (n_rows, n_cols)
    ) -> Tensor:  # (n_rows, n_cols)
        """Fill hidden cells in their `filling_order`; predicted ones count as known."""
        X, filled = data.values, data.mask
        for n_round in range(1, int(order.max()) + 1):
            rows, cols = torch.nonzero(order == n_round, as_tuple=True)
            if len(rows):
                patches = Patches(self.picture(X, filled), self.side)
                new = self.predict(patches, rows, cols).to(X.dtype) * self.unit
                X = X.index_put((rows, cols), new)
                filled = order <= n_round
        return X

    def complete(
        self,
        data: Observed,
        order: Tensor,  # (n_rows, n_cols)
    ) -> Tensor:  # (n_rows, n_cols)
        """`fill`, with observed cells predicted from the other observed cells."""
        rows, cols = torch.nonzero(data.mask, as_tuple=True)
        patches = Patches(self.picture(data.values, data.mask), self.side)
        at_observed = (
            self.predict(patches, rows, cols).to(data.values.dtype) * self.unit
        )
        return self.fill(data, order).index_put((rows, cols), at_observed)
