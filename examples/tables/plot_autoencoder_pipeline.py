"""
Impute missing pixels before a classifier
=========================================

A thousand handwritten digits lose pixels at random. A nearest-neighbor classifier needs
all pixels. `AutoencoderCompleter` fills them in a pipeline, beside two imputers of
scikit-learn.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from skmc import AutoencoderCompleter, patterns

# %%
# Three imputers, three shares of missing pixels
# ----------------------------------------------
# Fewer epochs than by default keep this example short.
digits, labels = load_digits(return_X_y=True)
digits, labels = digits[:1000], labels[:1000]
steps = [
    SimpleImputer(keep_empty_features=True),
    KNNImputer(keep_empty_features=True),
    AutoencoderCompleter(max_iter=60, random_state=0),
]
folds = StratifiedKFold(3, shuffle=True, random_state=0)
shares = [0.3, 0.5, 0.7]
scores = {type(step).__name__: [] for step in steps}
for share in shares:
    hidden = patterns.random(digits, share, random_state=0)
    damaged = np.where(hidden, np.nan, digits)
    for step in steps:
        name = type(step).__name__
        model = make_pipeline(step, KNeighborsClassifier())
        scores[name].append(cross_val_score(model, damaged, labels, cv=folds))
        accuracy = scores[name][-1].mean()
        print(f"{share:.0%} missing, {name:>20}: accuracy {accuracy:.3f}")
complete = cross_val_score(KNeighborsClassifier(), digits, labels, cv=folds).mean()

# %%
# Accuracy of the classifier
# --------------------------
# `KNNImputer` finds similar digits while enough pixels are left. The autoencoder has
# learned what digits look like. Bars are standard errors over the folds.
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
for name, found in scores.items():
    means, errors = np.mean(found, 1), np.std(found, 1) / len(found[0]) ** 0.5
    axis.errorbar(shares, means, errors, marker="o", capsize=3, label=name)
axis.axhline(complete, color="gray", ls=":", label="nothing missing")
axis.set(xticks=shares, xlabel="share of pixels missing", ylabel="accuracy")
axis.xaxis.set_major_formatter("{x:.0%}")
axis.set_title("Nearest-neighbor classification of digits after imputation")
axis.legend(loc="lower left")
plt.show()
