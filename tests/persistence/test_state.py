"""Pickles hold arrays in place of tensors, and everything else as it is."""

from __future__ import annotations

import pickle
from collections import Counter, defaultdict

import numpy as np
import pytest
import torch

from skmc import SVDCompleter
from skmc.base.state import with_arrays, with_tensors


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
def test_tensors_keep_their_values_and_the_order_of_their_axes(value):
    once = with_arrays({"a": value, "b": [value]})
    found = with_tensors(pickle.loads(pickle.dumps(once)))
    assert torch.equal(found["a"], value) and torch.equal(found["b"][0], value)
    assert found["a"].dtype == value.dtype and type(found["a"]) is type(value)
    assert np.array_equal(np.argsort(found["a"].stride()), np.argsort(value.stride()))


def test_what_a_fit_shares_remains_shared():
    tensor, cycle = torch.ones(2), [1]
    cycle.append(cycle)
    state = {"a": tensor, "b": [tensor], "cycle": cycle, "pairs": {(1, 2): tensor}}
    found = with_tensors(pickle.loads(pickle.dumps(with_arrays(state))))
    assert found["a"] is found["b"][0] is found["pairs"][1, 2]
    assert found["cycle"][1] is found["cycle"]
    assert torch.equal(found["a"], tensor) and state["b"][0] is tensor


def test_attributes_of_a_users_own_are_kept():
    completer = SVDCompleter(1).fit(np.eye(4))
    own = {"counts": Counter("aab"), "lists": defaultdict(list, {"a": [1]})}
    vars(completer).update(own)
    found = vars(pickle.loads(pickle.dumps(completer)))
    assert {name: found[name] for name in own} == own
    assert found["lists"].default_factory is list
