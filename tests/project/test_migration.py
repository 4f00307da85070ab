"""The calls of other packages that the migration page shows, beside ours."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

pytestmark = [
    pytest.mark.repository,
    pytest.mark.filterwarnings("ignore"),  # of the other packages
]
PAGE = Path(__file__).parents[2] / "docs/migration.md"


@pytest.fixture(scope="module")
def page():
    """The variables after the code of the page has run."""
    pytest.importorskip("matplotlib").use("Agg")
    variables: dict = {}
    if PAGE.exists():
        for code in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
            exec(code, variables)
    return variables


def test_imputers(page):
    np.testing.assert_allclose(page["theirs"], page["ours"])


def test_fancyimpute(page):
    fancyimpute = pytest.importorskip("fancyimpute", exc_type=ImportError)
    try:
        theirs = fancyimpute.IterativeSVD(rank=2, verbose=False).fit_transform(
            page["X"]
        )
    except TypeError as error:  # its calls of scikit-learn are of older versions
        pytest.skip(str(error))
    assert abs(theirs - page["low_rank"]).mean() < 0.3


def test_miceforest(page):
    miceforest = pytest.importorskip("miceforest", exc_type=ImportError)
    table = page["table"]
    kernel = miceforest.ImputationKernel(table, num_datasets=2, random_state=0)
    kernel.mice(1)
    missing = table.isna().to_numpy()
    theirs = kernel.complete_data(0).to_numpy()[missing]
    ours = np.mean([draw.to_numpy()[missing] for draw in page["draws"]], axis=0)
    assert np.corrcoef(theirs, ours)[0, 1] > 0.5
    assert list(page["display"].observed) == list("abcde")


def test_lightfm(page):
    lightfm = pytest.importorskip("lightfm", exc_type=ImportError)
    from lightfm.data import Dataset

    counts = page["counts"]
    data = Dataset()
    data.fit(counts["user"], counts["item"])
    pairs = counts[["user", "item", "count"]].itertuples(index=False)
    interactions, _ = data.build_interactions(tuple(pair) for pair in pairs)
    theirs = lightfm.LightFM(no_components=4, random_state=0).fit(
        interactions, epochs=2
    )
    assert theirs.predict(0, np.arange(3)).shape == (3,)
    assert page["entries"].matrix_shape == interactions.shape
