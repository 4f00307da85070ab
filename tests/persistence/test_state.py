"""Pickles, skops and copies hold arrays in place of tensors, and keep all else."""

from __future__ import annotations

import copy
import pickle
from collections import Counter, defaultdict
from functools import partial
from pathlib import Path

import joblib
import numpy as np
import own_method
import pandas as pd
import pytest
import torch

from skmc import GaussianCompleter, SVDCompleter

WAYS = [lambda value: pickle.loads(pickle.dumps(value)), copy.deepcopy, copy.copy]


def restored(way, **attributes):
    completer = SVDCompleter(1).fit(np.eye(4))
    vars(completer).update(attributes)
    again = way(completer)
    assert vars(again).keys() == vars(completer).keys()
    return again


@pytest.mark.parametrize("way", WAYS, ids=["pickle", "deepcopy", "copy"])
@pytest.mark.parametrize(
    "value",
    [
        torch.arange(6.0).reshape(2, 3),
        torch.arange(6.0).reshape(2, 3).T,
        torch.arange(24).reshape(2, 3, 4).permute(2, 0, 1),
        torch.zeros(3, 0),
        torch.tensor(2.0),
        torch.arange(12.0).reshape(3, 4)[:, ::2],
        torch.ones(1, 3).expand(4, 3),
        torch.nn.Parameter(torch.ones(2)),
    ],
)
def test_tensors_keep_their_values_and_strides(way, value):
    again = restored(way, a=value, b=[value])
    assert again.a is again.b[0] and type(again.a) is type(value)
    assert torch.equal(again.a, value) and again.a.dtype == value.dtype
    assert again.a.stride() == value.stride()


@pytest.mark.parametrize("way", WAYS, ids=["pickle", "deepcopy", "copy"])
def test_what_a_fit_shares_remains_shared(way):
    tensor, array, cycle = torch.ones(2), np.ones(3), [1]
    cycle.append(cycle)
    member = SVDCompleter(1).fit(np.eye(4))
    vars(member).update(a=tensor, b=array)
    again = restored(way, a=tensor, b=array, cycle=cycle, d={(1, 2): tensor}, m=member)
    assert again.a is again.d[1, 2] is again.m.a and again.b is again.m.b
    assert again.cycle[1] is again.cycle
    assert torch.equal(again.a, tensor) and again.m.rank == 1


def test_a_shared_array_is_stored_once():
    array, member = np.random.rand(10_000), SVDCompleter(1)
    member.array = array
    completer = SVDCompleter([member, copy.copy(member)])
    both = pickle.dumps([array, completer])
    assert len(both) < 1.2 * array.nbytes
    first, again = pickle.loads(both)
    assert first is again.rank[0].array is again.rank[1].array


def test_a_pickle_is_read_from_a_mapped_file(tmp_path):
    completer = restored(WAYS[0], a=torch.ones(100))
    joblib.dump(completer, tmp_path / "c")
    again = joblib.load(tmp_path / "c", mmap_mode="r")
    again.a += 1
    assert (again.a == 2).all()
    np.testing.assert_array_equal(again.transform(np.eye(4)), np.eye(4))


def test_attributes_of_a_users_own_are_kept():
    own = {
        "counts": Counter("aab"),
        "lists": defaultdict(list, {"a": [1]}),
        "function": np.linalg.svd,
        "type": Path,
        "twice": [partial(np.add, 1)] * 2,
        "frame": pd.DataFrame({"a": [1, None]}),
    }
    again = restored(WAYS[0], **own)
    assert again.lists.default_factory is list and again.type is Path
    assert again.counts == own["counts"] and again.function is np.linalg.svd
    assert again.twice[0] is again.twice[1] and again.twice[0](2) == 3
    pd.testing.assert_frame_equal(again.frame, own["frame"])


def test_an_attribute_may_refer_to_its_completer():
    completer = SVDCompleter(1)
    completer.me, completer.method = [completer], completer.fit
    for way in WAYS[:2]:
        again = way(completer)
        assert again.me[0] is again is again.method.__self__


def test_a_pickle_names_a_users_classes():
    """So that pickle imports their modules."""
    model = own_method.Product(torch.ones(3, 1), torch.ones(1, 2))
    solver = own_method.NoisyDescent(model, [own_method.Ridge(0.5)])
    again = restored(WAYS[0], solver_=solver)
    assert again.solver_.terms[0](torch.ones(2, 2)) == 1
    classes = again.__getstate__()["classes"].values()
    assert {own_method.NoisyDescent, own_method.Product, own_method.Ridge} <= {*classes}


class KeepsAttributes(GaussianCompleter):
    """A user's class with the usual way to choose what is pickled."""

    def __getstate__(self):
        return {**vars(self)}


def test_a_subclass_can_choose_its_state():
    X = np.where(np.eye(8, 5) > 0, np.nan, np.random.RandomState(0).randn(8, 5))
    completer = KeepsAttributes().fit(X)
    again = pickle.loads(pickle.dumps(completer))
    np.testing.assert_array_equal(again.transform(X), completer.transform(X))
