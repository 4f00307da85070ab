"""Low-rank groups of the maps of a few spectra, for pictures with many channels."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from skmc.cells import Observed
from skmc.completers.nonlocal_groups.rounds import (
    MOMENTUM,
    STRIDE,
    NonlocalLowRank,
    NonlocalResult,
    NonlocalState,
    joined,
)

# Variance of the noise, relative to that of the map that varies most. Chosen on one
# synthetic cube and one video.
NOISE = 0.02
REFIT_EVERY = 2  # rounds with the same spectra
LEAST_VARIANCE = 1e-6  # of a map, relative to that of the map that varies most
BLOCK = 2**22  # elements of an intermediate result


@dataclass(frozen=True, kw_only=True)
class SpectralState(NonlocalState):
    """An iterate of `SpectralLowRank`; ``picture`` and ``estimate`` are maps.

    Parameters
    ----------
    cells : Tensor of shape (n_channels, n_rows, n_cols)
        Observed cells, standardized; zero where a cell is hidden.
    spectra : Tensor of shape (n_channels, n_spectra)
        Orthonormal columns.
    level : Tensor of shape (n_channels,)
        The spectrum where all maps are zero.
    """

    cells: Tensor
    spectra: Tensor
    level: Tensor


@dataclass(eq=False, kw_only=True)
class SpectralLowRank(NonlocalLowRank):
    r"""Pixels that are combinations of a few spectra, with maps of similar patches.

    .. math:: x_p = \mu + E a_p

    where the columns of :math:`E` are orthonormal. The groups of `NonlocalLowRank`
    estimate the maps :math:`a`. The observed cells y of a pixel then correct its
    estimate z, which has errors in proportion to the variances :math:`v` of the maps:

    .. math::

        \min_a \; \sum_{b \text{ observed}} (y_b - \mu_b - e_b^T a)^2
        + \lambda \sum_k \frac{\max_j v_j}{v_k} (a_k - z_k)^2

    So a few observed channels of a pixel determine the others, and a spectrum that
    hardly occurs takes no part in it. The spectra start as principal components of the
    initial picture. A regression of the observed cells of each channel on the maps
    updates them.

    Parameters
    ----------
    n_spectra : int
        Number of spectra; at most that of the channels.
    """

    n_spectra: int

    def init(self, data: Observed) -> SpectralState:
        start = self._standardized(data)
        level = start.picture.mean((1, 2))
        spectra, maps = _principal(start.picture - level[:, None, None], self.n_spectra)
        # Maps mix all channels.
        doubt = start.doubt.mean(0).expand_as(maps)
        patches, hidden = self._groups(data), ~start.mask
        references = patches.references(hidden)
        groups = patches.match(maps, references, doubt)
        return SpectralState(
            objective=start.objective,
            mask=start.mask,
            picture=maps,
            moved=torch.zeros_like(maps),
            estimate=maps,
            doubt=doubt,
            references=references,
            others=patches.references(hidden, self.stride // 2),
            groups=groups,
            directions=self._directions(patches, maps, groups, 0),
            center=start.center,
            unit=start.unit,
            iteration=0,
            cells=torch.where(start.mask, start.picture, 0),
            spectra=spectra,
            level=level,
        )

    def step(self, data: Observed, state: NonlocalState) -> SpectralState:
        assert isinstance(state, SpectralState)
        patches, k = self._groups(data), state.iteration
        state = self._matched(patches, state)
        matched = state.groups, state.directions
        estimate = patches.shrink(state.picture, *matched, self.threshold_at(k))
        state = replace(state, estimate=estimate, iteration=k + 1)
        if k % REFIT_EVERY == REFIT_EVERY - 1:
            state = _refitted(state)
        moved = STRIDE * (state.estimate - state.picture) + MOMENTUM * state.moved
        error = _error(state, state.estimate).square().sum()
        scale = state.unit.square() / (2 * data.n_observed)
        picture = _corrected(state, state.picture + moved)
        return replace(
            state,
            objective=error.to(scale.dtype) * scale,
            picture=picture,
            moved=picture - state.picture,
        )

    def result(self, state: NonlocalState) -> NonlocalResult:
        assert isinstance(state, SpectralState)
        # Combinations can leave the range of pictures where few cells are observed.
        seen = state.cells[state.mask]
        X = joined(_picture(state, state.estimate).clamp(seen.min(), seen.max()))
        return NonlocalResult(
            X=X.to(state.unit.dtype) * state.unit + state.center,
            iteration=state.iteration,
            trained_on=joined(state.mask),
            solver=self,
        )


def _picture(state: SpectralState, maps: Tensor) -> Tensor:
    combined = torch.tensordot(state.spectra, maps, 1)
    return combined + state.level[:, None, None]


def _error(state: SpectralState, maps: Tensor) -> Tensor:
    """Observed cells minus those of the maps; zero at hidden cells."""
    return torch.where(state.mask, state.cells - _picture(state, maps), 0)


def _principal(picture: Tensor, n_spectra: int) -> tuple[Tensor, Tensor]:
    """Principal components of centered channels, and their maps."""
    flat = picture.flatten(1)
    vectors = torch.linalg.eigh(flat @ flat.T)[1]
    spectra = vectors.flip(1)[:, :n_spectra].contiguous()
    return spectra, torch.tensordot(spectra.T, picture, 1)


def _refitted(state: SpectralState) -> SpectralState:
    """Fit the spectra to the observed cells; the maps become uncorrelated.

    The regression of a channel has the weight of one observed cell for the former
    spectrum, so a channel without observed cells keeps it.
    """
    maps = state.estimate.flatten(1)
    ones = torch.ones_like(maps[:1])
    design, n = torch.cat([maps, ones]), len(maps) + 1
    squares = (design[:, None] * design).flatten(0, 1)
    gram = (state.mask.flatten(1).to(maps) @ squares.T).view(-1, n, n)
    former = torch.cat([state.spectra, state.level[:, None]], 1)
    right = state.cells.flatten(1) @ design.T + former
    ridge = torch.eye(n, dtype=maps.dtype, device=maps.device)
    fitted = torch.linalg.solve(gram + ridge, right)
    spectra, turn = torch.linalg.qr(fitted[:, :-1])
    axes = _principal(turn @ (maps - maps.mean(1, keepdim=True)), len(maps))[0]
    turn = axes.T @ turn
    return replace(
        state,
        spectra=spectra @ axes,
        level=fitted[:, -1],
        picture=torch.tensordot(turn, state.picture, 1),
        moved=torch.tensordot(turn, state.moved, 1),
        estimate=torch.tensordot(turn, state.estimate, 1),
    )


def _corrected(state: SpectralState, maps: Tensor) -> Tensor:
    """Maps after the correction of each pixel by its observed cells."""
    n, spectra = len(maps), state.spectra
    variance = maps.flatten(1).var(1, correction=0)
    largest = variance.max().clamp_min(torch.finfo(maps.dtype).tiny)
    penalty = NOISE / (variance / largest).clamp_min(LEAST_VARIANCE)
    gaps = torch.tensordot(spectra.T, _error(state, maps), 1).flatten(1).T
    mask = state.mask.flatten(1).to(maps).T
    squares = (spectra[:, :, None] * spectra[:, None]).flatten(1)
    size = max(1, BLOCK // n**2)
    steps = [
        torch.linalg.solve((m @ squares).view(-1, n, n) + penalty.diag(), gap)
        for m, gap in zip(mask.split(size), gaps.split(size), strict=True)
    ]
    return maps + torch.cat(steps).T.view_as(maps)
