"""The weight of the ridge penalty, and the chosen one."""

import matplotlib.pyplot as plt
import numpy as np

from skmc import Entries, FactorizationCompleter
from skmc.metrics import rmse

rng = np.random.RandomState(0)
liking = (
    3
    + rng.randn(120, 1) / 2
    + rng.randn(90) / 2
    + rng.randn(120, 4) @ (rng.randn(4, 90) / 2)
)
seen = rng.random_sample(liking.shape) < 0.15
ratings = liking + 0.5 * rng.randn(*liking.shape)
cells = Entries(np.ma.masked_array(ratings, ~seen))
weights = [0.02, 0.05, 0.1, 0.2, 0.5]
figure, axis = plt.subplots(figsize=(6.5, 3.6))
for rank in (4, 12):
    errors = [
        rmse(
            FactorizationCompleter(rank, lambda_ridge=w, device="cpu", random_state=0)
            .fit(cells)
            .reconstruction_,
            liking,
            ~seen,
        )
        for w in weights
    ]
    axis.semilogx(weights, errors, "o-", ms=4, label=f"rank {rank}")
auto = FactorizationCompleter(device="cpu", random_state=0).fit(cells)
error = rmse(auto.reconstruction_, liking, ~seen)
label = f'"auto": rank {auto.rank_}'
axis.plot(auto.lambda_ridge_, error, "k*", ms=12, label=label)
axis.set(xlabel="lambda_ridge", ylabel="error of hidden cells against the truth")
axis.legend()
axis.set_xticks(weights, weights)
axis.minorticks_off()
