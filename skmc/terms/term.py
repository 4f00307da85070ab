"""Base class of the terms of an objective."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from skmc.linalg import NeighborGraph


def per_member(
    weight: float | Tensor,  # (*batch,)
    X: Tensor,  # (*batch, n_rows, n_cols)
) -> Tensor:  # (*batch, 1, 1)
    """Reshape one number per member to multiply matrices: ``(*batch, 1, 1)``."""
    if not isinstance(weight, Tensor):
        return X.new_full((1, 1), weight)
    return weight.to(X)[..., None, None]


def inner(
    A: Tensor,  # (*batch, rows, cols)
    B: Tensor,  # (*batch, rows, cols)
) -> Tensor:  # (*batch,)
    """``<A, B>`` of each member: ``(*batch, rows, cols)`` twice -> ``(*batch,)``."""
    return torch.linalg.vecdot(A.flatten(-2), B.flatten(-2))


class Term(nn.Module):
    """A scalar function of the completion: ``X (*batch, m, n) -> (*batch,)``.

    A subclass defines ``forward``. It may add a closed-form `value_and_grad` (equal to
    the one here, which differentiates ``forward``), a `prox`, and its own parameters.
    These are learned together with the model: one step in ``every`` evaluations,
    ``every`` times as long.

    In a batch, members have their own weights and parameters. A term declares them with
    `add_weight` or `batched` when it stores them. Then they are selected when members
    are removed from the batch.

    See Also
    --------
    Sum : Adds terms.
    skmc.solvers.Descent : Minimizes a sum of terms.
    """

    every: int = 1

    def __init__(self) -> None:
        super().__init__()
        self._member_ndim: dict[str, int] = {}

    @property
    def lags(self) -> bool:
        """Whether `value_and_grad` may use values of older parameters."""
        return self.every > 1

    def add_weight(self, name: str, weight: float | Tensor) -> None:
        """Store a weight as a float64 buffer, which may differ between members.

        Parameters
        ----------
        name : str
            Name of the attribute.
        weight : float or Tensor of shape (\\*batch,)
            Number for all members, or for each member.
        """
        self.register_buffer(name, torch.as_tensor(weight, dtype=torch.float64))
        self.batched(name, 0)

    def batched(self, name: str, ndim: int) -> None:
        """Declare that a tensor may differ between members.

        Parameters
        ----------
        name : str
            Name of the attribute: a buffer, a parameter or a plain tensor.
        ndim : int
            Number of axes of a single member's tensor; batch axes precede them.
        """
        self._member_ndim[name] = ndim

    def value_and_grad(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """``F(X)`` and ``dF/dX``; adds to the ``.grad`` of the term's parameters.

        A term that `lags` may use the parameters of an earlier call. The caller may
        change the gradient in place.

        Parameters
        ----------
        X : Tensor of shape (\\*batch, n_rows, n_cols)
            A completion.

        Returns
        -------
        value : Tensor of shape (\\*batch,)
        grad : Tensor of shape (\\*batch, n_rows, n_cols)
        """
        with torch.enable_grad():
            X = X.detach().requires_grad_()
            value = self(X)
            # Members do not interact, so one backward pass suffices.
            value.sum().backward()
        return value.detach(), X.grad if X.grad is not None else torch.zeros_like(X)

    def grad(self, X: Tensor) -> Tensor:
        """``dF/dX``, like `value_and_grad` without the value.

        Parameters
        ----------
        X : Tensor of shape (\\*batch, n_rows, n_cols)
            A completion.

        Returns
        -------
        Tensor of shape (\\*batch, n_rows, n_cols)
        """
        return self.value_and_grad(X)[1]

    def value(self, X: Tensor) -> Tensor:
        """The value at ``X``, with the parameters of the last call of `grad` there.

        Parameters
        ----------
        X : Tensor of shape (\\*batch, n_rows, n_cols)
            A completion.

        Returns
        -------
        Tensor of shape (\\*batch,)
        """
        with torch.no_grad():
            return self(X)

    def prox(self, V: Tensor, step: float | Tensor) -> Tensor:
        """``argmin_X step F(X) + 1/2 |X - V|^2``.

        Parameters
        ----------
        V : Tensor of shape (\\*batch, n_rows, n_cols)
            Start of the step.
        step : float or Tensor of shape (\\*batch,)
            Step length, positive.

        Returns
        -------
        Tensor of shape (\\*batch, n_rows, n_cols)
        """
        raise NotImplementedError(
            f"{type(self).__name__} has no closed-form proximal operator."
        )

    def prox_and_value(self, V: Tensor, step: float | Tensor) -> tuple[Tensor, Tensor]:
        """The proximal point, and the term's value there.

        Parameters
        ----------
        V : Tensor of shape (\\*batch, n_rows, n_cols)
            Start of the step.
        step : float or Tensor of shape (\\*batch,)
            Step length, positive.

        Returns
        -------
        X : Tensor of shape (\\*batch, n_rows, n_cols)
        value : Tensor of shape (\\*batch,)
        """
        X = self.prox(V, step)
        return X, self(X)

    def select(self, members: Tensor) -> None:
        """Keep some members of the single batch axis, in place.

        Parameters
        ----------
        members : bool or int Tensor
            Mask or positions of the members to keep. A single number drops the axis.
        """
        for name, ndim in self._member_ndim.items():
            tensor = getattr(self, name)
            if tensor is not None and tensor.ndim > ndim:
                setattr(self, name, narrow(tensor, members))

    def laplacians(self) -> dict[str, Tensor | NeighborGraph]:
        """Laplacians of items that a fitted estimator keeps, by the items' name.

        Returns
        -------
        dict of str to Tensor or NeighborGraph
        """
        return {}


def narrow(tensor: Tensor, members: Tensor) -> Tensor:
    """Select members of a tensor, or of a parameter and its gradient."""
    if not isinstance(tensor, nn.Parameter):
        return tensor[members]
    fewer = nn.Parameter(tensor.detach()[members])
    fewer.grad = None if tensor.grad is None else tensor.grad[members]
    return fewer
