"""Displays of completions, Laplacians, spectra and histories."""

from skmc.plot.displays import (
    CompletionDisplay,
    HistoryDisplay,
    LaplacianDisplay,
    SpectrumDisplay,
)

__all__ = [
    "CompletionDisplay",
    "HistoryDisplay",
    "LaplacianDisplay",
    "SpectrumDisplay",
]
