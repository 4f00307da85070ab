"""Observed cells that are not in memory, sorted into blocks of rows and columns."""

from skmc.blocks.block import CellSelection
from skmc.blocks.block_observed import BlockObserved
from skmc.blocks.chunked_rows import ChunkedRows
from skmc.blocks.fragments import tables_of
from skmc.blocks.lazy import is_lazy, lazy_entries, lazy_transform
from skmc.blocks.stored_cells import StoredCells
from skmc.blocks.workers import Local, OnCluster
from skmc.blocks.writing import BlockFolder, sorted_blocks
