"""Properties that scikit-image tests of its biharmonic inpainting."""

from __future__ import annotations

import numpy as np
import pytest

from skmc import BiharmonicCompleter, NonlocalCompleter, pictures

inpainting = pytest.importorskip("skimage.restoration")


def shade(height=48, width=40, channels=3):
    """A smooth picture in [0, 1] with edges that are not steep."""
    y, x = np.mgrid[:height, :width]
    waves = [np.sin(x / 9 + k) * np.cos(y / 7 - k) for k in range(channels)]
    return 0.5 + 0.4 * np.stack(waves, axis=2)


def holes(height=48, width=40):
    """Blocks, also at the edges, long scratches and single pixels."""
    mask = np.random.RandomState(0).rand(height, width) < 0.02
    mask[5:12, :6] = mask[20:27, 15:24] = mask[-5:, -7:] = True
    mask[30:32, 4:36] = mask[10:40, 33] = True
    return mask


def rmse(a, b):
    return float(np.sqrt(np.mean((a.astype(float) - b.astype(float)) ** 2)))


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float16", "float32", "float64"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("channels", [None, 1, 3, 4])
def test_types_and_memory_orders(dtype, order, channels):
    picture = shade(channels=channels or 1) * (200 if dtype.startswith("u") else 1)
    picture = (picture if channels else picture[..., 0]).astype(dtype, order=order)
    mask = holes()
    damaged = picture.copy(order)
    damaged[mask] = 0
    before = damaged.copy()
    found = pictures.complete(damaged, mask, BiharmonicCompleter())
    assert found.dtype == dtype and found.shape == picture.shape
    np.testing.assert_array_equal(damaged, before)  # it is a copy
    np.testing.assert_array_equal(found[~mask], picture[~mask])
    assert rmse(found, picture) < 0.2 * rmse(damaged, picture)


@pytest.mark.parametrize("cls", [BiharmonicCompleter, NonlocalCompleter])
def test_a_block_at_the_edge_of_a_color_picture(cls):
    picture, mask = shade(), np.zeros((48, 40), bool)
    mask[8:16, :12] = True
    damaged = np.where(mask[..., None], 0, picture)
    found = pictures.complete(damaged, mask, cls())
    assert rmse(found, picture) ** 2 < 0.01 * rmse(damaged, picture) ** 2


@pytest.mark.parametrize("together", [True, False])
def test_values_are_those_of_scikit_image_in_every_type(together):
    square = np.tile(np.linspace(0, 1, 6) ** 2, (6, 1))
    mask = np.zeros((6, 6), bool)
    mask[3, 3:] = mask[2, 4:] = mask[1, 5] = True
    for dtype, rtol in (("float32", 1e-5), ("float64", 1e-7)):
        damaged = np.where(mask, 0, square).astype(dtype)
        found = pictures.complete(damaged, mask, BiharmonicCompleter())
        expected = inpainting.inpaint_biharmonic(
            damaged, mask, split_into_regions=not together
        )
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=rtol)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_channels_are_the_last_axis(axis):
    """Others are moved there, as the error says."""
    picture, mask = shade(), holes()
    other = np.moveaxis(np.where(mask[..., None], 0, picture), -1, axis)
    if axis != -1:
        with pytest.raises(ValueError, match="mask"):
            pictures.complete(other, mask, BiharmonicCompleter())
    found = pictures.complete(np.moveaxis(other, axis, -1), mask, BiharmonicCompleter())
    assert rmse(found, picture) < 0.2 * rmse(other, np.moveaxis(picture, -1, axis))


@pytest.mark.parametrize(
    ("picture", "mask"),
    [
        (np.zeros(()), np.zeros(())),
        (np.zeros(5), np.zeros(5)),
        (np.zeros((2, 2)), np.zeros((4, 1))),
        (np.zeros((2, 2)), np.ones((2, 2))),
        (np.zeros((2, 2, 2, 2)), np.zeros((2, 2))),
    ],
)
def test_bad_shapes(picture, mask):
    with pytest.raises(ValueError, match=r"picture|mask|pixel"):
        pictures.complete(picture, mask, BiharmonicCompleter())


def test_masked_arrays_have_their_own_mask():
    """scikit-image refuses them; here both masks count."""
    picture, mask = shade()[..., 0], holes()
    expected = pictures.complete(picture, mask, BiharmonicCompleter())
    masked = np.ma.masked_array(np.where(mask, 9, picture), mask)
    found = pictures.complete(masked, completer=BiharmonicCompleter())
    np.testing.assert_allclose(found, expected)
    half = mask.copy()
    half[24:] = False
    found = pictures.complete(
        np.ma.masked_array(np.where(mask, 9, picture), half),
        mask & ~half,
        BiharmonicCompleter(),
    )
    np.testing.assert_allclose(found, expected)


def test_nothing_missing_changes_nothing():
    picture = shade()
    found = pictures.complete(picture, np.zeros((48, 40)), BiharmonicCompleter())
    np.testing.assert_array_equal(found, picture)
    assert found is not picture
