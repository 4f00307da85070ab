"""Groups of similar patches: matching, shrinkage, aggregation, recovery."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from conftest import make

from skmc import BiharmonicCompleter, MeanCompleter, NonlocalCompleter, patterns
from skmc.completers.nonlocal_groups.patches import (
    PatchGroups,
    expected_error,
    lower_rank,
    principal,
)
from skmc.linalg import diffuse, double, halve
from skmc.metrics import nmae, relative_error

SHAPES = [(9, 8), (4, 3), (1, 30), (30, 1), (2, 25), (1, 1)]


def noise(*shape, seed=0, dtype=torch.float64):
    return torch.tensor(np.random.RandomState(seed).randn(*shape), dtype=dtype)


def match(groups, picture, doubt=None):
    everywhere = torch.ones_like(picture, dtype=torch.bool)
    return groups.match(picture, groups.references(everywhere), doubt)


def shrink(groups, picture, found, threshold):
    directions = groups.directions(picture, found)
    return groups.shrink(picture, found, directions, threshold)


def rank_one(n_rows=60, n_cols=50):
    i, j = np.arange(n_rows), np.arange(n_cols)
    return np.outer(1.5 + np.sin(i / 5), 2 + np.cos(j / 4))


def texture(n_rows=60, n_cols=50, periods=(10, 12)):
    """Oblique stripes, crossed by others."""
    i, j = np.arange(n_rows)[:, None], np.arange(n_cols)
    a, b = (2 * np.pi / period for period in periods)
    return np.sin(a * (i + j)) + np.cos(b * (i - j))


def hide(truth, rate, seed=0):
    return np.ma.masked_array(truth, patterns.random(truth, rate, random_state=seed))


@pytest.mark.parametrize("radius", [2, 20])
@pytest.mark.parametrize("shape", [*SHAPES, (23, 17)])
def test_matches_are_the_most_similar_patches(shape, radius):
    picture, doubt = noise(*shape), noise(*shape, seed=1).abs()
    groups = PatchGroups(shape, side=3, size=6, radius=radius, stride=2)
    n_y, n_x = groups.n_positions
    found = match(groups, picture, doubt)
    assert found.shape[1] == groups.n_members
    windows = np.lib.stride_tricks.sliding_window_view
    patches, doubts, trust = (
        windows(each, groups.sides)
        for each in (picture, doubt, (1 - doubt.clamp_max(0.95)) ** 2)
    )
    n_references = 0
    for y in groups._grid(0):
        for x in groups._grid(1):
            near = [
                (v, u)
                for v in range(max(0, y - radius), min(n_y, y + radius + 1))
                for u in range(max(0, x - radius), min(n_x, x + radius + 1))
            ]
            cost = [
                np.sum(trust[y, x] * ((patches[y, x] - patches[at]) ** 2 + doubts[at]))
                if at != (y, x)
                else -1
                for at in near
            ]
            best = np.argsort(cost)[: groups.n_members]
            expected = {near[k][0] * shape[1] + near[k][1] for k in best}
            assert set(found[n_references].tolist()) == expected
            n_references += 1
    assert n_references == len(found)


@pytest.mark.parametrize("offset", [0, 1])
def test_each_hidden_cell_is_near_the_center_of_a_reference(offset):
    hidden = torch.zeros(40, 37, dtype=torch.bool)
    hidden[13:18, 20:26] = True
    hidden[0, 0] = hidden[39, 36] = hidden[25, 3] = True
    groups = PatchGroups((40, 37), side=4, size=10, radius=6, stride=3)
    places = groups.references(hidden, offset)
    every = groups.references(torch.ones_like(hidden), offset)
    centers = torch.stack([every // 37, every % 37], 1) + 1.5
    away = torch.cdist(hidden.nonzero() + 0.0, centers, p=torch.inf)
    near = every[(away == away.min(1, keepdim=True)[0]).any(0)]
    assert set(places.tolist()) <= set(near.tolist()) < set(every.tolist())
    assert (away[:, torch.isin(every, places)].min(1)[0] == away.min(1)[0]).all()
    assert torch.equal(groups.references(~hidden & hidden, offset), every)
    picture = noise(40, 37)
    shrunk = shrink(groups, picture, groups.match(picture, places), 0.5)
    assert (shrunk != picture)[hidden].all()
    assert (shrunk == picture).any()


@pytest.mark.parametrize("shape", [(7, 6), (8, 9), (1, 5)])
def test_halved_pictures_are_means_of_known_cells(shape):
    values, mask = noise(2, *shape), noise(2, *shape, seed=1) > 0
    half, known = halve(values, mask)
    for c, y, x in np.ndindex(*half.shape):
        block = (c, slice(2 * y, 2 * y + 2), slice(2 * x, 2 * x + 2))
        assert known[c, y, x] == mask[block].any()
        if known[c, y, x]:
            torch.testing.assert_close(half[c, y, x], values[block][mask[block]].mean())
    assert double(half, shape).shape == values.shape


def test_doubt_is_the_variogram_at_the_distance_from_known_cells():
    """On a slope, cells that are d apart differ by d."""
    slope = torch.arange(20.0)[:, None] + torch.arange(30.0)
    known = torch.ones(20, 30, dtype=torch.bool)
    known[4:12, 5:20] = False
    doubt = expected_error(slope, known)
    assert not doubt[known].any()
    down = doubt[4:12, 12].tolist()
    assert down == [0.5, 2.0, 5.0, 8.0, 8.0, 5.0, 2.0, 0.5]  # 5 is between 2 and 8


def test_half_the_size_fills_blocks():
    """A block as wide as the window: at full size, patches inside match each other."""
    truth = texture(80, 80)
    hidden = patterns.patch(truth, [(30, 50, 30, 50)])
    X = np.ma.masked_array(truth, hidden)
    answer = make(NonlocalCompleter, window=21).fit_transform(X)
    scaled = torch.from_numpy(np.where(hidden, 0, truth))
    smooth = diffuse(scaled, torch.from_numpy(~hidden)).numpy()
    assert nmae(answer, truth, hidden) < 0.5 * nmae(smooth, truth, hidden)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_zero_threshold_keeps_the_picture(shape):
    picture = noise(*shape)
    groups = PatchGroups(shape, side=5, size=8, radius=4, stride=3)
    kept = shrink(groups, picture, match(groups, picture), 0.0)
    torch.testing.assert_close(kept, picture)


def test_blocks_equal_the_whole():
    picture = noise(40, 37)
    whole = PatchGroups((40, 37), side=4, size=10, radius=6, stride=3)
    blocks = PatchGroups((40, 37), side=4, size=10, radius=6, stride=3, block=7000)
    found, again = (match(each, picture) for each in (whole, blocks))
    assert torch.equal(found.sort()[0], again.sort()[0])
    torch.testing.assert_close(
        shrink(blocks, picture, again, 0.5), shrink(whole, picture, found, 0.5)
    )


@pytest.mark.parametrize("shape", [(10, 4), (4, 10)])
def test_shrinkage_is_the_stationary_point_of_the_log_penalty(shape):
    """``s^2 - sigma s + K t^2 = 0``, the larger root, by NumPy's SVD."""
    groups, t = noise(3, *shape), 0.3
    groups[0] /= 100  # becomes its mean, and needs no singular vectors
    directions = principal(groups, t)
    assert not directions[0].any()
    lowered = lower_rank(groups, directions, t)
    torch.testing.assert_close(lowered, lower_rank(groups, principal(groups), t))
    for group, lower in zip(groups.numpy(), lowered, strict=True):
        mean = group.mean(0)
        U, s, Vt = np.linalg.svd(group - mean, full_matrices=False)
        shrunk = [
            max(np.roots([1, -each, len(group) * t**2]).real)
            if each**2 > 4 * len(group) * t**2
            else 0
            for each in s
        ]
        np.testing.assert_allclose(lower, (U * shrunk) @ Vt + mean, atol=1e-9)


