"""Matrix sensing: a matrix from linear measurements ``<A_i, X>`` instead of cells."""

from skmc.sensing.factorized import FactorizedSensingRegressor
from skmc.sensing.linear import LinearSensingRegressor
from skmc.sensing.measured import Measured
from skmc.sensing.nuclear import NuclearSensingRegressor
from skmc.sensing.operators import (
    CellMeasurements,
    DenseMeasurements,
    DiagonalMeasurements,
    Measurements,
    RankOneMeasurements,
)
from skmc.sensing.spectral import SpectralSensingRegressor

__all__ = [
    "CellMeasurements",
    "DenseMeasurements",
    "DiagonalMeasurements",
    "FactorizedSensingRegressor",
    "LinearSensingRegressor",
    "Measured",
    "Measurements",
    "NuclearSensingRegressor",
    "RankOneMeasurements",
    "SpectralSensingRegressor",
]
