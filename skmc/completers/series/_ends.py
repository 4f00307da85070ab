"""Ends of series, held out as ends: the series stop earlier, or begin later."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skmc.patterns import gap_lengths

ENOUGH, MAX_ROUNDS = 16, 4  # ends to learn from, and times that they are held out
SHARE = 1 / 3  # largest share of the times that is removed at one end


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
        return min(MAX_ROUNDS, -(-ENOUGH // n_ends), apart)

    @property
    def _longest(self) -> int:
        return int(max(self.before.max(), self.after.max()))

    @property
    def _room(self) -> int:
        return int(SHARE * (self.span[1] - self.span[0]))

    @property
    def _shifts(self) -> int:
        """Number of times by which the ends can move."""
        return max(self._room - self._longest, self._room // 4)

    def moved(
        self, missing: np.ndarray, lot: float, step: int, rng: np.random.RandomState
    ) -> tuple[np.ndarray, np.ndarray]:
        """Choose times between the first and last ones, and ends of the series there.

        Parameters
        ----------
        missing : bool ndarray of shape (n_times, n_series)
            Missing cells.
        lot : float in [0, 1]
            How far the first and the last times move towards each other.
        step : int
            They move by multiples of this number of times.
        rng : RandomState
            Source of the random order of the series, which exchange their ends.

        Returns
        -------
        since, until : int ndarray of shape (2, n_series)
            First time, and the time after the last, that is hidden of each series, at
            its beginning and at its end. All earlier and all later times are removed.
        """
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
