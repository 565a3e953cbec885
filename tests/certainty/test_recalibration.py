"""Recalibrated weights of rows: doubt is found where it is, and sets of a wrong model hold."""

import warnings

import numpy as np
import pytest
import torch

from diagatt import DiagAttClassifier, DiagAttRegressor
from diagatt.attention.diagonal import DiagonalAttention
from diagatt.attention.row_terms import row_terms
from diagatt.certainty.recalibration import LARGEST_LOSS, Recalibration, doubted, recalibration
from diagatt.families import get_family
from diagatt.solvers import Likelihood, Mixture
from diagatt.solvers.existence import Existence
from diagatt.solvers.folds import OutOfFold
from diagatt.solvers.problem import Samples
from tests.estimators.samples import skewed

VALUE = torch.tensor([1.0, -1.0, 0.0], dtype=torch.float64)


def held_out(n, doubt, size, seed=0, p=6):
    """Samples whose active row has the probabilities of scores `size`·x₂ in a share 1 − doubt."""
    rng = np.random.default_rng(seed)
    X, line = rng.normal(size=(n, p, 3)), np.arange(n)
    kappa = np.exp(2 * X[:, :, 2]) / np.exp(2 * X[:, :, 2]).sum(axis=1, keepdims=True)
    kappa = (1 - doubt) * kappa + doubt / p
    place = (rng.random(n)[:, None] > kappa.cumsum(axis=1)).sum(axis=1)
    y = X[line, place] @ VALUE.numpy() + 0.3 * rng.normal(size=n)
    module = DiagonalAttention(n_features=3, score_form="affine").double()
    W = torch.zeros(1, 4, 4, dtype=torch.float64)
    W[0, 2, 3] = W[0, 3, 2] = 0.5 * size * 3**0.5
    with torch.no_grad():
        module.query_key.set_matrix(W)
        module.value.copy_(VALUE[None, :, None])
    values, offsets = torch.from_numpy(X.reshape(-1, 3)), torch.arange(0, n * p + 1, p)
    ones = torch.ones(n, dtype=torch.float64)
    given = (torch.from_numpy(y), values, offsets)
    samples = Samples(
        get_family("gaussian"), given[1], given[2], given[0], ones, ones.new_empty(n, 0)
    )
    return OutOfFold(samples, torch.zeros(n).long(), [module], Existence(0.0, 0.5, n, 1)), kappa


def test_the_module_of_these_tests_has_the_weights_that_rows_were_drawn_with():
    unseen, kappa = held_out(50, doubt=0.0, size=2.0)
    samples = unseen.samples
    terms = row_terms(unseen.predictors[0], samples.values, samples.offsets)
    np.testing.assert_allclose(terms.weights().numpy().reshape(50, 6), kappa, atol=1e-10)


@pytest.mark.parametrize(("doubt", "size"), [(0.0, 2.0), (0.4, 2.0), (0.0, 6.0)])
def test_true_weights_are_found_where_many_samples_tell(doubt, size):
    """Scores that are three times too large have a temperature of 3; doubt is a share."""
    unseen, kappa = held_out(600, doubt, size)
    found = recalibration(unseen, 1.0)
    terms = row_terms(unseen.predictors[0], unseen.samples.values, unseen.samples.offsets)
    weights = found.weights(terms, unseen.samples.offsets, None).numpy().reshape(kappa.shape)
    assert np.abs(weights - kappa).mean() < 0.03
    assert (weights**2).sum() < (kappa**2).sum()  # flatter than the truth, which is not rejected
    assert (found.loss > LARGEST_LOSS) == (doubt > 0 or size > 2)


def test_weights_that_responses_cannot_judge_are_flat():
    unseen, _ = held_out(300, doubt=0.0, size=2.0)
    rng = np.random.default_rng(1)
    unseen.samples.y.copy_(torch.from_numpy(rng.normal(size=300)))
    found = recalibration(unseen, 1.0)
    terms = row_terms(unseen.predictors[0], unseen.samples.values, unseen.samples.offsets)
    assert float(found.weights(terms, unseen.samples.offsets, None).max()) < 0.3


def test_doubt_follows_weights_of_rows_and_leaves_none_alone():
    kappa = torch.tensor([[0.5], [0.1], [0.2], [0.7]], dtype=torch.float64)
    offsets = torch.tensor([0, 3, 4])
    prior = torch.tensor([0.5, 0.25, 0.25, 1.0], dtype=torch.float64).log()
    found = doubted(kappa, offsets, 0.5, prior)[:, 0]
    np.testing.assert_allclose(found, [0.45, 0.15, 0.2, 0.7], atol=1e-12)
    twice = torch.tensor([[0.25], [0.25], [0.1], [0.2], [0.7]], dtype=torch.float64)
    copies = doubted(twice, torch.tensor([0, 4, 5]), 0.5)[:, 0]  # the first row twice
    np.testing.assert_allclose(copies[:2].sum(), found[0], atol=1e-12)


def test_only_flatter_weights_make_the_old_ones_too_sure():
    assert Recalibration(1.2, 0.0, 10.0).shows_overconfidence(1.0)
    # These were less sure than they may be.
    assert not Recalibration(0.7, 0.0, 10.0).shows_overconfidence(0.7)
    assert not Recalibration(1.2, 0.1, 1.0).shows_overconfidence(1.1)
    assert Recalibration(1.0, 0.0, 0.0).shows_overconfidence(1.6)


def test_sets_of_a_model_of_the_wrong_rows_hold_without_labels():
    """A temperature alone holds about .75 of these rows at level .9."""
    (X, y, _), (new, _, place) = skewed(300, 0), skewed(1000, 1)
    model = DiagAttRegressor(solver=Likelihood(), random_state=0).fit(X, y).calibrate(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sets = model.certainty(new, level=0.9).row_sets
    assert np.mean([p in rows for p, rows in zip(place, sets, strict=True)]) > 0.86


def test_samples_without_a_row_keep_their_probability_of_none():
    rng = np.random.default_rng(0)
    X, has = rng.normal(size=(200, 5, 2)), rng.random(200) < 0.6
    X[has, 0] += [2, 0]
    y = (np.where(has, 2 * X[:, 0, 1], 0) + rng.logistic(size=200) > 0).astype(int)
    model = DiagAttClassifier(solver=Mixture(none=True), random_state=0).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.calibrate(X, y)
        found = model.certainty(X)
    assert ((found.none >= 0) & (found.none <= 1)).all()
    assert (found.posterior <= 1 - found.none + 1e-9).all()
