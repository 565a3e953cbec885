"""Members of a blend in files: bit-equal after a round trip, and refused if they make no sense."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch

from diagatt import (
    DiagAttRegressor,
    DiagonalAttention,
    ModelFileError,
    NoRowOfInterestWarning,
    RaggedRows,
    modelfile,
)
from diagatt.attention.blend import Member
from diagatt.attention.sample_features import SampleFeatures
from diagatt.estimators.members import StoredMember
from diagatt.rowmaps import ROW_MAPS
from diagatt.solvers import Auto, Uniform

pytestmark = pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning")

D, Q = 55, 1  # bent maps of so many features are projected
MAPS = ("unit", "common", "ranks", "squares", "scaled", "given")


def draw(n=20, seed=0):
    rng = np.random.default_rng(seed)
    X = RaggedRows.from_samples([rng.normal(size=(rng.integers(2, 5), D)) for _ in range(n)])
    return X, np.array([sample[0, 0] for sample in X]), rng.normal(size=(n, Q))


X, Y, Z = draw()


def member_of(rows, weight, vote, seed):
    """A member with drawn parameters on rows of this map, with features of samples."""
    values, offsets = X.to_torch(dtype=torch.float64)
    made = ROW_MAPS[rows].fitted_to(values)
    features = SampleFeatures.fitted_to(("size", "max"), made(values), offsets, torch.ones(len(X)))
    generator = torch.Generator().manual_seed(seed)
    attention = DiagonalAttention(
        *(made.n_dimensions, 1, 1, Q + len(features.shift)),
        score_form="affine",
        coupling="distinct",
        readout="mixture" if seed % 2 else "pooled",
        family="gaussian",
    ).double()
    with torch.no_grad():
        for parameter in attention.parameters():
            parameter.copy_(0.3 * torch.randn(parameter.shape, generator=generator))
    return Member(attention, made, features, weight, vote)


def fitted_model():
    """A fitted model whose members are replaced by one of every map."""
    solver = Auto([Uniform()], folds=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoRowOfInterestWarning)
        model = DiagAttRegressor(solver=solver, random_state=0).fit(X, Y, covariates=Z)
    shares = [(0.25, 0.0), (0.25, 0.5), (0.25, 0.0), (0.125, 0.5), (0.125, 0.0), (0.0, 0.0)]
    model.members_ = [
        StoredMember.of(member_of(rows, *share, seed))
        for seed, (rows, share) in enumerate(zip(MAPS, shares, strict=True))
    ]
    return model


MODEL = fitted_model()
PARTS = MODEL.to_document()


def parts():
    return dict(PARTS[0]), json.loads(json.dumps(PARTS[1]))


def load(path, tensors, document):
    modelfile.write(path, tensors, document)
    return DiagAttRegressor.load(path)


def test_wide_rows_have_a_subspace():
    assert {"centre", "directions"} <= set(MODEL.members_[MAPS.index("ranks")].arrays)
    assert "knots" in MODEL.members_[MAPS.index("ranks")].arrays


def test_a_round_trip_changes_no_bit(tmp_path):
    MODEL.save(tmp_path / "m")
    loaded = DiagAttRegressor.load(tmp_path / "m")
    new, _, covariates = draw(seed=1)
    np.testing.assert_array_equal(
        loaded.predict(new, covariates=covariates), MODEL.predict(new, covariates=covariates)
    )
    np.testing.assert_array_equal(loaded.locate(new), MODEL.locate(new))
    for ours, theirs in zip(loaded.attention(new), MODEL.attention(new), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert [m.to_document() for m in loaded.members_] == [m.to_document() for m in MODEL.members_]


def test_coefficients_of_a_fit_that_does_not_predict_are_called_so():
    """Squares of features may predict best, and their coefficients are not those of features."""
    model = DiagAttRegressor()
    model.members_, model.solver_, model.described_ = [None, None], "gradient", "unit rows"
    line = {"solver": "gradient", "what": "unit rows", "weight": 0.4}
    model.contest_ = [line, {**line, "what": "squares rows", "weight": 0.6}]
    assert model._blend_facts()["its weight in the blend"] == "0.40 of 2 members"
    model.contest_[0]["weight"] = 0.0
    assert model._blend_facts()["its weight in the blend"].startswith("none; the 2 members")


def test_a_stored_member_is_the_member():
    member = member_of("ranks", 0.5, 0.5, 2)
    how = {"score_form": "affine", "coupling": "distinct"}
    again = StoredMember.of(member).member(D, MODEL.to_module().family, **how)
    values, offsets = X.to_torch(dtype=torch.float64)
    with torch.no_grad():
        covariates = torch.from_numpy(Z)
        found, expected = (m(m.rows(values), offsets, covariates) for m in (again, member))
        assert torch.equal(found, expected)


def test_members_lie_in_memory_alike_wherever_they_come_from():
    """Products of matrices that lie by columns differ in their last digits from those by rows."""
    stored = MODEL.members_[MAPS.index("ranks")]
    by_columns = {name: np.asfortranarray(array) for name, array in stored.arrays.items()}
    how = {"score_form": "affine", "coupling": "distinct"}
    made = replace(stored, arrays=by_columns).member(D, MODEL.to_module().family, **how)
    assert all(t.is_contiguous() for t in [*made.parameters(), *made.rows.buffers()])
    assert made.rows.directions.data_ptr() != by_columns["directions"].ctypes.data


# ---------------------------------------------------------------------- hostile documents


def word(name, value, k=0):
    def spoil(tensors, document):
        document["members"][k][name] = value

    return spoil


def array(k, name, change):
    """Replace an array of member k by what becomes of it; None removes it."""

    def spoil(tensors, document):
        changed = change(tensors.pop(f"{k}.{name}", None))
        if changed is not None:
            tensors[f"{k}.{name}"] = np.asarray(changed)

    return spoil


def poisoned(old):
    new = np.array(old)
    new.flat[0] = np.nan
    return new


def members(change):
    def spoil(tensors, document):
        document["members"] = change(document["members"])

    return spoil


def removed(_):
    return None


RANKS, SQUARES, GIVEN = (MAPS.index(name) for name in ("ranks", "squares", "given"))
REQUIRED = (
    *("columns", "shift", "scale", "feature_shift", "feature_scale"),
    *("query", "value", "intercept", "covariate"),
)
HOSTILE = {
    # What a member says.
    "members are a word": (members(lambda m: "all"), "no list of the members"),
    "members are an object": (members(lambda m: {}), "no list of the members"),
    "a member is a list": (members(lambda m: [[], *m[1:]]), "a member of its blend is []"),
    "a member is null": (members(lambda m: [None, *m[1:]]), "a member of its blend is None"),
    "a member fewer": (members(lambda m: m[:-1]), "has no fitted attribute '5."),
    "a member more": (members(lambda m: [*m, m[0]]), "lacks or has the array"),
    "no members but their arrays": (members(lambda m: []), "has no fitted attribute '0."),
    "an entry more": (word("colour", "red"), "a member of its blend is"),
    "an entry less": (members(lambda m: [{"rows": "unit"}, *m[1:]]), "a member of its blend is"),
    "unknown map": (word("rows", "magic"), "unknown map 'magic'"),
    "map is a list": (word("rows", ["unit"]), "unknown map ['unit']"),
    "unknown readout": (word("readout", "uniform"), "unknown readout 'uniform'"),
    "readout is a list": (word("readout", []), "unknown readout []"),
    "unknown feature": (word("features", ["size", "median"]), "unknown features"),
    "features are a word": (word("features", "size"), "unknown features 'size'"),
    "features are numbers": (word("features", [1]), "unknown features [1]"),
    "a feature less": (word("features", ["size"]), "must have the shape"),
    **{
        f"{name} is {value!r}": (word(name, value), f"a member has the {name}")
        for name in ("weight", "vote")
        for value in (-0.1, 1.1, float("nan"), float("inf"), True, "1", None, [1])
    },
    "another map": (word("rows", "squares"), "must have the shape"),
    # Arrays that are missing or too many.
    **{f"no {name}": (array(0, name, removed), f"'{name}'") for name in REQUIRED},
    "an array more": (array(0, "key", lambda _: np.ones(3)), "the array 'key'"),
    "no knots": (array(RANKS, "knots", removed), "knots"),
    "no directions": (array(RANKS, "directions", removed), "directions"),
    "no centre": (array(SQUARES, "centre", removed), "centre"),
    # Arrays of other types, shapes and entries.
    **{
        f"NaN in {name}": (array(RANKS, name, poisoned), "does not hold finite numbers")
        for name in (*REQUIRED[1:], "knots", "centre", "directions")
    },
    **{
        f"{name} shorter": (array(RANKS, name, lambda a: a[:-1]), "must have the shape")
        for name in (*REQUIRED, "knots", "centre", "directions")
    },
    **{
        f"{name} of halves": (array(0, name, lambda a: a.astype("f2")), "finite numbers")
        for name in REQUIRED[1:]
    },
    "knots flat": (array(RANKS, "knots", np.ravel), "must have the shape"),
    "knots empty": (array(RANKS, "knots", lambda a: a[:, :0]), "knots"),
    "knots scalar": (array(RANKS, "knots", lambda a: 1.0), "holds no valid"),
    "directions scalar": (array(RANKS, "directions", lambda a: 1.0), "holds no valid"),
    "directions empty": (array(RANKS, "directions", lambda a: a[:, :0]), "must have the shape"),
    "given rows in a subspace": (array(GIVEN, "directions", lambda _: np.eye(D)), "'directions'"),
    "given rows in another order": (array(GIVEN, "columns", lambda a: a[::-1]), "invalid columns"),
    "knots of unit rows": (array(0, "knots", lambda _: np.ones((D, 3))), "'knots'"),
    "columns scalar": (array(0, "columns", lambda a: 1), "must have the shape"),
    "columns of floats": (array(0, "columns", lambda a: a * 1.0), "finite numbers"),
    "columns of bytes": (array(0, "columns", lambda a: a.astype("i1")), "columns"),
    "query of integers": (array(0, "query", lambda a: a.astype(int)), "finite numbers"),
    "columns below 0": (array(0, "columns", lambda a: a - 1), "invalid columns"),
    "columns beyond": (array(0, "columns", lambda a: a + 1), "invalid columns"),
    "scale 0": (array(0, "scale", lambda a: 0 * a), "invalid columns"),
    "scale below 0": (array(0, "scale", lambda a: -a), "invalid columns"),
    "feature scale 0": (array(0, "feature_scale", lambda a: 0 * a), "invalid columns"),
    "one of another type": (array(0, "value", lambda a: a.astype("f4")), "type"),
    "no member has weight": (members(lambda m: [{**one, "weight": 0.0} for one in m]), "weights"),
    "too much weight": (members(lambda m: [{**one, "weight": 1.0} for one in m]), "weights"),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_members(tmp_path, case):
    spoil, message = HOSTILE[case]
    tensors, document = parts()
    spoil(tensors, document)
    path = tmp_path / "m"
    with pytest.raises(ModelFileError) as error:
        load(path, tensors, document)
    found = str(error.value)
    assert message in found
    assert str(path) in found
    assert found.endswith(".")
    assert "\n" not in found


def test_untouched_members_load(tmp_path):
    assert len(load(tmp_path / "m", *parts()).members_) == len(MAPS)
