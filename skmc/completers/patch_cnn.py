"""A convolutional network on patches (PNMC)."""

from __future__ import annotations

import copy
from dataclasses import KW_ONLY, field
from numbers import Integral
from typing import Annotated, Any, Literal

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from skmc.base import (
    POOR,
    CompleterTags,
    Completion,
    IterativeCompleter,
    Trials,
    fit_weighted,
)
from skmc.cells import Container, Given, Observed
from skmc.compatibility import Interval
from skmc.completers.costs import Cost, Variant
from skmc.linalg import Randomness
from skmc.loop import Solution, Status
from skmc.models import PatchCNN, filling_order
from skmc.parameters import Count, NonNegative, Params, Positive, Seed, Share
from skmc.solvers import PatchTraining, Solver

FIRST_SIDE = 7
N_SIDES = 4  # number of sides that the search tries
MIN_CELLS = 1000  # with fewer observed cells, a tenth is too small to compare sides
TRIAL_DIVISOR, MAX_TRIAL_ITER = 6, 25  # of max_iter, and bound of a trial


class PatchCNNCompleter(IterativeCompleter):
    r"""Convolutional network that predicts each cell from the patch around it (PNMC).

    .. math::

        \min_f \tfrac{1}{2} \operatorname{mean}_{(i, j)} (X_{ij} - M_{ij})^2,
        \qquad X_{ij} = f(\text{patch of } P(M) \text{ and } P \text{ around } (i, j))

    This is half a *mean* over mini-batches of observed cells of the scaled data. The
    network sees the observed cells of the patch, :math:`P(M)`, and their mask,
    :math:`P`, but not the cell itself. The method suits matrices in which the order of
    rows and columns has a meaning, such as pictures, fields and spectrograms. It cannot
    predict a cell that does not depend on its neighbors.

    Only the abstract of the paper is public: a CNN on patches whose size is found by a
    stochastic search. The rest is our choice. The network is
    `skmc.models.patch_cnn.PatchCNN` with reflection at the borders. Training
    (`skmc.solvers.patches.PatchTraining`) removes from some patches the cells that will
    be unknown around a random hidden cell when it is filled, so that patches show as
    many cells in training as in filling, on average. Holes are filled from the boundary
    inward: a cell is filled once 3 of its 8 neighbors are known, or one round after the
    first of them is known. Predicted cells then count as known.

    `transform` treats rows one by one, as in every completer. A single row has no
    neighbors, so rows that were not in `fit` are completed by least squares on the row
    space of the completed matrix. `complete_picture` applies the trained network to
    another picture.

    Parameters
    ----------
    patch_size : odd int >= 3 or "auto", default="auto"
        Side of the patches, in cells. "auto" is a random search that tries four sides.
        It starts from 7 (or the smaller dimension) and takes random steps of 2 up or
        down. Each compares two sides after ``max_iter // 6`` iterations, at most 25,
        and keeps the larger, slower one only if it lowers the mean squared error on a
        held-out tenth of the observed cells by more than the standard error of the
        difference. With fewer than 1000 observed cells, a tenth is too small to compare
        sides, and the first side is used.
    lr : float > 0, default=0.006
        Learning rate of Adam. It grows over ``8 %`` of ``max_iter`` iterations and is
        decayed to zero by a cosine over all of them.
    max_iter : int >= 1, default=200
        Number of iterations. An iteration is a twenty-fifth of an epoch, but at least
        one mini-batch of 128 cells (or of a quarter of all cells, if that is fewer).
        200 iterations are 8 epochs of a picture of at least 3200 cells.
    {max_time}
    tol : float >= 0, default=1e-6
        Stop when ``|dF/dW| |W|`` of a mini-batch, divided by the mean square of the
        observed cells, is at most ``tol``, for the objective ``F`` and all parameters
        ``W``. This hardly ever happens unless the cells are constant.
    {early_stopping}
        The network sees these cells when it completes the hidden ones.
    {validation_fraction}
    {n_iter_no_change}
    {scaling}
        One network serves all cells, so columns of one unit should share the scaling.
    {device}
        Always in single precision, whatever the precision of the data.
    random_state : int, RandomState instance or None, default=None
        Seed of the initial weights, the mini-batches, the search and the held-out
        cells.
    {reading}

    Attributes
    ----------
    reconstruction_ : ndarray of shape (n_samples, n_features)
        The network's prediction of every cell; those of observed cells are made without
        seeing the cell.
    patch_size_ : int
        The side that was used.
    network_ : skmc.models.patch_cnn.PatchCNN
        The trained network, on the CPU.
    history_ : dict of ndarray
        "n_iter", "objective", "residual" (and "validation", the root mean square over
        held-out cells of the scaled data) at every 25th iteration.
    {solve}

    Notes
    -----
    Memory grows with ``n_samples n_features``: cells pass through the network in
    mini-batches.

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
    fit = fit_weighted
    advice = "pictures, including large holes"
    cost = Cost(0.06, cells=0.0001)
    stacked = (Variant("patch CNN", after=("biharmonic", "nonlocal")),)
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

    def _choose(self, data: Observed, trials: Trials) -> dict[str, Any]:
        """Search at random for the side that completes held-out cells best."""
        largest = 2 * max(data.shape) + 1  # such a patch shows all cells from any cell
        if self.patch_size != "auto":
            return {"patch_size": _checked_side(self.patch_size, data.shape, largest)}
        best = max(3, min(FIRST_SIDE, (min(data.shape) - 1) // 2 * 2 + 1))
        max_iter = min(MAX_TRIAL_ITER, self.max_iter // TRIAL_DIVISOR)
        if max_iter == 0 or data.n_observed < MIN_CELLS:
            return {"patch_size": best}

        def squares(side: int) -> Tensor:
            solver = self._training(side, max_iter, trials.rng)
            once = {"max_iter": max_iter, "check_every": max_iter, "tol": 0.0}
            held_out = trials.cells[1]
            residual = held_out.residual(trials.run(solver, **once).X)
            return held_out.weighted(residual.square())[held_out.mask]

        lot = trials.rng.stream(3).generators[0]
        with trials.interruptible():
            found = {best: squares(best)}
            for _ in range(N_SIDES - 1):
                beside = [best - 2, best + 2]
                untried = [side for side in beside if side >= 3 and side not in found]
                if not untried:
                    break
                side = untried[int(torch.randint(len(untried), (), generator=lot))]
                found[side] = squares(side)
                smaller, larger = sorted((side, best))
                larger_pays = _is_lower(found[larger], found[smaller])
                best = larger if larger_pays else smaller
        return {"patch_size": best}

    def _make_solver(self, data: Observed, params: Params, rng: Randomness) -> Solver:
        return self._training(params.patch_size, params.max_iter, rng)

    def _training(self, side: int, horizon: int, rng: Randomness) -> Solver:
        return PatchTraining(side, lr=self.lr, horizon=horizon, rng=rng)

    def _attributes(self, given: Given, outputs: dict[str, Any]) -> dict[str, Any]:
        network, data = None, given.data
        if "network" in outputs:  # not if interrupted before the first network
            network = copy.deepcopy(outputs["network"]).requires_grad_(False)
            network.load_state_dict(outputs["weights"])
            # Held-out cells are predicted as for early stopping, hidden cells from all
            # observed cells.
            train = Observed(data.values, outputs["trained_on"])
            own = network.complete(train, filling_order(train.mask))
            filled = network.fill(data, filling_order(data.mask))
            outputs = {"X": torch.where(data.mask, own, filled)}
            network = network.cpu()
        return {**super()._attributes(given, outputs), "network_": network}

    def _row_map(self, outputs: dict[str, Any], data: Observed) -> Any:
        # The network's predictions of observed cells have no useful row space if
        # neighbors carry little information.
        return super()._row_map({"X": data.fill(outputs["X"])}, data)

    def _advice(self, solution: Solution, misfit: float) -> str | None:
        if solution.status[0] is Status.MAX_ITER and misfit > POOR:
            return (
                f"is {misfit:.2f} of the way from the observed cells to their means "
                f"after {int(solution.n_iter)} iterations. Neighboring cells may say "
                "little about each other here; otherwise raise max_iter or let scaling "
                "standardize the data."
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
        cells = self._read(X, reset=False)
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
