"""A weighted sum of members that complete series."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
from scipy import stats

from skmc.completers.series._members import SeasonalMean, Windowed
from skmc.loop import FitTasks
from skmc.patterns import gap_lengths, moved_gaps
from skmc.stacking import MIN_WEIGHT, Spread, Stacking, rms

HELD_OUT = 0.1  # share of the observed cells
MIN_HIDDEN, MAX_ROUNDS = 2000, 4  # fewer hidden cells are drawn several times
FILLS = 3  # of the residuals of members without a value
NEAREST = 0  # position of the member that repeats the nearest cell at ends
SURE = 0.975  # quantile of Student's distribution
ENOUGH_ENDS = 16  # to learn from
MAX_END_ROUNDS = 4  # times that ends are held out
END_SHARE = 1 / 3  # largest share of the times that is removed at one end


@dataclass(frozen=True)
class SeriesStack:
    """Fitted members and their weights.

    Parameters
    ----------
    members : list
        Members, in `skmc.completers.series._members`.
    own, later : GapWeights
        Weights for the times of the fit, and for other times.
    mean : SeasonalMean
        Predictions where no member has one: of series without an observed cell.
    causal : bool
        Whether the class of a gap is that of the time since its start.
    error : float
        Root mean squared error on the held-out cells, gaps and ends in the shares of
        the missing cells.
    """

    members: list[Any]
    own: GapWeights
    later: GapWeights
    mean: SeasonalMean
    causal: bool
    error: float

    @classmethod
    def fit(
        cls,
        cells: np.ndarray,
        start: int,
        present: np.ndarray,
        members: Sequence[Any],
        mean: SeasonalMean,
        causal: bool,
        tasks: FitTasks,
        rng: np.random.RandomState,
    ) -> SeriesStack:
        """Weight the members by held-out cells, and fit those with a weight to all.

        ``present`` are the cells that have a row in the data.
        """
        missing = np.isnan(cells)
        n_classes = len(cells).bit_length()
        step = mean.period if len(cells) >= 3 * mean.period else 1
        lost = missing & present
        rounds = hidden_gaps(missing, lost, step, rng)
        if not causal:
            rounds = chain(rounds, hidden_ends(missing, lost, step, rng))
        parts: list[HeldOutResiduals] = []
        tried = members
        for hidden, shown, group in rounds:
            if len(parts) == 1:
                tried = [member.with_choice() for member in members]
            rest = np.where(shown, cells, np.nan)
            residuals = _residuals(cells, hidden, rest, start, tried, mean, tasks)
            classes = gap_classes(~shown, causal, n_classes)[hidden]
            groups = np.broadcast_to(group, cells.shape)[hidden]
            series = np.nonzero(hidden)[1]
            parts.append(HeldOutResiduals(residuals, classes, groups, series))
        held = HeldOutResiduals.joined(parts)
        shape = n_classes, cells.shape[1]
        transfers = np.array([member.transfers for member in members])
        own = GapWeights.of(held, np.ones(len(members), bool), shape)
        later = GapWeights.of(held, transfers, shape)
        largest = np.maximum(own.weights, later.weights).max(0)
        costly = np.array([isinstance(member, Windowed) for member in members])
        dropped = np.flatnonzero(costly & (largest < min(MIN_WEIGHT, largest.max())))
        kept = [member for k, member in enumerate(members) if k not in dropped]
        for k, member in enumerate(members):
            # Members for other times alone keep the fit to fewer cells.
            if not costly[k] or own.weights[:, k].max() >= MIN_WEIGHT:
                member.fit(cells, start)
                tasks.done(member.name)
        mean.fit(cells, start)
        at_end = gap_classes(missing, causal, n_classes)[lost] >= n_classes
        share = at_end.mean() if len(at_end) else 0.0
        squares = np.square(own.errors) * (1 - share, share)
        error = float(np.sqrt(squares[[True, share > 0]].sum()))
        own, later = own.without(dropped), later.without(dropped)
        return cls(kept, own, later, mean, causal, error)

    def predict(
        self, cells: np.ndarray, start: int, found: GapWeights
    ) -> tuple[np.ndarray, np.ndarray]:
        """Values and standard deviations of the missing cells, by some weights."""
        classes = gap_classes(np.isnan(cells), self.causal, len(found.scale) // 2)
        otherwise = self.mean.predict(cells, start)
        away = np.full((*cells.shape, len(self.members)), np.nan)
        for k, member in enumerate(self.members):
            if not isinstance(member, Windowed) or found.weights[:, k].any():
                away[..., k] = member.predict(cells, start) - otherwise
        has = ~np.isnan(away)
        share = _present(found.weights[classes], has)
        away = np.where(has, away, 0)
        values, squares = (share * away).sum(-1), (share * np.square(away)).sum(-1)
        scale = found.scale[classes]
        variances = np.maximum(squares - np.square(values), 0) / np.square(scale)
        return otherwise + values, scale * found.spread.deviations(variances)


# Hidden cells, the cells that remain, and groups of the hidden ones for `Stacking`.
Round = tuple[np.ndarray, np.ndarray, np.ndarray]


def hidden_gaps(
    missing: np.ndarray,  # (n_times, n_series)
    lost: np.ndarray,  # (n_times, n_series)
    step: int,
    rng: np.random.RandomState,
) -> Iterator[Round]:
    """Hide cells in gaps like those of the lost ones."""
    n_hidden = round(HELD_OUT * (~missing).sum())
    groups = np.arange(len(missing))[:, None] // step
    n_rounds = int(np.clip(np.ceil(MIN_HIDDEN / max(1, n_hidden)), 1, MAX_ROUNDS))
    for _ in range(n_rounds):
        hidden = moved_gaps(lost, ~missing, n_hidden, rng, step=step)
        yield hidden, ~missing & ~hidden, groups


def hidden_ends(
    missing: np.ndarray,  # (n_times, n_series)
    lost: np.ndarray,  # (n_times, n_series)
    step: int,
    rng: np.random.RandomState,
) -> Iterator[Round]:
    """Hide cells at first and last times, moved inwards, and all cells beyond."""
    ends, time = Ends.of(missing, lost, rng), np.arange(len(missing))[:, None]
    for k in range(ends.n_rounds):
        lot = (k + rng.rand()) / ends.n_rounds
        since, until = ends.moved(missing, lot, step, rng)
        sides = [(since[i] <= time) & (time < until[i]) for i in range(2)]
        at_end, between = sides[0] | sides[1], (since[0] <= time) & (time < until[1])
        kept = between & ~at_end & ~missing
        hidden = at_end & ~missing & kept.any(0)
        if hidden.any():
            yield hidden, kept, len(missing) + 2 * k + sides[1]


def _residuals(
    cells: np.ndarray,  # (n_times, n_series)
    hidden: np.ndarray,  # (n_times, n_series)
    rest: np.ndarray,  # (n_times, n_series)
    start: int,
    members: Sequence[Any],
    mean: SeasonalMean,
    tasks: FitTasks,
) -> np.ndarray:  # (n_hidden, n_members)
    """Residuals of hidden cells from members fitted to the rest."""
    mean.fit(rest, start)
    residuals = np.empty((hidden.sum(), len(members)))
    for k, member in enumerate(members):
        found = member.fit(rest, start).predict(rest, start)
        residuals[:, k] = (cells - found)[hidden]
        tasks.done(member.name)
    none = np.isnan(residuals).all(1)
    residuals[none] = (cells - mean.predict(rest, start))[hidden][none, None]
    return residuals


@dataclass(frozen=True)
class HeldOutResiduals:
    """Residuals of the members on cells that were held out.

    Parameters
    ----------
    residuals : ndarray of shape (n_cells, n_members)
        Differences from the members' values; NaN where a member has none.
    classes : int ndarray of shape (n_cells,)
        Classes of the cells, see `gap_classes`.
    groups, series : int ndarray of shape (n_cells,)
        Groups of the cells for `Stacking`, and their series.
    """

    residuals: np.ndarray
    classes: np.ndarray
    groups: np.ndarray
    series: np.ndarray

    @classmethod
    def joined(cls, parts: Sequence[HeldOutResiduals]) -> HeldOutResiduals:
        """Join the cells of several rounds, whose groups differ."""
        names = ("residuals", "classes", "groups", "series")
        return cls(
            *(np.concatenate([getattr(part, name) for part in parts]) for name in names)
        )

    @property
    def ends(self) -> np.ndarray:
        """Number of the end that each cell belongs to."""
        pairs = np.stack([self.groups, self.series])
        found = np.unique(pairs, axis=1, return_inverse=True)[1]
        return found.ravel()

    def kinds(self, n_classes: int) -> tuple[HeldOutResiduals, HeldOutResiduals]:
        """The cells in gaps, and those at ends, with the classes of each from 0."""
        end = self.classes >= n_classes
        gaps, ends = (
            HeldOutResiduals(
                self.residuals[of],
                self.classes[of] % n_classes,
                self.groups[of],
                self.series[of],
            )
            for of in (~end, end)
        )
        return gaps, ends


@dataclass(frozen=True)
class GapWeights:
    """Weights of members by the kind and length of gaps, and their errors.

    Parameters
    ----------
    weights : ndarray of shape (n_classes, n_members)
        Weights for each class, see `gap_classes`.
    scale : ndarray of shape (n_classes,)
        Error of the best member for each class, or for the nearest one with cells.
    spread : Spread
        Errors of the series, in units of ``scale``.
    errors : tuple of float
        Root mean squared errors on the cells held out in gaps, and at ends.
    """

    weights: np.ndarray
    scale: np.ndarray
    spread: Spread
    errors: tuple[float, float]

    @classmethod
    def of(
        cls, held_out: HeldOutResiduals, usable: np.ndarray, shape: tuple[int, int]
    ) -> GapWeights:
        """Fit the weights of usable members.

        ``shape`` has the numbers of classes of gaps (and of ends), and of series.
        """
        n_classes, weights, scales, parts, errors = shape[0], [], [], [], []
        kinds = held_out.kinds(n_classes)
        for held, other in zip(kinds, kinds[::-1], strict=True):
            if not len(held.classes):
                held = other
            ends = held.ends if held is kinds[1] else None
            stack, scale, units = _stacked(
                held.residuals[:, usable], held.groups, held.classes, n_classes, ends
            )
            all_members = np.zeros((n_classes, len(usable)))
            all_members[:, usable] = stack.columns
            residuals = stack.residuals * units
            variances = stack.variances * np.square(units)
            if ends is not None:
                nearest = held.residuals[:, NEAREST] / scale[held.classes]
                part = certainty(residuals, nearest, ends)
                only = np.arange(len(usable)) == NEAREST
                all_members = part * all_members + (1 - part) * only
                change = nearest - residuals
                residuals = residuals + (1 - part) * change
                variances = part * (variances + (1 - part) * np.square(change))
            weights.append(all_members)
            scales.append(scale)
            errors.append(rms(residuals * scale[held.classes]))
            parts.append((residuals, variances, held.groups, held.series))
        residuals, variances, groups, series = map(
            np.concatenate, zip(*parts, strict=True)
        )
        return cls(
            np.concatenate(weights),
            np.concatenate(scales),
            Spread.of(residuals, variances, groups, series, shape[1]),
            (errors[0], errors[1]),
        )

    def without(self, dropped: np.ndarray) -> GapWeights:
        """Remove members, and increase the weights of the others."""
        weights = np.delete(self.weights, dropped, 1)
        return replace(self, weights=weights / weights.sum(1, keepdims=True))


def certainty(one: np.ndarray, other: np.ndarray, ends: np.ndarray) -> float:
    """Share of the weights at ends, by which the rest is left to the nearest value.

    The share of residuals ``one`` that minimizes the squares, together with ``other``,
    is shrunk towards 0 as James and Stein's means are, and is 0 if its 95 % interval
    contains 0. The standard error is that of the jackknife without one end at a time,
    which is large if a single end decides.
    """
    change = other - one
    sizes = np.bincount(ends, np.square(change))
    products = np.bincount(ends, change * other)
    rest = sizes.sum() - sizes
    if not sizes.sum() > 0:
        return 1.0
    share = products.sum() / sizes.sum()
    if share <= 0 or not (rest > 0).all():
        return 0.0
    without = (products.sum() - products) / rest
    variance = (len(sizes) - 1) * np.square(without - share).mean()
    error = stats.t.ppf(SURE, len(sizes) - 1) ** 2 * variance
    return float(np.clip(share * (1 - error / share**2), 0, 1))


def _present(weights: np.ndarray, has: np.ndarray) -> np.ndarray:
    """Weights of the members that have a value, of sum one.

    Members without a value leave their weight to the others. If these have hardly any,
    the nearest cell has the rest.
    """
    own = weights * has
    own[..., NEAREST] += np.maximum(MIN_WEIGHT - own.sum(-1), 0) * has[..., NEAREST]
    total = own.sum(-1, keepdims=True)
    return own / np.where(total > 0, total, 1)


def _stacked(
    residuals: np.ndarray,
    groups: np.ndarray,
    classes: np.ndarray,
    n_classes: int,
    ends: np.ndarray | None,
) -> tuple[Stacking, np.ndarray, np.ndarray]:
    """Weights of each class, the error of the best member, and units of the residuals.

    A member without a value leaves its weight to the others, as in the completion. So
    its residual is that of their weighted sum, whose weights are found in turn. The
    cells of one of the ``ends`` also have the error of the best member there as their
    unit: there are few, and one that no member predicts would decide alone. The units
    are multiples of the error of the class.
    """
    has, n_members = ~np.isnan(residuals), residuals.shape[1]
    weights = np.full((n_classes, n_members), 1 / n_members)
    seen, scale = np.unique(classes), np.ones(n_classes)
    for _ in range(FILLS):
        own = _present(weights[classes], has)
        others = (own * np.where(has, residuals, 0)).sum(1)
        tried = np.where(has, residuals, others[:, None])
        for k in range(n_classes) if len(seen) else ():
            near = classes == seen[np.abs(seen - k).argmin()]
            scale[k] = np.sqrt(np.square(tried[near]).mean(0).min()) or 1.0
        tried /= scale[classes][:, None]
        units = np.ones(len(tried))
        if ends is not None:
            sums = [np.bincount(ends, np.square(r)) for r in tried.T]
            least = np.min(sums, 0) / np.bincount(ends)
            units = np.sqrt(1 + least)[ends]
        stack = Stacking.of(tried / units[:, None], groups, classes, n_classes)
        weights = stack.columns
        if has.all():
            break
    return stack, scale, units


def gap_classes(
    missing: np.ndarray,  # (n_times, n_series)
    causal: bool,
    n_classes: int,
) -> np.ndarray:  # (n_times, n_series)
    """Classes of gaps; 0 at observed cells."""
    lengths = gap_lengths(missing, so_far=causal)
    outside = np.zeros(missing.shape, bool)
    if not causal:
        time = np.arange(len(missing))[:, None]
        first, last = missing.argmin(0), len(missing) - 1 - missing[::-1].argmin(0)
        beyond = np.maximum(first - time, time - last)
        outside = missing & ((beyond > 0) | missing.all(0))
        lengths = np.where(outside & ~missing.all(0), beyond, lengths)
    found = np.log2(np.maximum(lengths, 1)).astype(int).clip(max=n_classes - 1)
    return found + n_classes * outside


@dataclass(frozen=True)
class Ends:
    """How long the cells of each series are missing at the first and last times.

    Parameters
    ----------
    span : tuple of int
        First time with an observed cell of any series, and the time after the last.
    before, after : int ndarray of shape (n_series,)
        Number of missing cells before the first observed one and after the last one.
    missing : bool
        Whether any cell is missing there. Otherwise the lengths are those of gaps.
    """

    span: tuple[int, int]
    before: np.ndarray
    after: np.ndarray
    missing: bool

    @classmethod
    def of(
        cls, missing: np.ndarray, lost: np.ndarray, rng: np.random.RandomState
    ) -> Ends:
        """Find the ends of series, (n_times, n_series), each with an observed cell.

        If cells are missing at one end only, they are held out at both, like there: the
        first and the last times of a series are alike. Of the ``missing`` cells, those
        that are ``lost`` are to be completed; a series may end before the others do.
        """
        before = (lost & np.logical_and.accumulate(missing)).sum(0)
        after = (lost & np.logical_and.accumulate(missing[::-1])[::-1]).sum(0)
        found = bool(before.any() or after.any())
        if not found:
            lengths = gap_lengths(missing)[missing]
            before, after = rng.choice(
                lengths if len(lengths) else [1], (2, missing.shape[1])
            )
        elif not before.any():
            before = after
        elif not after.any():
            after = before
        seen = np.flatnonzero(~missing.all(1))
        return cls((int(seen[0]), int(seen[-1]) + 1), before, after, found)

    @property
    def n_rounds(self) -> int:
        """How often ends are held out, without an overlap of those of two rounds."""
        if not self.missing:
            return 1
        n_ends = int((self.before > 0).sum() + (self.after > 0).sum())
        apart = 1 + self._shifts // self._longest
        return min(MAX_END_ROUNDS, -(-ENOUGH_ENDS // n_ends), apart)

    @property
    def _longest(self) -> int:
        return int(max(self.before.max(), self.after.max()))

    @property
    def _room(self) -> int:
        return int(END_SHARE * (self.span[1] - self.span[0]))

    @property
    def _shifts(self) -> int:
        """Number of times by which the ends can move."""
        return max(self._room - self._longest, self._room // 4)

    def moved(
        self,
        missing: np.ndarray,  # (n_times, n_series)
        lot: float,
        step: int,
        rng: np.random.RandomState,
    ) -> tuple[np.ndarray, np.ndarray]:  # (2, n_series)
        """Choose times between the first and last one, and ends of the series there."""
        (first, stop), room = self.span, self._room
        shift = int(lot * self._shifts) // step * step
        begin, end = first + shift, stop - shift
        before = _exchanged(self.before, missing[begin], rng).clip(max=room - shift)
        after = _exchanged(self.after, missing[end - 1], rng).clip(max=room - shift)
        since = np.stack([np.full_like(before, begin), end - after])
        return since, np.stack([begin + before, np.full_like(after, end)])


def _exchanged(
    lengths: np.ndarray, gone: np.ndarray, rng: np.random.RandomState
) -> np.ndarray:
    """Give the ends of series to others, so that no more are missing together.

    Series that are ``gone`` at the first or last time get an end first; of the others,
    at least one does.
    """
    ends, series = rng.permutation(len(gone)), rng.permutation(len(gone))
    ends = ends[np.argsort(lengths[ends] == 0, kind="stable")]
    series = series[np.argsort(~gone[series], kind="stable")]
    n_ends, n_gone = int((lengths > 0).sum()), int(gone.sum())
    if 0 < n_ends <= n_gone < len(gone):
        series[[n_ends - 1, n_gone]] = series[[n_gone, n_ends - 1]]
    found = np.empty_like(lengths)
    found[series] = lengths[ends]
    return found
