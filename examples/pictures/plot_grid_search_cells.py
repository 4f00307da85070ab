"""
Tune hyperparameters: hold out rows or cells?
=============================================

scikit-learn's ``GridSearchCV`` holds out rows of a masked array, and cells of
`Entries`. Held-out rows are completed as new rows. To complete *this* matrix, hold out
cells.
`BatchedGridSearchCV` is the same search with all fits solved together. Here it chooses
two weights of `AIRCompleter` for a damaged picture.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import KFold

from skmc import AIRCompleter, Entries, patterns
from skmc.datasets import load_photo
from skmc.metrics import nmae
from skmc.model_selection import BatchedGridSearchCV

photo = load_photo("flower")[60:124, 80:152].astype(np.float32)
hidden = patterns.random(photo, 0.3, random_state=0)
damaged = np.ma.masked_array(photo, hidden)

# %%
# The same search twice
# ---------------------
weights = [0.01, 0.1, 1.0, 10.0]
grid = {"lambda_row": weights, "lambda_col": weights}
completer = AIRCompleter(scaling="global", random_state=0)
by_row = BatchedGridSearchCV(completer, grid, cv=3).fit(damaged)
folds = KFold(3, shuffle=True, random_state=0)
by_cell = BatchedGridSearchCV(completer, grid, cv=folds).fit(Entries(damaged))

# %%
# Expected and actual errors
# --------------------------
# The last table shows the error on the missing cells, which is known only in an
# experiment.
truth = [
    [
        nmae(
            AIRCompleter(row, col, random_state=0).fit_transform(damaged), photo, hidden
        )
        for col in weights
    ]
    for row in weights
]


def expected(search):
    """Rows of the table are lambda_row; the grid runs over lambda_col first."""
    return -search.cv_results_["mean_test_score"].reshape(4, 4).T


tables = {
    "held-out rows": expected(by_row),
    "held-out cells": expected(by_cell),
    "missing cells": np.array(truth),
}
for name, search in (("rows", by_row), ("cells", by_cell)):
    print(f"held-out {name}: {search.best_params_}, score {search.best_score_:.4f}")

figure, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
for axis, (name, table) in zip(axes, tables.items(), strict=True):
    axis.imshow(table, cmap="viridis_r")
    for (i, j), value in np.ndenumerate(table):
        best = value == table.min()
        axis.text(
            j,
            i,
            f"{value:.4f}",
            ha="center",
            va="center",
            color="black" if value < np.median(table) else "white",
            weight="bold" if best else None,
        )
    axis.set_xticks(range(4), weights)
    axis.set_yticks(range(4), weights)
    axis.set_xlabel("lambda_col")
    axis.set_ylabel("lambda_row")
    axis.set_title(f"NMAE, {name}")
plt.show()
