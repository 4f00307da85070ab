"""Effects of treatments in panels of units and times."""

from skmc.panel.effect import effect
from skmc.panel.result import PanelEffect
from skmc.panel.simulation import PanelSimulation, simulate

__all__ = ["PanelEffect", "PanelSimulation", "effect", "simulate"]
