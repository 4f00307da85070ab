"""Low-rank groups of similar patches (NLR, WNNM)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, field, replace
from functools import partial
from itertools import count, takewhile
from numbers import Integral
from typing import Annotated, Any, Literal

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch.nn.functional import avg_pool2d

from skmc import patterns
from skmc.base import (
    Choice,
    CompleterTags,
    Completion,
    IterativeCompleter,
    Trials,
    read_rows,
)
from skmc.cells import Container, Given, Observed, pixels
from skmc.compatibility import Interval
from skmc.completers.biharmonic import inpainted
from skmc.completers.nonlocal_groups.rounds import NonlocalLowRank, NonlocalResult
from skmc.completers.nonlocal_groups.spectra import SpectralLowRank
from skmc.linalg import Randomness
from skmc.loop import Solution, solve_part
from skmc.parameters import Count, NonNegative, Params, Positive, Seed, Share
from skmc.solvers import Result, Solver

SIDES = (6, 5, 8)  # patch sizes in the order of the trials
TRIAL_SHARE = 0.5  # share of max_iter for a trial
# If all holes are single cells: shares of the first threshold and of the rounds, and
# rounds between matches, chosen on crops with 1 % hidden.
FIRST_OF_SINGLE, ROUNDS_OF_SINGLE, MATCH_EVERY_OF_SINGLE = 0.4, 2 / 3, 2
FEW_CHANNELS = 4  # which have no spectra: gray, color, and color with a fourth channel
FEWEST_SPECTRA = 4  # in the first trial
REVEALED = 4  # final rounds with the cells that early stopping held out


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
    r"""Complete a picture with similar patches from elsewhere in it.

    For pictures in gray or color with any kind of hole, the most accurate on most,
    cubes and videos; not for matrices without similar neighbors. Similar patches are
    the rows of low-rank matrices:

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

    In a picture with many channels, pixels are combinations of a few spectra, and the
    patches are those of the maps of their coefficients. The observed channels of a
    pixel determine its coefficients, relative to what the patches suggest. So channels
    that are missing in a pixel follow from those that are not, even if they are few.

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
        whole if they are missing whole, or if there are at most 4 channels.
    n_spectra : int >= 1, "auto" or None, default="auto"
        Number of spectra of which pixels are combinations, for pictures with many
        channels (hyperspectral cubes, videos); at most ``channels``. None does not
        combine: channels are estimated from similar patches alone. "auto" is None for
        up to 4 channels, and if pixels are missing whole. Otherwise it tries 4, 8, 16,
        ... below ``channels``, until the error on a held-out tenth of the observed
        cells rises, and None, in ``max_iter // 2`` rounds each.
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
        held-out error is computed in each iteration.
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
        imputers. False drops them.
    keep_observed : bool, default=True
        Whether to return observed cells unchanged. False returns the values of
        ``reconstruction_`` for them.

    Attributes
    ----------
    reconstruction_ : ndarray of shape (n_samples, n_features)
        At observed cells, the estimates of the groups (the cell itself if it is in
        none); at held-out cells, the estimates made without them.
    patch_size_ : int
    n_spectra_ : int or None
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
    n_spectra: Count | Literal["auto"] | None = "auto"
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
    n_spectra_: int | None = field(init=False)
    _progress: float = field(init=False)  # share of the rounds that were done

    def _scaled(self, given: Given) -> Given:
        pixels(given.matrix, self.channels)  # validates the channels
        return super()._scaled(given)

    def _drawn(self, cells: np.ndarray, share: float, seed: int) -> np.ndarray:
        observed = ~np.isnan(cells)
        seen = pixels(observed, self.channels)
        if self._combines(seen):  # each channel by itself
            rng = np.random.RandomState(seed)
            hidden = np.zeros_like(seen)
            for k in np.flatnonzero(seen.any((0, 1))):
                channel = np.where(seen[:, :, k], 0.0, np.nan)
                hidden[:, :, k] = patterns.like_missing(
                    channel, share, random_state=rng
                )
            return hidden.reshape(cells.shape)
        cells = np.where(seen.any(2), 0.0, np.nan)
        drawn = patterns.like_missing(cells, share, random_state=seed)
        return np.repeat(drawn, self.channels, axis=1) & observed

    def _combines(self, known: np.ndarray) -> bool:
        """Whether channels of a pixel can determine others, and are enough for it."""
        some = known.any(2) & ~known.all(2)
        return self.channels > FEW_CHANNELS and bool(some.any())

    def _choose(self, data: Observed, trials: Trials) -> Choice:
        n_spectra, brief = self.n_spectra, max(1, int(TRIAL_SHARE * self.max_iter))
        side = SIDES[0] if self.patch_size == "auto" else self.patch_size
        if n_spectra == "auto":
            n_spectra = None
            seen = pixels(data.mask.numpy(force=True), self.channels)
            if self._combines(seen):
                n_spectra = self._best_spectra(trials, side, brief)
        elif n_spectra is not None:
            n_spectra = min(n_spectra, self.channels)
        if self.patch_size == "auto":
            side = trials.best(
                SIDES,
                lambda side, train: self._solver(train, side, n_spectra, brief),
                max_iter=brief,
            )
        return Choice({"patch_size": side, "n_spectra": n_spectra})

    def _best_spectra(self, trials: Trials, side: int, brief: int) -> int | None:
        """The number of spectra with the lowest held-out error, or None."""
        doubled = (FEWEST_SPECTRA * 2**k for k in count())
        numbers = takewhile(lambda n: n < self.channels, doubled)

        def solver(n: int | None, train: Observed) -> NonlocalLowRank:
            return self._solver(train, side, n, brief)

        best = trials.best(numbers, solver, max_iter=brief, patience=1)
        lowest = trials.lowest
        trials.best([None], solver, max_iter=brief)
        return best if lowest <= trials.lowest else None

    def _make_solver(self, data: Observed, params: Params, rng: Randomness) -> Solver:
        return self._solver(data, params.patch_size, params.n_spectra, self.max_iter)

    def _solver(
        self, data: Observed, side: int, n_spectra: int | None, horizon: int
    ) -> NonlocalLowRank:
        solver = self._pyramid(data, side, n_spectra, horizon)
        return self._shorter(solver, data) if solver.isolated(data) else solver

    def _pyramid(
        self, data: Observed, side: int, n_spectra: int | None, horizon: int
    ) -> NonlocalLowRank:
        """Make a solver that starts from the completion at half the size."""
        _check(self.window, self.threshold, self.min_threshold)
        make: Callable[..., NonlocalLowRank] = NonlocalLowRank
        if n_spectra is not None:
            make = partial(SpectralLowRank, n_spectra=n_spectra)
        solver = make(
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
            if n_spectra is None or n_spectra <= FEWEST_SPECTRA:
                return solver
            # Many spectra would begin by explaining the guesses in the holes.
            fewer = self._pyramid(data, side, n_spectra // 2, horizon)
            completed = solve_part(fewer, data, max_iter=horizon, tol=self.tol)
            return replace(solver, start=completed.X)
        above = self._pyramid(coarse, side, n_spectra, horizon)
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
        result: Any = solution.result
        judged, held_out = result.X, data.mask & ~result.trained_on
        if not held_out.any():
            return solution
        solver = result.solver.resumed(judged, result.iteration)
        shown = solve_part(solver, data, max_iter=REVEALED).X
        # Held-out cells keep the values that were evaluated.
        X = torch.where(held_out, judged, shown)
        return replace(solution, result=replace(result, X=X))

    def _attributes(self, given: Given, result: Result) -> dict[str, Any]:
        progress = 0.0
        if isinstance(result, NonlocalResult):  # not if interrupted before the first
            progress = result.iteration / result.solver.horizon
        return {**super()._attributes(given, result), "_progress": progress}

    def _row_map(self, result: Result, data: Observed) -> Any:
        return super()._row_map(Result(X=data.fill(result.X)), data)

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
        cells = read_rows(self, X)
        if np.isnan(cells).all():
            raise ValueError("X has no observed cell; at least one is needed.")
        values = torch.from_numpy(np.array(cells, order="C")).double()
        scaling = self._fitted.row_map.scaling
        data = Observed(values, ~torch.isnan(values)).scaled(scaling)
        solver = self._solver(data, self.patch_size_, self.n_spectra_, self.max_iter)
        n_rounds = max(1, round(self._progress * solver.horizon))
        solution = solve_part(solver, data, max_iter=n_rounds)
        completed = scaling.undo(solution.X).numpy()
        if self.keep_observed:
            completed = np.where(np.isnan(cells), completed, cells)
        return completed.astype(cells.dtype)
