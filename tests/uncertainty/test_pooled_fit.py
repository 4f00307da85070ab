"""Pooled estimates beside those of R's mice, and models fitted to each draw.

The numbers are those of ``mice`` 3.15.0 in R 4.2.2:

    imp <- mice(nhanes, m = 5, seed = 123)
    fit <- with(imp, lm(chl ~ age + bmi))
    summary(pool(fit), conf.int = TRUE)  # and pool(fit)$pooled, with digits = 17

with ``glm((hyp == 2) ~ age + bmi, family = binomial, epsilon = 1e-14)``, with ``glm(hyp
~ age + chl, family = poisson, epsilon = 1e-14)``, and, for ``mice(boys, m = 5, seed =
123)``, with ``lm(hgt ~ age + wgt + tv)``. The table nhanes is that of Schafer (1997),
Analysis of incomplete multivariate data.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
)

from skmc import ChainedCompleter
from skmc.uncertainty import pool, pooled_fit

# age, bmi, hyp, chl
NHANES = """
1 ? ? ?
2 22.7 1 187
1 ? 1 187
3 ? ? ?
1 20.4 1 113
3 ? ? 184
1 22.5 1 118
1 30.1 1 187
2 22 1 238
2 ? ? ?
1 ? ? ?
2 ? ? ?
3 21.7 1 206
2 28.7 2 204
1 29.6 1 ?
1 ? ? ?
3 27.2 2 284
2 26.3 2 199
1 35.3 1 218
3 25.5 2 ?
1 ? ? ?
1 33.2 1 229
1 27.5 1 131
3 24.9 1 ?
2 27.4 1 186
"""
# missing cells of each draw, row by row
IMPUTED = """
22 1 238 30.1 26.3 2 218 27.5 1 27.4 1 186 33.2 1
    187 27.4 2 229 187 35.3 1 187 218 33.2 1 187 284
35.3 1 218 27.2 25.5 1 184 25.5 2 27.2 1 184 22 1
    238 20.4 1 187 186 33.2 1 206 186 22 1 131 184
27.2 1 187 30.1 22.7 1 218 21.7 2 30.1 1 206 27.2 1
    118 27.4 1 206 187 26.3 1 238 186 26.3 1 118 186
29.6 1 238 30.1 30.1 2 184 24.9 2 22 1 131 30.1 1
    199 27.5 2 199 187 33.2 1 199 186 22 1 113 184
27.2 1 187 27.2 24.9 1 218 21.7 1 27.4 1 206 35.3 1
    204 22 1 187 229 22.7 1 238 218 29.6 1 206 204
"""
COLUMNS = ["estimate", "std_error", "low", "high", "statistic", "p_value", "dof"]
COLUMNS += ["missing_information", "fmi"]
# intercept, age, bmi
CHL = """
11.430196307 72.560559673 -155.82062203 178.68101465 0.15752629746
    0.87872369236 8.0204223862 0.40686112844 0.51450471065
27.505289375 10.784998705 3.3903796561 51.620199093 2.5503284819
    0.029385170784 9.7481087107 0.33582748034 0.44002686156
4.9799785976 2.3221951432 -0.39470250416 10.354659699 2.1445133981
    0.0650353662 7.8350306514 0.41533821069 0.52325886327
"""
HYP = """
-16.008453582 10.624433179 -38.497547533 6.4806403681 -1.5067583666
    0.15100642396 16.300502189 0.132540135 0.22243001004
2.7488260933 1.4220281731 -0.25364240198 5.7512945886 1.9330320912
    0.070232930541 16.834288664 0.11721832546 0.20623403855
0.33372414676 0.28999589203 -0.28093738878 0.94838568229 1.1507892212
    0.26669363619 16.032829885 0.1401599327 0.23051329292
"""
# intercept, age, chl
COUNT = """
-0.37787737765 0.96152148513 -2.3829670387 1.6272122834 -0.39299941134
    0.69845795362 20.095206945 0.0069152282471 0.092914437876
