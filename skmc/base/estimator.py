"""The root of all estimators, whose constructors are declarations."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self, dataclass_transform

from skmc.base.shared_docs import documented
from skmc.base.summary import fit_html, fit_summary

if TYPE_CHECKING:  # scikit-learn has no types
    import numpy as np
    import torch
    from numpy.typing import ArrayLike
    from sklearn.utils import Tags

    class BaseEstimator:
        """What estimators inherit from scikit-learn."""

        n_features_in_: int
        feature_names_in_: np.ndarray

        def __sklearn_tags__(self) -> Tags: ...
        def _validate_params(self) -> None: ...
        @classmethod
        def _get_param_names(cls) -> list[str]: ...
        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...
        def set_output(self, *, transform: str | None = None) -> Self: ...
        def set_callbacks(self, *callbacks: Any) -> Self: ...
        def set_fit_request(self, **requests: bool | str | None) -> Self: ...
        def get_feature_names_out(
            self, input_features: ArrayLike | None = None
        ) -> np.ndarray: ...

    class CallbackSupportMixin: ...

    class TransformerMixin: ...

    class OneToOneFeatureMixin: ...

else:
    from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
    from sklearn.callback import CallbackSupportMixin


@dataclass_transform(eq_default=False, field_specifiers=(field,))
class Estimator(
    CallbackSupportMixin, TransformerMixin, OneToOneFeatureMixin, BaseEstimator
):
    """Base class that makes the constructor of each subclass from its annotations.

    An annotation ``name: type = default`` in the body of a subclass is a parameter, as
    in a dataclass. Class attributes are marked by ``ClassVar``, or have no annotation;
    an annotated attribute that a fit sets is a ``field(init=False)``. Subclasses of a
    class with an ``__init__`` of its own inherit that one, and nothing is made.
    """

    # Attributes that subclasses declare, set in a fit, or compute. This class itself is
    # no dataclass, so they are not fields.
    reconstruction_: Any
    row_factors_: Any
    col_factors_: Any
    data_range_: tuple[float, float]
    laplacians_: dict[str, Any]
    row_ids_: np.ndarray
    col_ids_: np.ndarray
    history_: dict[str, np.ndarray]
    n_iter_: int
    status_: str
    max_iter: Any  # an int, or a property that returns one
    max_time: float | None = None  # in seconds
    tol: float
    scaling: str | None
    device: str | torch.device
    random_state: Any
    like_observed: bool | str
    _fit_more: Callable[..., tuple[Any, dict[str, Any]]]

    _parameter_constraints: ClassVar[dict[str, list[Any]]]
    _fit_summary = fit_summary
    _get_fitted_attr_html = fit_html

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Make the constructor, merge constraints, and fill in shared descriptions."""
        super().__init_subclass__(**kwargs)
        if _is_declared(cls):
            dataclass(eq=False, repr=False)(cls)
            _put_own_first(cls)
        merged: dict[str, list[Any]] = {}
        for base in reversed(cls.__mro__):
            merged |= vars(base).get("_parameter_constraints", {})
        if hasattr(cls, "completer_tags"):  # not a base class
            names = cls._get_param_names()
            merged = {name: merged[name] for name in names if name in merged}
        cls._parameter_constraints = merged
        documented(cls)

    def __dask_tokenize__(self) -> Any:
        # Dask tells dataclasses apart by their fields, which a fit does not change.
        from dask.base import normalize_token

        return normalize_token((type(self), vars(self)))


def _is_declared(cls: type) -> bool:
    """Whether the nearest constructor is not written by hand."""
    nearest = next(base for base in cls.__mro__ if "__init__" in vars(base))
    return nearest is object or "__dataclass_fields__" in vars(nearest)


def _put_own_first(cls: type) -> None:
    """Sort keyword parameters in the signature: those of the class, then inherited."""
    order: dict[str, int] = {}
    for base in cls.__mro__:
        for name in inspect.get_annotations(base):
            order.setdefault(name, len(order))
    init: Any = vars(cls)["__init__"]
    signature = inspect.signature(init)

    def place(parameter: inspect.Parameter) -> tuple[int, int]:
        by_name = parameter.kind is inspect.Parameter.KEYWORD_ONLY
        return parameter.kind, order[parameter.name] if by_name else 0

    parameters = sorted(signature.parameters.values(), key=place)
    init.__signature__ = signature.replace(parameters=parameters)
