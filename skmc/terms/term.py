"""What every term of an objective can do."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn


def per_member(weight: Tensor, X: Tensor) -> Tensor:
    """Align a weight of shape ``(*batch,)`` or ``()`` with ``(*batch, rows, cols)``.

    Parameters
    ----------
    weight : Tensor of shape (\\*batch,) or ()
        One number for each member, or for all.
    X : Tensor of shape (\\*batch, n_rows, n_cols)
        A completion.

    Returns
    -------
    Tensor
    """
    return weight.to(X)[..., None, None]


def inner(A: Tensor, B: Tensor) -> Tensor:
    """``<A, B>`` of each member: ``(*batch, rows, cols)`` twice -> ``(*batch,)``.

    Parameters
    ----------
    A : Tensor of shape (\\*batch, rows, cols)
        Matrices.
    B : Tensor of shape (\\*batch, rows, cols)
        Matrices.

    Returns
    -------
    Tensor of shape (\\*batch,)
    """
    return torch.linalg.vecdot(A.flatten(-2), B.flatten(-2))


class Term(nn.Module):
    """A scalar function of the completion: ``X (*batch, m, n) -> (*batch,)``.

    A subclass defines ``forward``. It may add a closed-form ``value_and_grad`` (equal
    to the one here, which differentiates ``forward``), a ``prox``, and parameters of
    its own, which are learned together with the model: one step for each ``every``
    evaluations, ``every`` times as long.
    """

    every: int = 1
    # Tensors that may have the batch axes in front: name -> axes of a single member.
    member_axes: ClassVar[dict[str, int]] = {}

    def value_and_grad(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """``F(X)`` and ``dF/dX``; adds to the ``.grad`` of the term's parameters.

        Parameters
        ----------
        X : Tensor of shape (\\*batch, n_rows, n_cols)
            A completion.

        Returns
        -------
        tuple of Tensor
        """
        with torch.enable_grad():
            X = X.detach().requires_grad_()
            value = self(X)
            # Members do not interact, so one backward pass serves them all.
            value.sum().backward()
        return value.detach(), X.grad if X.grad is not None else torch.zeros_like(X)

    def prox(self, V: Tensor, step: float) -> Tensor:
        """``argmin_X step F(X) + 1/2 |X - V|^2``.

        Parameters
        ----------
        V : Tensor of shape (\\*batch, n_rows, n_cols)
            The point.
        step : float
            Its length.

        Returns
        -------
        Tensor
        """
        raise NotImplementedError(
            f"{type(self).__name__} has no closed-form proximal operator."
        )

    def select(self, members: Tensor) -> None:
        """Keep some members of the (one) batch axis, in place.

        Parameters
        ----------
        members : bool or int Tensor
            Those to keep, along the batch axis.
        """
        for name, axes in self.member_axes.items():
            tensor = getattr(self, name)
            if tensor.ndim > axes:
                setattr(self, name, narrow(tensor, members))

    def outputs(self) -> dict[str, Tensor]:
        """What the term learned and a fitted estimator should keep, by name.

        Returns
        -------
        dict
        """
        return {}


def narrow(tensor: Tensor, members: Tensor) -> Tensor:
    """Some members of a tensor, or of a parameter and its gradient.

    Parameters
    ----------
    tensor : Tensor
        With a batch axis in front.
    members : bool or int Tensor
        Those to keep, along the batch axis.

    Returns
    -------
    Tensor
    """
    if not isinstance(tensor, nn.Parameter):
        return tensor[members]
    fewer = nn.Parameter(tensor.detach()[members])
    fewer.grad = None if tensor.grad is None else tensor.grad[members]
    return fewer
