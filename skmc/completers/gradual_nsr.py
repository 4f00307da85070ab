"""Networks with nonsmooth regularization and gradual learning (DNN-NSR)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from numbers import Real
from typing import Annotated, Literal

import torch
from torch import Tensor

from skmc.base import CompleterTags, IterativeCompleter, TakesWeights
from skmc.cells import Observed
from skmc.compatibility import Interval
from skmc.linalg import CosineSchedule, Randomness
from skmc.loop import Solution
from skmc.models import Autoencoder, checked_widths, hidden_layers, slope_at
from skmc.new_rows import ForwardPass
from skmc.parameters import Count, NonNegative, Params, Positive, Seed, Widths
from skmc.solvers import NetworkResult, Result, Solver, State, ratio, relative_norm
from skmc.terms import Box, L1Norm, NuclearNorm, SquaredNorm

# Factor of Autoencoder's initial weights, whose units saturate for long rows.
START_SHARE = 0.25
Layers = Sequence[Tensor]
DELTA_MIN, DELTA_MAX = 0.01, 0.99
SHRINK, GROW = 0.5, 1.1  # factors of delta; the paper tries .1 to .6 and 1.05 to 1.2
LOWER = 0.8  # factor of the schedule's start; the paper tries .1, .2, .8, .9
TRIALS = 60  # largest number of trial steps in an epoch
RAISE, RELAX = 2.0, 0.95  # factors of L: if it is too small, and after each epoch


class GradualNSRCompleter(TakesWeights, IterativeCompleter):
    r"""Train a network with nonsmooth regularization, gradually (DNN-NSR).

    For comparisons with the published form of `NSRCompleter`; not for low errors.

    The model is an autoencoder with hidden outputs :math:`z_i` and weights :math:`W_j`.
    Missing inputs are zero:

    .. math::

        \min \|P(f(P(M)) - M)\|_F^2 + \lambda_{\text{weights}} \sum_j \|W_j\|_F^2
        + \alpha \sum_i \|z_i\|_1 + \beta \sum_j \|W_j\|_*
        \quad\text{over } \|\theta\|_\infty \le \text{bound}

    All terms are *sums*, over the observed cells of the scaled data (:math:`P` selects
    them), over hidden outputs and over weights; none is halved. The problem is solved
    in penalty form: slack variables replace :math:`z_i` and :math:`W_j`, and their
    distance is penalized more strongly in the course of the fit (gradual learning).
    On the paper's own data this method is far less accurate than `NSRCompleter`.

    Parameters
    ----------
    alpha : float >= 0, default=0.1
        Weight of the l1 norm of the hidden outputs. The default is the paper's. Values
        to try: .001, .01, .1, 1 (relative to data of variance 1, as the next two).
    beta : float >= 0, default=0.1
        Weight of the nuclear norms of the weight matrices. The default is the paper's.
        Values to try: .01, .1, 1, 10 (relative to data of variance 1); the result
        hardly depends on it.
    lambda_weights : float >= 0, default=0.001
        Weight of the squared norms of the weight matrices. The default is the paper's.
        Values to try: .001, .01, .1, 1 (relative to data of variance 1); the result
        hardly depends on it.
    mu_max, mu_min : float > 0, default=1e5 and 1
        Bounds of mu. The slack variables have weight ``1/(2 mu)``, where mu falls from
        ``mu_max`` to ``mu_min`` along half a cosine over ``max_iter`` epochs. The
        defaults are the paper's (it uses 1e6 if half of the cells or fewer are hidden).
        Far above 1 the two nonsmooth penalties have little effect: with 1e5 they are
        absent for nearly all epochs. Equal values switch gradual learning off;
        ``mu_min > mu_max`` is an error.
    gamma : float > 1, default=10
        Divisor of the step size ``1 / (gamma L)``, where L is the local Lipschitz
        constant of the gradient. The extrapolation grows with gamma, up to a half. The
        paper's 1000 is slow, and in single precision its steps are too short to measure
        L.
    hidden : tuple of int >= 1 or None, default=None
        Widths of the hidden layers. None is ``(10 k, k, 10 k)`` with ``k = 1 +
        ceil(sqrt(min(n_samples, n_features)))``.
    bound : float > 0, default=10
        Bound of weights and biases, which stay in ``[-bound, bound]``.
    max_iter : int >= 1, default=1000
        Number of epochs. The fit normally ends there, as does the schedule.
    max_time : float > 0 or None, default=None
        Time limit of `fit` in seconds of wall-clock time; the choice of
        hyper-parameters gets at most half of it. When it has passed, the fit ends after
        the running iteration, with a warning. None sets no limit.
    tol : float >= 0, default=1e-4
        Stops when ``|h - z|^2 <= tol |z|^2`` and ``|V - W|^2 <= tol |W|^2`` for the
        slack variables of all layers and the proximal gradient is as small.
    scaling : {"auto", "columns", "global"} or None, default="auto"
        Standardizes the data by the mean and standard deviation of the observed cells,
        of each column or of all; undone on output. "auto" is "columns" for arrays and
        data frames, whose columns may have different units, and "global" for `Entries`,
        sparse matrices and files of ratings, whose cells have one unit. Try "global"
        for an array of one unit, such as a picture or sensors by times. None leaves the
        data unscaled.
    device : str or torch.device, default="auto"
        Device on which to compute. "auto" is CUDA if there is a CUDA device, else the
        CPU.
    random_state : int, RandomState instance or None, default=None
        Seed of the initial weights.
    missing_values : float, default=numpy.nan
        A number that marks missing cells, in addition to NaN and to the container's own
        marks.
    add_indicator : bool, default=False
        Whether to append the columns of `sklearn.impute.MissingIndicator`: which cells
        were missing, for each column with a missing cell in `fit`.
    keep_empty_features : bool, default=True
        Whether to keep columns without an observed cell. They are filled with the row
        means if all cells have one unit, and otherwise with 0, as by scikit-learn's
        imputers. False drops them.
    keep_observed : bool, default=True
        Whether to return observed cells unchanged. False returns the values of
        ``reconstruction_`` for them.

    Attributes
    ----------
    reconstruction_ : ndarray of shape (n_samples, n_features)
        The model's value of every cell.
    history_ : dict of ndarray
        "n_iter", "objective" (in penalty form, with ``mu_min`` for mu) and "residual"
        at every 25th epoch.
    n_iter_ : int
        Number of iterations.
    status_ : str
        Reason why the fit ended: "converged", "stopped", "max_iter", "max_time",
        "diverged" or "interrupted".
    n_features_in_ : int
        Number of columns seen in `fit`.
    feature_names_in_ : ndarray of str
        Names of the columns, if the input has names.
    indicator_ : MissingIndicator or None
        `sklearn.impute.MissingIndicator` whose columns ``add_indicator`` appends.

    See Also
    --------
    NSRCompleter : A variant that is more accurate and faster.

    Notes
    -----
    `transform` passes new rows through the network, with zeros for missing cells.

    Memory holds the hidden outputs, ``n_samples`` times the widths of the layers.

    This implementation differs from the paper in the default of ``gamma``, and in
    ``tol``, which is relative and regards the proximal gradient, too. The paper does
    not state ``hidden`` and ``bound``. `skmc.completers.gradual_nsr.NonsmoothDescent`
    lists the differences in the steps.

    References
    ----------
    Faramarzi, Haddadi, Amini, Ahookhosh. Matrix completion via nonsmooth
    regularization of fully connected neural networks. arXiv:2403.10232 (2024).

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import GradualNSRCompleter
    >>> X = np.outer(np.arange(1.0, 31), np.arange(1.0, 21))
    >>> X[11, 9] = np.nan
    >>> GradualNSRCompleter(random_state=0).fit_transform(X)[11, 9].round(-1)
    np.float64(120.0)
    """

    completer_tags = CompleterTags(recovers=0.5)
    may_underfit = True
    warn_at_max_iter = False  # the schedule ends there

    alpha: NonNegative = 0.1
    beta: NonNegative = 0.1
    lambda_weights: NonNegative = 1e-3
    _: KW_ONLY
    mu_max: Positive = 1e5
    mu_min: Positive = 1.0
    gamma: Annotated[float, Interval(Real, 1, None, closed="neither")] = 10.0
    hidden: Widths | None = None
    bound: Positive = 10.0
    max_iter: Count = 1000
    max_time: Positive | None = None
    tol: NonNegative = 1e-4
    scaling: Literal["auto", "columns", "global"] | None = "auto"
    device: str | torch.device = "auto"
    random_state: Seed = None

    def _make_solver(self, data: Observed, params: Params, rng: Randomness) -> Solver:
        code = 1 + math.ceil(min(data.shape) ** 0.5)
        hidden = params.hidden
        widths = checked_widths(
            (10 * code, code, 10 * code) if hidden is None else hidden
        )
        n_cols = data.shape[1]
        network = Autoencoder.random([n_cols, *widths, n_cols], rng)
        if params.mu_max < params.mu_min:
            raise ValueError(
                f"mu_max={params.mu_max!r} is below mu_min={params.mu_min!r}; mu falls "
                "from mu_max to mu_min, and equal values keep it constant."
            )
        for W in network.weights:
            W.data *= START_SHARE
        return NonsmoothDescent(
            network,
            activity=L1Norm(params.alpha).to(data.values),
            rank=NuclearNorm(params.beta).to(data.values),
            decay=SquaredNorm(2 * params.lambda_weights).to(data.values),
            box=Box(params.bound),
            schedule=CosineSchedule(params.mu_max, params.mu_min, params.max_iter),
            gamma=params.gamma,
        )

    def _advice(self, solution: Solution, misfit: float) -> str | None:
        if super()._advice(solution, misfit) is None:
            return None
        return (
            f"ended as {solution.status[0].value} after {int(solution.n_iter)} epochs, "
            f"{misfit:.2f} of the way from the observed cells to their means. Raise "
            "max_iter, lower gamma, or let scaling standardize the data."
        )

    def _row_map(
        self, result: Result, data: Observed
    ) -> Callable[[Tensor, Tensor], Tensor]:
        if not isinstance(result, NetworkResult):  # interrupted before the first one
            return super()._row_map(result, data)
        return ForwardPass(result.network)


@dataclass(frozen=True, eq=False)
class Theta:
    """Weights and biases of a network, as in `Autoencoder`, in one vector.

    Steps and inner products are then one operation each.

    Parameters
    ----------
    vector : Tensor of shape (n_parameters,)
        All weights, then all biases.
    widths : tuple of int
        Number of inputs of the network and of outputs of each layer.
    """

    vector: Tensor
    widths: tuple[int, ...]

    @classmethod
    def of(
        cls,
        weights: Layers,  # (width, next width)
        biases: Layers,  # (1, next width)
    ) -> Theta:
        """Join weights and biases."""
        widths = (len(weights[0]), *(W.shape[1] for W in weights))
        return cls(torch.cat([p.flatten() for p in (*weights, *biases)]), widths)

    def moved(
        self,
        vector: Tensor,  # (n_parameters,)
    ) -> Theta:
        """Replace all parameters."""
        return Theta(vector, self.widths)

    @property
    def all_weights(self) -> Tensor:
        """The weights of all layers, (1, n_weights)."""
        return self.vector[None, : -sum(self.widths[1:])]

    @property
    def weights(self) -> Layers:
        """The weights of each layer."""
        return self.layers(self.all_weights)

    @property
    def biases(self) -> Layers:
        """The bias of each layer, (1, width)."""
        numbers = self.vector[None, -sum(self.widths[1:]) :]
        return numbers.split(list(self.widths[1:]), 1)

    def layers(
        self,
        all_weights: Tensor,  # (1, n_weights)
    ) -> Layers:
        """Divide a row of weights into those of each layer."""
        shapes = list(pairwise(self.widths))
        flat_weights = all_weights[0].split([m * n for m, n in shapes])
        return [
            part.view(shape) for part, shape in zip(flat_weights, shapes, strict=True)
        ]


@dataclass(frozen=True)
class Forward:
    """A forward pass of the network on the zero-filled rows.

    Parameters
    ----------
    theta : Theta
        Parameters of the network.
    hidden : Layers
        Outputs of the hidden layers, each (n_rows, width).
    output : Tensor of shape (n_rows, n_cols)
        Output of the network, ``f(P(M))``.
    error : Tensor of shape (n_rows, n_cols)
        ``P(f(P(M)) - M)``, multiplied by the weights of the cells if there are any.
    loss : float
        ``|P(f(P(M)) - M)|^2 + lambda sum |W|^2``, where the first term is weighted.
    """

    theta: Theta
    hidden: Layers  # z, each (n_rows, width)
    output: Tensor  # f(P(M)), (n_rows, n_cols)
    error: Tensor  # W P(f(P(M)) - M)
    loss: float


@dataclass(frozen=True)
class Slacks:
    """The slack variables for a value of ``mu``, and their penalties.

    Parameters
    ----------
    h : Layers
        Slack variables of the hidden layers, each (n_rows, width).
    V : Tensor of shape (1, n_weights)
        Slack variables of the weights, as in `Theta.all_weights`.
    penalty : float
        Penalty ``alpha |h|_1 + beta |V|_*``.
    """

    h: Layers  # each (n_rows, width)
    V: Tensor  # (1, n_weights)
    penalty: float  # alpha |h|_1 + beta |V|_*

    def pairs(self, forward: Forward) -> list[tuple[Tensor, Tensor]]:
        """All ``(z, h)``, then all ``(W, V)``."""
        return [
            *zip(forward.hidden, self.h, strict=True),
            *zip(forward.theta.weights, forward.theta.layers(self.V), strict=True),
        ]


@dataclass(frozen=True)
class EpochTrial:
    """A trial step of an epoch, which may have to be repeated.

    Parameters
    ----------
    forward : Forward
        Forward pass after the step.
    end : float
        Smooth part of Q after the step.
    way : float
        Squared norm of the move from the extrapolated parameters.
    short : bool
        Whether the step is short enough for ``L`` to bound the smooth part.
    omega : float
        Weight of the extrapolation.
    lipschitz : float
        ``L``.
    """

    forward: Forward
    end: float
    way: float
    short: bool
    omega: float
    lipschitz: float


@dataclass(frozen=True, kw_only=True)
class NonsmoothState(State):
    """An iterate of `NonsmoothDescent`.

    The objective is Q at the schedule's end, so that epochs are comparable.

    Parameters
    ----------
    objective : Tensor of shape (\\*batch,)
        The objective at this iterate.
    found : EpochTrial
        The last step.
    before : Tensor of shape (n_parameters,)
        Parameters of the previous epoch.
    blocks : Slacks
        Slack variables.
    schedule : CosineSchedule
        Schedule of ``mu``.
    mu : float
        Width of the smoothing.
    delta : float
        Bound of ``omega``, which shrinks when Q rises and grows when it falls.
    iteration : int
        Number of steps done.
    """

    found: EpochTrial
    before: Tensor  # theta of the previous epoch
    blocks: Slacks
    schedule: CosineSchedule
    mu: float
    delta: float
    iteration: int

    @property
    def theta(self) -> Theta:
        """Parameters of the network."""
        return self.found.forward.theta


def inner(
    a: Tensor,  # (k,)
    b: Tensor,  # (k,)
) -> float:
    """Inner product ``<a, b>`` of vectors."""
    return float(torch.linalg.vecdot(a, b))


@dataclass(eq=False)
class NonsmoothDescent(Solver[Observed, NonsmoothState]):
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
    activity: L1Norm
    rank: NuclearNorm
    decay: SquaredNorm
    box: Box
    schedule: CosineSchedule
    gamma: float
    grace: int = 200
    omega: float | None = None

    def forward(self, data: Observed, theta: Theta) -> Forward:
        """Run the network on the zero-filled rows."""
        weights, biases = theta.weights, theta.biases
        hidden = hidden_layers(weights, biases, data.values)
        last = [data.values, *hidden][-1]
        output = torch.addmm(biases[-1], last, weights[-1])
        residual = data.residual(output)
        error = data.weighted(residual)
        loss = (error * residual).sum() + self.decay(theta.all_weights)
        return Forward(theta, hidden, output, error, float(loss))

    def blocks(self, forward: Forward, mu: float) -> Slacks:
        """The minimizers ``h`` and ``V`` of Q."""
        h = [self.activity.prox(z, mu) for z in forward.hidden]
        pairs = [self.rank.prox_and_value(W, mu) for W in forward.theta.weights]
        penalty = sum(self.activity(part) for part in h)
        penalty += sum(value for _, value in pairs)
        V = torch.cat([V.flatten() for V, _ in pairs])[None]
        return Slacks(h, V, float(penalty))

    def smooth(self, forward: Forward, blocks: Slacks, mu: float) -> float:
        """The smooth part of Q."""
        slack = (forward.theta.all_weights - blocks.V).square().sum()
        for z, h in zip(forward.hidden, blocks.h, strict=True):
            slack = slack + (z - h).square().sum()
        return forward.loss + float(slack) / (2 * mu)

    def gradient(
        self, data: Observed, forward: Forward, blocks: Slacks, mu: float
    ) -> Tensor:
        """Gradient of the smooth part."""
        theta = forward.theta
        inputs, W = [data.values, *forward.hidden], theta.weights
        back = 2 * forward.error
        weights, biases = [], []
        for i in reversed(range(len(inputs))):
            weights.append(inputs[i].mT @ back)
            biases.append(back.sum(0, keepdim=True))
            if i:
                back = back @ W[i].mT + (inputs[i] - blocks.h[i - 1]) / mu
                back *= slope_at(inputs[i])
        grad = Theta.of(weights[::-1], biases[::-1])
        _, decay = self.decay.value_and_grad(theta.all_weights)
        grad.all_weights.add_(decay).add_(theta.all_weights - blocks.V, alpha=1 / mu)
        return grad.vector

    def init(self, data: Observed) -> NonsmoothState:
        of_network = Theta.of(list(self.network.weights), list(self.network.biases))
        theta = of_network.moved(
            self.box.prox(of_network.vector.detach().to(data.values), 1.0)
        )
        forward = self.forward(data, theta)
        mu = self.schedule(0)
        blocks = self.blocks(forward, mu)
        return NonsmoothState(
            objective=torch.full_like(data.n_observed, torch.inf),
            found=EpochTrial(
                forward, math.inf, math.inf, True, omega=0.0, lipschitz=1.0
            ),
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
        self, data: Observed, state: NonsmoothState, blocks: Slacks, mu: float
    ) -> tuple[EpochTrial, float]:
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
        blocks: Slacks,
        mu: float,
        L: float,
        omega: float,
    ) -> EpochTrial:
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
        return EpochTrial(
            forward=forward,
            end=end,
            way=squared,
            short=end <= bound + self._rounding(state) * abs(value),
            omega=omega,
            lipschitz=L,
        )

    def _descends(self, state: NonsmoothState, found: EpochTrial, start: float) -> bool:
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
        (here divided by the squared norms). They measure the agreement of the slack
        variables with the variables that they replace, and do not show that anything is
        learned. Without penalties they are zero at the start. So we add a third, ``|G|
        |theta| / (|P(M)|^2 + |P(f - M)|^2)`` with the proximal gradient G.
        """
        pairs = current.blocks.pairs(current.found.forward)
        gaps = [relative_norm(a - b, a).square() for a, b in pairs]
        gradient = self.gamma * current.found.lipschitz * math.sqrt(current.found.way)
        length = math.sqrt(inner(current.theta.vector, current.theta.vector))
        scale = data.energy + current.found.forward.error.square().sum()
        gaps.append(ratio(gradient * length, scale))
        return torch.stack(gaps).amax()

    def result(self, state: NonsmoothState) -> NetworkResult:
        layers = (state.theta.weights, state.theta.biases)
        network = Autoencoder(*([part.clone() for part in each] for each in layers))
        return NetworkResult(X=state.found.forward.output, network=network)
