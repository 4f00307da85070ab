"""
How does one add a method of one's own?
=======================================

In one file: a term that says what is wanted of the completion, and an estimator that
names its parameters and puts the term next to the misfit of the observed cells. The
containers, masks, scaling, devices, new rows, scores and history come with the base
class. The method here bends as little as it can, as a thin plate does, and is tried on
a field of which nine cells in ten are missing.
"""

import sys
import warnings
from collections import Counter
from numbers import Real
from pathlib import Path
from typing import ClassVar

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.utils._param_validation import Interval
from sklearn.utils.estimator_checks import check_estimator

from skmc import AIRCompleter, DMFCompleter, KNNCompleter, patterns
from skmc.base import CompleterTags, IterativeCompleter
from skmc.metrics import relative_error
from skmc.models import FactorProduct
from skmc.solvers import Descent
from skmc.terms import SquaredError, Term


# %%
# The term
# --------
# A term is a function of the completion, ``(*batch, m, n) -> (*batch,)``. That is all
# it has to be: its derivative comes from autograd. One that knows it in closed form
# overrides `value_and_grad` and saves time.
class Bending(Term):
    """``weight / 2`` times the *sum* of squared second differences, down and across."""

    def __init__(self, weight):
        super().__init__()
        self.add_weight("weight", weight)

    def forward(self, X):
        down = X.diff(n=2, dim=-2).square().sum((-2, -1))
        across = X.diff(n=2, dim=-1).square().sum((-2, -1))
        return self.weight.to(X) / 2 * (down + across)


# %%
# The completer
# -------------
# The constructor stores and does nothing else. `_parameter_constraints` says what is
# admissible, `_make_solver` builds the solver for data that are scaled already, and
# ``recovers`` states how well a known matrix of rank 2 is completed, which a test of
# the package would hold it to.
class SmoothCompleter(IterativeCompleter):
    """``min 1/2 |P(X - M)|_F^2 + bending of X`` over a product of two factors.

    Parameters
    ----------
    lambda_bending : float >= 0, default=1.0
        Multiplies half of the sum of squared second differences.
    """

    completer_tags = CompleterTags(recovers=1.0, batched=("lambda_bending",))
    warn_at_max_iter = False  # the learning rate's schedule ends there
    _parameter_constraints: ClassVar[dict] = {
        **IterativeCompleter._parameter_constraints,
        "lambda_bending": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        lambda_bending=1.0,
        *,
        max_iter=500,
        tol=1e-6,
        scaling="global",
        device="auto",
        random_state=None,
        missing_values=np.nan,
        add_indicator=False,
        keep_empty_features=True,
        keep_observed=True,
    ):
        self.lambda_bending = lambda_bending
        self.max_iter = max_iter
        self.tol = tol
        self.scaling = scaling
        self.device = device
        self.random_state = random_state
        self.missing_values = missing_values
        self.add_indicator = add_indicator
        self.keep_empty_features = keep_empty_features
        self.keep_observed = keep_observed

    def _make_solver(self, data, draw):
        model = FactorProduct.random(data.shape, 2, min(data.shape), 0.01, draw)
        terms = [SquaredError(data), Bending(self.lambda_bending)]
        return Descent(model, terms, lr=0.02, horizon=self.max_iter)


# %%
# Does it keep the contract?
# --------------------------
# scikit-learn's own checks say what an estimator has to do. (Some of their matrices
# have empty rows, of which completers warn.)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    checks = check_estimator(SmoothCompleter(max_iter=20, random_state=0), on_skip=None)
print("Checks:", dict(Counter(check["status"] for check in checks)))

# %%
# Is it of use?
# -------------
# A smooth field with a ridge, of which a tenth is seen.
row, col = np.mgrid[0:1:48j, 0:1:64j]
field = np.sin(5 * row * col) + np.exp(-(((row - col) / 0.15) ** 2))
hidden = patterns.random(field, 0.9, random_state=0)
X = np.ma.masked_array(field, hidden)
completers = {
    "neighbours": KNNCompleter(),
    "AIR": AIRCompleter(random_state=0),
    "DMF with total variation": DMFCompleter("tv", random_state=0),
    "ours": SmoothCompleter(random_state=0),
}
pictures = {"truth": field, "observed": X}
for name, completer in completers.items():
    completed = completer.fit_transform(X)
    error = relative_error(completed, field, hidden)
    pictures[f"{name}: error {error:.0%}"] = completed
    print(f"{name:>25}: error of hidden cells {error:.1%}")

# %%
# The answer
# ----------
figure, axes = plt.subplots(2, 3, figsize=(11, 5.4), layout="constrained")
for axis, (title, picture) in zip(axes.flat, pictures.items(), strict=True):
    axis.imshow(picture, vmin=field.min(), vmax=field.max())
    axis.set_title(title)
    axis.set_axis_off()
target = Path(sys.argv[0] or "method.py").with_suffix(".png")
figure.savefig(target, dpi=80)
print(f"Wrote {target}")
