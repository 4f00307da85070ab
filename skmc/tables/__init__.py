"""Tables as matrices: numbers, ordered levels, categories and dates."""

from skmc.base import doubtful_number
from skmc.cells import MISSING_WORDS
from skmc.tables.date_formats import DateFormat, as_dates
from skmc.tables.doubts import (
    doubtful_date,
    doubtful_word,
    unknown_categories,
    warn_of_columns,
    warn_of_unknown,
)
from skmc.tables.explained import explained_in_table
from skmc.tables.fit_arguments import (
    matrix_weights,
    read_table_weights,
    table_for,
    weights_of_table_rows,
)
from skmc.tables.frames import (
    AnyMarks,
    as_table,
    column_of,
    filled,
    marks_of_columns,
    position_of,
    positions_of,
    raw_columns,
    same_columns,
    with_tables,
)
from skmc.tables.held_out import cell_errors, completed_by, drawn_by, source_of
from skmc.tables.indicator import indicator_for, missing_cells, with_indicator
from skmc.tables.levels import Categorical
from skmc.tables.masked import MaskedToNaN
from skmc.tables.raw_column import RawColumn
from skmc.tables.source import Source
from skmc.tables.table import Table
from skmc.tables.table_errors import errors
