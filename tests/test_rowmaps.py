"""Row maps: against their closed forms, scipy, scikit-learn, and what must not matter."""

import numpy as np
import pytest
import torch
from scipy.stats import norm, rankdata
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge

from diagatt import rowmaps
from diagatt.rowmaps import (
    KEPT_VARIANCE,
    LEAST_KEPT,
    LEAST_LEVEL,
    MOST_BENT,
    MOST_DIMENSIONS,
    MOST_FULL,
    MOST_NEEDED,
    ROW_MAPS,
    base,
)
from diagatt.rowmaps.kernel import LEAST_RESIDUAL, MOST_CANDIDATES, choose_landmarks
from tests.closeness import assert_equal_up_to_rounding

NAMES = (
    "common",
    "range",
    "unit",
    "full",
    "wide",
    "ranks",
    "squares",
    "scaled",
    "kernel",
    "common kernel",
    "range kernel",
    "unit means",
    "common means",
    "range means",
    "given",
)
AFFINE = tuple(name for name in NAMES if name not in ("ranks", "squares") and "kernel" not in name)
FITTED = NAMES[:-1]
every_map = pytest.mark.parametrize("name", NAMES)
BUFFERS = ("columns", "shift", "scale", "knots", "landmarks", "centre", "directions")


def draw(N=80, d=4, seed=0):
    """Rows of unequal scales and means, the last feature skewed."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(N, d)) * np.geomspace(0.1, 10, d) + np.linspace(-3, 5, d)
    x[:, -1] = np.exp(x[:, -1] / 10)
    return torch.from_numpy(x)


def discrete(N=150, seed=0):
    """Rows of few different values, which have no exact binary form."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 4, size=(N, 2))
    return torch.from_numpy(np.column_stack([counts / 3 - 0.1, rng.poisson(1.0, N) * 0.7]))


def fitted(name, values, weights=None):
    return ROW_MAPS[name].fitted_to(values, weights)


def mapped(name, values, weights=None):
    return fitted(name, values, weights)(values)


def wide(N=300, d=90, seed=0):
    """Rows whose variance decays, so that some directions hold nearly all of it."""
    rng = np.random.default_rng(seed)
    turned = np.linalg.qr(rng.normal(size=(d, d)))[0]
    x = rng.normal(size=(N, d)) * 0.9 ** np.arange(d) @ turned
    return torch.from_numpy(x + 2.0)


# ---------------------------------------------------------------------- closed forms


def test_all_maps_are_registered():
    assert set(ROW_MAPS) == set(NAMES)


def test_unit_rows_have_mean_0_and_variance_1():
    u = mapped("unit", draw()).numpy()
    assert_equal_up_to_rounding(u.mean(axis=0) + 1, np.ones(4))
    assert_equal_up_to_rounding(u.std(axis=0), np.ones(4))


def test_common_rows_have_one_scale_and_a_mean_variance_of_1():
    x = draw().numpy()
    expected = (x - x.mean(axis=0)) / np.sqrt(x.var(axis=0).mean())
    assert_equal_up_to_rounding(mapped("common", draw()).numpy(), expected)


def test_scaled_rows_are_divided_by_their_root_mean_square():
    x = draw().numpy()
    expected = x / np.sqrt((x**2).mean(axis=0))
    assert_equal_up_to_rounding(mapped("scaled", draw()).numpy(), expected)


def test_given_rows_stay_the_same_object():
    x = draw()
    assert fitted("given", x)(x) is x


def test_squares_stand_beside_clipped_features():
    x = draw()
    x[0, 0] = 100.0  # far beyond three standard deviations
    u = np.clip((x.numpy() - x.numpy().mean(axis=0)) / x.numpy().std(axis=0), -3, 3)
    found = mapped("squares", x).numpy()
    assert u[0, 0] == 3.0
    assert_equal_up_to_rounding(found, np.hstack([u, (u**2 - 1) / np.sqrt(2)]))


@pytest.mark.parametrize("N", [7, 60, 199])
def test_ranks_are_normal_scores(N):
    """A level is the share of rows below and half the row itself, to the spacing of knots."""
    x = draw(N=N)
    level = (rankdata(x.numpy(), axis=0) - 0.5) / N
    found = norm.cdf(mapped("ranks", x).numpy())
    np.testing.assert_allclose(found, level, rtol=0, atol=0.75 / (rowmaps.KNOTS - 1))


