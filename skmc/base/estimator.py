"""The root class of all estimators, whose constructors follow from declarations."""

from __future__ import annotations

import functools
import html
import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Number, Real
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    Self,
    dataclass_transform,
)

import numpy as np
import torch

from skmc.cells import is_na, like_input
from skmc.compatibility import (
    CallbackSupportMixin,
    InvalidParameterError,
    has_set_output,
    page_of_class,
)
from skmc.parameters import (
    AT_LEAST_ONE,
    Count,
    NonNegative,
    Positive,
    Seed,
    Share,
    constraints_of,
)
from skmc.serialization import Packer, Unpacker, register

if TYPE_CHECKING:  # scikit-learn has no types
    from numpy.typing import ArrayLike
    from sklearn.utils import Tags

    class BaseEstimator:
        """The attributes that estimators inherit from scikit-learn."""

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

    class TransformerMixin:
        """The method that estimators inherit from scikit-learn."""

        def fit_transform(self, X: Any, y: object = None, **fit_params: Any) -> Any: ...

    class OneToOneFeatureMixin: ...  # noqa: D101

else:
    from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin


# Parameters of completers that determine how a table is read.
CHOICES = (
    *("categorical", "ordinal", "passthrough", "min_frequency", "like_observed"),
    *("min_value", "max_value", "missing_values"),
)
# Attributes that the summary or scikit-learn shows in another form.
SHOWN = ("n_features_in_", "n_iter_", "status_")

TABLE = """
<div class="estimator-table">
  <details open>
    <summary>Fit</summary>
    <table class="parameters-table"><tbody>{rows}</tbody></table>
  </details>
</div>
"""
ROW = '<tr class="default"><td class="param">{}</td><td class="value">{}</td></tr>'


class _FitHTML:
    """A table with the methods that scikit-learn calls."""

    def __init__(self, summary: dict[str, str], attributes: str):
        self.summary, self.attributes = summary, attributes

    def __len__(self) -> int:
        return len(self.summary) + 1

    def _repr_html_inner(self) -> str:
        rows = "".join(
            ROW.format(html.escape(name), html.escape(value))
            for name, value in self.summary.items()
        )
        return TABLE.format(rows=rows) + self.attributes


def _is_public(name: str) -> bool:
    return name.endswith("_") and not name.startswith("_")


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)


class FitSummary:
    """Mixin of estimators whose HTML shows a summary of the fit."""

    def _fit_summary(self) -> dict[str, str]:
        """Rows of the summary of the fit, not escaped for HTML."""
        attributes = vars(self)
        summary = {}
        if (shape := attributes.get("_shape")) is not None:
            n_rows, n_cols = shape
            share = attributes["_n_observed"] / (n_rows * n_cols)
            summary["matrix"] = f"{n_rows} x {n_cols}, {100 * share:.3g} % observed"
        elif "matrix_" in attributes:
            summary["matrix"] = "{} x {}".format(*attributes["matrix_"].shape)
        if "status_" in attributes:
            summary["status"] = attributes["status_"]
            summary["iterations"] = str(attributes["n_iter_"])
        if (seconds := attributes.get("_seconds")) is not None:
            summary["seconds"] = f"{seconds:.3g}"
        summary |= {
            name.rstrip("_"): _short(value)
            for name, value in attributes.items()
            if _is_public(name)
            and name not in SHOWN
            and isinstance(value, str | Number)
        }
        history = attributes.get("history_", {})
        if len(residual := history.get("residual", ())):
            summary["residual"] = _short(float(residual[-1]))
        if len(validation := history.get("validation", ())):
            summary["validation RMSE (scaled)"] = _short(float(validation.min()))
        elif "path_" in attributes:
            summary["validation RMSE (scaled)"] = _short(
                float(attributes["path_"]["error"].min())
            )
        return summary

    def _get_fitted_attr_html(self, doc_link: str = "") -> _FitHTML:
        """Make the tables of the fit, also in diagrams of pipelines.

        scikit-learn evaluates all properties, some of which compute dense matrices. So
        the table shows only stored attributes.
        """
        bare: Any = BaseEstimator()
        vars(bare).update({k: v for k, v in vars(self).items() if _is_public(k)})
        table = bare._get_fitted_attr_html()._repr_html_inner()
        return _FitHTML(self._fit_summary(), table)


