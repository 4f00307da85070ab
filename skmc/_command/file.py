"""The interface of all files, of any format."""

from __future__ import annotations

import warnings
from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

if TYPE_CHECKING:
    from skmc.base import BaseCompleter


class File:
    """A file whose missing cells can be completed.

    With a ``level``, intervals that contain this share of the filled numbers are also
    written. With ``n_draws``, so many draws of the missing cells replace the one
    completion. Files that are completed in blocks call ``on_fit`` after each block.
    """

    options: ClassVar[tuple[str, ...]]  # options that not all formats have
    method = "auto"  # default method
    unit = "cells"
    one_unit = False  # whether all columns have the same unit
    matrix_of = ""  # description of the matrix in a report
    error = ""  # that of the report, unless it is one of all cells alike
    fitted: Any = None  # the completer
    on_fit: Callable[[int, int], object] | None = None

    def __init__(self, path: str, options: Namespace):
        self.path = path
        self.level: float | None = getattr(options, "intervals", None)
        self.n_draws: int | None = getattr(options, "draws", None)
        self.seed: int | None = getattr(options, "seed", None)

    def warn(self, text: str) -> None:
        """Warn the user in one line."""
        warnings.warn(text, stacklevel=2)

    def matrix(self) -> np.ndarray:
        """The matrix of the file, whose missing cells are masked or NaN."""
        raise NotImplementedError

    def compared(self) -> tuple[np.ndarray, np.ndarray | None]:
        """The matrix that methods complete, and the table if it represents one."""
        return self.matrix(), None

    def completer_of(self, completer: Any) -> Any:
        """Make the completer of this kind of file from one of matrices."""
        return completer

    def check_target(self, path: str) -> None:
        """Check that the target format can hold the content of this file."""

    def estimate(self, completer: BaseCompleter) -> str | None:
        """Print time and memory for a large file."""
        return None

    def completions(self, given: Any) -> Sequence[np.ndarray]:
        """Fit the completer; return the completed matrix, or the draws."""
        if self.n_draws is None:
            return [self.fitted.fit_transform(given)]
        return list(self.fitted.fit(given).sample(given, self.n_draws, self.seed))

    def choose(self, k: int) -> None:
        """Choose the completion to write, of those that `complete` has found."""

    def bounds_of(self, given: Any) -> Sequence[Any]:
        """Intervals around completed cells, calibrated on held-out cells.

        Completers that know their errors on held-out cells provide them; others are
        fitted 20 more times, see `skmc.uncertainty.MultipleCompletion`.
        """
        if hasattr(self.fitted, "predict_interval"):
            return self.fitted.predict_interval(given, self.level)
        from skmc.uncertainty import MultipleCompletion

        seed = self.fitted.get_params().get("random_state")
        many = MultipleCompletion(self.fitted, random_state=seed).fit(given)
        return many.interval(self.level)

    def notes(self) -> list[str]:
        """Notes for the reader of a completed file."""
        return []


def around(ends: Sequence[Any], completed: Any) -> list[np.ndarray]:
    """Intervals that contain the completion; the mean of several fits is another."""
    low, high, value = (np.asarray(x, float) for x in (*ends, completed))
    return [np.minimum(low, value), np.maximum(high, value)]
