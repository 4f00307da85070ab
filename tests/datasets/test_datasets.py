"""Loaders: included data, and clear errors for files that the user provides."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from skmc import datasets


@pytest.mark.parametrize("name", ["china", "flower"])
def test_photo(name):
    photo = datasets.load_photo(name)
    assert photo.shape == (213, 320)
    assert 0 <= photo.min() < 0.1
    assert 0.8 < photo.max() <= 1


LOADERS = {
    "load_image": "images/barbara_240.png",
    "load_mask": "images/masks/texture_mask_240.png",
    "load_syn_netflix": "graph/syn_netflix.npz",
    "load_drug_target": "drug_target/dti_ion_channel.npz",
    "load_movielens": "ratings/movielens_100k.npz",
    "load_flixster": "ratings/flixster_monti3000.npz",
    "load_table": "tabular/concrete.npz",
    "load_expression": "gene_expression/yeast_spellman1998.npz",
    "load_mnist_digits": "digits/mnist_train_first100.npz",
}


@pytest.mark.parametrize("name", LOADERS)
def test_missing_files_say_where_they_belong(name, tmp_path, monkeypatch):
    monkeypatch.setenv("SKMC_DATA", str(tmp_path / "here"))
    with pytest.raises(FileNotFoundError, match="SKMC_DATA") as error:
        getattr(datasets, name)()
    assert str(tmp_path / "here" / LOADERS[name]) in str(error.value)


def save(home, name, **arrays):
    (home / name).parent.mkdir(parents=True, exist_ok=True)
    np.savez(home / name, **arrays)


def test_pickles_are_never_loaded(tmp_path):
    save(tmp_path, "tabular/concrete.npz", X=np.array([{"code": "run me"}], object))
    with pytest.raises(ValueError, match="pickles are never loaded"):
        datasets.load_table("concrete", data_home=tmp_path)


def test_the_formats(tmp_path):
    """Small files of the documented layout."""
    (tmp_path / "images/masks").mkdir(parents=True)
    picture = np.arange(12, dtype=np.uint8).reshape(3, 4) * 20
    Image.fromarray(picture).save(tmp_path / "images/tiny.png")
    Image.fromarray(picture).save(tmp_path / "images/masks/tiny_mask_240.png")
    np.testing.assert_allclose(datasets.load_image("tiny", tmp_path), picture / 255)
    np.testing.assert_array_equal(datasets.load_mask("tiny", tmp_path), picture > 127)

    bits, graph = np.eye(3, dtype=np.uint8), np.ones((3, 3))
    save(
        tmp_path,
        LOADERS["load_syn_netflix"],
        M=graph * 2,
        O=bits,
        Otraining=bits,
        Otest=1 - bits,
        Wrow=graph,
        Wcol=graph,
    )
    netflix = datasets.load_syn_netflix(tmp_path)
    assert netflix.train.dtype == bool
    assert np.trace(netflix.row_graph) == 0
    assert netflix.row_graph.sum() == 6

    save(
        tmp_path,
        LOADERS["load_drug_target"],
        adjacency=bits[:2],
        drug_similarity=np.array([[1, 0.2], [0.4, 1]]),
        target_similarity=graph,
        drug_ids=np.array(["D1", "D2"]),
        target_ids=np.array(["a", "b", "c"]),
    )
    drugs = datasets.load_drug_target(data_home=tmp_path)
    assert drugs.data.shape == (2, 3)
    assert drugs.row_graph[0, 1] == pytest.approx(0.3)

    edges = {"W_users_row": [0, 1], "W_users_col": [1, 0]}
    edges |= {"W_movies_row": [0, 1], "W_movies_col": [1, 0]}
    save(
        tmp_path,
        LOADERS["load_movielens"],
        user=np.array([1, 2, 2]),
        item=np.array([1, 1, 3]),
        rating=np.array([5, 3, 1]),
        u1_test_index=np.array([2]),
    )
    assert "row_graph" not in datasets.load_movielens(data_home=tmp_path)
    save(tmp_path, "graph/movielens_100k_graphs.npz", n_users=2, n_items=3, **edges)
    ratings = datasets.load_movielens(data_home=tmp_path)
    assert ratings.entries.matrix_shape == (2, 3)
    assert ratings.splits["u1"].tolist() == [False, False, True]
    assert ratings.col_graph.toarray()[0].tolist() == [0, 1, 0]
    assert "genres" not in ratings
    line = "1|Caf\xe9 (1995)|01-Jan-1995||" + "|0" * 5 + "|1" + "|0" * 13 + "\n"
    (tmp_path / "ratings" / "u.item").write_text(line, encoding="latin-1")
    assert datasets.load_movielens(data_home=tmp_path).genres.nonzero()[1] == [5]

    save(
        tmp_path,
        LOADERS["load_flixster"],
        shape=np.array([2, 3]),
        row=np.array([0, 1], np.int16),
        col=np.array([2, 0], np.int16),
        rating=np.array([0.5, 4], np.float32),
        is_test=np.array([0, 1], np.uint8),
        **edges,
    )
    flixster = datasets.load_flixster(tmp_path)
    assert flixster.test.tolist() == [False, True]
    assert flixster.entries.to_cells()[0, 2] == 0.5

    table = {"X": np.array([[1, 2], [3, np.nan]]), "columns": np.array(["a", "b"])}
    save(tmp_path, LOADERS["load_table"], **table)
    assert "target" not in datasets.load_table(data_home=tmp_path)
    save(tmp_path, "tabular/wine.npz", label=np.array([1, 2]), **table)
    wine = datasets.load_table("wine", tmp_path)
    assert wine.target.tolist() == [1, 2]
    assert wine.feature_names == ["a", "b"]

    save(
        tmp_path,
        LOADERS["load_expression"],
        X=np.ones((2, 2), np.float32),
        genes=np.array(["g", "h"]),
    )
    assert datasets.load_expression(data_home=tmp_path).genes.tolist() == ["g", "h"]
    save(
        tmp_path,
        LOADERS["load_mnist_digits"],
        images=np.full((1, 28, 28), 255, np.uint8),
        labels=np.array([5]),
    )
    assert datasets.load_mnist_digits(tmp_path).images.max() == 1