# What authors of methods define or call. `dir` and the pages of completers omit it.
FOR_AUTHORS = frozenset(
    [
        *("accepts", "batch_accept", "batch_key", "batch_memory", "batch_prepare"),
        *("batch_run", "chosen", "completer_tags", "cost", "stacked", "takes"),
    ]
)


@dataclass(frozen=True)
class CompleterTags:
    """Properties of a completer that the common tests verify.

    Parameters
    ----------
    recovers : float
        Largest relative error on the hidden cells of the common rank-2 test problem.
    monotone : bool, default=False
        Whether the objective never increases.
    equivariant : bool, default=False
        Whether permuting the rows of ``X`` permutes the rows of the completion.
    batched : tuple of str, default=()
        Parameters that may differ within one batch.
    pictures : bool, default=False
        Whether a fit completes empty rows and columns from neighboring rows and
        columns. Other completers fill them with means.
    interpolates : bool, default=False
        Whether the model reproduces the observed cells.
    unweighted : str, default="it has no weights of cells"
        Reason why `fit` takes no ``cell_weight``; empty if it takes it.

    See Also
    --------
    BaseCompleter : Has them as ``completer_tags``.
    """

    recovers: float
    monotone: bool = False
    equivariant: bool = False
    batched: tuple[str, ...] = ()
    pictures: bool = False
    interpolates: bool = False
    unweighted: str = "it has no weights of cells"


