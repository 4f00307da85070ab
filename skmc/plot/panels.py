"""Parts that the displays share: figures, axes, colors and the truth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from skmc.cells import to_cells

MAX_NAMED_COLUMNS = 25
MISSING_COLORS = ("white", "#29ABE2", "tab:red", "tab:green")


def pyplot() -> Any:
    """Import `matplotlib.pyplot`, or raise an error that says how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "Displays need matplotlib: pip install 'skmc[plot]'."
        ) from error
    return plt


def axes_for(
    ax: Any,
    n_panels: int,
    width: float,
    aspect: float,
    *,
    below: float = 0.0,
    aside: float = 0.0,
    per_row: int | None = None,
) -> tuple[Any, np.ndarray]:
    """Find the figure and the Axes of the panels: the given ones, or new ones."""
    plt = pyplot()
    if ax is None:
        n_rows = -(-n_panels // (per_row or n_panels))
        n_cols = -(-n_panels // n_rows)
        figure, axes = plt.subplots(
            n_rows,
            n_cols,
            figsize=(width * n_cols + aside, n_rows * (width * aspect + below)),
            squeeze=False,
            layout="compressed",
        )
        for axis in axes.flat[n_panels:]:
            axis.remove()
        return figure, axes.ravel()[:n_panels]
    axes = np.atleast_1d(np.asarray(ax, object)).ravel()
    for axis in axes:
        if not hasattr(axis, "imshow"):
            raise ValueError(f"ax must be of matplotlib Axes, got {axis!r}.")
    if len(axes) != n_panels:
        raise ValueError(f"ax holds {len(axes)} Axes for {n_panels} panels.")
    return axes[0].figure, axes


def read_truth(
    truth: Any, shape: Sequence[int], names: Any, **params: Any
) -> np.ndarray:
    """Read the truth and check that it has the matrix's shape and column names."""
    cells = to_cells(truth, name="truth", **params)
    if cells.shape != tuple(shape):
        raise ValueError(
            f"truth has shape {cells.shape}, the completed matrix {tuple(shape)}; pass "
            "the truth of the same rows and columns."
        )
    if names is not None and list(getattr(truth, "columns", names)) != list(names):
        raise ValueError(
            f"truth has columns {list(truth.columns)}, the completed matrix "
            f"{list(names)}; pass truth with its columns in that order."
        )
    return cells


def names_to_draw(
    names: Sequence[str] | None, n_cols: int
) -> tuple[Sequence[str] | None, float]:
    """Choose whether to draw the names of columns, and how much space they take."""
    if names is None or n_cols > MAX_NAMED_COLUMNS:
        return None, 0.0
    return names, 0.085 * max(map(len, names))


def label_axes(axis: Any, across: str, down: str | None) -> None:
    """Label the axes of a matrix."""
    for side in (axis.xaxis, axis.yaxis):
        side.get_major_locator().set_params(integer=True)
    axis.set_xlabel(across)
    if down is None:
        axis.tick_params(labelleft=False)
    else:
        axis.set_ylabel(down)


def add_colorbar(image: Any, **params: Any) -> None:
    """Add a color bar as high as an image."""
    beside = image.axes.inset_axes((1.03, 0, 0.04, 1))
    image.figure.colorbar(image, cax=beside, **params)


def with_missing_color(cmap: Any) -> Any:
    """Give a color map a distinct color for missing cells."""
    plt = pyplot()
    cmap = plt.get_cmap(cmap)
    of_map = cmap(np.linspace(0, 1, 64))[:, None, :3]
    others = np.array([plt.matplotlib.colors.to_rgb(name) for name in MISSING_COLORS])
    distance = np.linalg.norm(others - of_map, axis=-1).min(0)
    return cmap.with_extremes(bad=MISSING_COLORS[distance.argmax()])
