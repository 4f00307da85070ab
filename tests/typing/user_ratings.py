"""Ratings as cells, and what to recommend."""

import numpy as np

from skmc import Entries, FactorizationCompleter

rng = np.random.RandomState(0)
users, films = np.nonzero(rng.rand(30, 12) < 0.6)
stars = rng.randint(1, 6, len(users)).astype(float)
ratings = Entries.from_triplets(users, films, stars, (30, 12))
completer = FactorizationCompleter(rank=2, lambda_ridge=0.1, random_state=0)
items, scores = completer.fit(ratings).recommend([0, 1], 3)
assert items.shape == scores.shape == (2, 3)
rank: int = completer.rank_
score: float = completer.score(ratings)
