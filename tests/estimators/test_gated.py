import numpy as np
import pytest
import torch

from diagatt import simulate
from diagatt.attention import gated
from diagatt.attention.gated import GatedAttention
from diagatt.estimators.gated import GatedAttentionClassifier, GatedAttentionRegressor
from tests.estimators.samples import ragged, responses, with_random_parameters

X = ragged(n=40, d=3, longest=5)


def random_module(outputs=1):
    return with_random_parameters(GatedAttention(3, 4, outputs))


@pytest.mark.parametrize("outputs", [1, 3])
def test_module_is_a_direct_evaluation(outputs):
    module = random_module(outputs)
    z, weights = module(*X.to_torch()), module.attention(*X.to_torch())[:, 0]
    V, U, w = module.content, module.gate, module.mixing
    for i, sample in enumerate(X):
        h = torch.from_numpy(np.array(sample))
        raw = torch.stack([w @ (torch.tanh(V @ x) * torch.sigmoid(U @ x)) for x in h])
        a = torch.exp(raw) / torch.exp(raw).sum()
        torch.testing.assert_close(weights[X.offsets[i] : X.offsets[i + 1]], a)
        torch.testing.assert_close(z[i], (a @ h) @ module.value + module.intercept)


def test_gradients():
    module = random_module()
    values, offsets = X[:4].to_torch()
    names = [name for name, _ in module.named_parameters()]

    def predictor(*parameters):
        state = dict(zip(names, parameters, strict=True))
        return torch.func.functional_call(module, state, (values, offsets))

    torch.autograd.gradcheck(predictor, tuple(module.parameters()))


def test_features_times_values_are_the_predictor():
    module = random_module()
    z = module.features(*X.to_torch()) @ module.value + module.intercept
    torch.testing.assert_close(z, module(*X.to_torch()))


def test_blocks_cover_all_samples_and_change_nothing(monkeypatch):
    y = responses(X)
    whole = GatedAttentionRegressor(4, score_ridge=10.0, random_state=0).fit(X, y)
    monkeypatch.setattr(gated, "BLOCK_HIDDEN", 4 * 7)  # seven rows at once
    offsets = X.to_torch()[1]
    ends = np.array([samples.stop for samples, _ in whole.to_module().blocks(offsets)])
    assert ends[-1] == len(X)
    rows = np.diff(np.concatenate([[0], X.offsets[ends]]))
    assert (rows <= 7).all()
    blocked = GatedAttentionRegressor(4, score_ridge=10.0, random_state=0).fit(X, y)
    np.testing.assert_allclose(blocked.predict(X), whole.predict(X), atol=1e-9)


def test_located_rows_have_the_largest_attention():
    model = GatedAttentionClassifier(4, n_located=1, random_state=0).fit(X, responses(X, "three"))
    weights = model.attention(X)
    np.testing.assert_allclose([a.sum() for a in weights], 1)
    assert model.locate(X)[:, 0].tolist() == [int(a.argmax()) for a in weights]


def test_it_finds_rows_whose_mean_differs():
    data = simulate.regression(
        1500, p=8, d=4, mu=(1,), sigma2=(1,), center=[0.0, 0.0, 0.0, 3.0], beta=[2, 1, -1, 0]
    )
    # Background rows have mean 3 in the last feature, active ones are moved to −3.
    values = np.array(data.X.values)
    active = data.X.offsets[:-1] + data.rows[:, 0]
    values[active, 3] -= 6
    moved = data.X.with_values(values)
    model = GatedAttentionRegressor(8, n_located=1, random_state=0).fit(moved, data.y)
    assert np.mean(model.locate(moved)[:, 0] == data.rows[:, 0]) > 0.95
