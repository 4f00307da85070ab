"""
Can a picture be told from sums over all of its pixels?
=======================================================

Each measurement adds up *all* pixels of a small picture, with random weights; there
are fewer measurements than pixels, and they are noisy. Of the many pictures that agree
with them four regressors choose one each: the smallest, or one of low rank.
"""

import sys
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from skimage import data
from sklearn.model_selection import GridSearchCV, KFold

from skmc.metrics import psnr
from skmc.sensing import (
    FactorizedSensingRegressor,
    LinearSensingRegressor,
    NuclearSensingRegressor,
    SpectralSensingRegressor,
)

# %%
# A picture, and sums over it
# ---------------------------
# 32 x 32 pixels, each a mean over 16 x 16 of a photograph, and six measurements for ten
# pixels. Sample ``i`` of the regression is the matrix ``A[i]`` of weights, and its
# target ``<A[i], picture>``; the deviation of the noise is a twentieth of theirs.
picture = (data.camera() / 255).reshape(32, 16, 32, 16).mean((1, 3))
rng = np.random.RandomState(0)
A = rng.standard_normal((round(0.6 * picture.size), *picture.shape))
y = np.tensordot(A, picture)
y += 0.05 * y.std() * rng.standard_normal(len(y))

# %%
# How strong a penalty?
# ---------------------
# The weight of the nuclear norm is the one hyper-parameter that the noise makes us
# choose. Measurements are samples like any others: cross-validation holds some of them
# out and asks how well they are predicted. The picture is not needed for that.
search = GridSearchCV(
    NuclearSensingRegressor(),
    {"lambda_nuclear": [0.002, 0.005, 0.01, 0.02, 0.05]},
    cv=KFold(3, shuffle=True, random_state=0),
).fit(A, y)
tried = search.cv_results_["param_lambda_nuclear"].astype(float)
errors = 1 - search.cv_results_["mean_test_score"]
print("lambda_nuclear  unexplained variance of measurements held out")
for weight, error in zip(tried, errors, strict=True):
    chosen = "  <- chosen" if weight == search.best_params_["lambda_nuclear"] else ""
    print(f"{weight:14g}  {error:.4f}{chosen}")

# %%
# Four answers
# ------------
# The linear one meets the measurements exactly, noise and all, and is of no use: what
# is least in the sum of squares is no picture. The two learned ones have no penalty.
# That they start near zero, where large singular values grow first, makes them prefer
# low rank; in the end they follow the noise a little more than the penalty does.
regressors = [
    LinearSensingRegressor(),
    search.best_estimator_,
    SpectralSensingRegressor(max_iter=1000, random_state=0),
    FactorizedSensingRegressor(),
]
pictures = {"truth": picture}
for regressor in regressors:
    name = type(regressor).__name__.removesuffix("SensingRegressor")
    start = time.perf_counter()
    found = regressor.fit(A, y).matrix_
    seconds = time.perf_counter() - start
    pictures[f"{name}: {psnr(found, picture):.1f} dB"] = found
    print(
        f"{name:>10}: {psnr(found, picture):5.2f} dB, measurements met to "
        f"R2 = {regressor.score(A, y):.4f}, {seconds:.1f} s"
    )

# %%
# Side by side
# ------------
# Cross-validation never saw the gray curve, and found nearly its lowest point.
truth = [psnr(NuclearSensingRegressor(w).fit(A, y).matrix_, picture) for w in tried]
best = search.best_index_
print(f"chosen weight: {truth[best]:.2f} dB, at best {max(truth):.2f} dB")
figure, axes = plt.subplots(2, 3, figsize=(11, 7.2), layout="constrained")
panel = axes[1, 0]
panel.semilogx(tried, errors, "o-", label="measurements held out")
panel.plot(tried[best], errors[best], "o", ms=14, mfc="none", mec="C3")
panel.set(xlabel="lambda_nuclear", ylabel="unexplained variance", box_aspect=1)
right = panel.twinx()
right.semilogx(tried, truth, "s--", color="0.6", label="truth (not used)")
right.set(ylabel="PSNR (dB), downwards", box_aspect=1)
right.invert_yaxis()
for axis in (panel, right):
    axis.minorticks_off()
    axis.set_xticks(tried, tried)
panel.legend(handles=[panel.lines[0], right.lines[0]], loc="upper left")
others = [axes[0, 0], axes[0, 1], axes[0, 2], axes[1, 1], axes[1, 2]]
for axis, (title, shown) in zip(others, pictures.items(), strict=True):
    axis.imshow(shown, cmap="gray", vmin=0, vmax=1)
    axis.set_title(title)
    axis.set_axis_off()
target = Path(sys.argv[0] or "sensing.py").with_suffix(".png")
figure.savefig(target, dpi=80)
print(f"Wrote {target}")