0.18545599439 0.24141006783 -0.31933879139 0.69025078017 0.76821980149
    0.45166800644 19.272032422 0.040310952361 0.1264898003
0.0011868511504 0.0051720480381 -0.0096026654829 0.011976367784 0.22947411579
    0.82083363654 19.976505939 0.012275200845 0.098252137617
"""
# Estimate and standard error of each coefficient in each draw: intercept, age, wgt, tv.
BOYS_FITS = """
68.4924213257834 0.599604646825035 5.83928453758119 0.160135531724087
    0.437079425715645 0.0432451268545354 -0.858131368163175 0.0776646620876467
68.8800054989898 0.611484779095328 5.87374856854425 0.16777143670487
    0.386083145934586 0.0438896737473444 -0.686221192631038 0.0755930433847887
68.9755285586483 0.593565099443795 5.81003535970009 0.160829946100801
    0.42744318097617 0.0432055851880834 -0.828011620043351 0.075139815724409
68.7895548343947 0.593062776795516 5.82107394727881 0.160642609707763
    0.43192897341451 0.0433780538416327 -0.830064556534468 0.0741047094723862
68.5288377311103 0.604309689809367 5.80457036098055 0.163239914257132
    0.423591508048916 0.044117559737939 -0.751290440808864 0.0767725996310499
"""
BOYS = """
68.73326959 0.64458610839 67.460776732 70.005762448 106.63163338
    9.7457178629e-157 168.72176581 0.1322693085 0.14237554853
5.8297425548 0.16540697518 5.50488676 6.1545983496 35.244841086
    1.6610779495e-147 592.06657044 0.034263126555 0.037508937768
0.42122524682 0.048905853509 0.32391822815 0.51853226549 8.6129822218
    4.6224756557e-13 81.015883206 0.20635077374 0.22524361153
-0.79074383564 0.10836429241 -1.0220414925 -0.55944617875 -7.2970885339
    2.8804676136e-06 14.762090141 0.50986832479 0.56505683822
