"""What all files can do, whatever their format."""

from __future__ import annotations

import warnings
from argparse import Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from skmc.base import BaseCompleter


class File:
    """A file whose missing cells can be completed.

    With a ``level``, intervals of the filled numbers that contain this share are
    written, too. Files that are completed in blocks call ``on_fit`` after each of them.
    """

    options: ClassVar[tuple[str, ...]]  # that not all formats have
    method = "auto"  # if the user names none
    unit = "cells"
    matrix_of = ""  # what a report says of the matrix
    fitted: Any = None  # the completer
    on_fit: Callable[[int, int], object] | None = None

    def __init__(self, path: str, options: Namespace):
        self.path = path
        self.level: float | None = getattr(options, "intervals", None)

    def warn(self, text: str) -> None:
        """Warn the user, who sees one line."""
        warnings.warn(text, stacklevel=2)

    def check_target(self, path: str) -> None:
        """Check that the target can hold what this file holds."""

    def estimate(self, completer: BaseCompleter) -> str | None:
        """Say what a large file will take."""
        return None

    def bounds_of(
        self, given: ArrayLike, completed: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Intervals around completed cells, calibrated on cells that were held out.

        Completers that know their errors on held-out cells say so; others are fitted 20
        times more, see `skmc.uncertainty.MultipleCompletion`.
        """
        if hasattr(self.fitted, "predict_interval"):
            low, high = self.fitted.predict_interval(given, self.level)
        else:
            from skmc.uncertainty import MultipleCompletion

            seed = self.fitted.get_params().get("random_state")
            many = MultipleCompletion(self.fitted, random_state=seed).fit(given)
            low, high = many.interval(self.level)
        # The mean of several fits is another value than that of one.
        return np.minimum(low, completed), np.maximum(high, completed)

    def notes(self) -> list[str]:
        """What the reader of a completed file should know."""
        return []
