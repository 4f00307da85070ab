"""
Recommend films from a CSV file of ratings
==========================================

Each line of a file has a user, a film and the stars that the user gave it.
`FactorizationCompleter` predicts the other ratings and recommends films, to the users
of the file and to a new user with a few ratings. It also learns from counts of views,
when there are no ratings.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skmc import Entries, FactorizationCompleter

# %%
# The files
# ---------
# They are simulated: a film has a genre, a user likes some genres, and 300 users have
# rated a tenth of 120 films. With your own files, skip this part.
folder = Path(tempfile.mkdtemp())
rng = np.random.RandomState(0)
genres = ["space", "romance", "crime", "western", "horror", "comedy"]
films = np.array([f"{genre} {k}" for genre in genres for k in range(20)])
share = 0.7 * np.eye(6).repeat(20, axis=0) + 0.3 * np.eye(6)[rng.randint(6, size=120)]
quality = rng.normal(0, 0.5, 120)


def opinions(taste):
    """What users with a given taste for the genres think of all films."""
    return 3 + quality + taste @ share.T


def stars(opinion):
    return np.clip(np.round(opinion + rng.normal(0, 0.3, opinion.shape)), 1, 5)


opinion = opinions(rng.normal(0, 1.8, (300, 6)))
user, film = np.nonzero(rng.uniform(size=opinion.shape) < 0.1)
pd.DataFrame(
    {
        "user": [f"user {k}" for k in user],
        "film": films[film],
        "stars": stars(opinion)[user, film],
    }
).to_csv(folder / "ratings.csv", index=False)
user, film = np.nonzero(rng.uniform(size=opinion.shape) < 0.01 + 0.2 * (opinion > 4))
pd.DataFrame(
    {
        "user": [f"user {k}" for k in user],
        "film": films[film],
        "views": rng.geometric(0.6, len(user)),
    }
).to_csv(folder / "views.csv", index=False)

# %%
# From ratings to recommendations
# -------------------------------
# `Entries.from_frame` takes the names of the columns. Rank and penalty are chosen on
# held-out ratings. Predictions are not limited to five stars.
ratings_table = pd.read_csv(folder / "ratings.csv")
ratings = Entries.from_frame(ratings_table, "user", "film", "stars")
completer = FactorizationCompleter(random_state=0).fit(ratings)
names, predicted = completer.recommend(["user 7", "user 8"], 3)
print(names)
print(predicted.round(1))
print(completer.predict_entries(["user 7"], ["space 0"]).round(1))

# %%
# A new user
# ----------
# The ratings are a dict. The completer is not fitted again.
new_user = {"space 3": 5, "space 8": 5, "romance 4": 1, "crime 1": 4, "comedy 9": 1}
names, predicted = completer.recommend(new_user, 5)
for name, value in zip(names[0], predicted[0], strict=True):
    print(f"{name}: {value:.1f}")

# %%
# Views instead of ratings
# ------------------------
# A view says that the user chose the film, and films without views may be disliked or
# unknown (implicit feedback). `alpha` is the weight of a view; it asks for a rank and a
# penalty, which `skmc.model_selection.RankingScorer` helps to choose. The values of
# the recommendations rank films, and are not stars.
views_table = pd.read_csv(folder / "views.csv")
views = Entries.from_frame(views_table, "user", "film", "views")
viewer = FactorizationCompleter(6, alpha=5.0, lambda_ridge=0.01, random_state=0)
names, _ = viewer.fit(views).recommend(["user 7", "user 8"], 3)
print(names)
print(viewer.recommend({"space 3": 2, "space 8": 1}, 5)[0])

# %%
# How many ratings does a new user have to give?
# ----------------------------------------------
# 200 other users rate between 1 and 48 films. A recommendation is a hit if the film is
# among the fifth of the films that the user likes most. For comparison, everybody gets
# the films with the highest mean rating.
others = opinions(rng.normal(0, 1.8, (200, 6)))
fifth = np.quantile(others, 0.8, axis=1, keepdims=True)
liked = pd.DataFrame(others >= fifth, columns=films)
given, order = stars(others), rng.uniform(size=others.shape).argsort(axis=1)
by_mean = ratings_table.groupby("film")["stars"].mean().sort_values(ascending=False)
counts = [1, 2, 3, 6, 12, 24, 48]
hits = {"FactorizationCompleter": [], "highest means": []}
for n in counts:
    shares = []
    for k, chosen in enumerate(order[:, :n]):
        rated = dict(zip(films[chosen], given[k, chosen], strict=True))
        recommended = completer.recommend(rated, 5)[0][0]
        popular = by_mean.index.drop(rated, errors="ignore")[:5]
        shares.append(
            [liked.loc[k, list(names)].mean() for names in (recommended, popular)]
        )
    for name, share in zip(hits, np.mean(shares, axis=0), strict=True):
        hits[name].append(share)
        print(f"{n:2} ratings, {name:>22}: {share:.0%} hits")

figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
for name, shares in hits.items():
    axis.semilogx(counts, shares, "o-", label=name)
axis.axhline(0.2, color="0.6", ls="--", label="films at random")
axis.set_xticks(counts, counts)
axis.minorticks_off()
axis.set(ylim=(0, 1), xlabel="ratings of a new user", ylabel="share of hits")
axis.set_title("Five recommended films")
axis.legend()
plt.show()
