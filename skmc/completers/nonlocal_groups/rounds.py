"""Rounds of shrinking groups of similar patches and restoring the observed cells."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

from skmc.cells import Observed
from skmc.completers.nonlocal_groups.patches import PatchGroups, expected_error
from skmc.linalg import diffuse, double, halve
from skmc.solvers import Result, Solver, State

DIRECTIONS_EVERY = 2  # rounds with the same singular vectors
# A round moves hidden cells by this multiple of the change that the groups suggest,
# with momentum: chosen on crops of monarch and flower, where 16 rounds of
# over-relaxation had a lower error than 24 without.
STRIDE, MOMENTUM = 2.3, 0.5


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


Rounds = TypeVar("Rounds", bound=NonlocalState)


@dataclass(frozen=True, eq=False, kw_only=True)
class NonlocalResult(Result):
    """A completion, and what more rounds need."""

    iteration: int
    trained_on: Tensor  # (n_channels * n_rows, n_cols)
    solver: NonlocalLowRank


class Start(NamedTuple):
    """Where the rounds start; parts as in `NonlocalState`."""

    picture: Tensor
    mask: Tensor
    doubt: Tensor
    center: Tensor
    unit: Tensor
    objective: Tensor


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
        start = self._standardized(data)
        patches, hidden = self._groups(data), ~start.mask
        references = patches.references(hidden)
        groups = patches.match(start.picture, references, start.doubt)
        return NonlocalState(
            objective=start.objective,
            mask=start.mask,
            picture=start.picture,
            moved=torch.zeros_like(start.picture),
            estimate=start.picture,
            doubt=start.doubt,
            references=references,
            others=patches.references(hidden, self.stride // 2),
            groups=groups,
            directions=self._directions(patches, start.picture, groups, 0),
            center=start.center,
            unit=start.unit,
            iteration=0,
        )

    def _standardized(self, data: Observed) -> Start:
        """The observed cells in standard units, with the hidden ones filled."""
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
        channels = self._split((data.values - center).div(unit).float())
        mask = self._split(data.mask)
        if self.start is None:
            filled = torch.stack(list(map(diffuse, channels, mask)))
        else:
            filled = self._split((self.start - center).div(unit).float())
        objective = spread.square().sum() / (2 * data.n_observed) * peak.square()
        return Start(
            picture=torch.where(mask, channels, filled),
            mask=mask,
            doubt=torch.stack(list(map(expected_error, channels, mask))),
            center=center,
            unit=unit,
            objective=objective,
        )

    def coarser(self, data: Observed) -> Observed | None:
        """The picture at half the size: means of the known cells of 2 x 2 pixels."""
        n_rows, n_cols = data.shape
        if min(n_rows, n_cols // self.channels) < 4 * self.side:
            return None
        values, seen = halve(self._split(data.values), self._split(data.mask))
        if bool(seen.all()):
            return None
        return Observed(joined(values), joined(seen))

    def isolated(self, data: Observed) -> bool:
        """Whether some cells are hidden, but never all of 2 x 2 pixels of a channel."""
        mask = self._split(data.mask)
        seen = halve(mask.to(data.values.dtype), mask)[1]
        return bool(seen.all() and not mask.all())

    def started(self, data: Observed, above: Tensor) -> NonlocalLowRank:
        """Make a solver that starts from the completion of the coarser picture."""
        values, mask = self._split(data.values), self._split(data.mask)
        rough = double(self._split(above), (values.shape[1], values.shape[2]))
        seam = torch.stack(list(map(diffuse, values - rough, mask)))
        return replace(self, start=joined(rough + seam))

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
        """Threshold of a round."""
        first, last = self.threshold
        progress = min(iteration / max(self.horizon - 1, 1), 1.0)
        return first * (last / first) ** progress

    def _matched(self, patches: PatchGroups, state: Rounds) -> Rounds:
        """Match patches and find singular vectors again where a round begins so."""
        picture, k = state.picture, state.iteration
        if k and k % self.match_every == 0:
            references, others = state.others, state.references
            groups = patches.match(picture, references, state.doubt)
            state = replace(state, references=references, others=others, groups=groups)
        if k and k % DIRECTIONS_EVERY == 0:
            directions = self._directions(patches, picture, state.groups, k)
            state = replace(state, directions=directions)
        return state

    def step(self, data: Observed, state: NonlocalState) -> NonlocalState:
        patches, picture, k = self._groups(data), state.picture, state.iteration
        state = self._matched(patches, state)
        matched = state.groups, state.directions
        estimate = patches.shrink(picture, *matched, self.threshold_at(k))
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
        """
        moved = current.moved.norm() / max(int((~current.mask).sum()), 1) ** 0.5
        if current.iteration >= self.horizon:
            moved = torch.zeros_like(moved)
        return moved.to(data.values.dtype)

    def result(self, state: NonlocalState) -> NonlocalResult:
        """Hidden cells as estimated, and observed ones as their groups say."""
        estimate = torch.where(state.mask, state.estimate, state.picture)
        X = joined(estimate).to(state.unit.dtype) * state.unit + state.center
        return NonlocalResult(
            X=X,
            iteration=state.iteration,
            trained_on=joined(state.mask),
            solver=self,
        )

    def resumed(self, X: Tensor, iteration: int) -> NonlocalLowRank:
        """A solver that continues from a completion at the threshold of a round."""
        threshold = self.threshold_at(iteration - 1)
        return replace(self, threshold=(threshold, threshold), start=X)


def joined(
    channels: Tensor,  # (n_channels, n_rows, n_cols)
) -> Tensor:  # (n_rows, n_cols * n_channels)
    """Join channels to a matrix in which those of a pixel are next to each other."""
    return channels.permute(1, 2, 0).flatten(1)
