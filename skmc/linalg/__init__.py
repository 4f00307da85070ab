"""Linear algebra that several solvers share."""

from skmc.linalg.activations import (
    ACTIVATIONS,
    Activation,
    SpectralActivation,
    apply_to_singular_values,
)
from skmc.linalg.conjugate_gradients import conjugate_gradients
from skmc.linalg.diffusion import diffuse, double, halve
from skmc.linalg.elimination import Elimination, RowPairs, grams
from skmc.linalg.fused import DECAY, adam_update, linear, softmax_derivative
from skmc.linalg.gauss_newton import GaussNewton, NormalEquations, newton
from skmc.linalg.graph import (
    NeighborGraph,
    directions_of,
    nearest,
    squared_distances,
)
from skmc.linalg.low_rank import LowRank, SparsePlusLowRank, compressed_rows, padded
from skmc.linalg.multiply import affine, matmul, relu_layer
from skmc.linalg.parts import Parts
from skmc.linalg.randomness import (
    ENTROPY,
    Randomness,
    Seed,
    fresh_seed,
    seed_of,
    truncated_normal,
)
from skmc.linalg.ridge import OVER, RowModel
from skmc.linalg.row_equations import normal_equations
from skmc.linalg.schedule import CosineSchedule
from skmc.linalg.shrinkage import shrink, shrink_dense, subtracted
from skmc.linalg.svd import SVD, full_svd, partial_svd, spectral_norm, svd_of
from skmc.linalg.threads import (
    Workload,
    in_threads,
    memory_of,
    resolve_device,
    threads_for,
    threads_for_rows,
    work_of,
)

__all__ = ["apply_to_singular_values"]
