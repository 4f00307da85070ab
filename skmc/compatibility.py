"""Differences between versions of scikit-learn, and its private names.

From version 1.9 on, scikit-learn calls callbacks during a fit. With older versions,
`set_callbacks` raises an error, and everything else works.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Self

import sklearn
from sklearn import base, utils
from sklearn.utils import _param_validation, _set_output, metaestimators

HasMethods = _param_validation.HasMethods
Interval = _param_validation.Interval
InvalidParameterError = _param_validation.InvalidParameterError
StrOptions = _param_validation.StrOptions
fit_context: Callable[..., Callable[..., Any]] = base._fit_context
generate_invalid_param_val = _param_validation.generate_invalid_param_val
make_constraint = _param_validation.make_constraint
safe_indexing = utils._safe_indexing
safe_split = metaestimators._safe_split

DOCUMENTATION = "https://example.org/skmc/docs"
CALLBACKS = find_spec("sklearn.callback") is not None  # from 1.9 on


def has_set_output(estimator: Any) -> bool:
    """Whether the user has chosen the container of results by ``set_output``."""
    return bool(
        _set_output._get_output_config("transform", estimator)["dense"] != "default"
    )


class _NoContext:
    """Replacement of the callback context of scikit-learn 1.9 in older versions."""

    def call_on_fit_task_begin(self, **given: object) -> Self:
        """Do nothing."""
        return self

    def call_on_fit_task_end(self, **given: object) -> bool:
        """Do not request the end of the fit."""
        return False

    def subcontext(self, **task: object) -> Self:
        """Return this context."""
        return self

    def propagate_callback_context(self, estimator: object) -> AbstractContextManager:
        """Do nothing."""
        return nullcontext(self)


class _WithoutCallbacks:
    """Base class of estimators for versions before scikit-learn 1.9."""

    def set_callbacks(self, *callbacks: object) -> Self:
        """Raise an error."""
        raise NotImplementedError(
            f"set_callbacks needs scikit-learn >= 1.9, but {sklearn.__version__} is "
            "installed."
        )

    def _init_callback_context(self, *args: object, **kwargs: object) -> _NoContext:
        return _NoContext()


def _without_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
    return method


if TYPE_CHECKING:
    with_callbacks = _without_callbacks

    class CallbackSupportMixin: ...  # noqa: D101

elif CALLBACKS:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
else:
    CallbackSupportMixin, with_callbacks = _WithoutCallbacks, _without_callbacks


def page_of_class(self: object) -> str:
    """Return the address of an estimator's page in the API reference.

    The page is named by the shortest path from which the class can be imported. As a
    property ``_doc_link_template`` of an estimator, beside ``_doc_link_module``, it
    adds a link to scikit-learn's HTML representation. scikit-learn adds none to classes
    of other packages that are derived from ours.
    """
    cls = type(self)
    package, *rooms = cls.__module__.split(".")[:2]
    at_the_top = cls.__name__ in getattr(sys.modules.get(package), "__all__", ())
    path = [package, *(() if at_the_top else rooms), cls.__name__]
    return f"{DOCUMENTATION}/api/{'.'.join(path)}.html"
