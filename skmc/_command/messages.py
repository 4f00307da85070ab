"""Messages on stderr while a command runs."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import rich.progress

# Python hides these from users of programs.
FOR_DEVELOPERS = (
    DeprecationWarning,
    PendingDeprecationWarning,
    ImportWarning,
    ResourceWarning,
)


def say(text: str) -> None:
    print(f"skmc: {text}", file=sys.stderr, flush=True)


class Messages:
    """Notes, warnings and a progress bar, unless ``quiet``."""

    def __init__(self, quiet: bool):
        self.quiet = quiet
        self._said: set[str] = set()

    def note(self, text: str) -> None:
        # The three channels of a picture cause the same messages.
        if not self.quiet and text not in self._said:
            self._said.add(text)
            say(text)

    def warn(self, text: object) -> None:
        self.note(f"warning: {' '.join(str(text).split())}")

    @contextmanager
    def python_warnings(self) -> Iterator[None]:
        """Show Python's warnings, one line each."""
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            warnings.showwarning = self._show
            yield

    def _show(
        self, message: object, category: type[Warning], *_: object, **__: object
    ) -> None:
        if not issubclass(category, FOR_DEVELOPERS):
            self.warn(message)

    @contextmanager
    def progress(self) -> Iterator[ProgressBars | None]:
        """A progress bar on a terminal, None otherwise."""
        if self.quiet or not sys.stderr.isatty():
            yield None
            return
        try:
            from rich.console import Console
            from rich.progress import Progress as Bars
        except ImportError:  # the bar is optional
            yield None
            return
        with Bars(console=Console(stderr=True), transient=True) as bars:
            yield ProgressBars(bars)


class ProgressBars:
    """A bar for each fit and for its parts, as a scikit-learn callback."""

    def __init__(self, bars: rich.progress.Progress):
        self.bars = bars
        self.tasks: dict[int, Any] = {}  # bars by the id of their context

    def count(self, what: str, done: int, of: int) -> None:
        """Show a bar that counts fits instead of iterations."""
        if not hasattr(self, "counted"):
            self.counted = self.bars.add_task(what, total=of)
        self.bars.update(self.counted, completed=done)

    def setup(self, estimator: object, context: object) -> None:
        pass

    def on_fit_task_begin(self, estimator: object, context: Any) -> None:
        if context.parent is None or context.max_subtasks:
            name = context.estimator_name
            if context.task_name != "fit":
                name = f"  {context.task_name}"
            total = context.max_subtasks or 1
            self.tasks[id(context)] = self.bars.add_task(name, total=total)

    def on_fit_task_end(self, estimator: object, context: Any) -> None:
        if (bar := self.tasks.pop(id(context), None)) is not None:
            self.bars.update(bar, completed=context.max_subtasks or 1)
        if (bar_of_parent := self.tasks.get(id(context.parent))) is not None:
            self.bars.advance(bar_of_parent)

    def teardown(self, estimator: object, context: object) -> None:
        pass
