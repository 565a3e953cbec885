"""Encoders: their arrays do what scikit-learn does, and models keep them."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.decomposition import PCA, FastICA, TruncatedSVD
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from diagatt import DiagAttClassifier, DiagAttRegressor, ModelFileError, RaggedRows, modelfile
from diagatt.encoders import Principal, fit_encoder
from diagatt.solvers import Gradient, Likelihood
from diagatt.stores import RowStore

pytestmark = pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning")
QUICK = {"solver": Likelihood(), "random_state": 0}
TRANSFORMERS = [
    StandardScaler(),
    StandardScaler(with_mean=False),
    RobustScaler(),
    MinMaxScaler((-1, 1)),
    MaxAbsScaler(),
    PCA(3),
    PCA(3, whiten=True),
    TruncatedSVD(2, random_state=0),
    Principal(3),
    Nystroem(n_components=7, random_state=0),
    Nystroem(gamma=0.3, n_components=5, random_state=0),
    RBFSampler(n_components=9, random_state=0),
    make_pipeline(StandardScaler(), PCA(3), Nystroem(n_components=6, random_state=0)),
]


def rows(n=30, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(p, d)) * [1, 5, 0.1, 1] + 3 for p in rng.integers(2, 6, n)]
    y = np.array([x[0].sum() for x in X])
    return RaggedRows.from_samples(X).with_names(["a", "b", "c", "d"]), y


@pytest.mark.parametrize("transformer", TRANSFORMERS, ids=repr)
def test_arrays_do_what_the_transformer_does(transformer):
    values, new = rows()[0].values, rows(seed=1)[0].values
    expected = clone(transformer).fit(values).transform(new)
    found = fit_encoder(transformer, values)
    assert found.other is None
    np.testing.assert_allclose(found(new), expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("transformer", TRANSFORMERS, ids=repr)
def test_a_model_keeps_its_encoder(tmp_path, transformer):
    X, y = rows()
    model = DiagAttRegressor(encoder=transformer, **QUICK).fit(X, y)
    model.save(tmp_path / "m")
    again = DiagAttRegressor.load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert repr(again.encoder) == repr(transformer)
    by_hand = fit_encoder(transformer, X.values)
    same = DiagAttRegressor(**QUICK).fit(X.with_values(by_hand(X.values)), y)
    expected = same.predict(X.with_values(by_hand(X.values)))
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-6)
    assert model.summary() is not None
    assert len(model.get_feature_names_out()) == model.transform(X).shape[1]
    assert model.n_features_in_ == 4
    shuffled = X.with_features(["d", "a", "c", "b"])
    np.testing.assert_array_equal(model.predict(shuffled), model.predict(X))


def test_the_contest_and_classes_take_encoders():
    X, y = rows(60)
    model = DiagAttClassifier(encoder=PCA(2), solver=Gradient(max_epochs=2), random_state=0)
    model.fit(X, y > np.median(y))
    assert model.value_.shape == (1, 2)
    assert model.set_params(encoder__n_components=3).fit(X, y > 0).value_.shape == (1, 3)


def test_another_transformer_works_but_is_not_saved(tmp_path):
    X, y = rows()
    ica = FastICA(2, random_state=0, whiten="unit-variance")
    model = DiagAttRegressor(encoder=ica, **QUICK).fit(X, y)
    assert model.value_.shape == (1, 2)
    with pytest.raises(TypeError, match="FastICA cannot be saved with the model: known are"):
        model.save(tmp_path / "m")


def test_encoders_of_stores(tmp_path, monkeypatch):
    X, y = rows(40)
    store = RowStore.from_rows(tmp_path / "s", X, y, dtype="float64", shard_mib=0.001)
    monkeypatch.setattr("diagatt.estimators.containers.READ_WHOLE", 0)
    stored = DiagAttRegressor(encoder=PCA(2), **QUICK).fit(store)
    memory = DiagAttRegressor(encoder=PCA(2), **QUICK).fit(X, y)
    np.testing.assert_allclose(stored.predict(store), memory.predict(X), rtol=1e-4)


def test_what_is_no_transformer_is_refused():
    X, y = rows()
    with pytest.raises(ValueError, match=r"encoder must be .*a transformer with fit and transform"):
        DiagAttRegressor(encoder=3).fit(X, y)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d, t: d["encoder"].update(steps=["evil"]), "a step 'evil'"),
        (lambda d, t: d["encoder"].update(steps=["affine", "affine"]), "affine of the encoder has"),
        (lambda d, t: d["encoder"]["parameter"].update({"class": "eval"}), "is a 'eval'"),
        (lambda d, t: d["encoder"]["parameter"]["parameters"].update(x=1), "has no parameter"),
        (lambda d, t: d.pop("encoder"), "half of an encoder"),
        (lambda d, t: t.pop("encoder.0.shift"), "encoder has"),
        (lambda d, t: t.update({"encoder.0.shift": np.full(4, np.nan)}), "finite floats"),
        (lambda d, t: t.update({"encoder.0.shift": np.zeros(5)}), "affine encoder has shift"),
        (lambda d, t: d["fitted"].update(n_encoded_=7), "must have the shape"),
    ],
)
def test_nonsense_in_files_is_refused(tmp_path, change, said):
    X, y = rows()
    tensors, document = DiagAttRegressor(encoder=PCA(2), **QUICK).fit(X, y).to_document()
    change(document, tensors)
    modelfile.write(tmp_path / "m", tensors, document)
    with pytest.raises(ModelFileError, match=said):
        DiagAttRegressor.load(tmp_path / "m")


# ---------------------------------------------------------------------- sparse rows


def sparse(n=60, d=300, seed=0):
    """Counts; the first row of a sample holds ten words of a topic in half of the samples."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    parts = []
    for i in range(n):
        block = (rng.random((6, d)) < 0.02) * rng.integers(1, 4, (6, d)).astype(np.float64)
        block[0, :10] = 6.0 if y[i] else 0.0
        parts.append(sp.csr_array(block))
    return parts, y


