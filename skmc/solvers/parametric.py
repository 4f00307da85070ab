"""Solvers whose unknowns are parameters of a model, and Adam for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from skmc.linalg import DECAY, adam_update
from skmc.solvers.solver import D, Result, S, Solver

LARGEST_STEP = 0.2  # of `RelativeAdam`, in root mean squares of the tensor


@dataclass(frozen=True, eq=False, kw_only=True)
class ParametricResult(Result):
    """A completion, and the parameters of its model if a solver is to `remember`."""

    parameters: list[Tensor] | None


class ParametricSolver(Solver[D, S]):
    """A solver that starts at given parameters, or where another solve ended.

    Attributes
    ----------
    start : sequence of Tensor, optional
        Initial parameters.
    remember : bool
        Whether the result has the parameters, for the next `start`.

    See Also
    --------
    Solver : Its base class.
    Descent : Adam on a sum of terms.
    """

    start: Sequence[Tensor] | None = None
    remember: bool = False

    def begin(self, parameters: Iterable[Tensor]) -> None:
        """Set ``parameters`` to `start`, if it is given.

        Parameters
        ----------
        parameters : iterable of Tensor
            Parameters of the model.
        """
        if self.start is None:
            return
        parameters = list(parameters)
        had, have = ([tuple(p.shape) for p in ps] for ps in (self.start, parameters))
        if had != have:
            raise ValueError(
                f"The fit that warm_start=True goes on from had parameters of shapes "
                f"{had}, now they are {have}; set warm_start=False."
            )
        for parameter, start in zip(parameters, self.start, strict=True):
            parameter.detach().copy_(start)

    def remembered(self, parameters: Iterable[Tensor]) -> list[Tensor] | None:
        """Copies of the parameters for a warm start, if they are wanted.

        Parameters
        ----------
        parameters : iterable of Tensor
            Parameters of the model.

        Returns
        -------
        list of Tensor or None
        """
        if not self.remember:
            return None
        return [p.detach().clone() for p in parameters]


@dataclass(frozen=True)
class Adam:
    r"""Adam on several tensors, which are updated together.

    .. math::

        m \leftarrow \beta_1 m + (1 - \beta_1) g, \qquad
        v \leftarrow \beta_2 v + (1 - \beta_2) g^2, \qquad
        \theta \leftarrow \theta - \eta \,
        \frac{m / (1 - \beta_1^t)}{\sqrt{v / (1 - \beta_2^t)} + 10^{-8}}

    with :math:`\beta_1 = .9`. These are the steps of `torch.optim.Adam`, whose Python
    code takes longer than the step of a small matrix. All numbers of the state are on
    the device.

    Parameters
    ----------
    parameters : list of Tensor
        Parameters to update in place.
    first : list of Tensor
        First moments ``m``.
    second : list of Tensor
        Second moments ``v``.
    count : float32 Tensor of shape ()
        Number of steps ``t``.
    lr : float
        Learning rate.
    beta2 : float, default=0.999
        Decay rate of the second moments.

    References
    ----------
    Kingma, Ba. Adam: a method for stochastic optimization. ICLR 2015.
    """

    parameters: list[Tensor]
    first: list[Tensor]
    second: list[Tensor]
    count: Tensor
    lr: float
    beta2: float = 0.999

    @classmethod
    def of(cls, parameters: Iterable[Tensor], lr: float, beta2: float = 0.999) -> Adam:
        """Make an optimizer before its first step."""
        parameters = list(parameters)
        first, second = ([torch.zeros_like(p) for p in parameters] for _ in range(2))
        count = torch.zeros((), dtype=torch.float32, device=parameters[0].device)
        return cls(parameters, first, second, count, lr, beta2)

    def step(
        self,
        decay: float | Tensor = 1.0,  # ()
    ) -> None:
        """Update the parameters by their ``.grad``, which is set to None.

        A parameter without a gradient is not changed. Without any gradient, the step
        does not count. The caller disables gradients (``torch.no_grad``).
        """
        moved = [
            (p, _like(p, p.grad), m, v)
            for p, m, v in zip(self.parameters, self.first, self.second, strict=True)
            if p.grad is not None
        ]
        if not moved:
            return
        parameters, grads, first, second = map(list, zip(*moved, strict=True))
        self.count.add_(1)
        rate = self.lr * decay
        if isinstance(rate, Tensor):
            rate = rate.float()  # as on CUDA
        adam_update(parameters, grads, first, second, self.count, rate, self.beta2)
        for p in self.parameters:
            p.grad = None


@dataclass(frozen=True)
class RelativeAdam(Adam):
    r"""Adam whose steps keep the low rank of the gradient.

    .. math::

        v \leftarrow \beta_2 v + (1 - \beta_2) \overline{g^2}, \qquad
        \theta \leftarrow \theta - \min(\eta, .2 \, \overline{\theta^2}^{1/2})
        \frac{m / (1 - \beta_1^t)}{\sqrt{v / (1 - \beta_2^t)}}

    The bar is the mean over the entries of a tensor, so that the step is a multiple of
    the first moment. From a small start, a tensor grows by at most a fifth per step
    along the gradient, as in gradient flow, and products of tensors stay of low rank.
    `Adam` moves every entry by the learning rate, and so raises all singular values.

    Parameters
    ----------
    parameters : list of Tensor
        Parameters to update in place, of shape (\*batch, n, k).
    first : list of Tensor
        First moments ``m``.
    second : list of Tensor
        Second moments ``v``, of shape (\*batch, 1, 1).
    count : float32 Tensor of shape ()
        Number of steps ``t``.
    lr : float
        Learning rate.
    beta2 : float, default=0.999
        Decay rate of the second moments.

    See Also
    --------
    Adam : Has a second moment for each entry.
    """

    @classmethod
    def of(
        cls, parameters: Iterable[Tensor], lr: float, beta2: float = 0.999
    ) -> RelativeAdam:
        adam = Adam.of(parameters, lr, beta2)
        second = [p.new_zeros(*p.shape[:-2], 1, 1) for p in adam.parameters]
        return cls(adam.parameters, adam.first, second, adam.count, lr, beta2)

    def step(self, decay: float | Tensor = 1.0) -> None:
        self.count.add_(1)
        unbias1, unbias2 = 1 - DECAY**self.count, 1 - self.beta2**self.count
        for p, m, v in zip(self.parameters, self.first, self.second, strict=True):
            if p.grad is None:
                continue
            m.lerp_(p.grad, 1 - DECAY)
            v.lerp_(_mean_square(p.grad), 1 - self.beta2)
            scale = (v / unbias2).sqrt().clamp_min(torch.finfo(v.dtype).tiny)
            size = (LARGEST_STEP * _mean_square(p).sqrt()).clamp_max(self.lr * decay)
            p.addcmul_(m, -size / scale / unbias1)
            p.grad = None


def _mean_square(X: Tensor) -> Tensor:
    """Mean square of the entries of each member, ``(*batch, 1, 1)``."""
    n = X.shape[-2] * X.shape[-1]
    return torch.linalg.vector_norm(X, dim=(-2, -1), keepdim=True).square() / n


def _like(parameter: Tensor, grad: Tensor) -> Tensor:
    """Give the gradient the strides of the parameter, which the step requires."""
    if grad.stride() == parameter.stride():
        return grad
    return torch.empty_like(parameter).copy_(grad)
