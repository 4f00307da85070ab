"""Nesterov's momentum, which accelerates first-order methods."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from skmc.terms import inner


@dataclass(frozen=True)
class Momentum:
    r"""How far an accelerated method extrapolates its iterates.

    .. math::

        Y = X + \beta (X - X_{before}), \qquad \beta = \frac{t - 1}{t'}, \qquad
        t' = \frac{1 + \sqrt{1 + 4 t^2}}{2}

    where ``t`` is 1 at the start (no extrapolation) and ``t'`` after the step. The next
    step of the method starts at ``Y``.

    Parameters
    ----------
    t : Tensor of shape (\*batch,)
        At least 1.

    References
    ----------
    Beck, Teboulle. A fast iterative shrinkage-thresholding algorithm for linear inverse
    problems. SIAM Journal on Imaging Sciences 2 (2009). -- O'Donoghue, Candes. Adaptive
    restart for accelerated gradient schemes. Foundations of Computational Mathematics
    15 (2015).
    """

    t: Tensor

    @property
    def next(self) -> Momentum:
        """The momentum after a step."""
        return Momentum((1 + (1 + 4 * self.t.square()).sqrt()) / 2)

    @property
    def beta(self) -> Tensor:
        r"""Weight of the last move, of shape (\*batch,)."""
        return (self.t - 1) / self.next.t

    def restart(self, members: Tensor) -> Momentum:
        r"""Start again in some members.

        Parameters
        ----------
        members : bool Tensor of shape (\*batch,)
            Where ``t`` becomes 1.

        Returns
        -------
        Momentum
        """
        return Momentum(torch.where(members, 1.0, self.t))

    def restart_uphill(self, Y: Tensor, X: Tensor, before: Tensor) -> Momentum:
        r"""Start again where the step from ``Y`` to ``X`` turned against the last move.

        Parameters
        ----------
        Y : Tensor of shape (\*batch, n_rows, n_cols)
            Where the step started.
        X : Tensor of shape (\*batch, n_rows, n_cols)
            Where it ended.
        before : Tensor of shape (\*batch, n_rows, n_cols)
            The iterate before ``X``.

        Returns
        -------
        Momentum
        """
        return self.restart(inner(Y - X, X - before) > 0)

    def extrapolate(self, X: Tensor, before: Tensor) -> Tensor:
        r"""``X + beta (X - before)``.

        Parameters
        ----------
        X : Tensor of shape (\*batch, n_rows, n_cols)
            An iterate, or anything that is linear in it.
        before : Tensor of shape (\*batch, n_rows, n_cols)
            The same one step earlier.

        Returns
        -------
        Tensor of shape (\*batch, n_rows, n_cols)
        """
        return X + self.beta[..., None, None] * (X - before)
