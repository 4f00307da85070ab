"""A network for rows with a wide hidden layer and a linear skip connection."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from skmc.linalg import SVD, Randomness, affine


class SkipNetwork(nn.Module):
    r"""``f(x) = tanh(c W + b) D + c S + a`` with the code ``c = x E`` of a row ``x``.

    Parameters
    ----------
    encoder : Tensor of shape (\*batch, n_cols, rank)
        Matrix ``E``. There is at most one batch axis.
    directions : Tensor of shape (\*batch, rank, n_units)
        Matrix ``W``.
    shifts : Tensor of shape (\*batch, 1, n_units)
        Vector ``b``.
    decoder : Tensor of shape (\*batch, n_units, n_cols)
        Matrix ``D``.
    skip : Tensor of shape (\*batch, rank, n_cols)
        Matrix ``S``.
    """

    def __init__(
        self,
        encoder: Tensor,
        directions: Tensor,
        shifts: Tensor,
        decoder: Tensor,
        skip: Tensor,
    ):
        super().__init__()
        self.encoder = nn.Parameter(encoder)
        self.directions = nn.Parameter(directions)
        self.shifts = nn.Parameter(shifts)
        self.decoder = nn.Parameter(decoder)
        self.skip = nn.Parameter(skip)
        self.offset = nn.Parameter(torch.zeros_like(skip[..., :1, :]))

    @classmethod
    def from_svd(
        cls,
        svd: SVD,
        inputs: Tensor,  # (*batch, n_rows, n_inputs)
        ridge: float | Tensor,  # (*batch,)
        n_units: int,
        rng: Randomness,
    ) -> SkipNetwork:
        """Make a network that nearly maps ``inputs`` to the matrix of ``svd``.

        The codes are the left singular vectors, scaled to unit variance. The encoder is
        their ridge regression on ``inputs (n_rows, n_cols)``, and the skip connection
        maps them back. Directions are N(0, 4 / rank), shifts N(0, 1) and the decoder's
        weights N(0, .01^2).
        """
        n_rows, n_cols = inputs.shape[-2:]
        codes = svd.U * n_rows**0.5
        columns = inputs.double()
        energy, basis = torch.linalg.eigh(columns.mT @ columns)
        raised = energy + torch.as_tensor(ridge).to(energy)[..., None]
        inverse = torch.where(raised > 1e-12 * energy[..., -1:], 1 / raised, 0.0)
        encoder = basis @ (
            inverse[..., None] * (basis.mT @ (columns.mT @ codes.double()))
        )
        directions = rng.normal(svd.rank, n_units, 2 / max(svd.rank, 1) ** 0.5)
        shifts = rng.normal(1, n_units, 1.0)
        decoder = rng.normal(n_units, n_cols, 0.01)
        skip = (svd.V * (svd.s / n_rows**0.5)[..., None, :]).mT.contiguous()
        layers = encoder, directions, shifts, decoder, skip
        return cls(*(part.to(inputs) for part in layers))

    def forward(self, rows: Tensor) -> Tensor:  # (*batch, k, n_cols), the same
        code = rows @ self.encoder
        return self._rows(code, self._bent(code))

    def _bent(self, code: Tensor) -> Tensor:
        return torch.tanh(affine(self.shifts, code, self.directions))

    def _rows(self, code: Tensor, bent: Tensor) -> Tensor:
        return affine(self.offset, bent, self.decoder) + code @ self.skip

    @property
    def n_held(self) -> int:
        """Number of elements that `decode` holds in memory for each row."""
        rank, n_units = self.directions.shape
        return rank * max(n_units, self.skip.shape[1])

    def decode(
        self,
        code: Tensor,  # (k, rank)
    ) -> tuple[Tensor, Tensor]:
        """Rows decoded from codes (k, rank), and derivatives (k, n_cols, rank)."""
        bent = self._bent(code)
        steep = (1 - bent.square())[:, None] * self.directions  # (k, rank, n_units)
        slope = steep @ self.decoder + self.skip
        return self._rows(code, bent), slope.mT
