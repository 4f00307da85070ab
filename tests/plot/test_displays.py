"""Displays draw the right data, and the HTML of estimators summarizes the fit."""

from __future__ import annotations

import sys

import matplotlib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from conftest import CONTAINERS, low_rank, make
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline

from skmc import (
    AIRCompleter,
    DMFCompleter,
    GaussianCompleter,
    KNNCompleter,
    MeanCompleter,
    MixedCompleter,
    NCARLCompleter,
    SoftImputeCompleter,
    patterns,
)
from skmc.base import RowModels
from skmc.loop import SpectrumRecorder
from skmc.metrics import nmae
from skmc.model_selection import fit_batch
from skmc.plot import (
    CompletionDisplay,
    ExplanationDisplay,
    HistoryDisplay,
    LaplacianDisplay,
    MissingnessDisplay,
    SpectrumDisplay,
)
from skmc.sensing import NuclearSensingRegressor

matplotlib.use("Agg")
import matplotlib.pyplot as plt

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning"
)  # fits are cut short


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def drawn(image):
    return np.ma.filled(image.get_array().astype(float), np.nan)


@pytest.fixture(scope="module")
def fitted():
    truth = low_rank(20, 12, rank=3)
    hidden = patterns.random(truth, 0.3, spare=True, random_state=0)
    X = np.ma.masked_array(truth, hidden)
    air = make(AIRCompleter, lambda_col=0.25, max_iter=200, early_stopping=True)
    return truth, X, air.set_callbacks(SpectrumRecorder(4)).fit(X)


def test_completion_is_drawn_next_to_truth_and_error(fitted):
    truth, X, air = fitted
    display = CompletionDisplay.from_estimator(air, X, truth=truth)
    images, completed = display.images_, air.transform(X)
    np.testing.assert_array_equal(drawn(images["observed"]), X.filled(np.nan))
    np.testing.assert_array_equal(drawn(images["completed"]), completed)
    np.testing.assert_array_equal(drawn(images["truth"]), truth)
    np.testing.assert_allclose(drawn(images["error"]), abs(completed - truth))
    for name in ("observed", "completed", "truth"):
        assert images[name].get_clim() == (truth.min(), truth.max())
    titles = [axis.get_title() for axis in display.axes_]
    share = f"{X.mask.mean():.0%}"
    error = f"{nmae(completed, truth, X.mask):.3g}"
    expected = [f"observed ({share} missing)", "completed by AIR", "truth"]
    assert titles == [*expected, f"|error|, NMAE {error}"]
    assert all(a.get_xlabel() == "column" for a in display.axes_)


@pytest.mark.parametrize("container", CONTAINERS)
def test_every_container_gives_the_same_drawing(container, small):
    _, masked = small
    X = CONTAINERS[container](masked)
    display = CompletionDisplay.from_estimator(MeanCompleter().fit(X), X)
    expected = MeanCompleter().fit_transform(masked)
    np.testing.assert_allclose(drawn(display.images_["completed"]), expected)
    np.testing.assert_allclose(
        drawn(display.images_["observed"]), masked.filled(np.nan)
    )
    assert len(display.images_) == 2


def test_columns_of_different_units_are_drawn_in_deviations(small):
    truth, masked = small
    units = np.array([1, 1e-3, 1e3, 1, 1, 1e4])
    X = pd.DataFrame((masked * units).filled(np.nan), columns=list("abcdef"))
    completer = KNNCompleter().fit(X)
    display = CompletionDisplay.from_estimator(completer, X, truth=truth * units)
    seen = drawn(display.images_["observed"])
    np.testing.assert_allclose(np.nanmean(seen, 0), 0, atol=1e-9)
    np.testing.assert_allclose(np.nanstd(seen, 0), 1)
    assert display.images_["truth"].get_clim() == (-3, 3)
    labels = [label.get_text() for label in display.axes_[0].get_xticklabels()]
    assert labels == list("abcdef")
    plain = CompletionDisplay.from_estimator(completer, X, scaling=None, vmin=0)
    np.testing.assert_array_equal(drawn(plain.images_["observed"]), X)
    assert plain.images_["observed"].get_clim()[0] == 0


