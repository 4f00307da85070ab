"""Displays of completions, of imputed beside observed values, of fits and effects.

They need matplotlib (``pip install 'skmc[plot]'``). As in scikit-learn, each display is
made by ``from_estimator`` or from its data. Its ``plot`` draws it again, with other
options or in other Axes.
"""

from skmc.plot.completion import CompletionDisplay
from skmc.plot.contributions import ExplanationDisplay
from skmc.plot.convergence import ConvergenceDisplay
from skmc.plot.distribution import DistributionDisplay
from skmc.plot.event_study import EventStudyDisplay
from skmc.plot.history import HistoryDisplay
from skmc.plot.laplacian import LaplacianDisplay
from skmc.plot.missingness import MissingnessDisplay
from skmc.plot.panels import axes_for
from skmc.plot.spectrum import SpectrumDisplay

__all__ = [
    "CompletionDisplay",
    "ConvergenceDisplay",
    "DistributionDisplay",
    "EventStudyDisplay",
    "ExplanationDisplay",
    "HistoryDisplay",
    "LaplacianDisplay",
    "MissingnessDisplay",
    "SpectrumDisplay",
]
