"""
Which films should we recommend to someone who has rated a dozen?
=================================================================

In a simulated data set of 300 users and 120 films, a tenth of the ratings is known.
Factorization learns from them and recommends films, both to a user of the matrix and to
a new user who gives a few ratings. The matrix stays sparse throughout.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.sparse import csr_array

from skmc import Entries, FactorizationCompleter

# %%
# The simulated ratings
# ---------------------
# A film has a main genre, a share of a second genre, and a quality. A user has a
# preference for each genre. The completer sees only `ratings`; `liking` is the truth.
rng = np.random.RandomState(0)
words = {
    "space": ("Lonely Last Silent Distant", "Orbit Moon Signal Comet Probe"),
    "romance": ("Tender Second Summer Paris", "Letter Kiss Promise Wedding Waltz"),
    "crime": ("Cold Perfect Stolen Midnight", "Alibi Witness Heist Verdict Clue"),
    "western": ("Dusty Wild Iron Red", "Saddle River Sheriff Canyon Spur"),
    "horror": ("Hollow Crooked Damp Pale", "House Doll Cellar Grave Mirror"),
    "comedy": ("Crazy Awkward Lucky Loud", "Uncle Holiday Neighbours Office Party"),
}
genres = list(words)
titles = [
    f"{first} {second}"
    for firsts, seconds in words.values()
    for first in firsts.split()
    for second in seconds.split()
]
genre = np.repeat(np.arange(6), 20)
share = 0.7 * np.eye(6)[genre] + 0.3 * np.eye(6)[rng.randint(6, size=120)]
quality = rng.normal(0, 0.5, 120)


def people(taste):
    """What each person thinks of all films, given their preferences for genres."""
    return 3 + rng.normal(0, 0.3, (len(taste), 1)) + quality + taste @ share.T


def rate(liking):
    noise = rng.normal(0, 0.3, liking.shape)
    return np.clip(np.round(liking + noise), 1, 5)


liking = people(rng.normal(0, 1.8, (300, 6)))
users, films = np.nonzero(rng.random_sample(liking.shape) < 0.1)
ratings = Entries.from_triplets(
    users, films, rate(liking)[users, films], shape=liking.shape
)
completer = FactorizationCompleter(random_state=0).fit(ratings)
print(f"{ratings}: rank {completer.rank_} chosen")


def top(predicted, seen, n=10):
    """The ``n`` films with the highest predictions that have not been seen."""
    return np.argsort(np.where(seen, -np.inf, predicted))[::-1][:n]


# %%
# A user of the matrix
# --------------------
# Her predictions are one row of the product of the factors; no other row is computed.
user = 7
seen = np.isin(np.arange(120), films[users == user])
predicted = completer.predict_entries(np.full(120, user), np.arange(120))
print(f"User {user} has rated {seen.sum()} films. Films for her:")
for film in top(predicted, seen, 3):
    print(
        f"  {titles[film]:20} ({genres[genre[film]]}), predicted "
        f"{predicted[film]:.1f}, her true rating {liking[user, film]:.1f}"
    )

# %%
# A new user
# ----------
# He loves films about space, likes crime films, and dislikes romance and comedy. He has
# rated two films of each genre. His ratings are the stored entries of a sparse matrix
# with one row, which `transform` completes.
his_liking = people(np.array([[2.0, -2.0, 1.0, 0.0, 0.0, -2.0]]))[0]
rated = np.concatenate([20 * k + rng.choice(20, 2, replace=False) for k in range(6)])
his = csr_array((rate(his_liking)[rated], ([0] * 12, rated)), shape=(1, 120))
his_predicted = completer.transform(his)[0]
his_seen = np.isin(np.arange(120), rated)
his_top = top(his_predicted, his_seen, 5)
print("Films for the new user:", ", ".join(titles[film] for film in his_top))

# %%
# Are the hits better than chance?
# --------------------------------
# 200 other users give between 1 and 48 ratings each. Each gets five recommendations. A
# hit is a recommendation that belongs to the fifth of the films that the user likes
# most.
others = people(rng.normal(0, 1.8, (200, 6)))
best = others >= np.quantile(others, 0.8, axis=1, keepdims=True)
stars = rate(others)
turn = rng.random_sample(others.shape).argsort(axis=1)
given = [1, 2, 3, 6, 12, 24, 48]
popular = completer.col_factors_[:, -1]  # biases of the columns: popularity
hits = {"Factorization": [], "most popular films": []}
for n in given:
    seen = turn < n
    at = np.nonzero(seen)
    completed = completer.transform(csr_array((stars[at], at), shape=stars.shape))
    guesses = completed, np.broadcast_to(popular, stars.shape)
    for rates, guess in zip(hits.values(), guesses, strict=True):
        found = [
            liked[top(row, own, 5)].mean()
            for liked, row, own in zip(best, guess, seen, strict=True)
        ]
        rates.append(np.mean(found))
for name, rates in hits.items():
    print(f"{name:>24}:", ", ".join(f"{rate:.0%}" for rate in rates))

# %%
# The answer
# ----------
figure, axes = plt.subplots(
    1, 2, figsize=(13, 5.5), layout="constrained", width_ratios=[2, 1]
)
place = genre + np.tile(np.linspace(-0.36, 0.36, 20), 6)
axes[0].scatter(place, his_liking, 14, "0.7", label="true rating")
axes[0].scatter(place[~his_seen], his_predicted[~his_seen], 22, "C0", label="predicted")
axes[0].scatter(place[rated], his_predicted[rated], 90, "C1", marker="*", label="rated")
axes[0].scatter(
    place[his_top],
    his_predicted[his_top],
    110,
    "none",
    edgecolors="C3",
    label="recommended",
)
axes[0].set_xticks(range(6), genres)
axes[0].set_ylabel("rating")
axes[0].set_title(
    "A new user who loves space, likes crime, dislikes romance and comedy"
)
axes[0].legend(ncols=4, loc="upper center", bbox_to_anchor=(0.5, -0.08), frameon=False)
for name, rates in hits.items():
    axes[1].semilogx(given, rates, "o-", label=name)
axes[1].axhline(0.2, color="0.6", ls="--", label="chance")
axes[1].set_xticks(given, given)
axes[1].minorticks_off()
axes[1].set_ylim(0, 1)
axes[1].set_xlabel("number of ratings of a new user")
axes[1].set_title("share of hits among five recommendations")
axes[1].legend()
target = Path(sys.argv[0] or "films.py").with_suffix(".png")
figure.savefig(target, dpi=80)
print(f"Wrote {target}")