def test_ranks_of_many_rows_are_interpolated():
    x = draw(N=5000)
    level = (rankdata(x.numpy(), axis=0) - 0.5) / len(x)
    expected = norm.ppf(np.clip(level, LEAST_LEVEL, 1 - LEAST_LEVEL))
    middle = np.abs(expected) < 2
    np.testing.assert_allclose(mapped("ranks", x).numpy()[middle], expected[middle], atol=0.02)


def test_ranks_of_mirrored_rows_are_mirrored():
    x = draw(N=73)
    assert_equal_up_to_rounding(mapped("ranks", -x).numpy(), -mapped("ranks", x).numpy(), 1e6)


def test_ties_share_their_mean_rank():
    x = discrete()
    level = (rankdata(x.numpy(), axis=0) - 0.5) / len(x)
    found = norm.cdf(mapped("ranks", x).numpy())
    np.testing.assert_allclose(found, level, rtol=0, atol=0.75 / (rowmaps.KNOTS - 1))


def test_ranks_of_new_rows_lie_between_those_of_their_neighbours():
    x = draw(N=50)
    ranks = fitted("ranks", x)
    ordered = x.sort(dim=0).values
    old, between = ranks(ordered), ranks((ordered[1:] + ordered[:-1]) / 2)
    assert bool((between >= old[:-1]).all() and (between <= old[1:]).all())
    beyond = ranks(torch.stack([ordered[0] - 100, ordered[-1] + 100]))
    limit = norm.ppf(1 - LEAST_LEVEL)
    np.testing.assert_allclose(beyond.numpy(), [[-limit] * 4, [limit] * 4])


# ---------------------------------------------------------------------- weights, constants


@every_map
def test_a_row_of_weight_2_counts_as_two(name):
    x, w = draw(N=37), torch.ones(37, dtype=torch.float64)
    w[::3] = 2.0
    w[1] = 3.0
    copied = torch.repeat_interleave(x, w.long(), dim=0)
    ours, theirs = fitted(name, x, w)(x), fitted(name, copied)(x)
    assert_equal_up_to_rounding(ours.numpy(), theirs.numpy(), 1000)


@every_map
def test_the_size_of_weights_does_not_matter(name):
    x = draw(N=40)
    ours, theirs = mapped(name, x, torch.full((40,), 7.0)), mapped(name, x)
    assert_equal_up_to_rounding(ours.numpy(), theirs.numpy(), 1000)


@pytest.mark.parametrize("constant", [0.0, 0.1, -7.3e5, 1e-9])
@pytest.mark.parametrize("name", FITTED)
def test_features_that_do_not_vary_are_dropped(name, constant):
    x = draw()
    column = torch.full((len(x), 1), constant, dtype=torch.float64)
    longer = torch.cat([x[:, :1], column, x[:, 1:]], dim=1)
    made = fitted(name, longer)
    assert made.columns.tolist() == [0, 2, 3, 4]
    assert_equal_up_to_rounding(made(longer).numpy(), mapped(name, x).numpy())


@pytest.mark.parametrize("name", FITTED)
def test_something_is_scored_even_if_nothing_varies(name):
    made = fitted(name, torch.full((5, 3), 0.1))
    assert made.n_dimensions == made.width
    assert bool(torch.isfinite(made(torch.full((2, 3), 0.1))).all())


# ---------------------------------------------------------------------- affine maps


@pytest.mark.parametrize("x", [draw(), wide()], ids=["narrow", "wide"])
@pytest.mark.parametrize("name", AFFINE)
def test_shift_and_matrix_reproduce_the_map(name, x):
    x = torch.cat([x, torch.full((len(x), 1), 0.3, dtype=x.dtype)], dim=1)  # one is dropped
    made = fitted(name, x)
    shift, matrix = made.affine()
    assert matrix.shape == (x.shape[1], made.n_dimensions)
    new = x + 1.0
    new[:, -1] = 0.3
    assert_equal_up_to_rounding(made(new).numpy(), ((new - shift) @ matrix).numpy(), 1000)


