"""Series as matrices: grids of times, periods, windows and gaps."""

from skmc.series.gaps import gap_lengths, like_gaps
from skmc.series.grid import TimeGrid, ticks_of
from skmc.series.members import Interpolation, SeasonalMean, Windowed
from skmc.series.periods import find_periods
from skmc.series.table import TimeTable
from skmc.series.windows import Span, Windows, widest

__all__: list[str] = []
