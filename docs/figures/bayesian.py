"""The effect of averaging draws."""

import matplotlib.pyplot as plt
import numpy as np

from skmc import BayesianFactorizationCompleter, Entries, FactorizationCompleter
from skmc.metrics import rmse

rng = np.random.RandomState(0)
liking = (
    3
    + rng.randn(120, 1) / 2
    + rng.randn(90) / 2
    + rng.randn(120, 4) @ (rng.randn(4, 90) / 2)
)
seen = rng.random_sample(liking.shape) < 0.2
ratings = liking + 0.5 * rng.randn(*liking.shape)
cells = Entries(np.ma.masked_array(ratings, ~seen))
draws = [1, 3, 10, 30, 60, 120]
errors = [
    rmse(
        BayesianFactorizationCompleter(6, n_draws=n, device="cpu", random_state=0)
        .fit(cells)
        .reconstruction_,
        liking,
        ~seen,
    )
    for n in draws
]
one = FactorizationCompleter(device="cpu", random_state=0).fit(cells)
figure, axis = plt.subplots(figsize=(6.5, 3.4))
axis.semilogx(draws, errors, "o-", ms=4, label="mean of the draws")
axis.axhline(
    rmse(one.reconstruction_, liking, ~seen), color="C1", ls="--",
    label="FactorizationCompleter: a single optimum",
)  # fmt: skip
axis.set_xticks(draws, draws)
axis.minorticks_off()
axis.set(xlabel="draws", ylabel="error of hidden cells against the truth")
axis.legend()