@pytest.mark.parametrize("cmap", ["gray", "Greys", "viridis", "coolwarm", "magma"])
def test_missing_cells_have_a_distinct_color(cmap, small):
    truth, masked = small
    display = CompletionDisplay(masked.filled(np.nan), truth).plot(cmap=cmap)
    colors = display.images_["observed"].get_cmap()
    distance = np.abs(colors(np.linspace(0, 1, 256)) - colors(np.nan)).max(1)
    assert distance.min() > 0.2


def test_completion_in_given_axes(small):
    truth, masked = small
    figure, axes = plt.subplots(2, 2)
    panels = ("completed", "error")
    display = CompletionDisplay(masked.filled(np.nan), truth, truth=truth)
    display.plot(ax=axes[1], panels=panels, colorbar=False)
    assert display.figure_ is figure
    assert list(display.axes_) == list(axes[1])
    assert not axes[0, 0].images
    assert tuple(display.images_) == panels
    assert display.plot(panels=["error"]).axes_.shape == (1,)


def test_other_imputers_are_drawn(small):
    _, masked = small
    X = masked.filled(np.nan)
    imputer = SimpleImputer().fit(X)
    display = CompletionDisplay.from_estimator(imputer, masked)
    np.testing.assert_allclose(
        drawn(display.images_["completed"]), imputer.transform(X)
    )
    assert display.axes_[1].get_title() == "completed by SimpleImputer"


def test_completions_that_cannot_be_drawn(small):
    truth, masked = small
    flagged = MeanCompleter(add_indicator=True).fit(masked)
    with pytest.raises(ValueError, match="set add_indicator=False"):
        CompletionDisplay.from_estimator(flagged, masked)
    display = CompletionDisplay(masked.filled(np.nan), truth)
    with pytest.raises(ValueError, match=r"panels must be of .* got \['truth'\]"):
        display.plot(panels=["truth"])
    with pytest.raises(ValueError, match="ax holds 1 Axes for 2 panels"):
        display.plot(ax=plt.figure().gca())


@pytest.mark.parametrize(
    "completer",
    [
        make(AIRCompleter, blocks={2: 0.1}),
        make(DMFCompleter, regularizer="dirichlet"),
        make(NCARLCompleter, alpha=10, n_neighbors=2),
    ],
    ids=lambda c: type(c).__name__,
)
def test_similarities_are_drawn_without_the_diagonal(completer, small):
    _, masked = small
    completer.fit(masked)
    display = LaplacianDisplay.from_estimator(completer)
    laplacians = getattr(completer, "laplacians_", {})
    if not laplacians:
        laplacians = {completer.laplacian_axis_: completer.laplacian_}
    assert list(display.images_) == list(laplacians)
    for name, L in laplacians.items():
        A = drawn(display.images_[name])
        np.testing.assert_array_equal(np.diag(A), 0)
        np.testing.assert_allclose(np.diag(A.sum(0)) - A, L, atol=1e-6)
    order = np.arange(6)[::-1]
    turned = display.plot(order={"columns": order}).images_["columns"]
    expected = np.diag(np.diag(laplacians["columns"])) - laplacians["columns"]
    np.testing.assert_array_equal(drawn(turned), expected[::-1, ::-1])


def test_column_names_match_their_similarities(small):
    _, masked = small
    X = CONTAINERS["pandas"](masked)
    air = make(AIRCompleter, lambda_row=0).fit(X)
    order = [3, 1, 2, 0, 5, 4]
    display = LaplacianDisplay.from_estimator(air, order={"columns": order})
    labels = [label.get_text() for label in display.axes_[0].get_yticklabels()]
    assert labels == list("dbcafe")


def test_missing_laplacians(fitted, small):
    _, masked = small
    for completer in (MeanCompleter(), make(DMFCompleter), AIRCompleter()):
        if not isinstance(completer, AIRCompleter):
            completer.fit(masked)
        with pytest.raises(ValueError, match=r"has no Laplacian\. AIRCompleter,"):
            LaplacianDisplay.from_estimator(completer)
    with pytest.raises(ValueError, match=r"order names \['users'\], but the Lapl"):
        LaplacianDisplay.from_estimator(fitted[2], order={"users": np.arange(20)})