def test_bent_maps_have_no_matrix():
    assert fitted("ranks", draw()).affine() is None
    assert fitted("squares", draw()).affine() is None


# ---------------------------------------------------------------------- the principal subspace


def test_the_subspace_is_that_of_principal_components():
    x = wide()
    made = fitted("common", x)
    pca = PCA(svd_solver="full").fit(x.numpy())
    shares = np.cumsum(pca.explained_variance_ratio_)
    kept = np.searchsorted(shares, KEPT_VARIANCE) + 1
    assert 1 < kept < MOST_DIMENSIONS
    assert made.n_dimensions == kept
    assert made.kept_variance == pytest.approx(shares[kept - 1], rel=1e-12)
    components = pca.components_[:kept]
    components = components * np.sign(np.take_along_axis(
        components, np.abs(components).argmax(axis=1)[:, None], axis=1))  # fmt: skip
    scores = (x.numpy() - x.numpy().mean(axis=0)) @ components.T
    expected = scores / np.sqrt(scores.var(axis=0).mean())
    np.testing.assert_allclose(made(x).numpy(), expected, rtol=0, atol=1e-9)


def slowly_decaying(N=400, d=100):
    """Rows whose leading directions hold more than nine tenths of the variance, and not all."""
    x = np.random.default_rng(0).normal(size=(N, d)) * 0.97 ** np.arange(d)
    return torch.from_numpy(x @ np.linalg.qr(np.random.default_rng(1).normal(size=(d, d)))[0])


@pytest.mark.parametrize(("name", "most"), [
    ("common", MOST_DIMENSIONS), ("unit", MOST_DIMENSIONS), ("ranks", MOST_BENT),
])  # fmt: skip
def test_no_more_dimensions_than_allowed(name, most):
    x = slowly_decaying()
    made = fitted(name, x)
    assert made.n_dimensions == most
    assert made(x).shape == (400, most)
    assert float(made(x).var(dim=0, correction=0).mean()) == pytest.approx(1.0, rel=1e-9)


def test_more_dimensions_where_few_hold_too_little():
    """Rows without principal directions keep nine tenths of their variance, if that may be."""
    alike = torch.from_numpy(np.random.default_rng(0).normal(size=(400, 100)))
    kept = fitted("unit", alike).n_dimensions
    spectrum = PCA().fit(alike.numpy()).explained_variance_ratio_.cumsum()
    assert kept == int((spectrum < LEAST_KEPT).sum()) + 1 > MOST_DIMENSIONS
    wider = torch.from_numpy(np.random.default_rng(0).normal(size=(900, 300)))
    assert fitted("unit", wider).n_dimensions == MOST_NEEDED
    assert fitted("full", wider).n_dimensions == MOST_NEEDED
    assert ROW_MAPS["unit"].fitted_to(wider, needed=70).n_dimensions == 70
    assert ROW_MAPS["unit"].fitted_to(wider, needed=7).n_dimensions == MOST_DIMENSIONS
    assert fitted("full", wider[:, :MOST_FULL]).n_dimensions == MOST_FULL
    assert fitted("wide", wider).n_dimensions == 300


@pytest.mark.parametrize("name", ["unit means", "common means"])
def test_the_span_of_means_is_all_that_a_ridge_regression_on_them_uses(name, monkeypatch):
    """Also for new samples: coefficients lie in the span of the means that they are fitted to."""
    monkeypatch.setattr(base, "KEPT_VARIANCE", 1 - 1e-13)
    draw = np.random.default_rng(0)
    means, new = draw.normal(size=(2, 40, 200)) * np.geomspace(0.1, 10, 200)
    y, alpha = draw.normal(size=40), 3.0
    scale = means.std(axis=0) if name == "unit means" else np.sqrt(means.var(axis=0).mean())
    u, u_new = (means - means.mean(axis=0)) / scale, (new - means.mean(axis=0)) / scale
    expected = Ridge(alpha).fit(u, y).predict(u_new)
    made = fitted(name, torch.from_numpy(means))
    assert made.n_dimensions == len(means) - 1
    size = np.square(u).sum() / len(u) / made.n_dimensions  # what the map divides variances by
    x, x_new = (made(torch.from_numpy(rows)).numpy() for rows in (means, new))
    found = Ridge(alpha / size).fit(x, y).predict(x_new)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)


