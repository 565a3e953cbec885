"""Models of mapped rows in original features: the same predictions, and their covariance."""

import numpy as np
import pytest
import torch

from diagatt import DiagonalAttention
from diagatt.attention import pullback
from diagatt.attention.pullback import pulled_back, pulled_back_covariance, pushed_forward
from diagatt.rowmaps import ROW_MAPS, AffineMap
from tests.attention.samples import every_form, offsets_of

D = 4
LENGTHS = [3, 2, 5, 4]


def rows(seed=0):
    """Rows of unequal scales and means."""
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(sum(LENGTHS), D, generator=generator, dtype=torch.float64)
    scale = torch.tensor([0.1, 1.0, 3.0, 20.0]).double()
    return values * scale + torch.tensor([5.0, 0.0, -1.0, 40.0]).double(), offsets_of(LENGTHS)


def drawn(d, n_heads=1, n_outputs=1, **options):
    made = DiagonalAttention(d, n_heads, n_outputs, 2, temperature=1.7, **options).double()
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return made


def assert_same(mapped_model, affine, values, offsets):
    """Attention and predictors of original rows equal those of mapped ones."""
    mapped = (values - affine.shift) @ affine.matrix
    covariates = torch.randn(len(LENGTHS), 2, generator=torch.Generator().manual_seed(5)).double()
    ours = pulled_back(mapped_model, affine)
    with torch.no_grad():
        np.testing.assert_allclose(
            ours.attention(values, offsets), mapped_model.attention(mapped, offsets), atol=1e-8
        )
        theirs = mapped_model(mapped, offsets, covariates)
        scale = float(theirs.abs().max())
        np.testing.assert_allclose(
            ours(values, offsets, covariates), theirs, rtol=0, atol=1e-8 * scale
        )
    return ours


@every_form
@pytest.mark.parametrize(("heads", "coupling"), [
    (1, "distinct"), (2, "independent"), (2, "distinct"),
])  # fmt: skip
@pytest.mark.parametrize("readout", ["pooled", "mixture"])
def test_the_model_stays_the_same(form, heads, coupling, readout):
    values, offsets = rows()
    name = "scaled" if form == "quadratic" else "unit"
    affine = ROW_MAPS[name].fitted_to(values).affine()
    how = {"score_form": form, "coupling": coupling, "readout": readout, "family": "bernoulli"}
    made = assert_same(drawn(D, heads, **how), affine, values, offsets)
    assert (made.coupling, made.readout, made.temperature) == (coupling, readout, 1.7)


def test_several_outputs():
    values, offsets = rows()
    affine = ROW_MAPS["common"].fitted_to(values).affine()
    model = drawn(D, 2, 3, score_form="affine", readout="mixture", family="multinomial")
    assert_same(model, affine, values, offsets)


@pytest.mark.parametrize("form", ["affine", "contextual"])
def test_fewer_dimensions_than_features(form):
    """A projection to a subspace, with another √d in the scores."""
    values, offsets = rows()
    generator = torch.Generator().manual_seed(8)
    matrix = torch.randn(D, 2, generator=generator).double() / 20
    affine = AffineMap(values.mean(dim=0), matrix)
    assert_same(drawn(2, 2, score_form=form), affine, values, offsets)


def test_dropped_features_have_no_coefficients():
    values, offsets = rows()
    values[:, 1] = 0.3
    affine = ROW_MAPS["unit"].fitted_to(values).affine()
    made = assert_same(drawn(D - 1, score_form="affine"), affine, values, offsets)
    assert float(made.value[:, 1].detach().abs().max()) == 0.0
    assert float(made.query_key.matrix()[:, 1].detach().abs().max()) == 0.0


def test_nothing_is_shared_with_the_mapped_model():
    """Either model may be changed in place afterwards."""
    values, _ = rows()
    model = drawn(D, score_form="affine")
    before = [parameter.detach().clone() for parameter in model.parameters()]
    made = pulled_back(model, ROW_MAPS["unit"].fitted_to(values).affine())
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.mul_(2.0).add_(1.0)
    for parameter, old in zip(model.parameters(), before, strict=True):
        assert torch.equal(parameter, old)


