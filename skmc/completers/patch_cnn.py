"""A convolutional network on patches (PNMC)."""

from __future__ import annotations

import copy
from numbers import Integral, Real
from typing import ClassVar

import numpy as np
import torch
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from skmc.base import POOR, CompleterTags, IterativeCompleter
from skmc.cells import Observed
from skmc.linalg import Randomness, seed_of
from skmc.loop import Solution, Status, solve_part
from skmc.models import filling_order
from skmc.new_rows import FoldIn
from skmc.solvers import PatchTraining, Solver

START = 7  # side of the first patch tried
TRIALS = 4
FEW = 1000  # observed cells, a tenth of which say too little of a side
SHARE, LONGEST = 8, 25  # a trial has an eighth of max_iter, but an epoch at most


class PatchCNNCompleter(IterativeCompleter):
    r"""A network predicts each cell from the patch around it (PNMC).

    ::

        X[i, j] = f(patch of P(M) and of P around (i, j), the cell itself hidden),
        min over f  1/2 mean (f(...) - M[i, j])^2   over observed cells,

    half a *mean* over mini-batches of observed cells of the scaled data. For matrices
    whose order of rows and of columns means something: pictures, fields, spectrograms.
    What neighbours do not tell, it cannot know.

    Of the paper only the abstract is public: a CNN on patches whose size is found by a
    stochastic search. All else is our reading: `skmc.models.patch_cnn.PatchCNN` with
    reflection at the borders; training as in `skmc.solvers.patches.PatchTraining`,
    where three of four patches lose what will be unknown around a random hidden cell
    when its turn comes; holes are filled from the boundary inwards, a cell once 3 of
    its 8 neighbours are known (or one round after the first of them), and cells that
    are predicted count as known from then on.

    `transform` treats rows one by one, as for every completer: rows not seen in `fit`
    are folded in by least squares on the row space of the completed matrix, for a row
    alone has no neighbours. `complete_picture` applies the trained network to a
    picture of other rows.

    Parameters
    ----------
    patch_size : odd int >= 3 or "auto", default="auto"
        Side of the patches, in cells. "auto" is a random search: from 7 (or the
        smaller dimension), steps of 2 up or down at random, kept where they lower the
        error on a held-out tenth of the observed cells after ``max_iter // 8``
        iterations, at most 25; four sides are tried. Of fewer than 1000 observed cells
        a tenth says too little: they get the first side.
    lr : float > 0, default=0.003
        Learning rate of Adam, decayed to zero by a cosine over ``max_iter`` iterations.
    max_iter : int >= 1, default=200
        An iteration is a twenty-fifth of an epoch, or a mini-batch of 128 cells (a
        quarter of all, where that is fewer) if that is more: 8 epochs of a picture of
        3200 cells or more.
    tol : float >= 0, default=1e-6
        Stop once ``|dF/dtheta| |theta|`` of a mini-batch, over the mean square of the
        observed cells, falls to it; hardly ever before they are constant.
    early_stopping : bool, default=True
        Hold out ``validation_fraction`` of the observed cells, keep the network that
        fits them best and stop after ``n_iter_no_change`` iterations without a better
        one. Each row and column keeps a cell to train on. The network is shown these
        cells when it completes the hidden ones.
    validation_fraction : float in (0, 1), default=0.05
        Share of the observed cells that is held out.
    n_iter_no_change : int >= 1, default=50
        Looked at every 25 iterations.
    scaling : {"auto", "columns", "global"} or None, default="global"
        Standardise by mean and standard deviation of observed cells, of each column or
        of all; undone on output. "auto" is "columns" where the columns have unlike
        units, see `skmc.cells.Scaling.of`. One network serves all cells, so columns
        of one unit should share it.
    device : str or torch.device, default="auto"
        Where to compute; "auto" is CUDA if there is one. The network computes in single
        precision whatever the data are in.
    random_state : int, RandomState instance or None, default=None
        Draws the start, the mini-batches, the search and the held-out cells.
    missing_values : float, default=numpy.nan
        Another number that marks missing cells, besides what the container says.
    add_indicator : bool, default=False
        Append the columns of `sklearn.impute.MissingIndicator`.
    keep_empty_features : bool, default=True
        Keep columns without an observed cell (answered by row means); False drops them.
    keep_observed : bool, default=True
        Return observed cells as they are; False returns ``reconstruction_`` there too.

    Attributes
    ----------
    reconstruction_ : ndarray of shape (n_samples, n_features)
        At observed cells, too, what the network predicts without seeing the cell.
    patch_size_ : int
    network_ : skmc.models.patch_cnn.PatchCNN
        On the CPU.
    history_ : dict of ndarray
        "n_iter", "objective", "residual" (and "validation", the root mean square over
        held-out cells of the scaled data) at every 25th iteration.
    n_iter_ : int
    status_ : {"converged", "stopped", "max_iter", "diverged", "interrupted"}
    n_features_in_ : int
    feature_names_in_ : ndarray of str, where the input has names

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

    completer_tags = CompleterTags(recovers=1.15)
    warn_at_max_iter = False  # the learning rate's schedule ends there
    _parameter_constraints: ClassVar[dict] = {
        **IterativeCompleter._parameter_constraints,
        **IterativeCompleter._early_stopping_constraints,
        "patch_size": [
            Interval(Integral, 3, None, closed="left"),
            StrOptions({"auto"}),
        ],
        "lr": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        patch_size="auto",
        *,
        lr=0.003,
        max_iter=200,
        tol=1e-6,
        early_stopping=True,
        validation_fraction=0.05,
        n_iter_no_change=50,
        scaling="global",
        device="auto",
        random_state=None,
        missing_values=np.nan,
        add_indicator=False,
        keep_empty_features=True,
        keep_observed=True,
    ):
        self.patch_size = patch_size
        self.lr = lr
        self.max_iter = max_iter
        self.tol = tol
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.scaling = scaling
        self.device = device
        self.random_state = random_state
        self.missing_values = missing_values
        self.add_indicator = add_indicator
        self.keep_empty_features = keep_empty_features
        self.keep_observed = keep_observed

    def _make_solver(self, data: Observed, draw: Randomness) -> Solver:
        if self.patch_size != "auto" and self.patch_size % 2 == 0:
            raise ValueError(
                f"patch_size={self.patch_size} is even, so a patch has no cell in its "
                f"middle; use {self.patch_size + 1} or 'auto'."
            )
        most = 2 * max(data.shape) + 1  # shows all cells from any of them
        if self.patch_size != "auto" and self.patch_size > most:
            raise ValueError(
                f"patch_size={self.patch_size} is above {most}, which shows the whole "
                f"of X, of shape {data.shape}, from any cell; lower it or use 'auto'."
            )
        self.patch_size_ = self.patch_size
        if self.patch_size == "auto":
            self._search(data, draw)
        return self._training(self.patch_size_, self.max_iter, draw)

    def _training(self, side: int, horizon: int, draw: Randomness) -> Solver:
        return PatchTraining(side, lr=self.lr, horizon=horizon, rng=draw)

    def _search(self, data: Observed, draw: Randomness) -> None:
        """Walk at random to the side that completes held-out cells best."""
        self.patch_size_ = max(3, min(START, (min(data.shape) - 1) // 2 * 2 + 1))
        max_iter = min(LONGEST, self.max_iter // SHARE)
        if max_iter == 0 or data.n_observed < FEW:
            return
        train, held_out = self._spare_some(data, seed_of(self.random_state))

        def error(side: int) -> float:
            solver = self._training(side, max_iter, draw)
            trial = solve_part(solver, train, max_iter=max_iter, check_every=max_iter)
            return float(held_out.misfit(trial.X))

        lot = draw.stream(3).generators[0]
        errors = {self.patch_size_: error(self.patch_size_)}
        for _ in range(TRIALS - 1):
            near = [self.patch_size_ - 2, self.patch_size_ + 2]
            untried = [side for side in near if side >= 3 and side not in errors]
            if not untried:
                break
            side = untried[int(torch.randint(len(untried), (), generator=lot))]
            errors[side] = error(side)
            self.patch_size_ = min(errors, key=lambda side: errors[side])

    def _fitted(self, cells, data, scaling, outputs) -> dict:
        completion = outputs["X"]
        network = None
        if "network" in outputs:  # not if interrupted before there was one
            network = copy.deepcopy(outputs["network"]).requires_grad_(False)
            network.load_state_dict(outputs["weights"])
            # Held-out cells are predicted as when they were judged, hidden ones from
            # all that is observed.
            train = Observed(data.values, outputs["trained_on"])
            own = network.complete(train, filling_order(train.mask))
            filled = network.fill(data, filling_order(data.mask))
            completion = torch.where(data.mask, own, filled)
            network = network.cpu()
        fitted = super()._fitted(cells, data, scaling, {"X": completion})
        # The network's own values at observed cells have no row space worth folding
        # into where neighbours tell little.
        fitted["_fold_in"] = FoldIn.of(data.fill(completion), data)
        return {**fitted, "network_": network}

    def _advice(self, solution: Solution, misfit: float) -> str | None:
        if solution.status[0] is Status.MAX_ITER and misfit > POOR:
            return (
                f"is {misfit:.2f} of the way from the observed cells to their means "
                f"after {self.n_iter_} iterations. Neighbouring cells may tell little "
                "of each other here; else raise max_iter or let scaling standardise "
                "the data."
            )
        return super()._advice(solution, misfit)

    def complete_picture(self, X) -> np.ndarray:
        """Complete another picture by the trained network, all rows together.

        Unlike `transform`, what is answered in a row depends on the rows around it.
        Nothing is trained.

        Parameters
        ----------
        X : container as in `fit`, of shape (n_rows, n_features)
            Rows in their order, any number of them, one observed cell at least.

        Returns
        -------
        ndarray of shape (n_rows, n_features)
            In the float dtype of ``X``. Observed cells unchanged (unless
            ``keep_observed=False``).
        """
        check_is_fitted(self)
        cells = self._read(X, reset=False)
        if np.isnan(cells).all():
            raise ValueError("X has no observed cell; at least one is needed.")
        values = torch.from_numpy(np.array(cells, order="C")).double()
        data = Observed(values, ~torch.isnan(values))
        data = self._scaling.apply(data)
        if self.network_ is None:
            raise ValueError(
                "fit was interrupted before there was a network; fit again."
            )
        order = filling_order(data.mask)
        method = self.network_.fill if self.keep_observed else self.network_.complete
        completed = self._scaling.undo(method(data, order)).numpy()
        if self.keep_observed:
            completed = np.where(np.isnan(cells), completed, cells)
        return completed.astype(cells.dtype)