def test_scaled_and_given_rows_are_never_projected():
    x = wide()
    assert fitted("scaled", x).n_dimensions == fitted("given", x).n_dimensions == x.shape[1]


@pytest.mark.parametrize("N", [30, 300])  # fewer rows than features, and more
def test_signs_and_values_are_deterministic(N):
    x = wide(N=N)
    assert torch.equal(mapped("unit", x), mapped("unit", x.clone()))
    directions = fitted("unit", x).directions
    largest = directions.abs().argmax(dim=0)
    assert bool((directions[largest, torch.arange(directions.shape[1])] > 0).all())


def test_weights_are_copies_in_the_subspace_too():
    x, w = wide(N=120), torch.ones(120, dtype=torch.float64)
    w[::4] = 2.0
    ours, theirs = mapped("unit", x, w), fitted("unit", x.repeat_interleave(w.long(), dim=0))(x)
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=0, atol=1e-9)


# ---------------------------------------------------------------------- what must not matter


@pytest.mark.parametrize("x", [draw(), discrete(), wide()], ids=["few", "ties", "wide"])
@pytest.mark.parametrize("name", ["unit", "ranks", "squares"])
def test_units_of_features_do_not_matter(name, x):
    units = 10.0 ** np.linspace(-6, 6, x.shape[1])
    ours, theirs = mapped(name, x * torch.from_numpy(units)), mapped(name, x)
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=0, atol=1e-8)


@pytest.mark.parametrize("x", [draw(), discrete(), wide()], ids=["few", "ties", "wide"])
@pytest.mark.parametrize("name", ["unit", "common", "ranks", "squares"])
def test_shifts_of_a_thousand_standard_deviations_do_not_matter(name, x):
    shift = 1000 * x.std(dim=0) * torch.from_numpy(np.where(np.arange(x.shape[1]) % 2, 1.0, -1.0))
    ours, theirs = mapped(name, x + shift), mapped(name, x)
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=0, atol=1e-8)


@pytest.mark.parametrize("x", [draw(), wide()], ids=["few", "wide"])
@pytest.mark.parametrize("name", ["unit", "common", "scaled", "ranks"])
def test_the_order_of_features_does_not_matter(name, x):
    """Mapped features are reordered alike; dimensions of a subspace are not reordered at all."""
    order = torch.from_numpy(np.random.default_rng(1).permutation(x.shape[1]))
    ours, theirs = mapped(name, x[:, order]), mapped(name, x)
    if not fitted(name, x)._is_projected:
        theirs = theirs[:, order]
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=0, atol=1e-8)


@every_map
def test_the_order_of_rows_does_not_matter(name):
    x = draw()
    order = torch.from_numpy(np.random.default_rng(1).permutation(len(x)))
    ours, theirs = fitted(name, x[order])(x), mapped(name, x)
    assert_equal_up_to_rounding(ours.numpy(), theirs.numpy(), 1000)


@pytest.mark.parametrize("x", [draw(), discrete(), wide()], ids=["few", "ties", "wide"])
@every_map
def test_single_precision_gives_the_same_map(name, x):
    short, exact = mapped(name, x.float()), mapped(name, x)
    assert short.dtype == torch.float32
    assert exact.dtype == torch.float64
    scale = exact.abs().max()
    np.testing.assert_allclose(short.numpy(), exact.numpy(), rtol=0, atol=1e-4 * float(scale))


def test_ties_stay_ties_in_single_precision_far_from_zero():
    x = discrete() + 1000.0
    expected = mapped("ranks", x).numpy()
    for made in (fitted("ranks", x), fitted("ranks", x.float())):
        np.testing.assert_allclose(made(x.float()).numpy(), expected, rtol=0, atol=1e-4)


@every_map
def test_either_type_may_be_mapped_by_either_fit(name):
    x = discrete()
    ours = fitted(name, x)(x.float())
    np.testing.assert_allclose(ours.numpy(), mapped(name, x).numpy(), rtol=0, atol=1e-4)


# ---------------------------------------------------------------------- arrays, choice of maps


