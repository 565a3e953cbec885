"""Distributions of rows and the scores that they imply."""

import numpy as np
import torch
from scipy.stats import multivariate_normal
from torch.distributions import MultivariateNormal, kl_divergence

from diagatt import DiagonalAttention, RaggedRows
from diagatt.scores import get_score_form
from tests.solvers.likelihood.latent_rows import random_model
from tests.solvers.samples import problem_of


def test_fitted_scores_are_the_log_density_ratio():
    """The module's attention is the posterior given X alone."""
    rng = np.random.default_rng(0)
    X = RaggedRows.from_samples([rng.standard_normal((p, 3)) for p in (4, 6)])
    problem = problem_of(X, [0.0, 1.0])
    for form in map(get_score_form, ("affine", "contextual")):
        context = form.context(problem.values, problem.offsets)
        model = random_model(rng, 1, 3, context.shape[1])
        value, shared = model.response.value, model.response.shared
        module = DiagonalAttention.with_parameters(
            model.rows.query_key(form), None, value, shared[0], shared[1:], score_form=form.name
        )
        got = module.attention(problem.values, problem.offsets).detach()[:, 0]
        A, C = model.rows.A.numpy(), model.rows.C.numpy()
        for i, x in enumerate(X):
            c = context[i].numpy()
            ratio = multivariate_normal(A[1] @ c, C[1]).logpdf(x)
            ratio = ratio - multivariate_normal(A[0] @ c, C[0]).logpdf(x)
            want = np.exp(ratio - np.logaddexp.reduce(ratio))
            np.testing.assert_allclose(got[X.offsets[i] : X.offsets[i + 1]], want, rtol=1e-8)


def test_divergence_is_that_of_the_normal_distributions():
    """The symmetric Kullback–Leibler divergence, in the mean over contexts."""
    rng = np.random.default_rng(1)
    one, other = (random_model(rng, 2, 3, 2).rows for _ in range(2))
    contexts = torch.from_numpy(rng.standard_normal((50, 2)))
    want = 0.0
    for k in (1, 2):
        pair = [
            MultivariateNormal(contexts @ rows.A[k].T, rows.C[k].expand(50, 3, 3))
            for rows in (one, other)
        ]
        want += float((kl_divergence(*pair) + kl_divergence(*reversed(pair))).mean())
    moments = contexts.T @ contexts / 50
    np.testing.assert_allclose(one.divergence(other, moments), want, rtol=1e-10)
    np.testing.assert_allclose(one.divergence(one, moments), 0.0, atol=1e-10)
