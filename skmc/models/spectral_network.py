"""Networks of spectral blocks."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from skmc.linalg import SVD, Activation, Randomness, SpectralActivation, full_svd

DIAGONAL, NOISE = 1e-4, 1e-6  # entries of the start near zero
SMALL = DIAGONAL**2  # scale of a start along given singular vectors
FLOOR = 1e-2  # share of the largest singular value at which the smallest ones start
TILT = 1.1  # multiplies U and divides V; with 1, singular values keep their signs


class SpectralNetwork(nn.Module):
    r"""Spectral neural network: activations act on singular values.

    One block is ``X = sum_k alpha_k Gamma(U_k V_k')``. In a deep network, each block of
    a layer applies ``Gamma`` to all matrices of the previous layer and adds them with
    its own coefficients; the last layer has one block.

    Parameters
    ----------
    U : Tensor of shape (\*batch, K, n_rows, width)
        Left factors of the first layer.
    V : Tensor of shape (\*batch, K, n_cols, width)
        Right factors of the first layer.
    alphas : sequence of Tensor
        Coefficients of each layer, (\*batch, blocks, matrices of the previous layer);
        the last layer has one block.
    activation : Activation
        Function ``gamma``, which ``Gamma`` applies to the singular values.
    scale : float or Tensor of shape (\*batch,), default=1
        Factor of the output, so that the activation sees singular values near one.

    References
    ----------
    Chu, Ghosh, Lam, Mukherjee. Implicit regularization via spectral neural networks
    and non-linear matrix sensing. 2024.
    """

    def __init__(
        self,
        U: Tensor,
        V: Tensor,
        alphas: Sequence[Tensor],
        activation: Activation,
        scale: float | Tensor = 1.0,
    ):
        super().__init__()
        self.U, self.V = nn.Parameter(U), nn.Parameter(V)
        self.alphas = nn.ParameterList(alphas)
        self.activations = nn.ModuleList(SpectralActivation(activation) for _ in alphas)
        self.register_buffer("scale", torch.as_tensor(scale, dtype=U.dtype))
        self.scale: Tensor

    @classmethod
    def near_zero(
        cls,
        values: Tensor,  # (*batch, n_rows, n_cols)
        layers: Sequence[int],
        activation: Activation,
        rng: Randomness,
        *,
        width: int | None = None,
        scale: float | Tensor = 1.0,
    ) -> SpectralNetwork:
        """Start ``U_k`` and ``V_k`` at 1e-4 plus noise of 1e-6 on the diagonal."""
        width = width or min(values.shape[-2:])
        factors = []
        for n in values.shape[-2:]:
            size = min(n, width)
            diagonal = DIAGONAL + rng.normal(layers[0], size, NOISE)
            padding = (0, width - size, 0, n - size)
            factors.append(nn.functional.pad(diagonal.diag_embed(), padding))
        return cls(factors[0], factors[1], _mixing(layers, rng), activation, scale)

    @classmethod
    def spectral(
        cls,
        values: Tensor,  # (*batch, n_rows, n_cols)
        layers: Sequence[int],
        activation: Activation,
        rng: Randomness,
        *,
        width: int | None = None,
        scale: float | Tensor = 1.0,
    ) -> SpectralNetwork:
        """Start at the singular vectors of ``values``, with tiny singular values.

        The singular values are about 1e-8 times those of ``values``. All ``U_k V_k'``
        start equal, as this small matrix divided by the sum of the
        ``alpha``, because ``Gamma`` only shrinks singular values.
        """
        svd = full_svd(SMALL * values)
        # A singular value that starts at zero would stay there.
        s = svd.s.clamp_min(FLOOR * svd.s[..., :1])
        svd = SVD(svd.U, s, svd.V).first(width or svd.rank)
        alphas = _mixing(layers, rng)
        total = torch.ones_like(alphas[0][..., 0, :, None])
        for alpha in alphas:
            total = alpha @ total
        scale = torch.as_tensor(scale, dtype=svd.s.dtype)
        z = svd.s / (scale[..., None] * total[..., 0].to(svd.s))
        root = z.sqrt()[..., None, None, :]
        U, V = (
            (side.unsqueeze(-3) * size).repeat_interleave(layers[0], -3)
            for side, size in ((svd.U, TILT * root), (svd.V, root / TILT))
        )
        return cls(U, V, alphas, activation, scale)

    def forward(self) -> Tensor:  # (*batch, n_rows, n_cols)
        X = self.U @ self.V.mT
        for activation, alpha in zip(self.activations, self.alphas, strict=True):
            X = activation(X)
            X = (alpha @ X.flatten(-2)).unflatten(-1, X.shape[-2:])
        return self.scale[..., None, None] * X.squeeze(-3)


def _mixing(layers: Sequence[int], rng: Randomness) -> list[Tensor]:
    """Draw coefficients uniformly between 0 and 1."""
    return [
        0.5 + rng.uniform(blocks, inputs, 0.5)
        for inputs, blocks in itertools.pairwise([*layers, 1])
    ]