@pytest.mark.parametrize("x", [draw(), wide()], ids=["narrow", "wide"])
@every_map
def test_a_map_is_the_same_after_a_round_trip_through_arrays(name, x):
    made = fitted(name, x)
    arrays = {key: made._buffers[key].numpy() for key in BUFFERS if key in made._buffers}
    again = ROW_MAPS[name].of(arrays, x.shape[1])
    assert again.n_dimensions == made.n_dimensions
    assert torch.equal(again(x), made(x))


def ones(x):
    return torch.ones(len(x), dtype=torch.float64)


def test_normal_features_of_one_scale_need_one_map():
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(2000, 3)))
    assert rowmaps.distinct_maps(x, ones(x)) == ["unit", "squares"]


def test_unequal_scales_and_skewed_features_ask_for_maps_of_their_own():
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(2000, 3)))
    unequal = x * torch.tensor([1.0, 1.0, 3.0])
    assert rowmaps.distinct_maps(unequal, ones(x)) == ["unit", "squares", "common"]
    skewed = torch.cat([x[:, :2], x[:, 2:].exp()], dim=1)
    skewed[:, 2] /= skewed[:, 2].std()
    assert rowmaps.distinct_maps(skewed, ones(x)) == ["unit", "ranks", "squares"]


def test_weights_and_copies_choose_the_same_maps():
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(300, 3)))
    heavy = torch.where(x[:, 2] > 0, 5.0, 1.0).double()  # weights make the last feature skewed
    copied = x.repeat_interleave(heavy.long(), dim=0)
    chosen = rowmaps.distinct_maps(x, heavy)
    assert chosen == rowmaps.distinct_maps(copied, ones(copied))
    assert chosen != rowmaps.distinct_maps(x, ones(x))


@pytest.mark.parametrize("name", ["unit", "squares", "ranks", "common"])
def test_blocks_of_rows_change_nothing(name, monkeypatch):
    rng = np.random.default_rng(0)
    values = torch.from_numpy(rng.normal(size=(500, 80)) * np.linspace(1, 3, 80))
    weights = torch.from_numpy(rng.random(500))
    whole = ROW_MAPS[name].fitted_to(values, weights)
    expected = whole(values)
    monkeypatch.setattr("diagatt.rowmaps.base.BLOCK_NUMBERS", 1)
    monkeypatch.setattr("diagatt.rowmaps.base.LEAST_BLOCK", 64)
    parts = ROW_MAPS[name].fitted_to(values, weights)
    torch.testing.assert_close(
        parts(values), expected, rtol=0, atol=1e-8 * float(expected.abs().max())
    )


# ---------------------------------------------------------------------- kernels


def kernel_of(u, v):
    """The kernel as its definition says."""
    return np.exp(-np.square(u[:, None] - v[None]).sum(axis=2) / u.shape[1])


@pytest.mark.parametrize("name", ["kernel", "common kernel"])
def test_few_components_of_a_kernel_give_the_kernel_back(name):
    """The oracle is the kernel of all pairs: inner products of mapped rows are its centred form."""
    x = draw(N=600, d=2)
    rows = fitted(name, x)
    z = rows(x)
    u = ((x - rows.shift) / rows.scale).numpy()
    exact = kernel_of(u, u)
    centred = exact - exact.mean(axis=0) - exact.mean(axis=1)[:, None] + exact.mean()
    found = (z @ z.T).numpy()
    # Mapped rows have a mean variance of one; the kernel tells how large that is.
    scale = np.trace(centred) / np.trace(found)
    assert np.abs(scale * found - centred).mean() < 0.03 * np.abs(centred).mean()
    np.testing.assert_allclose(z.square().mean(), 1.0, rtol=1e-6)


def test_landmarks_explain_each_other_and_nothing_twice():
    """Where landmarks stop early, they leave little of any row."""
    u = discrete(N=400)
    chosen = choose_landmarks(u).numpy()
    assert len(np.unique(chosen, axis=0)) == len(chosen)
    within, across = kernel_of(chosen, chosen), kernel_of(u.numpy(), chosen)
    left = 1 - np.einsum("im,mk,ik->i", across, np.linalg.pinv(within), across)
    assert left.max() < LEAST_RESIDUAL + 1e-6


