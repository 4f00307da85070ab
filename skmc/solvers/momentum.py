"""Nesterov's momentum, which accelerates first-order methods."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from skmc.terms import inner


@dataclass(frozen=True)
class Momentum:
    r"""Extrapolation of the iterates of an accelerated method.

    .. math::

        Y = X + \beta (X - X_{before}), \qquad \beta = \frac{t - 1}{t'}, \qquad
        t' = \frac{1 + \sqrt{1 + 4 t^2}}{2}

    where ``t`` is 1 at the start (no extrapolation) and ``t'`` after the step. The next
    step of the method starts at ``Y``.

    Parameters
    ----------
    t : Tensor of shape (\*batch,)
        Momentum parameter, at least 1.

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
        """The momentum after the next step."""
        return Momentum((1 + (1 + 4 * self.t.square()).sqrt()) / 2)

    @property
    def beta(self) -> Tensor:
        r"""Weight of the last change, of shape (\*batch,)."""
        return (self.t - 1) / self.next.t

    def restart(
        self,
        members: Tensor,  # (*batch,)
    ) -> Momentum:
        r"""Restart in some members."""
        return Momentum(torch.where(members, 1.0, self.t))

    def restart_uphill(
        self,
        Y: Tensor,  # (*batch, n_rows, n_cols)
        X: Tensor,  # (*batch, n_rows, n_cols)
        before: Tensor,  # (*batch, n_rows, n_cols)
    ) -> Momentum:
        r"""Restart where the step from ``Y`` to ``X`` opposes the last change."""
        return self.restart(inner(Y - X, X - before) > 0)

    def extrapolate(
        self,
        X: Tensor,  # (*batch, n_rows, n_cols)
        before: Tensor,  # (*batch, n_rows, n_cols)
    ) -> Tensor:  # (*batch, n_rows, n_cols)
        r"""``X + beta (X - before)``."""
        return X + self.beta[..., None, None] * (X - before)