def test_principal_components_are_those_of_the_dense_rows():
    rng = np.random.default_rng(0)
    dense = (rng.random((400, 90)) < 0.1) * rng.normal(size=(400, 90)) * 0.9 ** np.arange(90)
    found = Principal(6).fit(sp.csr_array(dense))
    centred = dense - dense.mean(axis=0)
    _, S, Vh = np.linalg.svd(centred, full_matrices=False)
    np.testing.assert_allclose(found.explained_variance_, S[:6] ** 2 / 400, rtol=1e-4)
    np.testing.assert_allclose(np.abs(np.sum(found.components_ * Vh[:6].T, axis=0)), 1, atol=1e-3)
    share = S[:6] ** 2 / np.sum(S**2)
    np.testing.assert_allclose(found.explained_variance_ratio_, share, rtol=1e-4)
    np.testing.assert_allclose(found.fit(dense).transform(dense), found.transform(dense))


@pytest.mark.parametrize(("name", "value"), [("n_components", 3), ("random_state", 1)])
def test_every_parameter_of_principal_components_acts(name, value):
    assert Principal._get_param_names() == ["n_components", "random_state"]
    X = np.random.default_rng(0).normal(size=(50, 40))
    before, after = Principal(4).fit(X), Principal(4).set_params(**{name: value}).fit(X)
    np.testing.assert_array_equal(Principal(4).fit(X).components_, before.components_)
    assert not np.array_equal(before.components_, after.components_)


@pytest.mark.parametrize("value", [object(), -1, 1.5, None, "3", True])
@pytest.mark.parametrize("name", ["n_components", "random_state"])
def test_principal_components_refuse_what_is_no_count(name, value):
    with pytest.raises(ValueError, match=rf"{name} must be a whole number of at least"):
        Principal(**{name: value}).fit(np.eye(3))


def test_sparse_and_dense_rows_give_the_same_model(tmp_path):
    parts, y = sparse()
    X = RaggedRows.from_samples(parts)
    assert X.is_sparse
    dense = X.to_dense()
    assert fit_encoder(None, X.values)(X.values).shape == (X.n_rows, 64)  # the default
    model = DiagAttClassifier(encoder=Principal(6), **QUICK).fit(X, y)
    same = DiagAttClassifier(encoder=Principal(6), **QUICK).fit(dense, y)
    np.testing.assert_allclose(model.predict_proba(X), same.predict_proba(dense), atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(dense), model.predict_proba(X), atol=1e-8)
    model.save(tmp_path / "m")
    again = DiagAttClassifier.load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.n_features_in_ == 300
    single = RaggedRows(X.values.astype(np.float32), X.offsets)
    assert model.predict_proba(single).dtype == np.float64
    np.testing.assert_allclose(model.predict_proba(single), model.predict_proba(X), atol=1e-4)


def test_sparse_rows_by_name_part_and_pickle():
    import pickle

    parts, _ = sparse(8)
    names = [f"w{j}" for j in range(300)]
    X = RaggedRows(sp.vstack(parts), 6 * np.arange(9), names, list("abcdefgh"))
    dense = X.to_dense()
    assert (X[2] != parts[2]).nnz == 0
    for key in (slice(2, 5), [3, 1], np.arange(8) % 2 == 0):
        assert X[key].to_dense() == dense[key]
        assert X[key].sample_ids.tolist() == dense[key].sample_ids.tolist()
    assert X.with_features(names[::-1]).to_dense() == dense.with_features(names[::-1])
    assert RaggedRows.concatenate([X[:3], X[3:]]) == X
    assert pickle.loads(pickle.dumps(X)) == X
    assert X.nbytes < dense.nbytes / 5
    assert X.with_values(2 * X.values) != X
    np.testing.assert_array_equal(X.to_padded()[0], dense.to_padded()[0])


def test_sparse_rows_are_checked():
    parts, y = sparse(8)
    broken = [part.copy() for part in parts]
    broken[3].data[0] = np.nan
    row = int(broken[3].nonzero()[0][0])
    model = DiagAttClassifier(**QUICK)
    with pytest.raises(ValueError, match=f"sample 3, row {row} contains NaN"):
        model.fit(broken, y)
    with pytest.raises(ValueError, match="one of sample 1 and sample 0 is sparse"):
        RaggedRows.from_samples([parts[0], parts[1].toarray()])
    with pytest.raises(ValueError, match="Complex data"):
        RaggedRows(sp.csr_array(np.ones((2, 2)) * 1j), [0, 2])
    with pytest.raises(ValueError, match=r"pass dense rows, as .*to_dense\(\)"):
        RaggedRows.from_samples(parts).to_torch()
