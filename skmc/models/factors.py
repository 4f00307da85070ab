"""Products of factor matrices."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from skmc.linalg import Randomness, matmul


class FactorProduct(nn.Module):
    r"""Deep matrix factorization, ``X = W[L-1] ... W[1] W[0]``.

    Parameters
    ----------
    factors : sequence of Tensor
        ``W[0]`` of shape (\*batch, width, n_cols), ..., ``W[L-1]`` of shape
        (\*batch, n_rows, width).

    See Also
    --------
    skmc.solvers.Descent : Trains it.

    References
    ----------
    Arora, Cohen, Hu, Luo. Implicit regularization in deep matrix factorization.
    NeurIPS 2019.
    """

    def __init__(self, factors: Sequence[Tensor]):
        super().__init__()
        self.factors = nn.ParameterList(factors)

    @classmethod
    def random(
        cls, shape: tuple[int, int], depth: int, width: int, std: float, rng: Randomness
    ) -> FactorProduct:
        """Draw ``depth`` factors with independent N(0, std^2) entries.

        Parameters
        ----------
        shape : tuple of int
            Shape of the product, ``(n_rows, n_cols)``.
        depth : int
            Number of factors.
        width : int
            Inner dimension.
        std : float
            Standard deviation of the entries.
        rng : Randomness
            Source of random numbers.

        Returns
        -------
        FactorProduct
        """
        return cls([rng.normal(*size, std) for size in _sizes(shape, depth, width)])

    @classmethod
    def identity(
        cls, shape: tuple[int, int], depth: int, width: int, scale: float
    ) -> FactorProduct:
        """Make ``depth`` factors with ``scale`` on their diagonals.

        Parameters
        ----------
        shape : tuple of int
            Shape of the product, ``(n_rows, n_cols)``.
        depth : int
            Number of factors.
        width : int
            Inner dimension.
        scale : float
            Value on the diagonals.

        Returns
        -------
        FactorProduct
        """
        return cls([scale * torch.eye(*size) for size in _sizes(shape, depth, width)])

    def _factors(self) -> list[Tensor]:
        # ``parameters()`` takes as long as a small product.
        return list(self.factors._parameters.values())  # type: ignore[arg-type]

    def forward(self) -> Tensor:  # (*batch, n_rows, n_cols)
        return self.products()[-1]

    def products(self) -> list[Tensor]:
        """Partial products ``W[0]``, ``W[1] W[0]``, ..., ``X``.

        Returns
        -------
        list of Tensor
        """
        first, *factors = self._factors()
        products = [first]
        for factor in factors:
            products.append(matmul(factor, products[-1]))
        return products

    def pull(self, grad: Tensor, products: Sequence[Tensor]) -> list[Tensor]:
        """The gradients of the factors, as autograd would compute them.

        Parameters
        ----------
        grad : Tensor of shape (\\*batch, n_rows, n_cols)
            Gradient with respect to the completion.
        products : list of Tensor
            The result of `products` at the current factors.

        Returns
        -------
        list of Tensor
            Gradients in the order of the factors.
        """
        grads = []
        _, *factors = self._factors()
        for factor, before in zip(reversed(factors), products[-2::-1], strict=True):
            grads.append(matmul(grad, before.mT))
            grad = matmul(factor.mT, grad)
        return [grad, *reversed(grads)]


def _sizes(shape: tuple[int, int], depth: int, width: int) -> list[tuple[int, int]]:
    """Shapes of the factors, the right one first."""
    inner = [shape[1], *[width] * (depth - 1), shape[0]]
    return [(rows, cols) for cols, rows in itertools.pairwise(inner)]
