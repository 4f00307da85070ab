"""
Can similarities learned in one fit be reused in another?
=========================================================

AIR learns Laplacians while it completes a picture. We take them early in the fit, late
in the fit, or from another damaged copy of the same picture, and keep them fixed in a
second fit.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from skmc import AIRCompleter, patterns
from skmc.datasets import load_photo
from skmc.metrics import nmae

photo = load_photo("china")[:160, 40:240].astype(np.float32)


def damage(seed):
    return np.ma.masked_array(photo, patterns.random(photo, 0.5, random_state=seed))


X, other = damage(0), damage(1)


def error(**params):
    completed = AIRCompleter(scaling="global", random_state=0, **params).fit_transform(
        X
    )
    return nmae(completed, photo, X.mask)


# %%
# Similarities fade during a fit, so early ones are stronger.
early = AIRCompleter(scaling="global", random_state=0, max_iter=60).fit(X)
late = AIRCompleter(scaling="global", random_state=0).fit(X)
elsewhere = AIRCompleter(scaling="global", random_state=0, max_iter=60).fit(other)
errors = {
    "none": error(lambda_row=0, lambda_col=0),
    "learned during the fit": error(),
    "fixed, after 60 steps": error(fixed_laplacians=early.laplacians_),
    "fixed, after 400 steps": error(fixed_laplacians=late.laplacians_),
    "fixed, from the other copy": error(fixed_laplacians=elsewhere.laplacians_),
}
for name, value in errors.items():
    print(f"{name:>30}: NMAE {value:.4f}")

figure, axis = plt.subplots(figsize=(8, 3.2), layout="constrained")
axis.barh(list(errors), list(errors.values()), color="#29ABE2")
axis.invert_yaxis()
axis.set_xlabel("NMAE on the hidden half of the picture")
axis.set_title("Laplacians of rows and columns")
target = Path(sys.argv[0] or "reuse.py").with_suffix(".png")
figure.savefig(target, dpi=80)
print(f"Wrote {target}")