@pytest.mark.parametrize("block", [2**20, 7000])
def test_directions_that_are_not_used_are_left_out(block):
    picture = noise(40, 37)
    picture[:20] /= 30  # becomes means
    groups = PatchGroups((40, 37), side=4, size=20, radius=6, stride=3, block=block)
    found = match(groups, picture)
    few = groups.directions(picture, found, 0.2)
    used = few.any(1)
    assert used[-1].any() and not used[0].any()
    assert (used[:, 1:] >= used[:, :-1]).all()  # the last ones
    torch.testing.assert_close(
        groups.shrink(picture, found, few, 0.2), shrink(groups, picture, found, 0.2)
    )


def test_single_holes_start_from_the_biharmonic_completion():
    """In fewer rounds than other holes, and they end nearer to the truth."""
    truth = texture(80, 80, periods=(6, 7)) + 0.02 * noise(80, 80).numpy()
    hidden = np.zeros(truth.shape, bool)
    hidden[3::9, 2::8] = True
    X = np.ma.masked_array(truth, hidden)
    completer = NonlocalCompleter(random_state=0).fit(X)
    smooth = BiharmonicCompleter().fit_transform(X)
    error = relative_error(completer.transform(X), truth, hidden)
    assert error < 0.8 * relative_error(smooth, truth, hidden)
    assert completer.history_["n_iter"][-1] == 10
    hidden[40:42, 40:42] = True
    larger = NonlocalCompleter(random_state=0).fit(np.ma.masked_array(truth, hidden))
    assert larger.history_["n_iter"][-1] == 15


def test_threads_equal_one():
    groups, before = noise(1200, 6, 5), torch.get_num_threads()
    alone = lower_rank(groups, principal(groups), 0.3)
    try:
        torch.set_num_threads(2)
        threaded = lower_rank(groups, principal(groups), 0.3)
        torch.testing.assert_close(threaded, alone)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("shape", [*SHAPES, (33, 20)])
