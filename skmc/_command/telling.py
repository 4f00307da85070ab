"""What is said on stderr while a command runs."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# Warnings that Python, too, keeps from those who run programs.
DEVELOPERS = (
    DeprecationWarning,
    PendingDeprecationWarning,
    ImportWarning,
    ResourceWarning,
)


def say(text: str) -> None:
    print(f"skmc: {text}", file=sys.stderr, flush=True)


class Teller:
    """Notes, warnings and a bar; nothing of them if ``quiet``."""

    def __init__(self, quiet: bool):
        self.quiet = quiet
        self._said: set[str] = set()

    def note(self, text: str) -> None:
        # A picture's three channels have the same to say.
        if not self.quiet and text not in self._said:
            self._said.add(text)
            say(text)

    @contextmanager
    def warnings_told(self) -> Iterator[None]:
        """Python's warnings, a line each."""
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            for category in DEVELOPERS:
                warnings.simplefilter("ignore", category)
            warnings.showwarning = lambda message, *_, **__: self.note(
                f"warning: {' '.join(str(message).split())}"
            )
            yield

    @contextmanager
    def progress(self) -> Iterator[Progress | None]:
        """A bar on a terminal, None in a pipe."""
        if self.quiet or not sys.stderr.isatty():
            yield None
            return
        try:
            from rich.console import Console
            from rich.progress import Progress as Bars
        except ImportError:  # it is there to please
            yield None
            return
        with Bars(console=Console(stderr=True), transient=True) as bars:
            yield Progress(bars)


class Progress:
    """A bar for each fit, as a scikit-learn callback."""

    def __init__(self, bars: Any):
        self.bars = bars

    def watch(self, completer: Any) -> None:
        """Follow the fits of a completer and of its clones."""
        if hasattr(completer, "set_callbacks"):
            completer.set_callbacks(self)

    def count(self, what: str, done: int, of: int) -> None:
        """A bar without fits of its own."""
        if not hasattr(self, "counted"):
            self.counted = self.bars.add_task(what, total=of)
        self.bars.update(self.counted, completed=done)

    def setup(self, estimator: Any, context: Any) -> None:
        name = context.estimator_name
        self.task = self.bars.add_task(name, total=context.max_subtasks)

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        pass

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        if context.parent is not None:
            self.bars.advance(self.task)

    def teardown(self, estimator: Any, context: Any) -> None:
        self.bars.update(self.task, completed=context.max_subtasks)
