"""How far features extend, and rows without the digits that units change."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from diagatt import rowmaps
from diagatt.rowmaps import ROW_MAPS
from tests.closeness import assert_equal_up_to_rounding


def ones(x):
    return torch.ones(len(x), dtype=torch.float64)


def mapped(name, values):
    return ROW_MAPS[name].fitted_to(values)(values)


def test_pixels_of_equal_depth_share_a_scale_that_no_unit_changes():
    """Their extents are equal, so that "range" is "common" and the latter is not needed."""
    rng = np.random.default_rng(0)
    pixels = torch.from_numpy(rng.binomial(16, [0.02, 0.5, 0.9], size=(500, 3)) / 16)
    assert torch.allclose(rowmaps.extents(pixels), torch.full((3,), 1 / 16, dtype=torch.float64))
    assert "common" not in rowmaps.distinct_maps(pixels, ones(pixels))
    expected = mapped("common", pixels).numpy()
    assert_equal_up_to_rounding(mapped("range", pixels).numpy(), expected)
    changed = (pixels + 3.0) * torch.tensor([1e-6, 1.0, 1e6]).double()
    assert_equal_up_to_rounding(mapped("range", changed).numpy(), expected, 1000)


def brute_extent(x):
    """The definition, by all pairs of levels of one feature."""
    levels = np.unique(x)
    if len(levels) == 1:
        return 1.0
    return max(np.diff(levels).min(), np.ptp(levels) / 16)


@given(st.integers(0, 10**6), st.sampled_from([1, 2, 5, 17, 40, 1000]))
def test_extents_are_steps_between_levels_or_sixteenths_of_the_range(seed, most):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, most, size=(rng.integers(2, 600), 3)) * [1.0, 0.5, 8.0] - 7.0
    found = rowmaps.extents(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(found, [brute_extent(column) for column in x.T], rtol=1e-12)


def test_rounding_makes_no_levels():
    """A third and what is left of one after a shift are one level, also in float32."""
    x = torch.tensor([0.0, 1.0, 2.0, 3.0]).repeat(50)[:, None] / 3
    for values in (x + 100.0, (x + 100.0).double() - 100.0):
        wanted = pytest.approx(1 / 3, rel=1e-4)
        assert float(rowmaps.extents(torch.cat([values, values + 1e-8]))) == wanted


def test_settled_rows_do_not_depend_on_units_and_shifts():
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(500, 4)))
    x[:, 3] = x[:, 3].exp()
    factors = torch.tensor([1e-6, 3.0, 1e6, 0.7]).double()
    for name in ("unit", "range", "ranks", "squares"):
        plain = rowmaps.settled(mapped(name, x))
        assert torch.equal(plain, rowmaps.settled(mapped(name, (x + 1e3) * factors)))
        assert_equal_up_to_rounding(plain.numpy(), mapped(name, x).numpy(), 2**33)
