"""Features of whole samples: against numpy."""

import numpy as np
import pytest
import torch

from diagatt.attention.sample_features import FEATURES, SampleFeatures
from tests.attention.samples import LENGTHS, D, parts, samples
from tests.closeness import assert_equal_up_to_rounding

BY_HAND = {
    "size": lambda X: [len(X), np.log(len(X))],
    "sum": lambda X: X.sum(axis=0),
    "max": lambda X: X.max(axis=0),
    "min": lambda X: X.min(axis=0),
    "spread": lambda X: X.std(axis=0),
}
WEIGHTS = torch.tensor([1.0, 2.0, 1.0, 3.0], dtype=torch.float64)


def raw(kinds, values, offsets):
    lines = [[BY_HAND[kind](X.numpy()) for kind in kinds] for X in parts(values, offsets)]
    return np.array([np.concatenate(line) for line in lines])


@pytest.mark.parametrize("kinds", [(kind,) for kind in FEATURES] + [FEATURES, ("max", "size")])
def test_features_have_weighted_mean_0_and_variance_1(kinds):
    values, offsets = samples()
    x = raw(kinds, values, offsets)
    mean = np.average(x, axis=0, weights=WEIGHTS)
    spread = np.sqrt(np.average((x - mean) ** 2, axis=0, weights=WEIGHTS))
    found = SampleFeatures.fitted_to(kinds, values, offsets, WEIGHTS)(values, offsets)
    assert_equal_up_to_rounding(found.numpy(), (x - mean) / spread)


def test_other_samples_are_scaled_as_the_training_samples_were():
    values, offsets = samples()
    features = SampleFeatures.fitted_to(("size", "sum"), values, offsets, WEIGHTS)
    new, cuts = samples([2, 6], seed=1)
    expected = (raw(("size", "sum"), new, cuts) - features.shift.numpy()) / features.scale.numpy()
    assert_equal_up_to_rounding(features(new, cuts).numpy(), expected)


def test_samples_of_one_size_have_a_size_of_0():
    values, offsets = samples([3, 3, 3])
    made = SampleFeatures.fitted_to(("size",), values, offsets, torch.ones(3))
    assert_equal_up_to_rounding(1 + made(values, offsets).numpy(), np.ones((3, 2)))


def test_no_features_are_no_columns():
    values, offsets = samples()
    made = SampleFeatures.fitted_to((), values, offsets, WEIGHTS)
    assert made(values, offsets).shape == (len(LENGTHS), 0)


def test_copies_of_samples_are_weights():
    values, offsets = samples()
    copied = [
        X for X, w in zip(parts(values, offsets), WEIGHTS, strict=True) for _ in range(int(w))
    ]
    cuts = torch.tensor([0, *np.cumsum([len(X) for X in copied])])
    ones = torch.ones(len(copied), dtype=torch.float64)
    ours = SampleFeatures.fitted_to(FEATURES, values, offsets, WEIGHTS)
    theirs = SampleFeatures.fitted_to(FEATURES, torch.cat(copied), cuts, ones)
    assert_equal_up_to_rounding(ours.shift.numpy(), theirs.shift.numpy())
    assert_equal_up_to_rounding(ours.scale.numpy(), theirs.scale.numpy())
    assert len(ours.shift) == 2 + 4 * D


def test_the_type_of_rows_is_kept():
    values, offsets = samples()
    made = SampleFeatures.fitted_to(FEATURES, values, offsets, WEIGHTS)
    short = made(values.float(), offsets)
    assert short.dtype == torch.float32
    np.testing.assert_allclose(short.numpy(), made(values, offsets).numpy(), rtol=0, atol=1e-5)
