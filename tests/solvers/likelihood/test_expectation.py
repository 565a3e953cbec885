"""The E-step against enumeration of all assignments of rows to heads."""

import itertools

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal, norm

from diagatt import RaggedRows
from diagatt.scores import get_score_form
from diagatt.solvers.likelihood.em import EM
from diagatt.solvers.likelihood.expectation import Expectation
from tests.solvers.likelihood.latent_rows import em_settings, random_model
from tests.solvers.samples import problem_of


def enumerate_posterior(problem, context, model, distinct=True):
    """Log-likelihood and responsibilities by brute force over all assignments."""
    R = model.rows.n_heads
    A, C = model.rows.A.numpy(), model.rows.C.numpy()
    value, b = model.response.value[:, :, 0].numpy(), float(model.response.shared[0, 0])
    total, parts = 0.0, []
    for i in range(problem.n_samples):
        x = problem.values[problem.offsets[i] : problem.offsets[i + 1]].numpy()
        c = context[i].numpy()
        log_f = np.array(
            [multivariate_normal(A[k] @ c, C[k]).logpdf(x).reshape(-1) for k in range(R + 1)]
        )  # (R + 1, p)
        terms, rows = [], []
        for chosen in itertools.product(range(len(x)), repeat=R):
            if distinct and len(set(chosen)) < R:
                continue
            z = b + sum(x[j] @ value[k] for k, j in enumerate(chosen))
            ratio = sum(log_f[k + 1, j] - log_f[0, j] for k, j in enumerate(chosen))
            terms.append(ratio + norm(z, np.sqrt(model.response.phi)).logpdf(float(problem.y[i])))
            rows.append(chosen)
        terms = np.array(terms)
        evidence = np.logaddexp.reduce(terms)
        total += log_f[0].sum() + evidence - np.log(len(terms))
        r = np.zeros((len(x), R))
        for weight, chosen in zip(np.exp(terms - evidence), rows, strict=True):
            for k, j in enumerate(chosen):
                r[j, k] += weight
        parts.append(r)
    return total, np.concatenate(parts)


@pytest.mark.parametrize("distinct", [True, False])
@pytest.mark.parametrize("score_form", ["affine", "contextual"])
@pytest.mark.parametrize("R", [1, 2, 3])
def test_e_step_equals_enumeration(R, score_form, distinct):
    rng = np.random.default_rng(R)
    X = RaggedRows.from_samples([rng.standard_normal((p, 2)) for p in (R, R + 1, 5, 6)])
    problem = problem_of(X, rng.standard_normal(4))
    form = get_score_form(score_form)
    context = form.context(problem.values, problem.offsets)
    model = random_model(rng, R, 2, context.shape[1])
    expectation = Expectation(problem, form, distinct)
    expected = EM(expectation, em_settings()).expect(model)
    value, r = enumerate_posterior(problem, context, model, distinct)
    assert expected.log_likelihood == pytest.approx(value, rel=1e-10)
    kept = expectation.of_part(problem).run(model.rows, model.response, keep=True)
    np.testing.assert_allclose(torch.cat(kept.responsibilities), r, atol=1e-9)
    x = X.values
    np.testing.assert_allclose(expected.xx[0], x.T @ (r[:, :1] * x), atol=1e-8)
