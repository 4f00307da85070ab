"""
Have the chains converged?
==========================

`ChainedCompleter` draws the missing cells of one column after another, again and again.
Its four chains start from different values. They have converged if their lines are
mixed and have no trend.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from skmc import ChainedCompleter
from skmc.plot import ConvergenceDisplay

# %%
# A column that is a quotient
# ---------------------------
# In the diabetes data, ``s4`` is the quotient of the cholesterols ``s1`` and ``s3``.
# Where ``s3`` and ``s4`` are missing in the same row, each of them is drawn given the
# last draw of the other, from which it can hardly differ. So the chains forget their
# starts slowly.
frame = load_diabetes(as_frame=True, scaled=False).frame
frame = frame[["age", "bmi", "s1", "s3", "s4"]]
rng = np.random.RandomState(0)
hidden = rng.uniform(size=frame.shape) < 0.1
hidden[rng.uniform(size=len(frame)) < 0.5, 3:] = True
table = frame.mask(hidden)

completer = ChainedCompleter(random_state=0).fit(table)
print(f"{completer.n_iter_} sweeps before draws are kept")
print("potential scale reduction:", completer.history_["reduction"].round(2)[2:])

# %%
# Chains of two columns
# ---------------------
# Left, the mean of the imputed cells; right, their standard deviation. Draws of the
# sweeps behind the dotted line are kept. The fit goes on until R-hat is below ``tol``
# on average over the columns. Here a smaller ``tol`` is better: ``s4`` is above it.
display = ConvergenceDisplay.from_estimator(completer, columns=["age", "s4"])
plt.show()
