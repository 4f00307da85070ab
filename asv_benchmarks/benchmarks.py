"""Time, memory and errors of the main methods."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np

from skmc import (
    AIRCompleter,
    Entries,
    FactorizationCompleter,
    GaussianCompleter,
    KNNCompleter,
    NonlocalCompleter,
    SoftImputeCompleter,
    SVDCompleter,
    TreesCompleter,
)

warnings.simplefilter("ignore")
SEED = {"random_state": 0}
CPU = {"device": "cpu"}


def low_rank(n_rows: int, n_cols: int) -> tuple[np.ndarray, np.ndarray]:
    """Rank 3 with noise, and the same with a fifth of the cells missing."""
    rng = np.random.RandomState(0)
    truth = rng.randn(n_rows, 3) @ rng.randn(3, n_cols)
    X = truth + 0.1 * rng.randn(n_rows, n_cols)
    X[rng.rand(*X.shape) < 0.2] = np.nan
    return truth, X


def ratings(n_rows: int, n_cols: int) -> Entries:
    """Cells of a matrix with a twentieth of its cells."""
    rng = np.random.RandomState(0)
    rows, cols = np.nonzero(rng.rand(n_rows, n_cols) < 0.05)
    values = (rng.randn(n_rows, 3) @ rng.randn(3, n_cols))[rows, cols]
    return Entries.from_triplets(rows, cols, values, (n_rows, n_cols))


class _Fit:
    """A fit at two sizes."""

    timeout = 120
    params = ([(100, 20), (1000, 50)],)
    param_names = ("shape",)

    def setup(self, shape):
        self.X = self.data(*shape)

    def data(self, *shape):
        return low_rank(*shape)[1]

    def time_fit(self, shape):
        self.completer().fit(self.X)

    def completer(self):
        raise NotImplementedError


class KNN(_Fit):
    def completer(self):
        return KNNCompleter(**CPU)


class SVD(_Fit):
    def completer(self):
        return SVDCompleter(3, **CPU, **SEED)


class SoftImpute(_Fit):
    def completer(self):
        return SoftImputeCompleter(**CPU, **SEED)


class Gaussian(_Fit):
    def completer(self):
        return GaussianCompleter(**CPU, **SEED)


class Trees(_Fit):
    params = ([(100, 20), (400, 20)],)

    def completer(self):
        return TreesCompleter(n_estimators=20, **SEED)


class Factorization(_Fit):
    params = ([(500, 200), (5000, 1000)],)

    def data(self, *shape):
        return ratings(*shape)

    def completer(self):
        return FactorizationCompleter(rank=8, lambda_ridge=0.1, **CPU, **SEED)

    def peakmem_fit(self, shape):
        self.completer().fit(self.X)


class Pictures:
    """Few rounds of the two methods of pictures, 64 x 64 with 30 % hidden."""

    timeout = 120
    params = ([AIRCompleter, NonlocalCompleter],)
    param_names = ("method",)

    def setup(self, method):
        rows, cols = np.mgrid[:64, :64] / 9
        self.X = np.sin(rows + cols) * np.cos(cols)
        self.X[np.random.RandomState(0).rand(64, 64) < 0.3] = np.nan

    def time_fit(self, method):
        method(max_iter=10, **CPU, **SEED).fit(self.X)


class NewRows:
    """Rows that were not in the fit."""

    params = ([KNNCompleter, SVDCompleter, GaussianCompleter],)
    param_names = ("method",)

    def setup(self, method):
        _, X = low_rank(1500, 50)
        self.completer, self.new = method(**CPU).fit(X[:1000]), X[1000:]
        self.completer.transform(self.new)  # the map of rows is made once

    def time_transform(self, method):
        self.completer.transform(self.new)


class Recommend:
    """The best ten of 1000 columns for each of 2000 rows."""

    def setup(self):
        completer = FactorizationCompleter(rank=8, lambda_ridge=0.1, **CPU, **SEED)
        self.completer = completer.fit(ratings(2000, 1000))

    def time_recommend(self):
        self.completer.recommend(np.arange(2000), 10)


class Import:
    """A new process that imports the package, or a completer."""

    params = (["import skmc", "from skmc import SVDCompleter"],)
    param_names = ("code",)

    def time_import(self, code):
        subprocess.run([sys.executable, "-c", code], check=True)


class Memory:
    """Peak memory of a process that fits a dense matrix."""

    def setup(self):
        self.X = low_rank(5000, 200)[1]

    def peakmem_fit(self):
        SVDCompleter(3, max_iter=5, **CPU, **SEED).fit(self.X)


class Error:
    """Error of a fit; tests/library/accuracy.csv has all others."""

    unit = "deviations"

    def track_error(self):
        truth, X = low_rank(100, 20)
        hidden = np.isnan(X)
        completed = SVDCompleter(3, **CPU, **SEED).fit_transform(X)
        return np.sqrt(np.mean((completed - truth)[hidden] ** 2)) / truth.std()
