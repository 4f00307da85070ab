"""A method that is not part of the package: its own term, model, state and solver."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import ClassVar

import numpy as np
import torch
from sklearn.utils._param_validation import Interval
from torch import nn

from skmc.base import CompleterTags, IterativeCompleter
from skmc.solvers import Solver, State
from skmc.terms import SquaredError, Term


class Bending(Term):
    """``weight / 2`` times the *sum* of squared second differences down the columns."""

    def __init__(self, weight):
        super().__init__()
        self.add_weight("weight", weight)

    def forward(self, X):
        return self.weight.to(X) / 2 * X.diff(n=2, dim=-2).square().sum((-2, -1))


class Bilinear(nn.Module):
    """``U V'``."""

    def __init__(self, U, V):
        super().__init__()
        self.U, self.V = nn.Parameter(U), nn.Parameter(V)

    def forward(self):
        return self.U @ self.V.mT


@dataclass(frozen=True, kw_only=True)
class MomentumState(State):
    """Iterates of `HeavyBall`."""

    X: torch.Tensor
    U: torch.Tensor
    V: torch.Tensor
    velocity_U: torch.Tensor
    velocity_V: torch.Tensor


class HeavyBall(Solver):
    """Gradient descent with momentum on the sum of the terms."""

    def __init__(self, model, terms, lr=0.02, momentum=0.9):
        self.model, self.terms, self.lr, self.momentum = model, terms, lr, momentum

    def init(self, data):
        U, V = (p.detach().to(data.values.device) for p in self.model.parameters())
        self.terms = [term.to(data.values.device) for term in self.terms]
        zeros = torch.zeros_like(U), torch.zeros_like(V)
        return self._state(U, V, *zeros)

    def _state(self, U, V, velocity_U, velocity_V):
        X = U @ V.mT
        objective = sum(term(X) for term in self.terms)
        return MomentumState(
            objective=objective,
            X=X,
            U=U,
            V=V,
            velocity_U=velocity_U,
            velocity_V=velocity_V,
        )

    def step(self, data, state):
        grad = sum(term.value_and_grad(state.X)[1] for term in self.terms)
        scale = self.lr / data.shape[0]
        dU = self.momentum * state.velocity_U - scale * grad @ state.V
        dV = self.momentum * state.velocity_V - scale * grad.mT @ state.U
        return self._state(state.U + dU, state.V + dV, dU, dV)

    def residual(self, data, previous, current):
        moved = (current.X - previous.X).square().sum((-2, -1)).sqrt()
        return moved / current.X.square().sum((-2, -1)).sqrt().clamp_min(1e-12)


class OutsideCompleter(IterativeCompleter):
    """Bends as little as it can, over a product of two factors.

    Parameters
    ----------
    lambda_bending : float >= 0, default=0.1
        Multiplies half of the sum of squared second differences.
    """

    completer_tags = CompleterTags(
        recovers=1.0, batched=("lambda_bending", "random_state")
    )
    warn_at_max_iter = False
    _parameter_constraints: ClassVar[dict] = {
        "lambda_bending": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        lambda_bending=0.1,
        *,
        max_iter=100,
        tol=1e-6,
        scaling="global",
        device="auto",
        random_state=None,
        missing_values=np.nan,
        add_indicator=False,
        keep_empty_features=True,
        keep_observed=True,
    ):
        self.lambda_bending = lambda_bending
        self.max_iter = max_iter
        self.tol = tol
        self.scaling = scaling
        self.device = device
        self.random_state = random_state
        self.missing_values = missing_values
        self.add_indicator = add_indicator
        self.keep_empty_features = keep_empty_features
        self.keep_observed = keep_observed

    def _make_solver(self, data, params, rng):
        n_rows, n_cols = data.shape
        rank = min(4, n_rows, n_cols)
        model = Bilinear(rng.normal(n_rows, rank, 0.3), rng.normal(n_cols, rank, 0.3))
        return HeavyBall(model, [SquaredError(data), Bending(params.lambda_bending)])
