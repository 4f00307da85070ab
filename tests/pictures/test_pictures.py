"""Pictures with channels: shapes, blocks, invalid input, biharmonic completion."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from conftest import make

from skmc import (
    BiharmonicCompleter,
    MeanCompleter,
    NonlocalCompleter,
    SVDCompleter,
    pictures,
)
from skmc.completers import biharmonic
from skmc.metrics import relative_error
from skmc.model_selection import compare
from skmc.pictures.blocks import blocks, crop
from skmc.pictures.ways import choose_way

JOINT = [BiharmonicCompleter, NonlocalCompleter]
COLORS = np.array([1.0, 0.7, 0.4])


def waves(height=48, width=45):
    """Red, green and blue stripes of period 12, crossed by others."""
    i, j = np.arange(height)[:, None], np.arange(width)
    a, b = np.sin(2 * np.pi / 12 * (i + j)), np.cos(2 * np.pi / 12 * (i - j))
    return a[..., None] * COLORS + b[..., None] * COLORS[::-1]


def hidden(shape, rate, seed=0):
    return np.random.RandomState(seed).random_sample(shape) < rate


def test_a_picture_becomes_a_matrix_and_back():
    picture = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    mask = np.zeros((2, 4), bool)
    mask[1, 2] = True
    matrix = pictures.as_matrix(picture, mask)
    assert matrix.shape == (2, 12) and matrix.dtype == np.float32
    assert matrix.mask[1].tolist() == 6 * [False] + 3 * [True] + 3 * [False]
    np.testing.assert_array_equal(pictures.as_picture(matrix.data, 3), picture)
    assert pictures.as_matrix(picture.astype(np.uint32)).dtype == np.float64
    assert pictures.as_picture(np.zeros((2, 4))).shape == (2, 4, 1)


@pytest.mark.parametrize("rate", [0.5, 0.8])
def test_a_periodic_texture_is_recovered(rate):
    truth, missing = waves(), hidden((48, 45), rate)
    answer = pictures.complete(truth, missing, make(NonlocalCompleter))
    assert relative_error(answer, truth, np.dstack([missing] * 3)) < 0.003


def test_a_rank_one_picture_is_recovered():
    rows, cols = 1.5 + np.sin(np.arange(50) / 5), 2 + np.cos(np.arange(40) / 4)
    truth = np.einsum("i,j,k->ijk", rows, cols, COLORS)
    missing = hidden(truth.shape, 0.5)  # each channel of a pixel by itself
    answer = pictures.complete(truth, missing, make(NonlocalCompleter))
    assert relative_error(answer, truth, missing) < 0.003
    low_rank = pictures.complete(
        truth, missing, SVDCompleter(rank=1, tol=1e-9, scaling=None)
    )
    within = truth.clip(truth[~missing].min(), truth[~missing].max())
    assert relative_error(low_rank, within, missing) < 1e-6


@pytest.mark.parametrize("cls", [*JOINT, SVDCompleter])
def test_permuting_channels_permutes_the_answer(cls):
    truth, missing = waves(), hidden((48, 45), 0.5)
    order = [2, 0, 1]
    completer = make(cls, rank=1, max_iter=100)
    answer = pictures.complete(truth, missing, completer)
    permuted = pictures.complete(truth[..., order], missing, completer)
    np.testing.assert_allclose(permuted, answer[..., order], atol=1e-3)


def test_the_channels_of_a_patch_are_shrunk_together():
    """One channel of a pixel determines the others."""
    truth = waves()
    missing = np.zeros(truth.shape, bool)
    missing[..., 1] = hidden((48, 45), 0.95)
    together = pictures.complete(truth, missing, make(NonlocalCompleter))
    alone = make(NonlocalCompleter).fit_transform(
        np.ma.masked_array(truth[..., 1], missing[..., 1])
    )
    error = relative_error(together[..., 1], truth[..., 1], missing[..., 1])
    assert error < 0.5 * relative_error(alone, truth[..., 1], missing[..., 1])


@pytest.mark.parametrize("mixed", [False, True])
def test_the_better_of_channels_and_decorrelated_channels_is_taken(mixed):
    rng = np.random.RandomState(0)
    parts = [np.outer(rng.randn(30), rng.randn(30)) for _ in range(2)]
    truth = np.stack(parts, axis=2)
    if not mixed:  # correlated, each of rank one: components would have rank two
        truth[..., 1] = np.outer(parts[0][:, 0], rng.rand(30))
    else:  # uncorrelated components of rank one: channels have rank two
        truth = truth @ np.array([[3.0, 3.0], [-1.0, 1.0]])
    missing = hidden((30, 30), 0.3)
    completer = SVDCompleter(rank=1, tol=1e-8, scaling=None)
    way = choose_way(completer, np.where(missing[..., None], np.nan, truth))
    assert way.func.__name__ == ("_decorrelated" if mixed else "_separately")


@pytest.mark.parametrize("cls", JOINT)
def test_blocks_equal_the_whole(cls):
    truth = waves(70, 90)
    missing = hidden((70, 90), 0.4)
    completer = make(cls)
    whole = pictures.complete(truth, missing, completer)
    counted = []
    parts = pictures.complete(
        truth, missing, completer, block=50, on_fit=lambda *seen: counted.append(seen)
    )
    assert counted == [(k, 4) for k in (1, 2, 3, 4)]
    np.testing.assert_allclose(parts, whole, atol=0.02)
    if cls is BiharmonicCompleter:  # what is far away does not matter
        np.testing.assert_allclose(parts, whole, atol=1e-6)


def test_blocks_grow_where_nothing_is_observed_and_cost_nothing_where_all_is():
    missing = np.zeros((200, 90, 1), bool)
    missing[100:190, 10:80] = True
    found = list(blocks(missing, 30))
    assert all(missing[inner].any() for inner, _ in found)
    assert sum(missing[inner].sum() for inner, _ in found) == missing.sum()
    assert all((~missing[outer]).mean() > 0.05 for _, outer in found)
    assert min(inner[0].start for inner, _ in found) >= 80
    slope = np.add.outer(np.arange(200.0), np.arange(90.0))
    answer = pictures.complete(slope, missing[..., 0], BiharmonicCompleter(), block=30)
    np.testing.assert_allclose(answer, slope, atol=5)  # of 288


def test_the_crop_is_like_the_picture():
    missing = np.zeros((300, 300, 1), bool)
    missing[::2] = True
    missing[:100] = False
    missing[200:] = True
    part = crop(missing)
    assert 100 <= part[0].start + 48 < 200
    only = np.ones((300, 300, 2), bool)
    only[0, 0, 0] = only[299, 299, 1] = False
    assert only[crop(only)].shape == only.shape


def test_an_estimate_counts_blocks():
    truth, missing = waves(), hidden((48, 45), 0.3)
    found = pictures.estimate(truth, missing, MeanCompleter(), block=20)
    assert found.n_fits == 9 and found.seconds > 0 and found.memory > truth.nbytes
    assert pictures.estimate(truth, completer=MeanCompleter()).n_fits == 0


def frame():
    mask = np.ones((20, 24), bool)
    mask[[0, -1]] = mask[:, [0, -1]] = False
    return mask


def lines():
    mask = hidden((20, 24), 0.2)
    mask[7:9] = mask[:, 5] = mask[0] = True
    return mask


BAD = {
    "smaller than a patch": (waves(3, 2), hidden((3, 2), 0.3)),
    "one row": (waves(1, 20), hidden((1, 20), 0.3)),
    "two pixels observed": (waves(20, 24), np.arange(480).reshape(20, 24) % 300 != 9),
    "rows and columns": (waves(20, 24), lines()),
    "all but a frame": (waves(20, 24), frame()),
    "constant": (np.full((20, 24, 3), 7.0), frame()),
    "16 bits": ((1e4 * waves(20, 24) + 3e4).astype(np.uint16), lines()),
    "8 bits and alpha": (
        (50 * waves(20, 24)[..., [0, 1, 2, 0]] + 99).astype("u1"),
        lines(),
    ),
    "yes and no": (waves(20, 24) > 0, lines()),
    "half precision": (waves(20, 24).astype(np.float16), lines()),
    "gray": (waves(20, 24)[..., 0], lines()),
}


@pytest.mark.parametrize("cls", [*JOINT, MeanCompleter])
@pytest.mark.parametrize("name", BAD)
def test_bad_input(cls, name):
    picture, mask = BAD[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answer = pictures.complete(picture, mask, make(cls, max_iter=4))
    assert answer.shape == picture.shape and answer.dtype == picture.dtype
    np.testing.assert_array_equal(answer[~mask], picture[~mask])
    assert np.isfinite(answer).all()
    low, high = picture[~mask].min(), picture[~mask].max()
    reach = 0.5 * (float(high) - float(low)) + 1e-3
    assert answer.min() >= low - reach and answer.max() <= high + reach


def test_all_marks_of_missing_pixels_are_used():
    picture = np.ma.masked_array(waves(20, 24), hidden((20, 24, 3), 0.1))
    picture.data[3, 4] = np.nan
    mask = np.zeros((20, 24), np.uint8)
    mask[7, 8] = 255
    answer = pictures.complete(picture, mask, BiharmonicCompleter())
    assert np.isfinite(answer).all()
    truth, missing = waves(20, 24), picture.mask | (mask > 0)[..., None]
    assert (answer[missing] != picture.data[missing]).all()
    assert np.abs(answer - truth).max() < 1
    tensors = pictures.complete(
        torch.from_numpy(picture.filled(np.nan)).requires_grad_(),
        torch.from_numpy(mask),
        BiharmonicCompleter(),
    )
    np.testing.assert_array_equal(tensors, answer)
    same = pictures.complete(truth, np.zeros(truth.shape[:2]), MeanCompleter())
    np.testing.assert_array_equal(same, truth)
    assert same is not truth


@pytest.mark.parametrize(
    ("picture", "mask", "message"),
    [
        (np.zeros(5), None, r"picture has shape \(5,\)"),
        (np.zeros((4, 5)), None, "picture has no missing pixel; pass mask"),
        (np.zeros((0, 5)), None, r"picture has shape \(0, 5\)"),
        (np.zeros((4, 5), complex), None, "picture has dtype complex128"),
        (np.zeros((4, 5)), np.zeros((5, 4)), r"mask has shape \(5, 4\)"),
        (
            np.zeros((4, 5)),
            np.arange(20, dtype=np.uint8).reshape(4, 5),
            "mask has 20 different values between 0 and 19; .* pass mask > 9.5",
        ),
        (np.zeros((4, 5)), np.ones((4, 5)), "picture has no observed pixel"),
        (
            np.zeros((4, 5, 2)),
            np.ones((4, 5, 2)) * [0, 1],
            "channel 1 of picture has no observed pixel",
        ),
    ],
)
def test_unsupported_completers_are_named(picture, mask, message):
    with pytest.raises(ValueError, match=message):
        pictures.complete(picture, mask)


def test_pixels_must_be_whole():
    for cls in JOINT:
        with pytest.raises(ValueError, match=r"10 columns, .* channels=3"):
            cls(channels=3).fit(np.random.RandomState(0).randn(8, 10))


def test_empty_lines_are_filled_for_low_rank_completers():
    """A scratch over the whole width is filled from both sides, not with means."""
    slope = np.add.outer(np.arange(40.0), np.arange(30.0))[..., None] * COLORS
    mask = np.zeros((40, 30), bool)
    mask[20] = mask[5, 10:14] = True
    completer = SVDCompleter(rank=2, tol=1e-9, scaling=None)
    answer = pictures.complete(slope, mask, completer)
    np.testing.assert_allclose(answer, slope, atol=0.5)


def test_empty_lines_of_a_fitted_picture_come_from_their_neighbors():
    slope = np.add.outer(np.arange(40.0), np.arange(30.0))
    slope[20] = slope[:, 7] = np.nan
    truth = np.add.outer(np.arange(40.0), np.arange(30.0))
    completer = BiharmonicCompleter().fit(slope)
    np.testing.assert_allclose(completer.transform(slope), truth, atol=0.1)
    assert completer.score(slope, truth) > -1e-3
    row = BiharmonicCompleter().fit(truth).transform(np.full((1, 30), np.nan))
    np.testing.assert_allclose(row[0], truth.mean(0))


@pytest.mark.parametrize("together", [True, False])
def test_biharmonic_equals_that_of_scikit_image(together):
    from skimage.restoration import inpaint_biharmonic

    truth = waves()
    missing = hidden((48, 45) if together else truth.shape, 0.5)
    answer = pictures.complete(truth, missing, BiharmonicCompleter())
    whole = np.broadcast_to(missing.reshape(48, 45, -1), truth.shape)
    damaged = np.where(whole, 0, truth)
    for k in range(3):
        mask = np.array(whole[..., k])
        expected = inpaint_biharmonic(damaged[..., k], mask)
        np.testing.assert_allclose(answer[..., k], expected, atol=1e-9)


@pytest.mark.parametrize("share", [0.05, 0.9, "block", "lines"])
@pytest.mark.parametrize("shape", [(1, 30), (2, 9), (60, 50)])
def test_biharmonic_of_any_holes_equals_that_of_scikit_image(share, shape):
    from skimage.restoration import inpaint_biharmonic

    rng = np.random.RandomState(0)
    picture = 50 + np.cumsum(rng.randn(*shape), 1)
    mask = rng.rand(*shape) < (share if isinstance(share, float) else 0)
    if share == "block":  # up to an edge
        mask[:, shape[1] // 3 : shape[1] - 3] = True
        mask[-1] = mask[-1] & (shape[0] < 3)
    if share == "lines":
        mask[:, ::2] = True
    expected = inpaint_biharmonic(np.where(mask, 0, picture), mask)
    found = BiharmonicCompleter().fit_transform(np.where(mask, np.nan, picture))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("levels", [False, True])
@pytest.mark.parametrize("share", [0.02, 0.5, 0.97, "block", "all but one"])
@pytest.mark.parametrize("shape", [(40, 37, 1), (21, 60, 3), (1, 80, 2)])
def test_biharmonic_equals_a_dense_solve(share, shape, levels, monkeypatch):
    if levels:
        monkeypatch.setattr(biharmonic, "LARGE", 10)
        monkeypatch.setattr(biharmonic, "FEW", 10)
    rng = np.random.RandomState(0)
    picture = 50 + np.cumsum(rng.randn(*shape), 1)
    mask = rng.rand(*shape[:2]) < (share if isinstance(share, float) else 0)
    mask[0, 0] = True
    mask[0, 1] = False
    if share == "block":
        mask[5:, 6:-3] = True
    if share == "all but one":
        mask[:] = True
        mask[shape[0] // 2, 7] = False
    # Differences of neighbors along rows and along columns.
    steps = [-np.diff(np.eye(size), axis=0) for size in shape[:2]]
    down, across = (np.eye(len(D.T)) if not len(D) else D.T @ D for D in steps)
    down = down * (shape[0] > 1)
    L = np.kron(down, np.eye(shape[1])) + np.kron(np.eye(shape[0]), across)
    known, flat = ~mask.ravel(), picture.reshape(mask.size, -1)
    expected = flat.copy()
    right = -L[:, known] @ flat[known]
    expected[~known] = np.linalg.lstsq(L[:, ~known], right, rcond=1e-14)[0]
    expected = expected.clip(flat[known].min(0), flat[known].max(0)).reshape(shape)
    damaged = np.where(mask[..., None], np.nan, picture)
    found = pictures.complete(damaged, completer=BiharmonicCompleter())
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_biharmonic_needs_only_the_pixels_around_a_hole():
    picture = 50 + np.cumsum(np.random.RandomState(0).randn(300, 320), 1)
    mask = np.zeros(picture.shape, bool)
    mask[100:112, 200:210] = True
    damaged = np.where(mask, np.nan, picture)
    found = BiharmonicCompleter().fit_transform(damaged)
    around = slice(98, 114), slice(198, 212)
    alone = BiharmonicCompleter().fit_transform(damaged[around])
    inside = mask[around]
    # Only the range, to which values are clipped, is that of the whole picture.
    low, high = np.nanmin(damaged[around]), np.nanmax(damaged[around])
    near = found[around][inside].clip(low, high)
    np.testing.assert_allclose(alone[inside], near, rtol=1e-6)


def test_biharmonic_completes_a_plane_exactly():
    plane = 3 + 2 * np.arange(30)[:, None] - np.arange(20.0)
    missing = np.zeros(plane.shape, bool)
    missing[5:15, 6:14] = True
    answer = BiharmonicCompleter().fit_transform(np.ma.masked_array(plane, missing))
    np.testing.assert_allclose(answer, plane, atol=1e-8)


def test_completers_can_be_given_by_name():
    cells = np.ma.masked_array(waves()[..., 0], hidden((48, 45), 0.1))
    expected = pictures.complete(cells, completer=BiharmonicCompleter())
    np.testing.assert_array_equal(
        pictures.complete(cells, completer="biharmonic"), expected
    )
    with pytest.raises(ValueError, match="no method 'biharmonik'; did you mean 'bihar"):
        pictures.complete(cells, completer="biharmonik")


def test_comparisons_include_the_biharmonic_completer():
    table = compare([MeanCompleter(), BiharmonicCompleter()], waves()[..., 0], cv=2)
    assert table["completer"].iloc[0] == "BiharmonicCompleter"


def test_held_out_pixels_are_whole():
    X = pictures.as_matrix(waves(), hidden((48, 45), 0.3))
    drawn = NonlocalCompleter(channels=3)._drawn(X.filled(np.nan), 0.2, seed=0)
    cells = pictures.as_picture(drawn, 3)
    assert (cells == cells[..., :1]).all() and not drawn[X.mask].any()
    assert drawn.mean() == pytest.approx(0.2 * 0.7, rel=0.1)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floats_stay_within_the_observed_range(dtype):
    i, j = np.indices((40, 30))
    whole = np.dstack([(i + j) / 68, (i * j) / 1131, np.ones((40, 30))]).astype(dtype)
    mask = np.zeros((40, 30), bool)
    mask[30:, 20:] = mask[:3, :4] = True  # where it is lightest and darkest
    for completer in (None, "biharmonic", SVDCompleter(2)):
        found = pictures.complete(np.where(mask[..., None], 0, whole), mask, completer)
        known = whole[~mask]
        assert found.dtype == dtype
        assert found.min() >= known.min() and found.max() <= known.max()
