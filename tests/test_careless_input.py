"""Mistakes in arguments other than X: they are refused by name, or are harmless."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch

from diagatt import (
    DiagAttClassifier,
    DiagAttRegressor,
    DiagAttSurvival,
    PooledRegressor,
    PooledSurvival,
    RaggedRows,
    TwoStepRegressor,
    WithCovariates,
    plots,
    simulate,
)
from diagatt.lifetimes import make_times
from diagatt.report import write_page

pytestmark = pytest.mark.filterwarnings("ignore::diagatt.NoRowOfInterestWarning")

DATA = simulate.regression(40, p=4, d=3, mu=(3,), sigma2=(4,), seed=0)
X, Y, N = [np.asarray(m, dtype=float) for m in DATA.X], np.asarray(DATA.y, dtype=float), 40
COUNTS = np.round(np.exp(Y / 10))
LABELS = np.where(np.median(Y) < Y, "yes", "no")
Z = np.random.default_rng(1).normal(size=(N, 2))
NAMES = ["a", "b", "c"]


def short(kind=DiagAttRegressor, **given):
    return kind(solver="likelihood", random_state=0, **given)


@pytest.fixture(scope="module")
def fitted():
    return short().fit(X, Y)


# ---------------------------------------------------------------------- the order of samples

IDS = [f"p{i:02d}" for i in range(N)][::-1]  # samples stand in another order than their ids


def long_table():
    table = pd.DataFrame(np.concatenate(X), columns=NAMES)
    table["patient"] = np.repeat(IDS, [len(m) for m in X])
    table["y"] = np.repeat(Y, [len(m) for m in X])
    return table


def named():
    return RaggedRows.from_frame(long_table().drop(columns="y"), "patient")[0]


def test_responses_that_are_grouped_by_the_same_ids_stand_in_another_order():
    table = long_table()
    y = table.groupby("patient")["y"].first()  # pandas sorts groups
    with pytest.raises(ValueError, match=r"y\[0\] is labelled 'p00', but sample 0 of X is 'p39'"):
        short().fit(named(), y)
    right = short().fit(named(), y.loc[IDS])
    np.testing.assert_array_equal(right.predict(named()), short().fit(X, Y).predict(X))


@pytest.mark.parametrize(
    "what", ["sample_weight", "covariates", "groups", "offset", "row_labels", "y"]
)
def test_everything_beside_x_has_its_order(what):
    values = {
        "sample_weight": pd.Series(np.ones(N)),
        "covariates": pd.DataFrame(Z, columns=["u", "v"]),
        "groups": pd.Series(np.arange(N)),
        "offset": pd.Series(np.zeros(N)),
        "row_labels": pd.Series(np.zeros(N, int)),
        "y": pd.Series(Y),
    }[what]
    given = {"y": Y} | {what: values.set_axis(IDS).sort_index()}
    with pytest.raises(ValueError, match=rf"{what}\[0\] is labelled 'p00'"):
        short().fit(named(), **given)
    short().fit(named(), **(given | {what: values.set_axis(IDS)}))


@pytest.mark.parametrize("method", ["predict", "predict_interval", "score"])
def test_new_covariates_have_the_order_of_new_samples(method):
    covariates = pd.DataFrame(Z, columns=["u", "v"], index=IDS)
    model = short().fit(named(), Y, covariates=covariates)
    model.calibrate(named(), Y, covariates=covariates)
    given = {"y": Y} if method == "score" else {}
    getattr(model, method)(named(), **given, covariates=covariates)
    with pytest.raises(ValueError, match=r"covariates\[0\] is labelled 'p00'"):
        getattr(model, method)(named(), **given, covariates=covariates.sort_index())


def test_labels_that_are_no_ids_of_samples_say_nothing():
    expected = short().fit(X, Y).predict(X)
    for index in (range(N), np.arange(5, 5 + N), [f"q{i}" for i in range(N)]):
        found = short().fit(named(), pd.Series(Y, index=index)).predict(named())
        np.testing.assert_array_equal(found, expected)


# ---------------------------------------------------------------------- numbered columns


@pytest.mark.parametrize("columns", [[3, 5, 7], [("a", 1), ("a", 2), ("b", 1)], [2, 1, 0]])
def test_columns_that_are_named_by_no_words_are_matched_all_the_same(columns):
    columns = pd.Index(columns)
    frames = [pd.DataFrame(m, columns=columns) for m in X]
    model = short().fit(frames, Y)
    permuted = [frame.iloc[:, [2, 0, 1]] for frame in frames]
    np.testing.assert_array_equal(model.predict(permuted), model.predict(frames))
    covariates = pd.DataFrame(Z, columns=columns[:2])
    model = short().fit(X, Y, covariates=covariates)
    found = model.predict(X, covariates=covariates.iloc[:, ::-1])
    np.testing.assert_array_equal(found, model.predict(X, covariates=covariates))


def test_counted_columns_in_another_order_are_told_of():
    model = short().fit([pd.DataFrame(m) for m in X], Y)
    with pytest.warns(UserWarning, match="fitted without feature names"):
        model.predict([pd.DataFrame(m)[[2, 0, 1]] for m in X])


# ---------------------------------------------------------------------- parameters after the fit


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"device": "cuda:99"}, "device must be a torch device that this machine has"),
        ({"device": "nowhere"}, "device must be a torch device that this machine has"),
        ({"encoder": "pca"}, "encoder must be"),
        ({"n_heads": 0}, "n_heads must be a whole number"),
    ],
)
@pytest.mark.parametrize("method", ["predict", "locate", "attention"])
def test_parameters_that_are_set_after_the_fit_are_checked(given, message, method):
    model = short().fit(X, Y).set_params(**given)
    with pytest.raises(ValueError, match=message):
        getattr(model, method)(X)


# ---------------------------------------------------------------------- groups and labels of rows


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (np.ma.masked_array(np.arange(N), mask=np.arange(N) == 3), r"groups\[3\] is masked"),
        ([[1], [1, 2]] * (N // 2), "groups is not an array"),
        (pd.array([None, *range(N - 1)], dtype="Int64"), r"groups\[0\] is missing"),
        (np.array([1, "a"] * (N // 2), dtype=object), "groups mixes labels"),
        (pd.Series(pd.date_range("2020", periods=N)), "groups holds dates"),
    ],
)
def test_groups_that_are_none(groups, message):
    with pytest.raises(ValueError, match=message):
        short().fit(X, Y, groups=groups)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.ma.masked_array(np.zeros(N, int), mask=np.arange(N) == 3), r"row_labels\[3\] is mask"),
        ([[0], [0, 1]] * (N // 2), "row_labels is not an array"),
        (np.zeros(N), "row_labels must be whole numbers"),
    ],
)
def test_labels_of_rows_that_are_none(labels, message, fitted):
    with pytest.raises(ValueError, match=message):
        short().fit(X, Y, row_labels=labels)
    with pytest.raises(ValueError, match=message):
        fitted.calibrate_rows(X, labels)


# ---------------------------------------------------------------------- parameters after a fit


def test_another_family_after_the_fit():
    model = short().fit(X, Y).set_params(family="poisson")
    for ask in (model.predict, model.attention, lambda rows: model.score(rows, Y)):
        with pytest.raises(ValueError, match="family is 'poisson', but the fit had 'auto': set it"):
            ask(X)
    assert (model.fit(X, COUNTS).predict(X) > 0).all()


# ---------------------------------------------------------------------- units


@pytest.mark.parametrize("solver", ["likelihood", "gradient", "mixture", "uniform"])
@pytest.mark.parametrize(("unit", "said"), [(1e-12, "so small .* penalties"), (1e4, "so large")])
def test_single_solvers_warn_of_the_units_of_rows(solver, unit, said):
    with pytest.warns(UserWarning, match=f"the features of X are {said} .*standardize the rows"):
        DiagAttRegressor(solver=solver, random_state=0).fit([unit * m for m in X], Y)


def test_other_methods_warn_of_units_and_rows_without_any_do_not(recwarn):
    with pytest.warns(UserWarning, match="so small"):
        PooledRegressor().fit([1e-9 * m for m in X], Y)
    recwarn.clear()
    for rows in (X, [0 * m + 3 for m in X], [0.1 * m for m in X], [100 * m for m in X]):
        PooledRegressor().fit(rows, Y)
    assert not [w for w in recwarn if "features of X" in str(w.message)]


# ---------------------------------------------------------------------- labels that look alike

ALIKE = ["a", "a ", "b", "c"] * (N // 4)


@pytest.mark.parametrize("given", [{"groups": ALIKE}, {"y": ALIKE}, {"y": ["é", "e\u0301"] * 20}])
def test_labels_that_look_alike(given):
    name = next(iter(given))
    with pytest.raises(ValueError, match=rf"in {name} look alike: .* differ in white space"):
        short(DiagAttClassifier).fit(X, **({"y": LABELS} | given))


def test_ids_that_look_alike():
    table = {"who": ["p1", "p1 ", "p2"], "size": [1.0, 2.0, 3.0]}
    with pytest.raises(ValueError, match="ids in column 'who' look alike: 'p1' and 'p1 '"):
        RaggedRows.from_frame(table, "who")
    with pytest.raises(ValueError, match="sample_ids has 1 and '1', which read alike"):
        RaggedRows(np.zeros((2, 1)), [0, 1, 2], sample_ids=[1, "1"])
    with pytest.raises(ValueError, match="column 'who' has 2 entries, and 1 are needed"):
        RaggedRows.from_frame({"who": [1, 2], "size": [1.0]}, "who")


# ---------------------------------------------------------------------- what is no samples


class Broken:
    def __array__(self, *_, **__):
        return np.array(1 / 0)


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (RaggedRows, "X is the class RaggedRows: pass samples"),
        (pd.DataFrame, "X is the class DataFrame: pass samples"),
        (torch.zeros(2, 4, 3, device="meta"), "X is a tensor .* on meta. that NumPy cannot read"),
        ([torch.ones(4, 3).to_sparse()], "sample 0 is a tensor .*: pass a dense tensor of numbers"),
        (Broken(), "X is not an array of numbers: division by zero"),
    ],
)
def test_objects_that_are_no_samples(samples, message, fitted):
    with pytest.raises(ValueError, match=message):
        fitted.predict(samples)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RaggedRows.concatenate([X]), "part 0 is a list: pass RaggedRows"),
        (lambda: RaggedRows.from_arrow(X), "the column is a list: pass a column of Arrow"),
        (lambda: WithCovariates(X, None), "covariates are None: pass one line per sample"),
    ],
)
def test_what_makes_no_samples(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()


def test_dense_arrays_are_tensors_enough():
    np.testing.assert_array_equal(RaggedRows.from_torch(np.stack(X))[3], X[3])


# ---------------------------------------------------------------------- certainty


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"X": [m[:, :2] for m in X]}, "X has 2 features, but the fit had 3"),
        ({"X": [pd.DataFrame(m, columns=["a", "b", "q"]) for m in X]}, "X has no column 'c'"),
        ({"covariates": None}, "covariates have 0 columns, but the fit had 2"),
        ({"covariates": pd.DataFrame(Z, columns=["u", "w"])}, "covariates has no column 'v'"),
        ({"y": np.column_stack([Y, Y])}, "y has 2 columns, but the fit had 1"),
    ],
)
@pytest.mark.parametrize("method", ["calibrate", "existence_test"])
def test_samples_with_other_columns_calibrate_nothing(method, given, message):
    frames = [pd.DataFrame(m, columns=NAMES) for m in X]
    own = {"X": frames, "y": Y, "covariates": pd.DataFrame(Z, columns=["u", "v"])}
    model = short().fit(**own)
    before = dict(vars(model))
    with pytest.raises(ValueError, match=message):
        getattr(model, method)(**(own | given))
    assert vars(model) == before


def test_more_heads_to_test_than_rows():
    with pytest.raises(ValueError, match="n_heads=99 heads need 99 distinct rows"):
        short().existence_test(X, Y, n_heads=99)


@pytest.mark.parametrize("count", [0, -1, 1.5, "a", None, True, 10**30])
def test_counts_of_bootstraps(count, fitted):
    with pytest.raises(ValueError, match="n_bootstraps must be a whole number of at least 1"):
        fitted.stability(X, Y, n_bootstraps=count)


@pytest.mark.parametrize("family", ["cox", "weibull"])
def test_times_to_an_event_can_be_tested_for_rows(family):
    data = simulate.survival(80, p=4, d=3, mu=(3,), sigma2=(4,), seed=0)
    test = short(DiagAttSurvival, family=family).existence_test(data.X, data.y)
    assert test.is_found


# ---------------------------------------------------------------------- times


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ([1.0, np.nan], r"times\[1\] is NaN"),
        ([1.0, np.inf], r"times\[1\] is infinity"),
        ([1.0, None], r"times\[1\] is NaN"),
        ([-1.0, 1.0], r"times\[0\] = -1 is negative"),
        ([3.0, 1.0], r"times\[1\] = 1 is not above times\[0\] = 3"),
        ([], "times must be a list"),
        (1.0, "times must be a list"),
        ([[1.0, 2.0]], "times must be a list"),
        (["a"], "times is not numeric"),
        (np.array(["2020-01-01"], "M8[D]"), "times is not numeric but holds dates"),
        (np.ma.masked_array([1.0, 2.0], mask=[False, True]), r"times\[1\] is masked"),
    ],
)
def test_times_at_which_functions_are_asked_for(times, message, survivors):
    for model in survivors:
        with pytest.raises(ValueError, match=message):
            model.predict_survival_function(X, times=times)
    with pytest.raises(ValueError, match=message):
        survivors[0].predict_cumulative_hazard_function(X, times=times)


def test_an_array_of_probabilities_has_the_order_of_its_times(survivors):
    for model in survivors:
        up = model.predict_survival_function(X, times=[1.0, 2.0], return_array=True)
        down = model.predict_survival_function(X, times=[2.0, 1.0], return_array=True)
        np.testing.assert_array_equal(up[:, ::-1], down)


@pytest.fixture(scope="module")
def survivors():
    y = make_times(Y > 0, np.exp(Y / 10))
    return short(DiagAttSurvival).fit(X, y), PooledSurvival().fit(X, y)


@pytest.mark.parametrize("family", ["weibull", "lognormal", "loglogistic"])
def test_times_in_another_unit_shift_the_intercept_alone(family):
    event, times = Y > 0, np.exp(Y / 10)
    model = short(DiagAttSurvival, family=family).fit(X, make_times(event, times))
    for unit in (1e-9, 1e9):  # seconds, or years, in the place of days
        other = short(DiagAttSurvival, family=family).fit(X, make_times(event, unit * times))
        shift = other.intercept_ - np.log(unit)
        np.testing.assert_allclose(shift, model.intercept_, atol=1e-3)
        np.testing.assert_allclose(other.shape_, model.shape_, rtol=1e-3)


@pytest.mark.parametrize("time", [np.nan, "a", [1.0, np.nan], None])
def test_functions_of_time_are_asked_at_numbers(time, survivors):
    for model in survivors:
        with pytest.raises(ValueError, match="time"):
            model.predict_survival_function(X)[0](time)


def test_a_concordance_of_samples_that_cannot_be_compared(survivors):
    for model in survivors:
        with pytest.raises(ValueError, match="concordance is not defined"):
            model.score(X, make_times(np.zeros(N, bool), np.exp(Y / 10)))


# ---------------------------------------------------------------------- scores and predictions

HIDDEN = np.arange(N) == 3


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"y": np.ma.masked_array(Y, mask=HIDDEN)}, r"y\[3\] is masked"),
        ({"y": None}, "y is None"),
        ({"y": ["a"] * N}, "y is not numeric"),
        ({"y": Y[1:]}, "inconsistent numbers of samples"),
        ({"sample_weight": -np.ones(N)}, r"sample_weight\[0\] = -1 is negative"),
        ({"sample_weight": np.full(N, np.nan)}, r"sample_weight\[0\] is NaN"),
    ],
)
@pytest.mark.parametrize("kind", [DiagAttRegressor, PooledRegressor])
def test_scores_read_responses_as_fits_do(given, message, kind, fitted):
    model = fitted if kind is DiagAttRegressor else kind().fit(X, Y)
    with pytest.raises(ValueError, match=message):
        model.score(X, **({"y": Y} | given))


def test_scores_of_classes():
    model = short(DiagAttClassifier).fit(X, LABELS)
    with pytest.raises(ValueError, match=r"y\[3\] is masked"):
        model.score(X, np.ma.masked_array(LABELS, mask=HIDDEN))
    with pytest.raises(ValueError, match="y is None"):
        model.score(X, None)
    assert model.score(X, LABELS.tolist()) == np.mean(model.predict(X) == LABELS)


def test_scores_of_several_outcomes_are_matched_by_name():
    y = pd.DataFrame({"height": Y, "weight": Y**2})
    model = short().fit(X, y)
    assert model.score(X, y[["weight", "height"]]) == model.score(X, y)
    with pytest.raises(ValueError, match="y has no column 'weight'"):
        model.score(X, y.rename(columns={"weight": "age"}))
    labels = pd.DataFrame({"tall": Y > 0, "old": Y > 2})
    model = short(DiagAttClassifier).fit(X, labels)
    assert model.score(X, labels[["old", "tall"]]) == model.score(X, labels)
    with pytest.raises(ValueError, match="there is no outcome True"):
        model.outcome(True)


def test_predictions_beyond_numbers_are_refused():
    model = short(family="poisson").fit(X, COUNTS, covariates=Z).calibrate(X, COUNTS, covariates=Z)
    for method in (model.predict, model.predict_interval):
        with pytest.raises(ValueError, match=r"prediction for sample \d+ is beyond float64"):
            method(X, covariates=1e6 * Z)


@pytest.mark.parametrize("given", [{"offset": np.full(N, 1e300)}, {"exposure": np.full(N, 1e300)}])
def test_offsets_whose_exponentials_overflow(given):
    name = next(iter(given))
    with pytest.raises(ValueError, match=f"{name} .* takes e to this power"):
        short(family="poisson").fit(X, COUNTS, **given)


def test_an_entry_that_is_a_table_is_shown_in_one_short_line():
    with pytest.raises(ValueError, match="not a number") as error:
        short().fit([{0: pd.DataFrame(X[0])}, {1: pd.DataFrame(X[1])}], Y[:2])
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 250


def test_an_outlier_that_empties_a_cluster_is_told_in_our_words():
    rows = [*X[:-1], 1e30 * X[-1]]
    with pytest.raises(ValueError, match="the fit of TwoStepRegressor broke down"):
        TwoStepRegressor(random_state=0).fit(rows, Y)


# ---------------------------------------------------------------------- messages about objects


class Lazy:
    def collect(self):
        return None


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (None, "X is None: pass samples"),
        ([Lazy()] * N, r"sample 0 is a Lazy: pass sample 0\.collect\(\)"),
    ],
)
def test_objects_in_place_of_samples_are_named(samples, message, fitted):
    with pytest.raises(ValueError, match=message):
        short().fit(samples, Y)
    with pytest.raises(ValueError, match=message):
        fitted.predict(samples)


def test_lists_of_anndata_are_refused_with_advice():
    anndata = pytest.importorskip("anndata")
    with pytest.raises(ValueError, match="sample 0 is an AnnData: join the objects"):
        short().fit([anndata.AnnData(m) for m in X], Y)


def test_labels_that_differ_in_capitals_alone_are_warned_of():
    with pytest.warns(UserWarning, match="'Yes' and 'yes' are two classes"):
        short(DiagAttClassifier).fit(X, ["Yes", "yes"] * (N // 2))


def test_labels_beyond_64_bits_are_refused():
    with pytest.raises(ValueError, match="whole numbers of more than 64 bits"):
        short(DiagAttClassifier).fit(X, [2**70, 1] * (N // 2))


def test_groups_that_are_rounded_numbers_are_refused():
    with pytest.raises(ValueError, match=r"names in groups are numbers of float64 beyond 2\^53"):
        short().fit(X, Y, groups=2.0**53 + np.arange(N))


def test_a_path_that_is_data_is_shown_in_one_line(fitted):
    with pytest.raises(TypeError, match="path must be a string or a path, got") as error:
        write_page(X, fitted, "page.html")
    assert len(str(error.value)) < 120
    with pytest.raises(TypeError, match="must be a string or a path, got") as error:
        fitted.save(X)
    assert len(str(error.value)) < 120


def test_a_figure_with_too_many_arguments_says_which_it_takes(fitted):
    with pytest.raises(TypeError, match=r"heads: too many .* its arguments are weights"):
        plots.heads(fitted, X)


def test_sparse_rows_after_a_fit_to_dense_ones(fitted):
    with pytest.raises(ValueError, match="fitted to sparse rows, such as DiagAttRegressor"):
        fitted.predict([scipy.sparse.csr_array(m) for m in X])