"""


def nhanes():
    """The five completed tables."""
    cells = [line.split() for line in NHANES.split("\n") if line]
    table = pd.DataFrame(cells, columns=["age", "bmi", "hyp", "chl"])
    table = table.replace("?", None).astype(float)
    draws = []
    for imputed in numbers(IMPUTED, 27):
        values = table.to_numpy().copy()
        values[np.isnan(values)] = imputed
        draws.append(pd.DataFrame(values, columns=table.columns))
    return draws


def numbers(text, *shape):
    return np.array(text.split(), float).reshape(-1, *shape)


def equal(summary, names, expected, rtol=1e-8):
    assert list(summary.index) == names and list(summary) == COLUMNS
    np.testing.assert_allclose(summary, numbers(expected, 9), rtol=rtol)


def test_linear_model_as_mice():
    pooled = pooled_fit(LinearRegression(), nhanes(), "chl", features=["age", "bmi"])
    equal(pooled.summary(), ["intercept", "age", "bmi"], CHL)


def test_generalized_linear_models_as_mice():
    draws = nhanes()
    for draw in draws:
        draw["high"] = np.where(draw["hyp"] == 2, "yes", "no")
    precise = {"tol": 1e-12, "solver": "newton-cholesky", "max_iter": 1000}
    logistic = LogisticRegression(C=np.inf, **precise)
    pooled = pooled_fit(logistic, draws, "high", features=["age", "bmi"])
    equal(pooled.summary(), ["intercept", "age", "bmi"], HYP, 1e-7)
    poisson = PoissonRegressor(alpha=0, **precise)
    pooled = pooled_fit(poisson, draws, "hyp", features=["age", "chl"])
    equal(pooled.summary(), ["intercept", "age", "chl"], COUNT, 1e-7)


def test_pool_as_mice():
    estimates, errors = np.moveaxis(numbers(BOYS_FITS, 4, 2), -1, 0)
    names = ["(Intercept)", "age", "wgt", "tv"]
    pooled = pool(estimates, errors**2, dof=744, names=names)
    equal(pooled.summary(), names, BOYS)


def test_results_of_a_function_as_mice():
    """A function returns what statsmodels calls its results."""

    def fit(draw):
        A = np.column_stack([np.ones(25), draw[["age", "bmi"]]])
        coef, (rss,), *_ = np.linalg.lstsq(A, draw["chl"], rcond=None)
        bse = np.sqrt(rss / 22 * np.diag(np.linalg.inv(A.T @ A)))
        names = ["Intercept", "age", "bmi"]
        return SimpleNamespace(params=pd.Series(coef, names), bse=bse, df_resid=22.0)

    equal(pooled_fit(fit, nhanes()).summary(), ["Intercept", "age", "bmi"], CHL)


def test_statsmodels_as_mice():
    formulas = pytest.importorskip("statsmodels.formula.api")
    pooled = pooled_fit(
        lambda draw: formulas.ols("chl ~ age + bmi", draw).fit(), nhanes()
    )
    equal(pooled.summary(), ["Intercept", "age", "bmi"], CHL)


def test_arrays_of_draws():
    frames = nhanes()
    array = np.stack(frames)
    expected = pooled_fit(LinearRegression(), frames, "chl", features="age")
    pooled = pooled_fit(LinearRegression(), array, 3, features=0)
    np.testing.assert_array_equal(pooled.summary(), expected.summary())
    without = pooled_fit(
        LinearRegression(fit_intercept=False), array, 3, features=[0, 1]
    )
    assert list(without.summary().index) == [0, 1]


def test_draws_of_a_completer():
    table = nhanes()[0]
    table.loc[:5, "bmi"] = np.nan
    completer = ChainedCompleter(n_draws=4, max_iter=4, random_state=0).fit(table)
    draws = completer.sample(table, 4, random_state=0)
    assert pooled_fit(LinearRegression(), draws, 3).missing_information.max() > 0.01


def test_names_and_levels_of_a_summary():
    some = [pd.Series([1.0, 2], ["a", "b"]), pd.Series([1.5, 2], ["a", "b"])]
    pooled = pool(some, np.ones((2, 2)))
    narrow, wide = pooled.summary(0.5), pooled.summary(0.99)
    assert list(narrow.index) == ["a", "b"]
    assert (wide["high"] > narrow["high"]).all() and (wide["low"] < narrow["low"]).all()
    one = pool([1.0, 2.0], [0.0, 0.0]).summary()  # all information is missing
    assert one.shape == (1, 9) and one["fmi"].item() == 1
    with pytest.raises(ValueError, match="level must lie in"):
        pooled.summary(95)
    with pytest.raises(ValueError, match="names has 1 names for 2 estimates"):
        pool(some, np.ones((2, 2)), names=["a"])


@pytest.mark.parametrize(
    ("model", "target", "features", "message"),
    [
        (Ridge(), "chl", None, "Ridge.* has no standard errors"),
        (LogisticRegression(), "hyp", None, r"C=np.inf"),
        (PoissonRegressor(), "chl", None, "alpha=0"),
        (LinearRegression(positive=True), "chl", None, "has no standard errors"),
        (len, "chl", None, "int has no standard errors; .* params, bse"),
        ("ols", None, None, "model must be LinearRegression"),
        (LinearRegression(), None, None, "target is missing"),
        (LinearRegression(), "x", None, r"no column 'x'; they have \['age', 'bmi'"),
        (LinearRegression(), "chl", ["x"], "no column 'x'"),
        (LinearRegression(), "chl", ["word"], "column 'word' is not one of numbers"),
        (LogisticRegression(C=np.inf), "age", "bmi", "'age' has 3 classes"),
    ],
)
def test_wrong_models_say_what_fits(model, target, features, message):
    draws = [draw.assign(word="a") for draw in nhanes()[:2]]
    with pytest.raises((TypeError, ValueError), match=message):
        pooled_fit(model, draws, target, features=features)
