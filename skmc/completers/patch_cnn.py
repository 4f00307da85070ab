"""A convolutional network on patches (PNMC)."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from numbers import Integral
from typing import Annotated, Any, Literal

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from skmc.base import (
    POOR,
    Choice,
    CompleterTags,
    Completion,
    IterativeCompleter,
    TakesWeights,
    Trials,
    read_rows,
)
from skmc.cells import Container, Given, Observed
from skmc.compatibility import Interval
from skmc.linalg import CosineSchedule, Randomness
from skmc.loop import Solution, Status
from skmc.models import PatchCNN, Patches, filling_order
from skmc.parameters import Count, NonNegative, Params, Positive, Seed, Share
from skmc.solvers import Adam, Result, Solver, State, parameter_norm

FIRST_SIDE = 7
N_SIDES = 4  # number of sides that the search tries
MIN_CELLS = 1000  # with fewer observed cells, a tenth is too small to compare sides
TRIAL_DIVISOR, MAX_TRIAL_ITER = 6, 25  # of max_iter, and bound of a trial
BATCH = 128
BLOCK = 2**16  # largest number of cells of patches in memory
STEPS = 25  # largest number of steps per epoch
WARM = 0.08  # share of the horizon in which the learning rate grows
SAMPLE = 4096  # number of cells whose patches are counted


class PatchCNNCompleter(TakesWeights, IterativeCompleter):
    r"""Predict each cell from the patch around it by a convolutional network (PNMC).

    For pictures, including large holes, fields and spectrograms; not for matrices in
    which the order of rows and columns has no meaning.

    .. math::

        \min_f \tfrac{1}{2} \operatorname{mean}_{(i, j)} (X_{ij} - M_{ij})^2,
        \qquad X_{ij} = f(\text{patch of } P(M) \text{ and } P \text{ around } (i, j))

    This is half a *mean* over mini-batches of observed cells of the scaled data. The
    network sees the observed cells of the patch, :math:`P(M)`, and their mask,
    :math:`P`, but not the cell itself.

    The network is `skmc.models.patch_network.PatchCNN` with reflection at the borders.
    Training (see `skmc.completers.patch_cnn.PatchTraining`) removes from some patches
    the cells that will be unknown around a random hidden cell when it is filled, so
    that patches show as many cells in training as in filling, on average. Holes are
    filled from the boundary inward: a cell is filled once 3 of its 8 neighbors are
    known, or one round after the first of them is known. Predicted cells then count as
    known.

    `transform` treats rows one by one, as in every completer. A single row has no
    neighbors, so rows that were not in `fit` are completed by least squares on the row
    space of the completed matrix. `complete_picture` applies the trained network to
    another picture.

    Parameters
    ----------
    patch_size : odd int >= 3 or "auto", default="auto"
        Side of the patches, in cells. Larger patches see more of the surroundings and
        take longer. Try 5, 7, 9 or 11. "auto" chooses among four sides on held-out
        cells, see Notes.
    lr : float > 0, default=0.006
        Learning rate of Adam. It grows over ``8 %`` of ``max_iter`` iterations and is
        decayed to zero by a cosine over all of them.
    max_iter : int >= 1, default=200
        Number of iterations. 25 of them are an epoch, a pass over the observed cells;
        in pictures of fewer than 3200 cells they are more. Try 100 to 400: the time is
        proportional, and ``early_stopping`` guards against too many.
    max_time : float > 0 or None, default=None
        Time limit of `fit` in seconds of wall-clock time; the choice of
        hyper-parameters gets at most half of it. When it has passed, the fit ends after
        the running iteration, with a warning. None sets no limit.
    tol : float >= 0, default=1e-6
        Stop when ``|dF/dW| |W|`` of a mini-batch, divided by the mean square of the
        observed cells, is at most ``tol``, for the objective ``F`` and all parameters
        ``W``. Networks seldom get there: ``early_stopping`` and ``max_iter`` end the
        fit.
    early_stopping : bool, default=True
        Whether to hold out ``validation_fraction`` of the observed cells, keep the
        iterate that completes them best, and stop after ``n_iter_no_change`` iterations
        without a better one. Each row and column keeps a cell to train on.
        The network sees these cells when it completes the hidden ones.
    validation_fraction : float in (0, 1), default=0.05
        Share of the observed cells that ``early_stopping`` holds out.
    n_iter_no_change : int >= 1, default=50
        Iterations without a better iterate after which ``early_stopping`` stops. The
        held-out error is computed every 25 iterations.
    scaling : {"auto", "columns", "global"} or None, default="global"
        Standardizes the data by the mean and standard deviation of the observed cells,
        of each column or of all; undone on output. "auto" is "columns" for arrays and
        data frames, whose columns may have different units, and "global" for `Entries`,
        sparse matrices and files of ratings, whose cells have one unit. Try "global"
        for an array of one unit, such as a picture or sensors by times. None leaves the
        data unscaled.
        One network serves all cells, so columns of one unit should share the scaling.
    device : str or torch.device, default="auto"
        Device on which to compute. "auto" is CUDA if there is a CUDA device, else the
        CPU.
        Always in single precision, whatever the precision of the data.
    random_state : int, RandomState instance or None, default=None
        Seed of the initial weights, the mini-batches, the search and the held-out
        cells.
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
        The network's prediction of every cell; those of observed cells are made without
        seeing the cell.
    patch_size_ : int
        The side that was used.
    network_ : skmc.models.patch_network.PatchCNN
        The trained network, on the CPU.
    history_ : dict of ndarray
        "n_iter", "objective", "residual" (and "validation", the root mean square over
        held-out cells of the scaled data) at every 25th iteration.
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
    NonlocalCompleter : More accurate for most pictures.
    BiharmonicCompleter : Faster.

    Notes
    -----
    Memory grows with ``n_samples n_features``: cells pass through the network in
    mini-batches.

    Only the abstract of the paper is public: a CNN on patches whose size is found by a
    stochastic search. Architecture, training and filling are those of this
    implementation.

    ``patch_size="auto"`` starts from 7 (or the smaller dimension) and takes random
    steps of 2 up or down. It compares two sides after ``max_iter // 6`` iterations, at
    most 25, and keeps the larger one only if it lowers the mean squared error on a
    held-out tenth of the observed cells by more than the standard error of the
    difference. With fewer than 1000 observed cells, the first side is used.

    References
    ----------
    Yang, Xu. PNMC: patch-based neural matrix completion. 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import patterns
    >>> from skmc import PatchCNNCompleter
    >>> from skmc.metrics import nmae
    >>> wave = np.sin(np.arange(40) / 4)
    >>> truth = np.add.outer(wave, np.cos(np.arange(30) / 3))
    >>> hidden = patterns.random(truth, 0.3, random_state=0)
    >>> completer = PatchCNNCompleter(5, random_state=0)
    >>> X = completer.fit_transform(np.ma.masked_array(truth, hidden))
    >>> nmae(X, truth, hidden) < 0.03
    True
    """

    completer_tags = CompleterTags(recovers=1.15, pictures=True)
    step_parameter = "lr"
    warn_at_max_iter = False  # the learning rate's schedule ends there

    patch_size: (
        Annotated[int, Interval(Integral, 3, None, closed="left")] | Literal["auto"]
    ) = "auto"
    _: KW_ONLY
    lr: Positive = 0.006
    max_iter: Count = 200
    max_time: Positive | None = None
    tol: NonNegative = 1e-6
    early_stopping: bool = True
    validation_fraction: Share = 0.05
    n_iter_no_change: Count = 50
    scaling: Literal["auto", "columns", "global"] | None = "global"
    device: str | torch.device = "auto"
    random_state: Seed = None

    _fitted: Completion = field(init=False)

    patch_size_: int = field(init=False)
    network_: PatchCNN | None = field(init=False)

    def _choose(self, data: Observed, trials: Trials) -> Choice:
        """Search at random for the side that completes held-out cells best."""
        largest = 2 * max(data.shape) + 1  # such a patch shows all cells from any cell
        if self.patch_size != "auto":
            return Choice(
                {"patch_size": _checked_side(self.patch_size, data.shape, largest)}
            )
        best = max(3, min(FIRST_SIDE, (min(data.shape) - 1) // 2 * 2 + 1))
        max_iter = min(MAX_TRIAL_ITER, self.max_iter // TRIAL_DIVISOR)
        if max_iter == 0 or data.n_observed < MIN_CELLS:
            return Choice({"patch_size": best})

        def squares(side: int) -> Tensor:
            solver = self._training(side, max_iter, trials.rng)
            once = {"max_iter": max_iter, "check_every": max_iter, "tol": 0.0}
            held_out = trials.cells[1]
            residual = held_out.residual(trials.run(solver, **once).X)
            return held_out.weighted(residual.square())[held_out.mask]

        lot = trials.rng.stream(3).generators[0]
        with trials.interruptible():
            errors = {best: squares(best)}
            for _ in range(N_SIDES - 1):
                beside = [best - 2, best + 2]
                untried = [side for side in beside if side >= 3 and side not in errors]
                if not untried:
                    break
                side = untried[int(torch.randint(len(untried), (), generator=lot))]
                errors[side] = squares(side)
                smaller, larger = sorted((side, best))
                larger_pays = _is_lower(errors[larger], errors[smaller])
                best = larger if larger_pays else smaller
        return Choice({"patch_size": best})

    def _make_solver(self, data: Observed, params: Params, rng: Randomness) -> Solver:
        return self._training(params.patch_size, params.max_iter, rng)

    def _training(self, side: int, horizon: int, rng: Randomness) -> Solver:
        return PatchTraining(side, lr=self.lr, horizon=horizon, rng=rng)

    def _attributes(self, given: Given, result: Result) -> dict[str, Any]:
        network, data = None, given.data
        if isinstance(result, PatchResult):  # not if interrupted before the first one
            network = copy.deepcopy(result.network).requires_grad_(False)
            network.load_state_dict(result.weights)
            # Held-out cells are predicted as for early stopping, hidden cells from all
            # observed cells.
            train = Observed(data.values, result.trained_on)
            at_observed = network.complete(train, filling_order(train.mask))
            filled = network.fill(data, filling_order(data.mask))
            result = Result(X=torch.where(data.mask, at_observed, filled))
            network = network.cpu()
        return {**super()._attributes(given, result), "network_": network}

    def _row_map(self, result: Result, data: Observed) -> Any:
        # The network's predictions of observed cells have no useful row space if
        # neighbors carry little information.
        return super()._row_map(Result(X=data.fill(result.X)), data)

    def _advice(self, solution: Solution, misfit: float) -> str | None:
        if solution.status[0] is Status.MAX_ITER and misfit > POOR:
            return (
                f"is more than {POOR:g} of the way from the observed cells to their "
                f"means after {int(solution.n_iter)} iterations. Neighboring cells may "
                "say little about each other here; otherwise raise max_iter or let "
                "scaling standardize the data."
            )
        return super()._advice(solution, misfit)

    def complete_picture(self, X: Container) -> np.ndarray:
        """Complete another picture by the trained network, all rows together.

        Unlike in `transform`, the completion of a row depends on the rows around it.
        Nothing is trained.

        Parameters
        ----------
        X : container as in `fit`, of shape (n_rows, n_features)
            Any number of rows, in order, with at least one observed cell.

        Returns
        -------
        ndarray of shape (n_rows, n_features)
            In the float dtype of ``X``. Observed cells are unchanged unless
            ``keep_observed=False``.
        """
        check_is_fitted(self)
        cells = read_rows(self, X)
        if np.isnan(cells).all():
            raise ValueError("X has no observed cell; at least one is needed.")
        values = torch.from_numpy(np.array(cells, order="C")).double()
        data = Observed(values, ~torch.isnan(values))
        scaling = self._fitted.row_map.scaling
        data = data.scaled(scaling)
        if self.network_ is None:
            raise ValueError(
                "fit was interrupted before there was a network; fit again."
            )
        order = filling_order(data.mask)
        method = self.network_.fill if self.keep_observed else self.network_.complete
        completed = scaling.undo(method(data, order)).numpy()
        if self.keep_observed:
            completed = np.where(np.isnan(cells), completed, cells)
        return completed.astype(cells.dtype)


def _is_lower(squares: Tensor, others: Tensor) -> bool:
    """Whether the mean is lower by more than the standard error of the difference."""
    gains = others - squares
    return bool(gains.mean() > gains.std() / len(gains) ** 0.5)


def _checked_side(side: int, shape: tuple[int, int], largest: int) -> int:
    """``side``, or a ValueError if it is even or above ``largest``."""
    if side % 2 == 0:
        raise ValueError(
            f"patch_size={side} is even, so a patch has no center cell; use "
            f"{side + 1} or 'auto'."
        )
    if side > largest:
        raise ValueError(
            f"patch_size={side} is above {largest}, at which every patch shows all of "
            f"X, of shape {shape}; lower it or use 'auto'."
        )
    return side


@dataclass(frozen=True, kw_only=True)
class PatchState(State):
    """An iterate of `PatchTraining`; its objective is the error of `seen`.

    The completion is computed only on demand.

    Parameters
    ----------
    objective : Tensor of shape (\\*batch,)
        The objective at this iterate.
    data : Observed
        The observed cells.
    network : PatchCNN
        Model that is trained.
    optimizer : Adam
        Optimizer of the network's parameters.
    generator : Generator
        Source of random numbers.
    iteration : int
        Number of steps done.
    cells : tuple of Tensor
        Rows and columns of the observed cells.
    holes : tuple of Tensor
        Rows and columns of the hidden cells.
    queue : int64 Tensor
        Positions in ``cells`` that are left in this epoch.
    picture : Patches
        Patches of the observed cells, (n_rows, n_cols, 2).
    order : int64 Tensor of shape (n_rows, n_cols)
        Round in which each cell is filled.
    rounds : Patches
        Patches of ``order``.
    dropped_share : Tensor of shape ()
        Share of the patches in which further cells are masked.
    seen : Tensor of shape (n_rows, n_cols)
        Last prediction of each cell in training.
    """

    data: Observed
    network: PatchCNN
    optimizer: Adam
    generator: torch.Generator
    iteration: int
    cells: tuple[Tensor, ...]  # rows and columns of the observed cells
    holes: tuple[Tensor, ...]  # and of the hidden cells
    queue: Tensor  # positions in `cells` that are left in the epoch
    picture: Patches  # (n_rows, n_cols, 2)
    order: Tensor  # (n_rows, n_cols), rounds of filling
    rounds: Patches  # patches of `order`
    dropped_share: Tensor  # of patches with further masked cells
    seen: Tensor  # (n_rows, n_cols), last predictions in training


@dataclass(frozen=True, eq=False, kw_only=True)
class PatchResult(Result):
    """A completion, the weights of its network, and the cells that trained them."""

    network: Any
    weights: dict[str, Tensor]
    trained_on: Tensor  # (n_rows, n_cols)


class PatchTraining(Solver[Observed, PatchState]):
    r"""Adam on the squared error of cells predicted from the patches around them.

    .. math::

        \min_\theta \frac{1}{2 |\Omega|} \sum_{ij \in \Omega}
        (f_\theta(\text{patch}_{ij}) - M_{ij})^2

    half a *mean* over observed cells, weighted if they have weights. A step is a
    twenty-fifth of an epoch, but at least one mini-batch of 128 cells (of a quarter of
    all cells, if that is fewer). The objective uses the last prediction of each cell
    in training.

    Fewer cells are known around a cell inside a hole than around an observed one. So a
    share of the patches loses further cells: those that will not be known around a
    random hidden cell in the round in which it is filled. The share equates the average
    number of cells that patches show in training and in filling. It is nearly 1 for one
    large hole, and 0 for scattered cells, whose surroundings are known as well as those
    of observed cells.

    Parameters
    ----------
    side : int >= 3, odd
        Side of the patches.
    lr : float > 0
        Adam's learning rate (its second beta is .99). At step t it is
        ``lr (1 + cos(pi t / horizon)) / 2``, times ``(t + 1) / (.08 horizon)`` where
        that is below 1.
    horizon : int
        Number of steps.
    rng : Randomness
        Source of the initial network, the order of the cells and the masked cells.
    """

    def __init__(self, side: int, *, lr: float, horizon: int, rng: Randomness):
        self.side = side
        self.lr = lr
        self.horizon = horizon
        self.rng = rng

    def init(self, data: Observed) -> PatchState:
        values, device = data.values, data.values.device
        peak = float(values.abs().max())
        squares = (values / (peak or 1.0)).square()
        mean = data.weighted(squares).sum() / data.n_observed
        # Next to zero, the product underflows; such a picture is constant.
        unit = float(values.new_tensor(peak * float(mean) ** 0.5)) or 1.0
        network = PatchCNN(self.side, unit, self.rng.stream(1)).to(device)
        order = filling_order(data.mask)
        cells = torch.nonzero(data.mask, as_tuple=True)
        holes = torch.nonzero(~data.mask, as_tuple=True)
        rounds = Patches(order.int(), self.side)
        generator = self.rng.stream(2).generators[0]
        return PatchState(
            objective=data.energy / (2 * data.n_observed),
            data=data,
            network=network,
            optimizer=Adam.of(network.parameters(), self.lr, beta2=0.99),
            generator=generator,
            iteration=0,
            order=order,
            cells=cells,
            holes=holes,
            queue=values.new_zeros(0, dtype=torch.long),
            picture=Patches(network.picture(values, data.mask), self.side),
            rounds=rounds,
            dropped_share=dropped_share(rounds, order, cells, holes, generator),
            seen=data.zero(),
        )

    def step(self, data: Observed, state: PatchState) -> PatchState:
        n_cells = len(state.cells[0])
        batch = min(BATCH, math.ceil(n_cells / 4))
        size = batch * math.ceil(n_cells / (batch * STEPS))
        queue = state.queue
        if not len(queue):
            queue = torch.randperm(n_cells, generator=state.generator)
            queue = queue.to(data.values.device)
        at_once = batch * max(1, BLOCK // (batch * self.side**2))
        for cells in queue[:size].split(at_once):
            self._descend(data, state, batch, *(index[cells] for index in state.cells))
        return replace(
            state,
            objective=data.misfit(state.seen) / (2 * data.n_observed),
            queue=queue[size:],
            iteration=state.iteration + 1,
        )

    def _descend(
        self, data: Observed, state: PatchState, batch: int, rows: Tensor, cols: Tensor
    ) -> None:
        """Take a step of Adam on each mini-batch of some cells, cut out together."""
        network, picture = state.network, state.picture
        shown = picture.elsewhere(rows, cols)
        if len(state.holes[0]):
            shown &= self._known_in_holes(state, len(rows))
        targets = (data.values[rows, cols] / network.unit).float()
        examples = [targets, *network.windows(picture.around(rows, cols), shown)]
        if data.weights is not None:
            share = data.times[rows, cols] * (len(state.cells[0]) / data.n_observed)
            examples.append(share.float())
        decay = CosineSchedule(1.0, 0.0, self.horizon)(state.iteration)
        decay *= min(1.0, (state.iteration + 1) / (WARM * self.horizon))
        answers = []
        parameters = list(network.parameters())
        batches = zip(*(example.split(batch) for example in examples), strict=True)
        for target, windows, mean, *shares in batches:
            with torch.enable_grad():
                predicted = network(windows, mean)
                errors = (predicted - target).square()
                loss = (errors * shares[0] if shares else errors).mean() / 2
                grads = torch.autograd.grad(loss, parameters)
            _set_grads(parameters, grads)
            state.optimizer.step(decay)
            answers.append(predicted.detach())
        _set_grads(parameters, grads)  # removed by the step, and read by `residual`
        new = torch.cat(answers).to(data.values.dtype) * network.unit
        state.seen[rows, cols] = new

    def _known_in_holes(self, state: PatchState, n_cells: int) -> Tensor:
        """Masks of the cells known around random hidden cells when these are filled."""
        n_holes = len(state.holes[0])
        device = state.order.device
        lot = torch.randint(n_holes, (n_cells,), generator=state.generator).to(device)
        lot_of_drops = torch.rand(n_cells, generator=state.generator).to(device)
        rows, cols = (index[lot] for index in state.holes)
        turn = state.order[rows, cols][:, None, None]
        filled = state.rounds.around(rows, cols) < turn
        spared = lot_of_drops >= state.dropped_share
        return filled | spared[:, None, None]

    def residual(
        self, data: Observed, previous: PatchState, current: PatchState
    ) -> Tensor:
        """``|dF/dtheta| |theta| / mean M^2`` of the last mini-batch.

        It stays above any usual ``tol`` as long as mini-batches differ. So training
        ends at its horizon or by a stop rule.
        """
        parameters = list(current.network.parameters())
        grads = [p.grad for p in parameters if p.grad is not None]
        product = parameter_norm(grads, data) * parameter_norm(parameters, data)
        return product.to(data.values.dtype)

    def result(self, state: PatchState) -> PatchResult:
        """Hidden cells as filled now, and the last predictions of observed cells.

        All are zero before the first step.
        """
        filled = state.seen  # zero before the first step
        if state.iteration:
            filled = state.network.fill(state.data, state.order)
        return PatchResult(
            X=torch.where(state.data.mask, state.seen, filled),
            network=state.network,  # training continues, unlike for the copies
            weights={k: v.clone() for k, v in state.network.state_dict().items()},
            trained_on=state.data.mask,
        )


def _set_grads(parameters: Sequence[Tensor], grads: Sequence[Tensor]) -> None:
    for p, grad in zip(parameters, grads, strict=True):
        p.grad = grad


def dropped_share(
    rounds: Patches,
    order: Tensor,  # (n_rows, n_cols)
    cells: tuple[Tensor, ...],
    holes: tuple[Tensor, ...],
    generator: torch.Generator,
) -> Tensor:  # ()
    r"""Share of patches to mask so that training shows as many cells as filling does.

    The share is :math:`\sum (p - q) / \sum (p - p q)` over the cells of a patch, but at
    least zero. Here each cell around an observed cell is known with probability
    :math:`p`, and around a hidden one, when it is filled, with :math:`q`. Probabilities
    are estimated from a sample of cells.
    """

    def drawn(positions: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        lot = torch.randint(len(positions[0]), (SAMPLE,), generator=generator)
        return tuple(index[lot.to(index.device)] for index in positions)

    if not len(holes[0]):
        return torch.zeros((), device=order.device)
    rows, cols = drawn(cells)
    p = (rounds.around(rows, cols) == 0) & rounds.elsewhere(rows, cols)
    rows, cols = drawn(holes)
    q = rounds.around(rows, cols) < order[rows, cols][:, None, None]
    p, q = (known.double().mean(0) for known in (p, q))
    return ((p - q).sum() / (p - p * q).sum().clamp_min(1e-12)).clamp(0, 1)
