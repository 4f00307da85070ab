"""Low-rank groups of similar patches (NLR, WNNM)."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, field, replace
from numbers import Integral
from typing import Annotated, Any, Literal

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor
from torch.nn.functional import avg_pool2d

from skmc import patterns
from skmc.base import Choice, CompleterTags, Completion, IterativeCompleter, Trials
from skmc.cells import Container, Given, Observed, pixels
from skmc.compatibility import Interval
from skmc.completers.biharmonic import inpainted
from skmc.completers.costs import Cost, Variant
from skmc.completers.nonlocal_groups.patches import PatchGroups, expected_error
from skmc.linalg import Randomness, diffuse, double, halve
from skmc.loop import Solution, solve_part
from skmc.parameters import Count, NonNegative, Params, Positive, Seed, Share
from skmc.solvers import Solver, State

SIDES = (6, 5, 8)  # patch sizes in the order of the trials
TRIAL_SHARE = 0.5  # share of max_iter for a trial
# If all holes are single cells: shares of the first threshold and of the rounds, and
# rounds between matches, chosen on crops with 1 % hidden.
FIRST_OF_SINGLE, ROUNDS_OF_SINGLE, MATCH_EVERY_OF_SINGLE = 0.4, 2 / 3, 2
REVEALED = 4  # final rounds with the cells that early stopping held out
DIRECTIONS_EVERY = 2  # rounds with the same singular vectors
# A round moves hidden cells by this multiple of the change that the groups suggest,
# with momentum: chosen on crops of monarch and flower, where 16 rounds of
# over-relaxation had a lower error than 24 without.
STRIDE, MOMENTUM = 2.3, 0.5


def _check(window: int, threshold: float, min_threshold: float) -> None:
    if window % 2 == 0:
        raise ValueError(
            f"window={window} is even, so it has no cell in its middle; use "
            f"{window + 1}."
        )
    if min_threshold > threshold:
        raise ValueError(
            f"min_threshold={min_threshold!r} is above "
            f"threshold={threshold!r}; the threshold falls from the one to "
            "the other, and equal values keep it constant."
        )


def _n_rounds(data: Observed, side: int, channels: int, most: int) -> int:
    """The number of rounds: half for single hidden cells, all for large holes.

    The share of hidden cells in the patches around hidden cells determines the number.
    """
    hidden = ~data.mask.unflatten(1, (-1, channels)).all(2)
    around = avg_pool2d(
        hidden[None].float(), side, 1, side // 2, count_include_pad=False
    )[0, : len(hidden), : hidden.shape[1]]
    share = float(around[hidden].mean()) if hidden.any() else 0.0
    return math.ceil(most * (1 + math.sqrt(share)) / 2)


class NonlocalCompleter(IterativeCompleter):
    r"""Low-rank matrices whose rows are similar patches from the whole picture.

    .. math::

        \min_{X, L} \; \sum_g \left( \frac{\|R_g X - L_g\|_F^2}{2 t^2}
        + \sum_i \log s_i(L_g) \right)
        \quad \text{subject to } P(X) = P(M),

    a *sum* over groups, where :math:`s_i` are singular values and :math:`P` keeps the
    observed cells. The rows of :math:`R_g X` are the patches of group g minus their
    mean. A round minimizes over :math:`L_g` by the closed form of weighted nuclear-norm
    shrinkage, and sets each cell to the mean of the patches that cover it. The
    threshold :math:`t` falls from round to round, and patches are matched again every 6
    rounds. Hidden cells make the similarity of a patch uncertain, so the distance of a
    patch with hidden cells is raised by what neighbors at that distance usually differ.
    The rounds start from the interpolated completion of the picture at half its size,
    where holes are smaller and windows show more; that picture is completed in the same
    way, and so on. If all holes are so small that nothing is hidden there, two thirds
    of the rounds follow the completion of `BiharmonicCompleter`. Only the reference
    patch around each hidden cell gets a group. The method suits pictures: neighboring
    rows and columns of the matrix must be similar.

    The model is that of nonlocal low rank (NLR) with the shrinkage of weighted
    nuclear-norm minimization (WNNM).

    `transform` treats rows one by one, as in every completer: rows that were not in
    `fit` are completed by least squares on the row space of the completed matrix.
    `complete_picture` completes another picture with the choices made in `fit`.

    Parameters
    ----------
    patch_size : int >= 1 or "auto", default=6
        Side of a patch, in cells. "auto" tries 6, 5 and 8 on a held-out tenth of the
        observed cells, in ``max_iter // 2`` rounds each. Held-out cells are drawn in
        the pattern of the missing ones (`skmc.patterns.like_missing`).
    group_size : int >= 2, default=40
        Number of patches in a group.
    window : odd int >= 3, default=31
        Side of the search window for similar patches.
    stride : int >= 1, default=4
        Distance of neighboring reference patches, each of which has a group; at most
        ``patch_size``. The cost is inversely proportional to its square.
    threshold : float > 0, default=0.5
        Threshold of the first round, in standard deviations of the observed cells:
        directions along which a group varies by less than twice this are removed. Holes
        of single cells start at 0.4 times this.
    min_threshold : float > 0, default=0.015
        Threshold of the last round. Early stopping can end the decline earlier.
    channels : int >= 1, default=1
        Channels per pixel. The matrix has shape ``(height, width * channels)``; a row
        holds its pixels in order (``picture.reshape(height, -1)``). Pixels are held out
        whole.
    max_iter : int >= 1, default=24
        Number of rounds for large holes. Smaller holes take fewer: the number is
        multiplied by ``(1 + sqrt(h)) / 2``, where h is the share of hidden cells in the
        patches around hidden cells, and by 2/3 if all holes are single cells.
    max_time : float > 0 or None, default=None
        Time limit of `fit` in seconds of wall-clock time; the choice of
        hyper-parameters gets at most half of it. When it has passed, the fit ends after
        the running iteration, with a warning. None sets no limit.
    tol : float >= 0, default=1e-4
        Stop once a round moves hidden cells by at most this number of standard
        deviations of the observed cells, as a root mean square.
    early_stopping : bool, default=False
        Whether to hold out ``validation_fraction`` of the observed cells, keep the
        iterate that completes them best, and stop after ``n_iter_no_change`` iterations
        without a better one. Each row and column keeps a cell to train on.
        Finally, 4 more rounds use these cells.
    validation_fraction : float in (0, 1), default=0.02
        Share of the observed cells that ``early_stopping`` holds out.
    n_iter_no_change : int >= 1, default=8
        Iterations without a better iterate after which ``early_stopping`` stops. The
        held-out error is computed every 25 iterations.
    scaling : {"auto", "columns", "global"} or None, default="global"
        Standardizes the data by the mean and standard deviation of the observed cells,
        of each column or of all; undone on output. "auto" is "columns" for arrays and
        data frames, whose columns may have different units, and "global" for `Entries`,
        sparse matrices and files of ratings, whose cells have one unit. Try "global"
        for an array of one unit, such as a picture or sensors by times. None leaves the
        data unscaled.
        Patches are compared across columns, so columns of one unit should share a
        scale.
    device : str or torch.device, default="auto"
        Device on which to compute. "auto" is CUDA if there is a CUDA device, else the
        CPU.
        Rounds compute in single precision for data of any precision.
    random_state : int, RandomState instance or None, default=None
        Seed of the held-out cells; nothing else is random.
    missing_values : float, default=numpy.nan
        A number that marks missing cells, in addition to NaN and to the container's own
        marks.
    add_indicator : bool, default=False
        Whether to append the columns of `sklearn.impute.MissingIndicator`: which cells
        were missing, for each column with a missing cell in `fit`.
    keep_empty_features : bool, default=True
        Whether to keep columns without an observed cell. They are filled with the row
        means if all cells have one unit, and otherwise with 0, as by scikit-learn's
        imputers; in tables with columns that are not numbers, those of words and dates
        stay missing. False drops them.
    keep_observed : bool, default=True
        Whether to return observed cells unchanged. False returns the values of
        ``reconstruction_`` for them.

    Attributes
    ----------
    reconstruction_ : ndarray of shape (n_samples, n_features)
        At observed cells, the estimates of the groups (the cell itself if it is in
        none); at held-out cells, the estimates made without them.
    patch_size_ : int
    history_ : dict of ndarray
        "n_iter", "objective", "residual" (and "validation", the root mean square over
        held-out cells of the scaled data) of every round.
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
    BiharmonicCompleter : Faster, and less accurate where texture and edges recur.
    PatchCNNCompleter : A network of patches, trained on one picture.
    skmc.pictures.complete : Completes large pictures and pictures with channels.

    Notes
    -----
    Time and memory grow with the number of reference patches that have a hidden cell
    nearby; memory holds up to ``group_size ** 2`` numbers in single precision each.
    `skmc.pictures.complete` works in blocks.

    This implementation differs from the papers: the mean patch of a group is not
    penalized, the weights are those of the *shrunk* singular values, the threshold
    falls geometrically, a round takes a longer step than the average (over-relaxation
    with momentum), and singular vectors are used in two rounds.

    The defaults were chosen on crops of nine photographs with 1 to 70 % of the pixels
    hidden, and by blocks hidden in six.

    References
    ----------
    Dong, Shi, Li, Ma, Huang. Compressive sensing via nonlocal low-rank regularization.
    IEEE Transactions on Image Processing 23 (2014).

    Gu, Xie, Meng, Zuo, Feng, Zhang. Weighted nuclear norm minimization and its
    applications to low level vision. International Journal of Computer Vision 121
    (2017).

    Examples
    --------
    >>> import numpy as np
    >>> from skmc import NonlocalCompleter, patterns
    >>> from skmc.metrics import nmae
    >>> wave = np.sin(np.arange(40) / 2)
    >>> truth = np.sign(np.add.outer(wave, wave))
    >>> hidden = patterns.random(truth, 0.3, random_state=0)
    >>> completer = NonlocalCompleter(random_state=0)
    >>> X = completer.fit_transform(np.ma.masked_array(truth, hidden))
    >>> nmae(X, truth, hidden) < 0.1
    True
    """

    completer_tags = CompleterTags(
        recovers=1.2,
        pictures=True,
        unweighted="it filters groups of patches, not cells",
    )
    cost = Cost(0.02, cells=9e-5)
    stacked = (Variant("nonlocal", after=("biharmonic",), only_after=False),)
    warn_at_max_iter = False  # the schedule ends there
    check_every = 1

    patch_size: Count | Literal["auto"] = 6
    _: KW_ONLY
    group_size: Annotated[int, Interval(Integral, 2, None, closed="left")] = 40
    window: Annotated[int, Interval(Integral, 3, None, closed="left")] = 31
    stride: Count = 4
    threshold: Positive = 0.5
    min_threshold: Positive = 0.015
    channels: Count = 1
    max_iter: Count = 24
    max_time: Positive | None = None
    tol: NonNegative = 1e-4
    early_stopping: bool = False
    validation_fraction: Share = 0.02
    n_iter_no_change: Count = 8
    scaling: Literal["auto", "columns", "global"] | None = "global"
    device: str | torch.device = "auto"
    random_state: Seed = None

    _fitted: Completion = field(init=False)
    patch_size_: int = field(init=False)
    _progress: float = field(init=False)  # share of the rounds that were done

    def _scaled(self, given: Given) -> Given:
        pixels(given.matrix, self.channels)  # validates the channels
        return super()._scaled(given)

    def _drawn(self, cells: np.ndarray, share: float, seed: int) -> np.ndarray:
        observed = ~np.isnan(cells)
        known = pixels(observed, self.channels).any(2)
        cells = np.where(known, 0.0, np.nan)
        drawn = patterns.like_missing(cells, share, random_state=seed)
        return np.repeat(drawn, self.channels, axis=1) & observed

    def _choose(self, data: Observed, trials: Trials) -> Choice:
        if self.patch_size != "auto":
            return Choice({"patch_size": self.patch_size})
        brief = max(1, int(TRIAL_SHARE * self.max_iter))
        side = trials.best(
            SIDES, lambda side, train: self._solver(train, side, brief), max_iter=brief
        )
        return Choice({"patch_size": side})

    def _make_solver(self, data: Observed, params: Params, rng: Randomness) -> Solver:
        return self._solver(data, params.patch_size, self.max_iter)

    def _solver(self, data: Observed, side: int, horizon: int) -> NonlocalLowRank:
        solver = self._pyramid(data, side, horizon)
        return self._shorter(solver, data) if solver.isolated(data) else solver

    def _pyramid(self, data: Observed, side: int, horizon: int) -> NonlocalLowRank:
        """Make a solver that starts from the completion at half the size."""
        _check(self.window, self.threshold, self.min_threshold)
        solver = NonlocalLowRank(
            side,
            self.group_size,
            self.window // 2,
            min(self.stride, side),
            threshold=(self.threshold, self.min_threshold),
            horizon=_n_rounds(data, side, self.channels, horizon),
            channels=self.channels,
        )
        coarse = solver.coarser(data)
        if coarse is None:
            return solver
        above = self._pyramid(coarse, side, horizon)
        completed = solve_part(above, coarse, max_iter=horizon, tol=self.tol)
        return solver.started(data, completed.X)

    def _shorter(self, solver: NonlocalLowRank, data: Observed) -> NonlocalLowRank:
        """Start near the solution: from the biharmonic completion of single holes."""
        values, mask = (
            pixels(each.numpy(force=True), self.channels)
            for each in (data.values, data.mask)
        )
        smooth = inpainted(values.astype(float), ~mask).reshape(data.shape)
        lowest = self.min_threshold
        return replace(
            solver,
            start=torch.from_numpy(smooth).to(data.values),
            threshold=(max(lowest, FIRST_OF_SINGLE * self.threshold), lowest),
            horizon=math.ceil(ROUNDS_OF_SINGLE * solver.horizon),
            match_every=MATCH_EVERY_OF_SINGLE,
        )

    def _finish(self, data: Observed, solution: Solution) -> Solution:
        """Use the held-out cells in a few more rounds, at the threshold reached."""
        outputs, judged = solution.outputs, solution.X
        held_out = data.mask & ~outputs["trained_on"]
        if not held_out.any():
            return solution
        solver = outputs["solver"].resumed(judged, outputs["iteration"])
        shown = solve_part(solver, data, max_iter=REVEALED).X
        # Held-out cells keep the values that were evaluated.
        X = torch.where(held_out, judged, shown)
        return replace(solution, outputs={**outputs, "X": X})

    def _attributes(self, given: Given, outputs: dict[str, Any]) -> dict[str, Any]:
        n_rounds = outputs.get("iteration", 0)
        progress = n_rounds / outputs["solver"].horizon if n_rounds else 0.0
        return {**super()._attributes(given, outputs), "_progress": progress}

    def _row_map(self, outputs: dict[str, Any], data: Observed) -> Any:
        return super()._row_map({"X": data.fill(outputs["X"])}, data)

    def complete_picture(self, X: Container) -> np.ndarray:
        """Complete another picture with the choices made in `fit`, all rows together.

        The patches are those of the new picture, with the same share of its rounds
        as in `fit`. Unlike `transform`, the completion of a row depends on the rows
        around it.

        Parameters
        ----------
        X : container as in `fit`, of shape (n_rows, n_features)
            Rows in order, any number of them, with at least one observed cell.

        Returns
        -------
        ndarray of shape (n_rows, n_features)
            The completion in the float dtype of ``X``. Observed cells are unchanged
            unless ``keep_observed=False``.
        """
        check_is_fitted(self)
        cells = self._read(X, reset=False)
        if np.isnan(cells).all():
            raise ValueError("X has no observed cell; at least one is needed.")
        values = torch.from_numpy(np.array(cells, order="C")).double()
        scaling = self._fitted.row_map.scaling
        data = Observed(values, ~torch.isnan(values)).scaled(scaling)
        solver = self._solver(data, self.patch_size_, self.max_iter)
        n_rounds = max(1, round(self._progress * solver.horizon))
        solution = solve_part(solver, data, max_iter=n_rounds)
        completed = scaling.undo(solution.X).numpy()
        if self.keep_observed:
            completed = np.where(np.isnan(cells), completed, cells)
        return completed.astype(cells.dtype)


@dataclass(frozen=True, kw_only=True)
class NonlocalState(State):
    """An iterate of `NonlocalLowRank`; pictures are standardized, in single precision.

    Parameters
    ----------
    objective : Tensor of shape (\\*batch,)
        Half the mean squared error of the groups at observed cells.
    mask : bool Tensor of shape (n_channels, n_rows, n_cols)
        Mask of the observed cells.
    picture : Tensor of shape (n_channels, n_rows, n_cols)
        Observed cells, and estimates of the hidden ones.
    moved : Tensor of shape (n_channels, n_rows, n_cols)
        Change of the picture in the last round.
    estimate : Tensor of shape (n_channels, n_rows, n_cols)
        Estimates of all cells by the low-rank groups.
    doubt : Tensor of shape (n_channels, n_rows, n_cols)
        Expected squared error of hidden cells, which grows with their distance from
        observed ones.
    references, others : int64 Tensor of shape (n_references,)
        References with a hidden cell, on the current grid and on the next one.
    groups : int64 Tensor of shape (n_references, n_members)
        Patches similar to each reference.
    directions : Tensor of shape (n_references, n, n)
        Singular vectors of the groups.
    center, unit : Tensor of shape ()
        Mean and standard deviation of the observed cells.
    iteration : int
        Number of rounds done.
    """

    mask: Tensor
    picture: Tensor
    moved: Tensor
    estimate: Tensor
    doubt: Tensor
    references: Tensor
    others: Tensor
    groups: Tensor
    directions: Tensor
    center: Tensor
    unit: Tensor
    iteration: int


@dataclass(eq=False)
class NonlocalLowRank(Solver[Observed, NonlocalState]):
    r"""Alternation between low-rank groups of similar patches and the observed cells.

    A round lowers the rank of each group (`PatchGroups.shrink`), estimates every cell
    by the mean of the patches that cover it, and restores the observed cells. The
    threshold falls geometrically from round to round. Groups are matched again every
    few rounds, alternately on two grids, and keep their singular vectors for two
    rounds. `skmc.linalg.diffuse` fills the initial picture. Filled patches count as
    less similar, by the `expected_error` of their cells, so that the groups of
    a hole consist of patches outside it.

    Parameters
    ----------
    side, size, radius, stride : int
        Parameters of `PatchGroups`.
    threshold : tuple of float
        Thresholds of the first and last round, in standard deviations of observed
        cells.
    horizon : int
        Number of rounds.
    channels : int, default=1
        Number of channels. Each row of the matrix holds its pixels in order, with the
        channels of a pixel next to each other.
    start : Tensor of the matrix's shape, optional
        Completion to start from.
    match_every : int, default=6
        Rounds between matches, a multiple of 2.
    """

    side: int
    size: int
    radius: int
    stride: int
    _: KW_ONLY
    threshold: tuple[float, float]
    horizon: int
    channels: int = 1
    start: Tensor | None = None
    match_every: int = 6

    def init(self, data: Observed) -> NonlocalState:
        peak = data.values.abs().amax()
        scaled = data.values / torch.where(peak > 0, peak, 1)
        center = scaled.sum() / data.n_observed
        spread = torch.where(data.mask, scaled - center, 0)
        deviation = (spread.square().sum() / data.n_observed).sqrt()
        tiny = torch.finfo(torch.float32).eps
        deviation = torch.where(deviation > tiny * center.abs(), deviation, 1)
        center, unit = center * peak, deviation * peak
        # Next to zero, the product underflows; such a picture is constant.
        unit = torch.where(unit > 0, unit, 1)
        own = self._split((data.values - center).div(unit).float())
        mask = self._split(data.mask)
        if self.start is None:
            filled = torch.stack(list(map(diffuse, own, mask)))
        else:
            filled = self._split((self.start - center).div(unit).float())
        picture = torch.where(mask, own, filled)
        doubt = torch.stack(list(map(expected_error, own, mask)))
        patches = self._groups(data)
        references = patches.references(~mask)
        groups = patches.match(picture, references, doubt)
        return NonlocalState(
            objective=spread.square().sum() / (2 * data.n_observed) * peak.square(),
            mask=mask,
            picture=picture,
            moved=torch.zeros_like(picture),
            estimate=picture,
            doubt=doubt,
            references=references,
            others=patches.references(~mask, self.stride // 2),
            groups=groups,
            directions=self._directions(patches, picture, groups, 0),
            center=center,
            unit=unit,
            iteration=0,
        )

    def coarser(self, data: Observed) -> Observed | None:
        """The picture at half the size: means of the known cells of 2 x 2 pixels.

        Parameters
        ----------
        data : Observed
            The observed cells.

        Returns
        -------
        Observed or None
            None if nothing is hidden, or if the half-size picture holds fewer than two
            patches in a direction.
        """
        n_rows, n_cols = data.shape
        if min(n_rows, n_cols // self.channels) < 4 * self.side:
            return None
        values, known = halve(self._split(data.values), self._split(data.mask))
        if bool(known.all()):
            return None
        return Observed(_joined(values), _joined(known))

    def isolated(self, data: Observed) -> bool:
        """Whether some cells are hidden, but never all of 2 x 2 pixels of a channel.

        Parameters
        ----------
        data : Observed
            The observed cells.

        Returns
        -------
        bool
        """
        mask = self._split(data.mask)
        known = halve(mask.to(data.values.dtype), mask)[1]
        return bool(known.all() and not mask.all())

    def started(self, data: Observed, above: Tensor) -> NonlocalLowRank:
        """Make a solver that starts from the completion of the coarser picture.

        Parameters
        ----------
        data : Observed
            The observed cells.
        above : Tensor
            Completion of `coarser`.

        Returns
        -------
        NonlocalLowRank
        """
        values, mask = self._split(data.values), self._split(data.mask)
        rough = double(self._split(above), (values.shape[1], values.shape[2]))
        seam = torch.stack(list(map(diffuse, values - rough, mask)))
        return replace(self, start=_joined(rough + seam))

    def _split(self, matrix: Tensor) -> Tensor:
        """Split the channels: shape (n_channels, n_rows, n_cols)."""
        pixels = matrix.unflatten(1, (-1, self.channels))
        return pixels.permute(2, 0, 1).contiguous()

    def _groups(self, data: Observed) -> PatchGroups:
        n_rows, n_cols = data.shape
        shape = n_rows, n_cols // self.channels
        return PatchGroups(shape, self.side, self.size, self.radius, self.stride)

    def _directions(
        self, patches: PatchGroups, picture: Tensor, groups: Tensor, iteration: int
    ) -> Tensor:
        """Singular vectors for the next rounds, the last with the lowest threshold."""
        lowest = self.threshold_at(iteration + DIRECTIONS_EVERY - 1)
        return patches.directions(picture, groups, lowest)

    def threshold_at(self, iteration: int) -> float:
        """Threshold of a round.

        Parameters
        ----------
        iteration : int
            Number of rounds before it.

        Returns
        -------
        float
        """
        first, last = self.threshold
        progress = min(iteration / max(self.horizon - 1, 1), 1.0)
        return first * (last / first) ** progress

    def step(self, data: Observed, state: NonlocalState) -> NonlocalState:
        patches, picture, k = self._groups(data), state.picture, state.iteration
        if k and k % self.match_every == 0:
            references, others = state.others, state.references
            groups = patches.match(picture, references, state.doubt)
            state = replace(state, references=references, others=others, groups=groups)
        if k and k % DIRECTIONS_EVERY == 0:
            directions = self._directions(patches, picture, state.groups, k)
            state = replace(state, directions=directions)
        found = state.groups, state.directions
        estimate = patches.shrink(picture, *found, self.threshold_at(k))
        moved = STRIDE * (estimate - picture) + MOMENTUM * state.moved
        moved = torch.where(state.mask, 0, moved)
        error = torch.where(state.mask, estimate - picture, 0).square().sum()
        scale = state.unit.square() / (2 * data.n_observed)
        return replace(
            state,
            objective=error.to(scale.dtype) * scale,
            picture=picture + moved,
            moved=moved,
            estimate=estimate,
            iteration=k + 1,
        )

    def residual(
        self, data: Observed, previous: NonlocalState, current: NonlocalState
    ) -> Tensor:
        """Change of the hidden cells in the last round, relative to the observed ones.

        This is the root mean square over hidden cells, in standard deviations of the
        observed cells; zero after the last round of the schedule.

        Parameters
        ----------
        data : Observed
            The observed cells.
        previous : NonlocalState
            The state before the last step.
        current : NonlocalState
            The state after it.

        Returns
        -------
        Tensor of shape ()
        """
        moved = current.moved.norm() / max(int((~current.mask).sum()), 1) ** 0.5
        if current.iteration >= self.horizon:
            moved = torch.zeros_like(moved)
        return moved.to(data.values.dtype)

    def outputs(self, state: NonlocalState) -> dict[str, Any]:
        """Hidden cells as estimated, and estimates of observed cells by their groups.

        Parameters
        ----------
        state : NonlocalState
            Current state.

        Returns
        -------
        dict
        """
        estimate = torch.where(state.mask, state.estimate, state.picture)
        X = _joined(estimate).to(state.unit.dtype) * state.unit + state.center
        return {
            "X": X,
            "iteration": state.iteration,
            "trained_on": _joined(state.mask),
            "solver": self,
        }

    def resumed(self, X: Tensor, iteration: int) -> NonlocalLowRank:
        """Make a solver that continues from a completion at the threshold of a round.

        Parameters
        ----------
        X : Tensor of the matrix's shape
            Completion to start from.
        iteration : int
            Number of rounds done.

        Returns
        -------
        NonlocalLowRank
        """
        threshold = self.threshold_at(iteration - 1)
        return replace(self, threshold=(threshold, threshold), start=X)


def _joined(channels: Tensor) -> Tensor:
    """Join channels to a matrix in which those of a pixel are next to each other."""
    return channels.permute(1, 2, 0).flatten(1)
