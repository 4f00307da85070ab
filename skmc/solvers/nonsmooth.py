"""Alternating descent on a network with nonsmooth penalties (DNN-NSR)."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any

import torch
from torch import Tensor

from skmc.cells import Observed
from skmc.linalg import CosineSchedule
from skmc.models import Autoencoder
from skmc.solvers.nonsmooth_parts import (
    Blocks,
    NonsmoothState,
    Objective,
    Theta,
    Trial,
    inner,
)
from skmc.solvers.norms import ratio, relative_norm
from skmc.solvers.solver import Solver
from skmc.terms import Box

DELTA_MIN, DELTA_MAX = 0.01, 0.99
SHRINK, GROW = 0.5, 1.1  # factors of delta; the paper tries .1 to .6 and 1.05 to 1.2
LOWER = 0.8  # factor of the schedule's start; the paper tries .1, .2, .8, .9
TRIALS = 60  # largest number of trial steps in an epoch
RAISE, RELAX = 2.0, 0.95  # factors of L: if it is too small, and after each epoch


@dataclass(eq=False)
class NonsmoothDescent(Objective, Solver[Observed, NonsmoothState]):
    r"""Algorithm 1 of DNN-NSR: a network, slack variables, gradual learning.

    For rows :math:`\tilde X`, zero where missing, and a network :math:`f` with hidden
    outputs :math:`z_i` and weight matrices :math:`W_j`, it minimizes

    .. math::

        Q = \|P(f(\tilde X) - M)\|_F^2 + \lambda \sum_j \|W_j\|_F^2
            &+ \sum_i (\alpha \|h_i\|_1
               + \frac{1}{2\mu} \|z_i - h_i\|_F^2) \\
            &+ \sum_j (\beta \|V_j\|_*
               + \frac{1}{2\mu} \|W_j - V_j\|_F^2)

    subject to :math:`\|\theta\|_\infty \le \text{bound}`. All terms are *sums*, without
    a half before the first (the paper's equations 33 and 46), and ``theta`` is all
    weights and biases. An epoch is ::

        h_i = soft(z_i, mu alpha),   V_j = D_(mu beta)(W_j),
        theta^ = theta + omega (theta - theta of the epoch before),
        theta <- clip(theta^ - grad / (gamma L)),

    where ``grad`` is the gradient of the smooth part g of Q at ``theta^``, ``D``
    shrinks singular values, and
    ``omega = (gamma - 1) / (2 (gamma + 1)) sqrt(delta L_before / L)``. ``mu`` follows
    the schedule. After ``grace`` epochs, an epoch that raises Q (with the epoch's
    ``mu`` on both sides) is repeated with half of ``delta``, and with ``omega = 0`` if
    ``delta = .01`` does not suffice. After an epoch that lowers Q, ``delta`` grows by a
    tenth, up to .99.

    The following is our choice, because the paper leaves it open. ``z_i`` is that of
    the current ``theta``, so that ``h_i`` is the minimizer. ``L`` is found by
    backtracking: it starts an epoch at .95 of the last value and doubles until
    ``g(theta) <= g(theta^) + <grad, theta - theta^> + L/2 |theta - theta^|^2``. The
    equation of the descent test is in a supplement that is not public; we use that of
    Proposition 2, ::

        g(theta_before) - g(theta) >= (gamma - 1) L / 4 |theta - theta_before|^2
            - (gamma + 1)^2 L / (gamma - 1) omega^2 |theta_before - theta_before2|^2;

    If it fails, the start of the schedule is multiplied by .8. With ``L`` found by
    backtracking it seldom fails.

    Parameters
    ----------
    network : Autoencoder
        Network whose parameters are the starting point.
    activity : L1Norm
        Penalty ``alpha |h_i|_1`` of each hidden layer.
    rank : NuclearNorm
        Penalty ``beta |V_j|_*`` of each weight matrix.
    decay : SquaredNorm
        Penalty ``lambda |W_j|_F^2``; the weight of the term is ``2 lambda``.
    box : Box
        Bound of the parameters.
    schedule : CosineSchedule
        Schedule of ``mu``.
    gamma : float > 1
        Divisor of the step length ``1 / L``.
    grace : int
        Number of first epochs that may raise Q; the paper uses 200 or 300.
    omega : float, optional
        Fixed weight of the extrapolation, in place of the adaptive one.
    """

    network: Autoencoder
    _: KW_ONLY
    box: Box
    schedule: CosineSchedule
    gamma: float
    grace: int = 200
    omega: float | None = None

    def init(self, data: Observed) -> NonsmoothState:
        own = Theta.of(list(self.network.weights), list(self.network.biases))
        theta = own.moved(self.box.prox(own.vector.detach().to(data.values), 1.0))
        forward = self.forward(data, theta)
        mu = self.schedule(0)
        blocks = self.blocks(forward, mu)
        return NonsmoothState(
            objective=torch.full_like(data.n_observed, torch.inf),
            found=Trial(forward, math.inf, math.inf, True, omega=0.0, lipschitz=1.0),
            before=theta.vector,
            blocks=blocks,
            schedule=self.schedule,
            mu=mu,
            delta=DELTA_MAX,
            iteration=0,
        )

    def step(self, data: Observed, state: NonsmoothState) -> NonsmoothState:
        epoch = state.iteration + 1
        mu = state.schedule(epoch)
        blocks = self.blocks(state.found.forward, mu)
        start = self.smooth(state.found.forward, blocks, mu)
        found, delta = self._search(data, state, blocks, mu)
        enough = self._descends(state, found, start)
        final = self.smooth(found.forward, blocks, state.schedule.end)
        return NonsmoothState(
            objective=torch.full_like(state.objective, final + blocks.penalty),
            found=found,
            before=state.theta.vector,
            blocks=blocks,
            schedule=state.schedule if enough else state.schedule.lowered(LOWER),
            mu=mu,
            delta=delta,
            iteration=epoch,
        )

    def _search(
        self, data: Observed, state: NonsmoothState, blocks: Blocks, mu: float
    ) -> tuple[Trial, float]:
        """Find the step of an epoch by trials, and the next ``delta``."""
        late = state.iteration + 1 > self.grace
        # Q of the previous epoch, at this epoch's mu.
        ceiling = self.smooth(state.found.forward, state.blocks, mu)
        ceiling += state.blocks.penalty
        L, delta, rest = RELAX * state.found.lipschitz, state.delta, False
        for _ in range(TRIALS):
            omega = 0.0 if rest else self._omega(delta * state.found.lipschitz / L)
            trial = self._try(data, state, blocks, mu, L, omega)
            if not trial.short:
                L *= RAISE
            elif late and trial.end + blocks.penalty > ceiling and not rest:
                rest = delta == DELTA_MIN
                delta = max(SHRINK * delta, DELTA_MIN)
            else:
                break
        if late and trial.end + blocks.penalty < ceiling:
            delta = min(GROW * delta, DELTA_MAX)
        return trial, delta

    def _try(
        self,
        data: Observed,
        state: NonsmoothState,
        blocks: Blocks,
        mu: float,
        L: float,
        omega: float,
    ) -> Trial:
        """Take a proximal gradient step of length ``1 / (gamma L)``."""
        now = state.theta.vector
        hat = now + omega * (now - state.before)
        at_hat = self.forward(data, state.theta.moved(hat))
        value = self.smooth(at_hat, blocks, mu)
        grad = self.gradient(data, at_hat, blocks, mu)
        length = 1 / (self.gamma * L)
        vector = self.box.prox(hat - length * grad, length)
        forward = self.forward(data, state.theta.moved(vector))
        end = self.smooth(forward, blocks, mu)
        way = vector - hat
        squared = inner(way, way)
        bound = value + inner(grad, way) + L / 2 * squared
        return Trial(
            forward=forward,
            end=end,
            way=squared,
            short=end <= bound + self._rounding(state) * abs(value),
            omega=omega,
            lipschitz=L,
        )

    def _descends(self, state: NonsmoothState, found: Trial, start: float) -> bool:
        """Whether an epoch lowers the smooth part as Proposition 2 requires."""
        gamma, L = self.gamma, found.lipschitz
        moved = state.theta.vector - state.before
        went = found.forward.theta.vector - state.theta.vector
        least = (gamma - 1) * L / 4 * inner(went, went) - (
            (gamma + 1) ** 2 * L / (gamma - 1) * found.omega**2 * inner(moved, moved)
        )
        return start - found.end >= least - self._rounding(state) * abs(start)

    @staticmethod
    def _rounding(state: NonsmoothState) -> float:
        return 10 * torch.finfo(state.objective.dtype).eps

    def _omega(self, ratio: float) -> float:
        if self.omega is not None:
            return self.omega
        return (self.gamma - 1) / (2 * (self.gamma + 1)) * math.sqrt(ratio)

    def residual(
        self, data: Observed, previous: NonsmoothState, current: NonsmoothState
    ) -> Tensor:
        """The largest of three relative measures.

        The paper has two, ``|h_i - z_i|^2 / |z_i|^2`` and ``|V_j - W_j|^2 / |W_j|^2``
        (the division is ours). They measure the agreement of the slack variables with
        the variables that they replace, and do not show that anything is learned.
        Without penalties they are zero at the start. So we add a third,
        ``|G| |theta| / (|P(M)|^2 + |P(f - M)|^2)`` with the proximal gradient G.

        Parameters
        ----------
        data : Observed
            The observed cells.
        previous : State
            The state before the last step.
        current : NonsmoothState
            The state after it.

        Returns
        -------
        Tensor of shape ()
        """
        pairs = current.blocks.pairs(current.found.forward)
        gaps = [relative_norm(a - b, a).square() for a, b in pairs]
        gradient = self.gamma * current.found.lipschitz * math.sqrt(current.found.way)
        length = math.sqrt(inner(current.theta.vector, current.theta.vector))
        scale = data.energy + current.found.forward.error.square().sum()
        gaps.append(ratio(gradient * length, scale))
        return torch.stack(gaps).amax()

    def outputs(self, state: NonsmoothState) -> dict[str, Any]:
        layers = (state.theta.weights, state.theta.biases)
        network = Autoencoder(*([part.clone() for part in each] for each in layers))
        return {"X": state.found.forward.output, "network": network}
