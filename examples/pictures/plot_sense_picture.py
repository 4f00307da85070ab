"""
Recover a picture from linear measurements
==========================================

Each measurement is a weighted sum of *all* pixels of a small picture, with random
weights. There are fewer measurements than pixels, and they are noisy. Many pictures
agree with them. Four regressors of `skmc.sensing` each select one: the one with the
smallest sum of squares, or one of low rank.
"""

import time

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
# A picture and its measurements
# ------------------------------
# The picture has 32 x 32 pixels, each the mean of 16 x 16 pixels of a photograph. There
# are six measurements per ten pixels. Sample ``i`` of the regression is the weight
# matrix ``A[i]``, and its target is :math:`\langle A_i, X \rangle` for the picture
# :math:`X`. The standard deviation of the noise is a twentieth of that of the targets.
picture = (data.camera() / 255).reshape(32, 16, 32, 16).mean((1, 3))
rng = np.random.RandomState(0)
A = rng.standard_normal((round(0.6 * picture.size), *picture.shape))
y = np.tensordot(A, picture)
y += 0.05 * y.std() * rng.standard_normal(len(y))

# %%
# How strong a penalty?
# ---------------------
# Because of the noise, we have to choose one hyper-parameter: the weight of the nuclear
# norm. Measurements are ordinary samples, so cross-validation holds out some of them
# and measures how well they are predicted. This does not require the true picture.
search = GridSearchCV(
    NuclearSensingRegressor(),
    {"lambda_nuclear": [0.002, 0.005, 0.01, 0.02, 0.05]},
    cv=KFold(3, shuffle=True, random_state=0),
).fit(A, y)
tried = search.cv_results_["param_lambda_nuclear"].astype(float)
errors = 1 - search.cv_results_["mean_test_score"]
print("lambda_nuclear  unexplained variance of held-out measurements")
for weight, error in zip(tried, errors, strict=True):
    chosen = "  <- chosen" if weight == search.best_params_["lambda_nuclear"] else ""
    print(f"{weight:14g}  {error:.4f}{chosen}")

# %%
# Four solutions
# --------------
# The linear regressor matches the measurements exactly, including the noise, and is of
# no use: the solution with the smallest sum of squares does not look like a picture.
# The spectral and the factorized regressor have no penalty. They prefer low rank
# because they start near zero, where large singular values grow first. At the end they
# fit the noise a little more than the penalized solution does.
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
        f"{name:>10}: {psnr(found, picture):5.2f} dB, measurements fitted to "
        f"R2 = {regressor.score(A, y):.4f}, {seconds:.1f} s"
    )

# %%
# Side by side
# ------------
# Cross-validation did not use the gray curve, yet it nearly found its minimum.
truth = [psnr(NuclearSensingRegressor(w).fit(A, y).matrix_, picture) for w in tried]
best = search.best_index_
print(f"chosen weight: {truth[best]:.2f} dB, best weight: {max(truth):.2f} dB")
figure, axes = plt.subplots(2, 3, figsize=(11, 7.2), layout="constrained")
panel = axes[1, 0]
panel.semilogx(tried, errors, "o-", label="held-out measurements")
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
plt.show()
