"""Effects of treatments in panels of units and times."""

from skmc.panel.effect import effect
from skmc.panel.result import PanelEffect

__all__ = ["PanelEffect", "effect"]