def test_spectra_of_completion_and_truth(fitted):
    truth, _, air = fitted
    display = SpectrumDisplay.from_estimator(air, truth=truth)
    for label, matrix in {"completed": air.reconstruction_, "truth": truth}.items():
        values = np.linalg.svd(matrix, compute_uv=False)
        index, found = display.lines_[label].get_data()
        np.testing.assert_allclose(found, values[: len(found)])
        np.testing.assert_array_equal(index, np.arange(1, len(found) + 1))
    assert len(display.lines_["truth"].get_data()[0]) == 3  # the rest is rounding
    again = SpectrumDisplay.from_matrices({"truth": truth})
    assert list(again.lines_) == ["truth"]
    with pytest.raises(ValueError, match="truth has missing cells"):
        SpectrumDisplay.from_estimator(air, truth=np.full_like(truth, np.nan))


def test_spectra_are_recorded_during_a_fit(fitted):
    _, _, air = fitted
    history = air.history_
    values = history["singular_values"]
    assert values.shape == (len(history["n_iter"]), 4)
    assert (np.diff(values) <= 0).all()
    kept = history["validation"].argmin()
    expected = np.linalg.svd(air.reconstruction_, compute_uv=False)[:4]
    np.testing.assert_allclose(values[kept], expected, rtol=1e-6)
    spectra, during = SpectrumDisplay.from_estimator(air).axes_
    assert len(during.lines) == 4
    np.testing.assert_array_equal(during.lines[1].get_ydata(), values[:, 1])
    np.testing.assert_array_equal(during.lines[1].get_xdata(), history["n_iter"])
    alone = SpectrumDisplay.from_estimator(air, ax=spectra)
    assert list(alone.axes_) == [spectra]


def test_recorder_forgets_a_fit_that_failed(small):
    _, masked = small
    recorder = SpectrumRecorder(2)
    completer = make(AIRCompleter, blocks={100: 1.0}).set_callbacks(recorder)
    with pytest.raises(ValueError, match="blocks maps sizes"):
        completer.fit(masked)
    completer.set_params(blocks=None).fit(masked)
    checks = len(completer.history_["n_iter"])
    assert completer.history_["singular_values"].shape == (checks, 2)


def test_spectrum_and_history_of_a_sensed_matrix():
    rng = np.random.RandomState(0)
    truth, A = low_rank(5, 4), rng.randn(40, 5, 4)
    model = NuclearSensingRegressor()
    model.set_callbacks(SpectrumRecorder(3))
    model.fit(A, np.einsum("kij,ij", A, truth))
    found = SpectrumDisplay.from_estimator(model).lines_["completed"].get_ydata()
    values = np.linalg.svd(model.matrix_, compute_uv=False)
    np.testing.assert_allclose(found, values[: len(found)])
    recorded = model.history_["singular_values"]
    np.testing.assert_allclose(recorded[-1], values[:3], rtol=1e-6)
    assert "objective" in HistoryDisplay.from_estimator(model).lines_
    with pytest.raises(ValueError, match="neither reconstruction_ nor matrix_"):
        SpectrumDisplay.from_estimator(SimpleImputer())


def test_history_marks_its_end_and_its_best(fitted):
    _, _, air = fitted
    display = HistoryDisplay.from_estimator(air)
    names = ["objective", "residual", "energy_rows", "energy_columns", "validation"]
    assert list(display.lines_) == names
    for key, line in display.lines_.items():
        np.testing.assert_array_equal(line.get_xdata(), air.history_["n_iter"])
        np.testing.assert_array_equal(line.get_ydata(), air.history_[key])
    objective, residual, _, _, validation = display.axes_
    for axis in display.axes_:
        assert axis.lines[1].get_xdata()[0] == air.history_["n_iter"][-1]
        assert axis.get_xlabel() == "iteration" and axis.get_ylabel()
    (entry,) = objective.get_legend().get_texts()
    end = air.history_["n_iter"][-1]
    assert entry.get_text() == f"AIRCompleter: {air.status_} at {end}"
    assert residual.lines[2].get_ydata()[0] == air.tol
    assert residual.get_yscale() == "log"
    best = air.history_["validation"].argmin()
    assert validation.lines[2].get_xdata()[0] == air.history_["n_iter"][best]