def test_diffusion_stays_between_known_values(shape):
    values = noise(*shape)
    mask = noise(*shape, seed=1) > 0.8
    mask[0, 0] = True
    filled = diffuse(values, mask)
    assert torch.equal(filled[mask], values[mask])
    low, high = values[mask].min(), values[mask].max()
    assert filled.min() >= low - 1e-12 and filled.max() <= high + 1e-12


@pytest.mark.parametrize(
    ("truth", "rate", "bound", "params"),
    [
        (rank_one(), 0.5, 0.003, {}),
        (texture(), 0.8, 0.003, {}),
        (texture(60, 60, (5, 6)), 0.8, 0.003, {"patch_size": 8, "threshold": 1.0}),
    ],
    ids=["rank one", "texture", "fine texture"],
)
def test_recovers(truth, rate, bound, params):
    X = hide(truth, rate)
    completer = make(NonlocalCompleter, **params)
    answer = completer.fit_transform(X)
    assert relative_error(answer, truth, X.mask) < bound
    assert relative_error(completer.reconstruction_, truth, ~X.mask) < bound


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_level_and_contrast_carry_over(scale):
    X = hide(texture(30, 30), 0.4)
    answer = make(NonlocalCompleter).fit_transform(X)
    moved = make(NonlocalCompleter, scaling=None).fit_transform(scale * (X + 5))
    np.testing.assert_allclose(moved / scale - 5, answer, atol=2e-3)


def test_mirroring_mirrors_the_answer():
    truth = texture(31, 31) + rank_one(31, 31)  # corners of the grid fall on corners
    X = hide(truth, 0.3)
    completer = make(NonlocalCompleter)
    answer = completer.fit_transform(X)
    mirrored = completer.fit_transform(np.ma.masked_array(X.data.T, X.mask.T)).T
    np.testing.assert_allclose(mirrored, answer, atol=2e-2)


@pytest.mark.long
def test_held_out_cells_are_used_in_the_final_rounds():
    X = hide(texture(), 0.5)
    stopped = make(NonlocalCompleter, early_stopping=True, validation_fraction=0.3)
    error = nmae(stopped.fit(X).transform(X), texture(), X.mask)
    held_out = patterns.like_missing(X, 0.3, random_state=0)
    without = np.ma.masked_array(X.data, X.mask | held_out)
    unseen = make(NonlocalCompleter).fit(without)
    assert error < 0.9 * nmae(unseen.transform(without), texture(), X.mask)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_complete_picture_completes_other_pictures(dtype):
    completer = make(NonlocalCompleter).fit(hide(texture(), 0.4))
    truth = texture(70, 50).T[:, ::-1].T[:35].astype(dtype)
    other = hide(truth, 0.4, seed=3)
    answer = completer.complete_picture(other)
    assert answer.dtype == dtype
    np.testing.assert_array_equal(answer[~other.mask], truth[~other.mask])
    means = relative_error(MeanCompleter().fit_transform(other), truth, other.mask)
    assert relative_error(answer, truth, other.mask) < 0.3 * means
    with pytest.raises(ValueError, match="X has 49 features"):
        completer.complete_picture(other[:, 1:])
    with pytest.raises(ValueError, match="X has no observed cell"):
        completer.complete_picture(np.full((4, 50), np.nan))


@pytest.mark.filterwarnings("ignore:.*no observed cell:UserWarning")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("rate", [0.0, 0.3, 0.99])
def test_extreme_shapes(shape, rate):
    values = noise(*shape).numpy()
    hidden = noise(*shape, seed=1).numpy() < np.quantile(noise(*shape, seed=1), rate)
    hidden.flat[0] = False
    X = np.ma.masked_array(values, hidden)
    completer = make(NonlocalCompleter, max_iter=4)
    assert np.isfinite(completer.fit_transform(X)).all()
    assert np.isfinite(completer.complete_picture(X)).all()


def test_constant_pictures_are_unchanged():
    X = hide(np.full((20, 20), 7.0), 0.5)
    np.testing.assert_allclose(make(NonlocalCompleter).fit_transform(X), 7.0)


def test_every_cell_is_covered_where_all_patches_are_equal():
    groups = PatchGroups((40, 41), side=5, size=40, radius=15, stride=3)
    flat = torch.zeros(40, 41)
    assert torch.equal(shrink(groups, flat, match(groups, flat), 0.5), flat)


def test_the_side_is_chosen_on_held_out_cells():
    completer = make(NonlocalCompleter, patch_size="auto", max_iter=6)
    assert completer.fit(hide(texture(), 0.3)).patch_size_ in (5, 6, 8)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"window": 30}, "window=30 is even"),
        ({"min_threshold": 2.0}, r"min_threshold=2.0 is above threshold=0.5"),
    ],
)
def test_wrong_parameters_are_named(params, message):
    with pytest.raises(ValueError, match=message):
        NonlocalCompleter(**params).fit(rank_one())
