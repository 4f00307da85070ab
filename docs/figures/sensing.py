"""The number of measurements."""

import matplotlib.pyplot as plt
import numpy as np

from skmc.metrics import relative_error
from skmc.sensing import (
    FactorizedSensingRegressor,
    LinearSensingRegressor,
    NuclearSensingRegressor,
    SpectralSensingRegressor,
)

rng = np.random.RandomState(0)
truth = rng.randn(8, 2) @ rng.randn(2, 8)
A = rng.randn(64, 8, 8)
y = np.tensordot(A, truth)
regressors = {
    "linear": LinearSensingRegressor(),
    "nuclear norm": NuclearSensingRegressor(0),
    "three factors": FactorizedSensingRegressor(max_iter=800),
    "spectral": SpectralSensingRegressor(max_iter=500, random_state=0),
}
counts = [15, 25, 35, 45, 55]
figure, axis = plt.subplots(figsize=(6.5, 3.6))
for name, regressor in regressors.items():
    regressor.set_params(device="cpu")
    errors = [
        relative_error(regressor.fit(A[:n], y[:n]).matrix_, truth) for n in counts
    ]
    axis.plot(counts, errors, "o-", ms=4, label=name)
axis.set(xlabel="measurements of 64 cells", ylabel="relative error of the matrix")
axis.set_title("rank 2, without noise")
axis.legend()