@pytest.mark.parametrize("heads", [1, 2])
def test_the_covariance_follows_the_jacobian(heads):
    """The map of (V, b, γ) is linear: its matrix is found by pulling unit vectors back."""
    values, _ = rows()
    affine = ROW_MAPS["unit"].fitted_to(values).affine()
    n = heads * D + 3

    def coefficients(flat):
        model = drawn(D, heads, score_form="affine")
        with torch.no_grad():
            model.value.copy_(flat[: heads * D].reshape(heads, D, 1))
            model.intercept.copy_(flat[heads * D : heads * D + 1])
            model.covariate.copy_(flat[heads * D + 1 :, None])
        found = pulled_back(model, affine)
        parts = (found.value, found.intercept, found.covariate)
        return torch.cat([part.detach().flatten() for part in parts])

    zero = torch.zeros(n, dtype=torch.float64)
    unit = torch.eye(n, dtype=torch.float64)
    jacobian = torch.stack([coefficients(e) - coefficients(zero) for e in unit], dim=1)
    root = torch.randn(n, n, generator=torch.Generator().manual_seed(1)).double()
    expected = jacobian @ root @ root.T @ jacobian.T
    found = pulled_back_covariance(root @ root.T, affine, heads)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * float(expected.abs().max()))


@pytest.mark.parametrize("most", [1000, 10])
def test_a_parameter_without_an_error_leaves_those_of_others(most, monkeypatch):
    """Cox's regression has no intercept: its NaN spread to all coefficients of the default."""
    monkeypatch.setattr(pullback, "MOST_COVARIANCES", most)
    affine, n = wide_affine(), 3 + 1 + 2
    root = torch.randn(n, n, generator=torch.Generator().manual_seed(1)).double()
    covariance = root @ root.T
    expected = pulled_back_covariance(covariance, affine, 1)
    covariance[3] = covariance[:, 3] = torch.nan
    found = pulled_back_covariance(covariance, affine, 1)
    of_intercept = np.arange(12 + 1 + 2) == 12
    missing = of_intercept if found.ndim == 1 else of_intercept | of_intercept[:, None]
    np.testing.assert_array_equal(np.isnan(found), missing)
    np.testing.assert_allclose(found[~missing], expected[~missing], rtol=1e-12)


def wide_affine(d=12, mapped=3):
    """A map from rows of d features to a subspace."""
    generator = torch.Generator().manual_seed(8)
    matrix = torch.randn(d, mapped, generator=generator).double() / 20
    return AffineMap(torch.randn(d, generator=generator).double(), matrix)


@every_form
@pytest.mark.parametrize("how", [{}, {"parameterization": "factored", "rank": 1}, {"none": True}])
def test_a_matrix_of_wide_rows_keeps_its_factors(form, how):
    affine = wide_affine()
    if form == "quadratic" or (form == "contextual" and "none" in how):
        affine = AffineMap(torch.zeros_like(affine.shift), affine.matrix)
    values = torch.randn(sum(LENGTHS), 12, generator=torch.Generator().manual_seed(2)).double()
    made = assert_same(drawn(3, score_form=form, **how), affine, values, offsets_of(LENGTHS))
    query, key = made.small_factors
    side = {"affine": 13, "quadratic": 12, "contextual": 25}[form]
    assert query.shape == key.shape
    assert query.shape[1] == side
    assert 2 * query.shape[2] < side


@every_form
def test_a_model_that_was_told_comes_back(form):
    """Pushed forward, a pulled-back model scores and predicts mapped rows as before."""
    affine, model = wide_affine(), drawn(3, 2, score_form=form)
    if form == "quadratic":
        affine = AffineMap(torch.zeros_like(affine.shift), affine.matrix)
    mapped = torch.randn(sum(LENGTHS), 3, generator=torch.Generator().manual_seed(2)).double()
    back = pushed_forward(pulled_back(model, affine), affine)
    offsets = offsets_of(LENGTHS)
    with torch.no_grad():
        np.testing.assert_allclose(
            back.attention(mapped, offsets), model.attention(mapped, offsets), atol=1e-8
        )
        np.testing.assert_allclose(back.value, model.value, rtol=1e-8)
        np.testing.assert_allclose(back.intercept, model.intercept, rtol=1e-8)


@pytest.mark.parametrize("outputs", [1, 2])
def test_variances_of_wide_rows_are_those_of_the_covariance(outputs, monkeypatch):
    affine, n = wide_affine(), outputs * (3 + 2)
    root = torch.randn(n, n, generator=torch.Generator().manual_seed(1)).double()
    whole = pulled_back_covariance(root @ root.T, affine, 1, outputs)
    monkeypatch.setattr(pullback, "MOST_COVARIANCES", 10)
    alone = pulled_back_covariance(root @ root.T, affine, 1, outputs)
    np.testing.assert_allclose(alone, whole.diagonal(), rtol=1e-10)
