"""Tables as matrices: numbers, ordered levels, categories and dates."""

from skmc.tables.doubts import doubtful_number, doubtful_word
from skmc.tables.frames import as_table
from skmc.tables.masked import MaskedToNaN
from skmc.tables.table import Table
from skmc.tables.takes_tables import TakesTables, kept_columns, warn_of_columns

__all__ = [
    "MaskedToNaN",
    "Table",
    "TakesTables",
    "as_table",
    "doubtful_number",
    "doubtful_word",
    "kept_columns",
    "warn_of_columns",
]
