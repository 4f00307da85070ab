"""The type of a column of a data frame."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

OF_ARROW = "[pyarrow]"


@dataclass(frozen=True)
class ColumnType:
    """The type of a column in the fit, which answers in new rows can have.

    A type of pandas or polars cannot be stored in a file of ours; its text can.

    Parameters
    ----------
    name : str
        Text of the type.
    categories : tuple or None, default=None
        Categories of a type that lists them.
    ordered : bool, default=False
        Whether the categories are ordered.
    """

    name: str
    categories: tuple[Any, ...] | None = None
    ordered: bool = False

    @classmethod
    def of(cls, dtype: Any) -> ColumnType:
        """Describe a type."""
        name, categories = str(getattr(dtype, "name", dtype)), None
        if "Categorical(" not in str(dtype):  # polars does not list them
            categories = getattr(dtype, "categories", None)
        if categories is None:
            return cls(name)
        ordered = bool(getattr(dtype, "ordered", False))
        return cls(name, tuple(categories), ordered)

    def dtype(self, cls: type) -> Any:
        """Make the type for columns of a library."""
        name, _, parameters = self.name.partition("(")
        library = sys.modules[cls.__module__.partition(".")[0]]
        if library.__name__ == "polars":
            if self.categories is not None:
                return library.Enum(list(self.categories))
            return None if parameters else getattr(library, name, None)
        if self.categories is not None:
            return library.CategoricalDtype(list(self.categories), self.ordered)
        try:
            if self.name.endswith(OF_ARROW):  # pandas reads "string" as its own type
                import pyarrow

                alias = self.name.removesuffix(OF_ARROW)
                return library.ArrowDtype(pyarrow.type_for_alias(alias))
            return library.api.types.pandas_dtype(self.name)
        except (TypeError, ValueError, NotImplementedError):  # parameters of Arrow's
            return None