@register
@dataclass_transform(eq_default=False, field_specifiers=(field,))
class Estimator(
    FitSummary,
    CallbackSupportMixin,
    TransformerMixin,
    OneToOneFeatureMixin,
    BaseEstimator,
):
    """Base class that makes the constructor of each subclass from its annotations.

    An annotation ``name: type = default`` in the body of a subclass is a parameter, as
    in a dataclass. Class attributes are marked by ``ClassVar``, or have no annotation.
    An annotated attribute that a fit sets is a ``field(init=False)``. Subclasses of a
    class with its own ``__init__`` inherit it, and no constructor is made.

    Constraints of scikit-learn follow from the types, see `skmc.parameters`. Further
    constraints are in ``_parameter_constraints``, which have precedence.
    """

    # Parameters that subclasses declare. This class is not a dataclass, so they are not
    # fields.
    max_iter: Annotated[Any, AT_LEAST_ONE]  # or a property that returns one
    max_time: Positive | None = None  # in seconds
    tol: NonNegative
    early_stopping: bool
    validation_fraction: Share
    n_iter_no_change: Count
    warm_start: bool
    scaling: Literal["auto", "columns", "global"] | None
    device: str | torch.device
    random_state: Seed
    like_observed: bool | str
    add_indicator: bool
    indicator_: Any  # set in a fit: a MissingIndicator, or None without add_indicator

    _parameter_constraints: ClassVar[dict[str, list[Any]]]
    _doc_link_module = "skmc"
    _doc_link_template = property(page_of_class)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Make the constructor, and merge the constraints of parameters."""
        super().__init_subclass__(**kwargs)
        for name in {"transform", "fit_transform"} & vars(cls).keys():
            setattr(cls, name, _in_container_of_input(vars(cls)[name]))
        if _is_declared(cls):
            dataclass(eq=False, repr=False)(cls)
            _put_own_first(cls)
        merged: dict[str, list[Any]] = {}
        for base in reversed(cls.__mro__[1:]):
            merged |= vars(base).get("_parameter_constraints", {})
        merged |= constraints_of(cls) | vars(cls).get("_parameter_constraints", {})
        names = cls._get_param_names()
        cls._parameter_constraints = {n: merged[n] for n in names if n in merged}

    def _validate_params(self) -> None:
        given = getattr(self, "missing_values", np.nan)
        if is_na(given):
            raise InvalidParameterError(
                f"The 'missing_values' parameter of {type(self).__name__} must not be "
                f"{given!r}, which always marks missing cells, as NaN does; leave it "
                "out."
            )
        of_numbers = self._parameter_constraints.get("missing_values") == [Real]
        if of_numbers and any(isinstance(x, str) for x in np.ravel(given).tolist()):
            raise InvalidParameterError(
                f"The 'missing_values' parameter of {type(self).__name__} must be a "
                f"number, got {given!r}. MixedCompleter reads texts as missing: "
                f"MixedCompleter(..., missing_values={given!r})."
            )
        if isinstance(given, (bool, np.bool_)):
            raise InvalidParameterError(
                f"The 'missing_values' parameter of {type(self).__name__} must not be "
                f"{given!r}: a column of {not given} alone has nothing to complete; "
                "set such cells to NaN."
            )
        super()._validate_params()

    def _choices(self, X: Any) -> dict[str, Any]:
        """Parameters by which the columns of a table ``X`` are read, see `Rules`."""
        params = self.get_params(deep=False)
        return {name: params[name] for name in CHOICES if name in params}

    def _reader(self) -> Estimator | None:
        """The estimator, itself or inside, whose parameters name kinds of columns."""
        return self if hasattr(self, "categorical") else None

    def _indicator_of_fit(self) -> Any:
        """The indicator whose columns ``add_indicator`` appends."""
        if self.indicator_ is None:
            raise ValueError(
                f"add_indicator of {type(self).__name__} was set after fit, which "
                "finds its columns; fit again."
            )
        return self.indicator_

    def _with_flags(self, names: np.ndarray, kept: np.ndarray) -> np.ndarray:
        """Names of the completed columns, and of those of ``add_indicator``."""
        if not self.add_indicator:
            return kept
        flags = self._indicator_of_fit().get_feature_names_out(names)
        return np.concatenate([kept, flags])

    def __getstate__(self) -> dict[str, Any]:
        """The attributes without tensors, as pickle and skops store them."""
        packer = Packer({"self": self}, others=[])
        content = json.dumps(packer.pack(super().__getstate__()))
        return {
            "content": content,
            "arrays": packer.arrays,
            "classes": {name: cls for cls, name in packer.names.items() if name},
            "others": packer.others,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        stored = {**state}
        if "content" not in stored:  # of a subclass with its own __getstate__
            vars(self).update(stored)
            return
        content = json.loads(stored.pop("content"))
        unpacker = Unpacker(**stored, supplied={"self": self}, device="cpu")
        vars(self).update(unpacker.unpack(content))

    def __dir__(self) -> list[str]:
        # scikit-learn's __dir__ evaluates every name: ``reconstruction_`` may
        # be computed at each access.
        return sorted({*object.__dir__(self)} - FOR_AUTHORS)

    def __dask_tokenize__(self) -> Any:
        # Dask distinguishes dataclasses by their fields, which a fit does not change.
        from dask.base import normalize_token

        return normalize_token((type(self), vars(self)))


Estimator._parameter_constraints = constraints_of(Estimator)


def _in_container_of_input(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let a method return a DataArray or Arrow table for one, except by set_output."""

    @functools.wraps(method)
    def wrapped(self: Estimator, X: Any, *args: Any, **given: Any) -> Any:
        answer = method(self, X, *args, **given)
        return answer if has_set_output(self) else like_input(X, answer)

    return wrapped


def _is_declared(cls: type) -> bool:
    """Whether the constructor follows from declarations, some of them its own.

    A mixin has none, so that classes with their own constructor can have it.
    """
    if len(cls.__bases__) == 1 and not inspect.get_annotations(cls):
        return False
    nearest = next(base for base in cls.__mro__ if "__init__" in vars(base))
    return nearest is object or "__dataclass_fields__" in vars(nearest)


def _put_own_first(cls: type) -> None:
    """Sort keyword parameters in the signature: first those of the class."""
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