def test_histories_share_axes_and_need_not_be_positive(fitted, small):
    _, _, air = fitted
    first = HistoryDisplay.from_estimator(air, keys=["objective"])
    second = HistoryDisplay.from_estimator(
        air, keys=["objective"], ax=first.axes_, name="again"
    )
    texts = second.axes_[0].get_legend().get_texts()
    assert [t.get_text().split(":")[0] for t in texts] == ["AIRCompleter", "again"]
    steps = np.array([1, 2, 3])
    values = {"n_iter": steps, "a": np.array([1.0, -2, 0]), "b": steps * np.nan}
    display = HistoryDisplay(values | {"c": np.array([np.inf, 100, 1])}).plot()
    scales = [axis.get_yscale() for axis in display.axes_]
    assert scales == ["linear", "linear", "log"]
    with pytest.raises(ValueError, match=r"keys must be of .*, got \['d'\]"):
        display.plot(keys=["d"])
    with pytest.raises(ValueError, match="MeanCompleter has no history"):
        HistoryDisplay.from_estimator(MeanCompleter().fit(small[1]))


def test_without_matplotlib_an_error_says_what_to_install(fitted, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'skmc\[plot\]'"):
        HistoryDisplay.from_estimator(fitted[2])


def cells_of(page: str) -> dict[str, str]:
    """The rows of the summary in the HTML of an estimator."""
    summary = page.split("<summary>Fit</summary>")[1].split("</table>")[0]
    rows = summary.split('<td class="param">')[1:]
    return {
        row.split("<")[0]: row.split('<td class="value">')[1].split("<")[0]
        for row in rows
    }


def test_html_summarizes_the_fit(fitted):
    _, X, air = fitted
    assert "<summary>Fit</summary>" not in AIRCompleter()._repr_html_()
    found = cells_of(air._repr_html_())
    assert found["matrix"] == f"20 x 12, {100 - 100 * X.mask.mean():.3g} % observed"
    assert found["status"] == air.status_
    assert found["iterations"] == str(air.n_iter_)
    assert float(found["seconds"]) > 0
    validation = air.history_["validation"].min()
    assert found["validation RMSE (scaled)"] == f"{validation:.4g}"
    soft = SoftImputeCompleter(random_state=0).fit(X)
    found = cells_of(make_pipeline(soft).fit(X)._repr_html_())  # of a step, too
    assert float(found["lambda_nuclear"]) == pytest.approx(soft.lambda_nuclear_, 1e-3)
    assert found["rank"] == str(soft.rank_)


def test_html_of_mixed_tables_batches_and_sensing(small):
    _, masked = small
    table = CONTAINERS["pandas"](masked).assign(kind=["x", "<b>y</b>"] * 6)
    mixed = MixedCompleter(MeanCompleter()).fit(table)
    assert cells_of(mixed._repr_html_())["columns"] == "6 numeric, 1 categorical"
    (alone,) = fit_batch([make(AIRCompleter, lambda_row=0.1)], [masked])
    found = cells_of(alone._repr_html_())
    assert "seconds" not in found and "status" in found
    A = np.eye(4).reshape(4, 2, 2)
    sensed = NuclearSensingRegressor().fit(A, np.arange(4.0))
    assert cells_of(sensed._repr_html_())["matrix"] == "2 x 2"


def test_html_is_escaped(small):
    _, masked = small
    evil = "<script>alert(1)</script>"
    X = pd.DataFrame(masked.filled(np.nan), columns=[f"{evil}{k}" for k in range(6)])
    completer = make(AIRCompleter).fit(X)
    completer.status_ = completer.choice_ = evil
    vars(completer)[f"{evil}_"] = 1
    page = completer._repr_html_()
    assert evil not in page
    assert page.count("&lt;script&gt;alert(1)") >= 8


def test_html_and_dir_make_no_dense_matrix(small, monkeypatch):
    _, masked = small
    completer = make(SoftImputeCompleter).fit(masked)

    def dense(self):
        raise MemoryError

    monkeypatch.setattr(RowModels, "whole", dense)
    assert "reconstruction_" in dir(completer)
    assert "rank" in cells_of(completer._repr_html_())


def test_truth_has_the_cells_of_the_matrix(small):
    truth, masked = small
    X = pd.DataFrame(masked.filled(np.nan), columns=list("abcdef"))
    mean = MeanCompleter().fit(X)
    turned = pd.DataFrame(truth, columns=list("abcdef"))[list("fedcba")]
    for bad, message in ((turned, "truth has columns"), (truth[:1], "truth has shape")):
        with pytest.raises(ValueError, match=message):
            CompletionDisplay.from_estimator(mean, X, truth=bad)
        with pytest.raises(ValueError, match=message):
            SpectrumDisplay.from_estimator(mean, truth=bad)
    CompletionDisplay.from_estimator(mean, X, truth=turned[list("abcdef")])


def test_column_names_are_not_formulas(small):
    _, masked = small
    X = pd.DataFrame(masked.filled(np.nan), columns=[f"$\\{k}$" for k in range(6)])
    air = make(AIRCompleter, lambda_row=0).fit(X)
    for display in (
        CompletionDisplay.from_estimator(air, X),
        LaplacianDisplay.from_estimator(air),
    ):
        display.figure_.canvas.draw()


def test_sparse_laplacians_are_drawn_unless_they_are_large():
    L = 2 * np.eye(4) - np.eye(4, k=1) - np.eye(4, k=-1)
    dense, sparse = (
        LaplacianDisplay({"rows": each}).plot().images_["rows"].get_array()
        for each in (L, sp.csr_array(L))
    )
    np.testing.assert_array_equal(sparse, dense)
    with pytest.raises(ValueError, match="Laplacian of 6000 rows is sparse and too"):
        LaplacianDisplay({"rows": sp.eye_array(6000, format="csr")}).plot()


def test_color_scales_of_constant_matrices():
    X = np.ones((3, 4))
    images = CompletionDisplay(X, X, truth=X).plot().images_
    first, *others = (images[k].to_rgba(1.0) for k in ("observed", "completed"))
    assert all(other == first for other in others)
    assert images["error"].get_clim() == (0, 1)
    images = LaplacianDisplay({"rows": np.zeros((3, 3))}).plot().images_
    assert images["rows"].get_clim() == (0, 1)
    row = np.arange(8.0)[None]
    seen = CompletionDisplay(row, row).plot().images_["observed"]
    np.testing.assert_array_equal(drawn(seen), row)


def test_imputers_that_need_names_get_them(small):
    _, masked = small
    X = pd.DataFrame(masked.filled(np.nan), columns=list("abcdef"))
    one, other = list("abc"), list("def")
    imputer = ColumnTransformer([("m", SimpleImputer(), one), ("n", "drop", [])])
    imputer.set_params(remainder=SimpleImputer(strategy="median")).fit(X)
    display = CompletionDisplay.from_estimator(imputer, X)
    expected = X[one].fillna(X[one].mean()).join(X[other].fillna(X[other].median()))
    np.testing.assert_allclose(drawn(display.images_["completed"]), expected)


def test_arguments_of_displays(fitted):
    _, X, air = fitted
    with pytest.raises(ValueError, match="scaling must be"):
        CompletionDisplay.from_estimator(air, X, scaling="rows")
    with pytest.raises(ValueError, match="panels must be"):
        CompletionDisplay.from_estimator(air, X, panels=[])
    with pytest.raises(ValueError, match="has no transform"):
        CompletionDisplay.from_estimator(NuclearSensingRegressor(), X)
    with pytest.raises(ValueError, match="keys must be"):
        HistoryDisplay.from_estimator(air, keys=[])
    with pytest.raises(ValueError, match="ax must be of matplotlib Axes, got 1"):
        HistoryDisplay.from_estimator(air, ax=[1, 2, 3])
    with pytest.raises(NotFittedError):
        HistoryDisplay.from_estimator(AIRCompleter())
    for n_values in (0, -1, 1.5, "a"):
        with pytest.raises(ValueError, match="n_values must be an int >= 1"):
            SpectrumRecorder(n_values)


def test_bars_lead_from_the_base_to_the_value():
    rng = np.random.RandomState(0)
    X = pd.DataFrame(rng.randn(40, 1) + rng.randn(40, 4), columns=list("abcd"))
    X.loc[3, "b"] = np.nan
    gaussian = GaussianCompleter().fit(X)
    display = ExplanationDisplay.from_estimator(gaussian, X, 3, "b")
    explanation = gaussian.explain(X, 3, "b")
    assert display.explanation == explanation
    widths = [bar.get_width() for bar in display.bars_]
    np.testing.assert_allclose(widths, [c.amount for c in explanation.contributions])
    ends = [bar.get_x() + bar.get_width() for bar in display.bars_]
    starts = [bar.get_x() for bar in display.bars_]
    np.testing.assert_allclose([*starts, explanation.value], [explanation.base, *ends])
    labels = [label.get_text() for label in display.ax_.get_yticklabels()]
    named = [f"{c.label} ({c.cell:.3g})" for c in explanation.contributions]
    assert labels == [*named, f"value {explanation.value:.4g}"]
    assert display.ax_.get_title() == "b of row 3"


def test_few_bars_for_many_donors(small):
    _, masked = small
    X = masked.filled(np.nan)
    i, j = np.argwhere(np.isnan(X))[0]
    display = ExplanationDisplay(KNNCompleter(6).fit(X).explain(X, i, j))
    _, axes = plt.subplots()
    assert display.plot(ax=axes, n=2).ax_ is axes
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert len(display.bars_) == 3 and labels[2] == "4 other rows"
    with pytest.raises(ValueError, match="n must be at least 1"):
        display.plot(n=0)
    with pytest.raises(ValueError, match="SimpleImputer has no method explain"):
        ExplanationDisplay.from_estimator(SimpleImputer().fit(X), X, i, j)
    empty = X[[i]] * np.nan
    display = ExplanationDisplay.from_estimator(KNNCompleter().fit(X), empty, 0, j)
    assert not len(display.bars_)


def test_missing_cells_of_a_table():
    X = pd.DataFrame(
        {"a": [1.0, np.nan, 3, -9], "b": ["x", None, "y", "z"], "c": [1, 2, 3, 4]}
    )
    display = MissingnessDisplay.from_matrix(X, missing_values=-9)
    expected = np.array([[0, 0, 0], [1, 1, 0], [0, 0, 0], [1, 0, 0]])
    np.testing.assert_array_equal(drawn(display.images_["missing"]), expected)
    together = np.corrcoef(expected[:, :2].T)
    np.testing.assert_allclose(drawn(display.images_["correlation"]), together)
    labels = [
        [label.get_text() for label in axis.get_xticklabels()] for axis in display.axes_
    ]
    assert labels == [list("abc"), list("ab")]
    assert display.axes_[0].get_title() == "missing cells (25%)"


@pytest.mark.parametrize("container", CONTAINERS)
def test_missing_cells_of_every_container(container, small):
    _, masked = small
    display = MissingnessDisplay.from_matrix(CONTAINERS[container](masked))
    np.testing.assert_array_equal(drawn(display.images_["missing"]), masked.mask)


def test_many_rows_and_single_panels():
    missing = np.zeros((4000, 3), bool)
    missing[:8, 0] = True
    display = MissingnessDisplay(missing).plot()
    shares = drawn(display.images_["missing"])
    assert shares.shape == (1000, 3) and shares.sum() == 2
    assert list(display.images_) == ["missing"] and display.axes_.shape == (1,)
    missing[:4, 1] = True
    _, axes = plt.subplots()
    assert MissingnessDisplay(missing).plot(ax=axes).axes_[0] is axes
    both = plt.subplots(1, 2)[1]
    assert len(MissingnessDisplay(missing).plot(ax=both).images_) == 2
