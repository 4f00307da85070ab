"""Matrix sensing: a matrix from linear measurements ``<A_i, X>`` instead of cells."""

from skmc.sensing.operators import (
    CellMeasurements,
    DenseMeasurements,
    DiagonalMeasurements,
    Measurements,
    RankOneMeasurements,
    ScaledMeasurements,
)

__all__ = [
    "CellMeasurements",
    "DenseMeasurements",
    "DiagonalMeasurements",
    "Measurements",
    "RankOneMeasurements",
    "ScaledMeasurements",
]
