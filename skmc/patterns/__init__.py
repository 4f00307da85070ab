"""Patterns of cells to hide, for experiments and for validation.

Every pattern takes a matrix ``X`` (any container, see `skmc.cells.to_cells`) and
returns a boolean array of its shape, True at the *observed* cells to hide. Cells that
are already missing are never counted. `is_determined` says which missing cells the
observed ones determine, if the rank is known.
"""

from skmc.patterns.chance import columns, mar, mnar, per_row, random, rows
from skmc.patterns.determined import is_determined
from skmc.patterns.gaps import gap_lengths, moved_gaps, row_tail, runs
from skmc.patterns.shapes import patch, text, texture
from skmc.patterns.similar import like_missing, parts_like_missing

__all__ = [
    "columns",
    "is_determined",
    "like_missing",
    "mar",
    "mnar",
    "patch",
    "per_row",
    "random",
    "row_tail",
    "rows",
    "runs",
    "text",
    "texture",
]