def test_landmarks_do_not_depend_on_the_order_of_rows_or_features():
    u = draw(N=3 * MOST_CANDIDATES, d=3)
    turned = choose_landmarks(u.flip(0).flip(1)).flip(1)
    np.testing.assert_array_equal(choose_landmarks(u).numpy(), turned.numpy())


# ---------------------------------------------------------------------- fewer rows than features


def long(N=40, d=200, seed=0):
    """Fewer rows than features, and variance in few directions of them."""
    return wide(N, d, seed)


@pytest.mark.parametrize("name", ["common", "unit", "full", "wide"])
def test_fewer_rows_than_features_have_the_components_of_a_singular_value_decomposition(
    name, monkeypatch
):
    monkeypatch.setattr(ROW_MAPS[name], "whole", 60)
    x = long()
    made = fitted(name, x)
    u = (x - x.mean(dim=0)) / made.scale
    u = u - u.mean(dim=0)
    k = made.n_dimensions
    _, S, Vh = torch.linalg.svd(u, full_matrices=False)
    mean_variance = S[:k].square().mean() / len(x)
    expected = (u @ Vh[:k].T / mean_variance.sqrt()).abs()  # signs are free
    assert_equal_up_to_rounding(made(x).abs().numpy(), expected.numpy(), 1e5)
    shares = S.square().cumsum(0) / S.square().sum()
    assert made.kept_variance == pytest.approx(float(shares[k - 1]), rel=1e-12)


@pytest.mark.parametrize("name", ["unit", "ranks", "squares", "scaled"])
@pytest.mark.parametrize("n_different", [2, 5])
def test_few_different_rows_have_few_components(name, n_different, monkeypatch):
    """Copies of rows add nothing but rounding, which is no component."""
    monkeypatch.setattr(ROW_MAPS[name], "whole", 60)
    x = long()[torch.arange(40) % n_different]
    made = fitted(name, x)
    assert made.n_dimensions <= n_different
    assert bool(torch.isfinite(made(x)).all())


def test_scaled_components_pass_through_the_origin(monkeypatch):
    """Otherwise a quadratic score of them would not be one of the rows."""
    monkeypatch.setattr(ROW_MAPS["scaled"], "whole", 60)
    x = long()
    made = fitted("scaled", x)
    assert made._is_projected
    shift, matrix = made.affine()
    assert not bool(shift.any())
    assert_equal_up_to_rounding(made(2 * x).numpy(), 2 * (x @ matrix).numpy(), 1000)


def test_the_subspace_of_very_many_features_is_fitted_to_some_rows(monkeypatch):
    """Evenly spaced rows of weights that sum to one; scales are those of all rows."""
    x = long(N=50, d=rowmaps.MOST_WIDE + 6)
    monkeypatch.setattr(base, "SUBSPACE_ROWS", 20)
    made = fitted("unit", x)
    some = ((x - x.mean(dim=0)) / x.std(dim=0, correction=0))[::3]
    some = some - some.mean(dim=0)
    Vh = torch.linalg.svd(some, full_matrices=False).Vh
    k = made.n_dimensions
    inside = made.directions @ torch.linalg.pinv(made.directions)
    assert_equal_up_to_rounding((inside @ Vh[:k].T).numpy(), Vh[:k].T.numpy(), 1e6)


def test_features_are_compared_by_some_of_every_scale(monkeypatch):
    """Whatever their order, and with the same answer where all features are alike."""
    monkeypatch.setattr(rowmaps, "COMPARED_FEATURES", 10)
    rng = np.random.default_rng(0)
    normal = torch.from_numpy(rng.normal(size=(400, 60)))
    skewed = torch.from_numpy(rng.exponential(size=(400, 60)))
    assert rowmaps.distinct_maps(normal, torch.ones(400)) == ["unit", "squares"]
    assert "ranks" in rowmaps.distinct_maps(skewed, torch.ones(400))
    scales = torch.from_numpy(np.geomspace(0.1, 10, 60))
    order = torch.from_numpy(rng.permutation(60))
    found = rowmaps.distinct_maps(normal * scales, torch.ones(400))
    assert found == rowmaps.distinct_maps((normal * scales)[:, order], torch.ones(400))
    assert found == ["unit", "squares", "common"]
