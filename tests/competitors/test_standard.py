import numpy as np
import pytest
import torch
from sklearn.exceptions import ConvergenceWarning

from diagatt.attention.standard import StandardAttention, attention_bytes
from diagatt.competitors.standard import StdAttClassifier, StdAttRegressor
from diagatt.estimators import competitor
from tests.estimators.samples import ragged, responses, with_random_parameters

X = ragged(n=40, d=3, longest=5)


def random_module(heads=2, outputs=1):
    return with_random_parameters(StandardAttention(3, 5, heads, outputs))


@pytest.mark.parametrize("outputs", [1, 3])
def test_module_is_a_direct_evaluation_of_the_papers_formula(outputs):
    module = random_module(outputs=outputs)
    z = module(*X.to_torch())
    padded = torch.from_numpy(X.to_padded()[0])
    for i, sample in enumerate(padded):
        expected = module.intercept.clone()
        for W, V in zip(module.query @ module.key.mT, module.value, strict=True):
            A = torch.softmax(sample @ W @ sample.T / 3**0.5, dim=1)
            expected = expected + torch.einsum("jd,jdk->k", A @ sample, V)
        torch.testing.assert_close(z[i], expected)


def test_row_effects_are_the_sample_specific_coefficients_of_the_supplement():
    module = random_module()
    norms = module.row_effects(*X.to_torch())
    start = 0
    for sample, mask in zip(*X.to_padded(), strict=True):
        x = torch.from_numpy(sample)
        z = 0
        for r, (W, V) in enumerate(zip(module.matrix(), module.value[..., 0], strict=True)):
            C = torch.softmax(x @ W @ x.T / 3**0.5, dim=1).T @ V
            z += (x * C).sum()
            stop = start + mask.sum()
            torch.testing.assert_close(norms[start:stop, r], C.norm(dim=1)[: mask.sum()])
        rows = torch.from_numpy(sample[mask])
        direct = module(rows, torch.tensor([0, len(rows)])) - module.intercept
        torch.testing.assert_close(direct[0, 0], z)
        start += mask.sum()


def test_gradients():
    module = random_module()
    values, offsets = X[:3].to_torch()

    def predictor(query, key, value, intercept):
        parameters = {"query": query, "key": key, "value": value, "intercept": intercept}
        return torch.func.functional_call(module, parameters, (values, offsets))

    torch.autograd.gradcheck(predictor, tuple(module.parameters()))


@pytest.mark.parametrize("optimizer", ["adam", "lbfgs"])
def test_blocks_do_not_change_a_fit(optimizer):
    y = responses(X)
    settings = {"optimizer": optimizer, "batch_size": 16, "random_state": 0}
    whole = StdAttRegressor(**settings).fit(X, y)
    limit = 2 * attention_bytes(5, 3, 1, itemsize=8)
    blocked = StdAttRegressor(**settings, memory_limit=limit).fit(X, y)
    blocks = blocked.to_module().blocks(X.to_torch()[1])
    assert {samples.stop - samples.start for samples, _ in blocks} == {2}
    np.testing.assert_allclose(blocked.predict(X), whole.predict(X), atol=1e-6)
    np.testing.assert_array_equal(blocked.locate(X), whole.locate(X))


def test_never_more_samples_at_once_than_fit_the_limit(monkeypatch):
    seen = []
    softmax = torch.softmax

    def watching(scores, dim):
        seen.append(scores.numel())
        return softmax(scores, dim=dim)

    monkeypatch.setattr(torch, "softmax", watching)
    limit = 3 * attention_bytes(5, 3, 2, itemsize=8)
    model = StdAttRegressor(2, memory_limit=limit, optimizer="adam").fit(X, responses(X))
    model.predict(X)
    model.locate(X)
    assert max(seen) == 3 * 2 * 5 * 5


def test_sample_that_cannot_fit_is_refused():
    long = [np.zeros((4000, 2)), np.ones((1, 2))]
    with pytest.raises(MemoryError, match=r"4000×4000 matrices take 0\.\d+ GiB for one sample"):
        StdAttRegressor(memory_limit=2**27).fit(long, [0.0, 1.0])


def test_longer_test_sample_is_refused():
    model = StdAttRegressor(score_ridge=10.0).fit(X, responses(X))
    message = "sample 1 has 6 rows, the longest training sample had 5"
    with pytest.raises(ValueError, match=message):
        model.predict([np.zeros((2, 3)), np.zeros((6, 3))])
    with pytest.raises(ValueError, match=message):
        model.locate([np.zeros((2, 3)), np.zeros((6, 3))])


def test_padding_reaches_the_longest_of_all_samples_while_tuning():
    """The longest sample may be held out: candidates must still have its positions."""
    rng = np.random.default_rng(0)
    samples = [rng.normal(size=(2, 3)) for _ in range(15)] + [rng.normal(size=(6, 3))]
    y = rng.normal(size=16)
    model = StdAttRegressor("auto", selection=4, score_ridge=10.0, random_state=0).fit(samples, y)
    assert model.n_rows_ == 6
    assert len(model.selection_) == 3


def test_epochs_are_tuned_and_training_is_repeatable():
    y = responses(X)
    settings = {"optimizer": "adam", "max_epochs": "auto", "learning_rate": 0.01}
    first, second = (StdAttRegressor(random_state=5, **settings).fit(X, y) for _ in range(2))
    assert [r["max_epochs_"] for r in first.selection_] == [1, 2, 4, 8]
    assert len(first.history_) == first.max_epochs_
    np.testing.assert_array_equal(first.predict(X), second.predict(X))


def test_located_rows_are_a_union_over_heads():
    model = StdAttClassifier(3, n_located=4, score_ridge=10.0, random_state=0)
    located = model.fit(X, responses(X, "two")).locate(X)
    assert located.shape == (40, 4)
    assert (np.sum(located >= 0, axis=1) <= 3).all()  # ⌊4/3⌋ = 1 a head
    assert (located.max(axis=1) < X.lengths).all()


def test_unconverged_lbfgs_warns(monkeypatch):
    monkeypatch.setattr(competitor, "LBFGS_STEPS", 2)
    with pytest.warns(ConvergenceWarning, match="stopped after 2 steps"):
        StdAttRegressor(random_state=0).fit(X, responses(X))
