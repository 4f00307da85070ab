"""
Add your own method
===================

One file is enough. It contains a term that states the desired property of the
completion, and an estimator that defines the parameters and adds the term to the data
fit. The base class adds input formats, masks, scaling, devices, new rows, scores and
the history of the fit. The method of this example minimizes bending, like a thin plate.
It is tried on a field of which nine cells in ten are missing.
"""

from dataclasses import KW_ONLY
from typing import Literal

import matplotlib.pyplot as plt
import numpy as np
import torch

from skmc import AIRCompleter, DMFCompleter, KNNCompleter, patterns
from skmc.base import CompleterTags, IterativeCompleter
from skmc.checks import check_completer
from skmc.metrics import relative_error
from skmc.models import FactorProduct
from skmc.parameters import Count, NonNegative, Seed
from skmc.solvers import Descent
from skmc.terms import SquaredError, Term


# %%
# The term
# --------
# A term is a function of the completion, ``(*batch, m, n) -> (*batch,)``. Nothing else
# is required: autograd computes its gradient. A term with a closed-form gradient can
# override `value_and_grad` to save time.
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
# The annotations with defaults are the parameters, as in a dataclass; a constructor
# written by hand works too. Their types say which values are valid, see
# `skmc.parameters`. `_make_solver` builds the solver for data that are already scaled,
# and ``recovers`` states how accurately a known matrix of rank 2 is completed.
class SmoothCompleter(IterativeCompleter):
    r"""Fits the observed cells by a product of two factors with little bending.

    .. math:: \min_X \tfrac{1}{2} \|P(X - M)\|_F^2 + \operatorname{bending}(X)

    Parameters
    ----------
    lambda_bending : float >= 0, default=1.0
        Multiplies half of the sum of squared second differences.
    """

    completer_tags = CompleterTags(recovers=1.1, batched=("lambda_bending",))
    warn_at_max_iter = False  # the schedule of the learning rate ends there

    lambda_bending: NonNegative = 1.0
    _: KW_ONLY
    max_iter: Count = 500
    tol: NonNegative = 1e-6
    scaling: Literal["auto", "columns", "global"] | None = "global"
    device: str | torch.device = "auto"
    random_state: Seed = None

    def _make_solver(self, data, params, rng):
        model = FactorProduct.random(data.shape, 2, min(data.shape), 0.01, rng)
        terms = [SquaredError(data), Bending(params.lambda_bending)]
        return Descent(model, terms, lr=0.02, horizon=params.max_iter)


# %%
# Does it behave like a completer?
# --------------------------------
# `check_completer` checks the properties of all completers of the package, and those
# that scikit-learn requires of an estimator. An error would name the remedy.
check_completer(SmoothCompleter())
print("SmoothCompleter passes all checks.")

# %%
# How accurate is it?
# -------------------
# The data are a smooth field with a ridge. A tenth of the cells is observed.
row, col = np.mgrid[0:1:48j, 0:1:64j]
field = np.sin(5 * row * col) + np.exp(-(((row - col) / 0.15) ** 2))
hidden = patterns.random(field, 0.9, random_state=0)
X = np.ma.masked_array(field, hidden)
completers = {
    "neighbors": KNNCompleter(),
    "AIR": AIRCompleter(scaling="global", random_state=0),
    "DMF with total variation": DMFCompleter("tv", random_state=0),
    "SmoothCompleter": SmoothCompleter(random_state=0),
}
pictures = {"truth": field, "observed": X}
for name, completer in completers.items():
    completed = completer.fit_transform(X)
    error = relative_error(completed, field, hidden)
    pictures[f"{name}: error {error:.0%}"] = completed
    print(f"{name:>25}: error on hidden cells {error:.1%}")

# %%
# Side by side
# ------------
figure, axes = plt.subplots(2, 3, figsize=(11, 5.4), layout="constrained")
for axis, (title, picture) in zip(axes.flat, pictures.items(), strict=True):
    axis.imshow(picture, vmin=field.min(), vmax=field.max())
    axis.set_title(title)
    axis.set_axis_off()
plt.show()
