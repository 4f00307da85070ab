"""
Are the imputed values plausible?
=================================

Imputed values beside the observed ones of the same column show much of what can go
wrong: values out of range, a peak at the mean, a category that is never imputed.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_wine

from skmc import ChainedCompleter, MeanCompleter, MixedCompleter
from skmc.plot import DistributionDisplay

# %%
# A table with missing cells
# --------------------------
# Four measurements of 178 wines and their cultivar; a fifth of the cells is hidden, in
# addition to half of the prolines of strong wines.
wine = load_wine(as_frame=True)
truth = wine.data[["alcohol", "flavanoids", "color_intensity", "proline"]].copy()
truth["cultivar"] = pd.Categorical.from_codes(
    wine.target, ["Barolo", "Grignolino", "Barbera"]
)
rng = np.random.RandomState(0)
hidden = rng.uniform(size=truth.shape) < 0.2
hidden[:, 3] |= (truth["alcohol"] > 13) & (rng.uniform(size=len(truth)) < 0.5)
table = truth.mask(hidden)

# %%
# Means are a peak
# ----------------
# The column means are the best single numbers without a model, and a poor table: the
# imputed values do not vary at all.
means = MixedCompleter(MeanCompleter()).fit_transform(table)
DistributionDisplay.from_completion(table, means)

# %%
# Draws vary as the data do
# -------------------------
# Each line is one draw. The imputed prolines are larger than the observed ones, as they
# should be: strong wines, which have much proline, lack it more often.
completer = MixedCompleter(ChainedCompleter(random_state=0)).fit(table)
draws = completer.sample(table, 5, random_state=0)
figure, axes = plt.subplots(1, 5, figsize=(13, 3), layout="constrained")
DistributionDisplay.from_completion(table, draws, ax=axes)
print(f"mean observed proline   {table['proline'].mean():.0f}")
print(f"mean imputed proline    {draws[0]['proline'][hidden[:, 3]].mean():.0f}")
print(f"mean hidden proline     {truth['proline'][hidden[:, 3]].mean():.0f}")
plt.show()
