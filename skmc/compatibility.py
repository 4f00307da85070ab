"""What differs between versions of scikit-learn, and its private names.

From version 1.9 on, scikit-learn calls callbacks during a fit. With older versions,
`set_callbacks` raises an error, and everything else works.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Self

import sklearn
from sklearn.base import _fit_context as fit_context
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    InvalidParameterError,
    StrOptions,
)

__all__ = [
    "CallbackSupportMixin",
    "HasMethods",
    "Interval",
    "InvalidParameterError",
    "StrOptions",
    "fit_context",
    "safe_indexing",
    "with_callbacks",
]


class _NoContext:
    """Stands for the context of callbacks where there are none."""

    def call_on_fit_task_begin(self, **given: object) -> None:
        """Do nothing."""

    def call_on_fit_task_end(self, **given: object) -> bool:
        """Ask for no end of the fit."""
        return False

    def subcontext(self, **task: object) -> Self:
        """Return this context."""
        return self

    def propagate_callback_context(self, estimator: object) -> AbstractContextManager:
        """Hand nothing on."""
        return nullcontext(self)


class _WithoutCallbacks:
    """Estimators as they are before scikit-learn 1.9."""

    def set_callbacks(self, *callbacks: object) -> Self:
        """Refuse callbacks."""
        raise NotImplementedError(
            f"set_callbacks needs scikit-learn >= 1.9, but {sklearn.__version__} is "
            "installed."
        )

    def _init_callback_context(self, *args: object, **kwargs: object) -> _NoContext:
        return _NoContext()


def _without_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method as it is."""
    return method


if TYPE_CHECKING:
    with_callbacks = _without_callbacks

    class CallbackSupportMixin: ...

else:
    try:
        from sklearn.callback import CallbackSupportMixin, with_callbacks
    except ImportError:
        CallbackSupportMixin, with_callbacks = _WithoutCallbacks, _without_callbacks
