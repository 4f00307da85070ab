"""Matrix sensing: a matrix from linear measurements ``<A_i, X>`` instead of cells."""

from skmc.sensing.dense import DenseMeasurements
from skmc.sensing.diagonal import DiagonalMeasurements
from skmc.sensing.factorized import FactorizedSensingRegressor
from skmc.sensing.linear import LinearSensingRegressor
from skmc.sensing.measured import Measured
from skmc.sensing.measurements import Measurements
from skmc.sensing.nuclear import NuclearSensingRegressor
from skmc.sensing.rank_one import RankOneMeasurements
from skmc.sensing.single_cells import CellMeasurements
from skmc.sensing.spectral import SpectralSensingRegressor

__all__ = [
    "CellMeasurements",
    "DenseMeasurements",
    "DiagonalMeasurements",
    "FactorizedSensingRegressor",
    "LinearSensingRegressor",
    "NuclearSensingRegressor",
    "RankOneMeasurements",
    "SpectralSensingRegressor",
]
