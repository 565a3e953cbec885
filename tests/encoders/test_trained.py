"""Encoders that are trained with the model."""

import numpy as np
import pytest
import torch
from torch import nn

from diagatt import DiagAttClassifier, DiagAttRegressor, RaggedRows
from diagatt.encoders import MLP
from diagatt.encoders.trained import row_encoder_of
from diagatt.metrics import rmse
from diagatt.modelfile import ModelFileError
from diagatt.segments import sample_blocks
from diagatt.solvers import Gradient, Mixture, Model
from diagatt.solvers.gradient.adam import EncoderRun
from tests.closeness import assert_equal_up_to_rounding
from tests.solvers.samples import problem_of, ragged

pytestmark = [
    pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
ADAM = {"optimizer": "adam", "max_epochs": 3, "batch_size": 32}
SHORT = MLP((6,), 4, "tanh", max_epochs=3)


def bent(n=150, seed=0):
    """The row with the largest first feature decides, by its squared second feature."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4, 2))
    best = X[:, :, 0].argmax(axis=1)
    X[np.arange(n), best, 0] += 2
    return X, X[np.arange(n), best, 1] ** 2 + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize("activation", ["relu", "tanh", "gelu"])
def test_the_arrays_are_the_torch_module(activation):
    maps = MLP((5, 3), 2, activation).build(4).double()
    rows = np.random.default_rng(0).normal(size=(20, 4))
    shift, scale = torch.arange(4.0).double(), torch.arange(1.0, 5.0).double()
    ours = row_encoder_of(maps, shift, scale)
    with torch.no_grad():
        theirs = maps((torch.from_numpy(rows) - shift) / scale)
    assert_equal_up_to_rounding(ours(rows), theirs)
    again = type(ours).from_document(*ours.to_document())
    assert np.array_equal(again(rows), ours(rows))


@pytest.mark.parametrize("solver", [Gradient(), Mixture()], ids=["gradient", "mixture"])
def test_gradients_of_the_joint_objective(solver, monkeypatch):
    X, y = ragged(n=10)
    samples = problem_of(X, y, weights=np.arange(1.0, 11.0))
    torch.manual_seed(0)
    maps = MLP((4,), 3, "tanh").build(3).double()
    with torch.no_grad():
        seen = problem_of(X.with_values(maps(samples.values).numpy()), y)
    joint = solver.joint(seen, Model(1), seed=0)
    with torch.no_grad():
        joint.attention.value.normal_()
    run = EncoderRun(maps, joint, samples, ridge=0.0, seed=0)

    monkeypatch.setattr(joint.attention, "blocks", lambda offsets: sample_blocks(offsets, 12))

    def objective():
        return run.held_out_loss(samples) + float(joint.how.penalty(joint.module, samples))

    joint.how.penalty(joint.module, samples).backward()
    total = run.backward(samples, samples.total_weight)
    assert float(total) == pytest.approx(run.held_out_loss(samples) * samples.total_weight)
    for parameter in [*maps.parameters(), *joint.module.parameters()]:
        if not parameter.numel():
            continue
        entry, step = (0,) * parameter.ndim, 1e-6
        values = []
        for sign in (1, -1):
            with torch.no_grad():
                parameter[entry] += sign * step
                values.append(objective())
                parameter[entry] -= sign * step
        slope = (values[0] - values[1]) / (2 * step)
        assert float(parameter.grad[entry]) == pytest.approx(slope, abs=1e-6)


@pytest.mark.parametrize("solver", [Gradient(**ADAM), Mixture(**ADAM, n_starts=1)], ids=str)
def test_a_bent_effect_is_learned(solver):
    X, y = bent(400)
    new, truth = bent(300, seed=1)
    encoder = MLP((16,), 6, max_epochs=60, learning_rate=0.01)
    model = DiagAttRegressor(solver=solver, encoder=encoder, random_state=0).fit(X, y)
    assert model.value_.shape == (1, 6)
    plain = DiagAttRegressor(solver=solver, random_state=0).fit(X, y)
    assert rmse(truth, model.predict(new)) < 0.7 * rmse(truth, plain.predict(new))


@pytest.mark.parametrize("kind", [DiagAttRegressor, DiagAttClassifier])
@pytest.mark.parametrize("solver", [Gradient(**ADAM), Mixture(**ADAM, n_starts=1)], ids=str)
def test_a_file_holds_the_encoder(kind, solver, tmp_path):
    X, y = bent(60)
    y = y if kind is DiagAttRegressor else np.digitize(y, [0.3, 1.5])
    model = kind(solver=solver, encoder=SHORT, random_state=0).fit(X, y)
    model.save(tmp_path / "m")
    same = kind.load(tmp_path / "m")
    assert same.encoder.get_params() == SHORT.get_params()
    assert np.array_equal(same.predict(X), model.predict(X))
    assert np.array_equal(same.locate(X), model.locate(X))
    again = kind(solver=solver, encoder=SHORT, random_state=0).fit(X, y)
    assert np.array_equal(again.predict(X), model.predict(X))  # nothing is left to chance


def test_torch_modules(tmp_path):
    X, y = bent(60)
    given = {"solver": Gradient(**ADAM), "random_state": 0}
    known = nn.Sequential(nn.Linear(2, 5), nn.ReLU(), nn.Linear(5, 3))
    before = [p.clone() for p in known.parameters()]
    model = DiagAttRegressor(encoder=known, **given).fit(X, y)
    assert all(torch.equal(a, b) for a, b in zip(before, known.parameters(), strict=True))
    model.save(tmp_path / "m")
    same = DiagAttRegressor.load(tmp_path / "m")
    assert np.array_equal(same.predict(X), model.predict(X))
    assert (same.encoder.hidden, same.encoder.out) == ((5,), 3)

    class Bent(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(2))

        def forward(self, rows):
            return torch.cat([rows, (self.scale * rows) ** 2], dim=1)

    model = DiagAttRegressor(encoder=Bent(), **given).fit(X, y)
    assert model.value_.shape == (1, 4)
    with pytest.raises(TypeError, match="the encoder Bent of torch cannot be saved"):
        model.save(tmp_path / "n")


def test_what_is_refused(tmp_path):
    X, y = bent(40)
    for solver in ("auto", "likelihood", "uniform"):
        with pytest.raises(ValueError, match="set solver='gradient' or solver='mixture'"):
            DiagAttRegressor(solver=solver, encoder=SHORT).fit(X, y)
    with pytest.raises(ValueError, match="encoder__out must be a whole number"):
        DiagAttRegressor(solver="gradient", encoder=MLP(out=0)).fit(X, y)
    with pytest.raises(ValueError, match="encoder__hidden must be a tuple"):
        DiagAttRegressor(solver="gradient", encoder=MLP(hidden=64)).fit(X, y)
    with pytest.raises(ValueError, match="one count of heads"):
        DiagAttRegressor("auto", solver="gradient", encoder=SHORT).fit(X, y)
    with pytest.raises(ValueError, match=r"maps 160 rows to the shape \(320,\)"):
        DiagAttRegressor(solver="gradient", encoder=nn.Flatten(0)).fit(X, y)
    model = DiagAttRegressor(solver=Gradient(**ADAM), encoder=SHORT, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="every fold would need its own"):
        model.calibrate(X, y)
    tensors, document = model.to_document()
    document["encoder"]["parameter"]["parameters"]["hidden"] = "wide"
    with pytest.raises(ModelFileError, match="encoder__hidden must be"):
        DiagAttRegressor.from_document(tensors, document)


def test_missing_entries_one_row_samples_and_two_heads():
    X, y = bent(60)
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    given = {"solver": Gradient(**ADAM), "encoder": SHORT, "missing": "marginalize"}
    model = DiagAttRegressor(2, **given, random_state=0).fit(X, y)
    assert model.value_.shape == (2, 4)
    assert np.isfinite(model.predict(X)).all()
    flat = DiagAttRegressor(**given, random_state=0).fit(X[:, 0], y)
    assert np.isfinite(flat.predict(X[:, 0])).all()
    rows = RaggedRows.from_dense(X)
    warm = DiagAttRegressor(**given, warm_start=True, random_state=0).fit(rows, y)
    kept = warm.encoder_
    assert warm.fit(rows, y).encoder_ is kept


def test_a_sample_counts_by_its_weight_whatever_batch_it_is_in():
    """The gradients of two batches add up to that of all samples."""
    X, y = ragged(n=10)
    samples = problem_of(X, y, weights=np.arange(1.0, 11.0))
    maps = nn.Linear(3, 3).double()
    run = EncoderRun(maps, Gradient().joint(samples, Model(1), seed=0), samples, 0.0, seed=0)
    with torch.no_grad():
        run.module.value.normal_(generator=torch.Generator().manual_seed(0))
    found = []
    for parts in ([range(10)], [range(6), range(6, 10)]):
        run.optimizer.zero_grad()
        for part in parts:
            run.backward(samples.take(torch.tensor(part)), 10 * run.mean_weight)
        found.append(maps.weight.grad.clone())
    assert_equal_up_to_rounding(found[0], found[1])


def test_few_samples_are_all_trained_on():
    X, y = bent(4)
    model = DiagAttRegressor(solver=Gradient(**ADAM), encoder=SHORT, random_state=0).fit(X, y)
    every = MLP((6,), 4, "tanh", max_epochs=3, validation_fraction=0.0)
    same = DiagAttRegressor(solver=Gradient(**ADAM), encoder=every, random_state=0).fit(X, y)
    assert np.array_equal(same.predict(X), model.predict(X))
