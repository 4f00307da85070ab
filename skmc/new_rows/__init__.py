"""Completing rows that were not in the fit, each on its own."""

from skmc.new_rows.embedding import EmbeddedRows
from skmc.new_rows.folding import Deferred, FoldIn
from skmc.new_rows.forward_pass import ForwardPass, LearnedInputs
from skmc.new_rows.row_index import RowIndex, content_order
from skmc.new_rows.streaming import RowStream
