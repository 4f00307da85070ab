"""A table of numbers, and new rows."""

import numpy as np
from numpy.typing import NDArray

from skmc import AIRCompleter, SVDCompleter, patterns
from skmc.metrics import nmae

truth = np.outer(np.arange(9.0), np.arange(6.0))
hidden = patterns.random(truth, 0.3, random_state=0)
completer = AIRCompleter(0.1, random_state=0).fit(np.ma.masked_array(truth, hidden))
SVDCompleter("auto", scaling=None).fit(truth).predict_entries([0], [1])
completed: NDArray[np.float64] = completer.transform(truth)
error: float = nmae(completed, truth, hidden)
