"""The observed cells of a matrix, read from any container."""

from skmc.cells.containers import (
    Container,
    Shaped,
    dense,
    is_na,
    is_number,
    is_path,
    sparse_cells,
    to_cells,
)
from skmc.cells.data import Cells, Data
from skmc.cells.entries import Entries, fingerprint, without_duplicates
from skmc.cells.given import Given
from skmc.cells.labeled import (
    as_frame,
    frame_of_layer,
    in_order,
    in_order_of,
    is_anndata,
    is_data_array,
    labels_of,
    like_input,
)
from skmc.cells.like_observed import LikeObserved
from skmc.cells.marks import MISSING_WORDS, cure_of_marks, may_mark_missing
from skmc.cells.observed import Observed
from skmc.cells.one_hot import Calibration, OneHot, sharpened
from skmc.cells.pixels import pixels
from skmc.cells.positions import FIT_AGAIN, check_index, check_positions, identified
from skmc.cells.preferences import preferences
from skmc.cells.priors import Priors
from skmc.cells.scaling import Scaling
from skmc.cells.side import Side, prior_mean
from skmc.cells.sparse_observed import SparseObserved
from skmc.cells.sparse_values import SparseValues
from skmc.cells.stored import CsvFiles, StoredEntries
from skmc.cells.table_matrix import Layout, TableMatrix, layout_of

__all__ = ["Given", "to_cells"]
