"""The studies of texts on a handful of texts whose rows say everything."""

import copy
import json
from types import SimpleNamespace

import numpy as np
import pytest

from diagatt import PooledClassifier, RaggedRows
from diagatt.kinds.text import presets
from diagatt.studies import ResultStore, get_study, run_tasks, write_report
from diagatt.studies import text_scenarios as scenarios
from diagatt.studies.report import paired_table, top_located, word_table
from diagatt.text import EmbeddedTexts

WORDS = {"good": (3.0, 1), "bad": (-3.0, 0)}


def embedded(n, seed, fillers=(2, 5)):
    """Texts "w w good w" whose keyword has a vector far from the others."""
    rng = np.random.default_rng(seed)
    texts, samples, spans, keywords, y = [], [], [], [], []
    for i in range(n):
        keyword = ["good", "bad"][i % 2]
        words = [f"w{i}", *["w"] * int(rng.integers(*fillers))]
        place = int(rng.integers(0, len(words) + 1))
        words.insert(place, keyword)
        rows = 0.3 * rng.normal(size=(len(words), 4))
        rows[place] += [WORDS[keyword][0], 3.0, 0, 0]
        starts = np.cumsum([0] + [len(w) + 1 for w in words[:-1]])
        own = np.column_stack([starts, starts + [len(w) for w in words]])
        texts.append(" ".join(words))
        samples.append(rows)
        spans.append(own)
        keywords.append(own[place])
        y.append(WORDS[keyword][1])
    found = EmbeddedTexts(texts, RaggedRows.from_samples(samples), np.concatenate(spans))
    return found, np.array(y), np.array(keywords)


@pytest.fixture(autouse=True)
def _short_presets(monkeypatch):
    """Rows of four features in which the keyword stands out need a part of the training."""
    monkeypatch.setitem(presets._TEXT, "n_restarts", 4)
    monkeypatch.setitem(presets._KEYWORD, "n_restarts", 4)
    monkeypatch.setitem(presets._KEYWORD_LAYER, "steps", 250)


@pytest.fixture
def texts(monkeypatch):
    train, y, spans = embedded(160, 0)
    test, y_test, spans_test = embedded(40, 1)
    split = np.array(["test_a", "test_b"])[np.arange(40) // 20]
    data = SimpleNamespace(
        train=SimpleNamespace(y=y, spans=spans),
        test=SimpleNamespace(y=y_test, spans=spans_test, split=split),
    )
    monkeypatch.setattr(scenarios, "uci_comments", lambda layers="auto": (train, y))
    monkeypatch.setattr(scenarios, "_keywords", lambda path, layers: (data, train, test))


@pytest.fixture(scope="module")
def finished():
    return {}


@pytest.fixture
def run_once(texts, finished, monkeypatch):
    """Our fits take seconds: tests that ask for the same one share it."""

    def remembered(run):
        def run_or_recall(scenario, *task):
            if (scenario, *task) not in finished:
                finished[scenario, *task] = run(scenario, *task)
            return copy.deepcopy(finished[scenario, *task])

        return run_or_recall

    for kind in (scenarios.UCI, scenarios.Keywords):
        monkeypatch.setattr(kind, "run", remembered(kind.run))


@pytest.mark.parametrize("method", ["pooled", "diagatt", "mdsp", "stdatt-1"])
def test_every_kind_of_method_is_scored(run_once, monkeypatch, method):
    if method == "mdsp":  # one that goes on to the end fits the responses it is shown
        make = scenarios.make_estimator
        monkeypatch.setattr(
            scenarios, "make_estimator", lambda *a, **k: make(*a, **k).set_params(stop_early=False)
        )
    found = scenarios.UCI().run(method, 0, 1.0)
    assert found["accuracy"] > 90
    words = found["details"]["words"]
    assert set(words) == {"0", "1"}
    found = scenarios.Keywords(original=False).run(method, 0, 1.0)
    assert found["accuracy"] > 90
    splits = found["details"]["splits"]
    for metric in ("accuracy", "crlr"):  # the two splits are of equal size
        mean = np.mean([splits[name][metric] for name in ("test_a", "test_b")])
        assert mean == pytest.approx(found[metric])


def test_the_keyword_is_found_and_counted(run_once):
    words = scenarios.UCI().run("diagatt", 0, 1.0)["details"]["words"]
    assert (words["1"][0][0], words["0"][0][0]) == ("good", "bad")
    assert scenarios.Keywords(original=False).run("diagatt", 0, 1.0)["crlr"] > 95


@pytest.mark.parametrize("method", ["diagatt", "gated"])
def test_keywords_beyond_the_longest_training_text_are_found(monkeypatch, method):
    train, y, spans = embedded(80, 0)
    test, y_test, spans_test = embedded(40, 1, fillers=(10, 12))
    data = SimpleNamespace(
        train=SimpleNamespace(y=y, spans=spans),
        test=SimpleNamespace(y=y_test, spans=spans_test, split=np.full(40, "test_a")),
    )
    monkeypatch.setattr(scenarios, "_keywords", lambda path, layers: (data, train, test))
    found = scenarios.Keywords(original=False).run(method, 0, 1.0)
    assert found["accuracy"] > 95
    assert found["crlr"] > 95


def test_pooled_best_takes_the_layers_that_validation_prefers(texts, monkeypatch):
    train, y, _ = embedded(160, 0)
    noise = np.random.default_rng(0).normal(size=train.rows.values.shape)
    useless = EmbeddedTexts(train.texts, train.rows.with_values(noise), train.spans)
    comments = dict.fromkeys(scenarios.CANDIDATE_LAYERS, (useless, y)) | {5: (train, y)}
    monkeypatch.setattr(
        scenarios, "uci_comments", lambda layers="auto": comments.get(layers, (train, y))
    )
    found = scenarios.UCI().run("pooled-best", 0, 1.0)
    assert found["details"]["chosen"]["layers"] == 5
    assert found["accuracy"] > 90


def test_our_default_and_joined_methods_take_the_rows_of_the_text_classifier(texts, monkeypatch):
    seen = []
    train, y, _ = embedded(160, 0)
    monkeypatch.setattr(
        scenarios, "uci_comments", lambda layers="auto": seen.append(layers) or (train, y)
    )
    monkeypatch.setattr(scenarios, "_estimator", lambda *_: PooledClassifier())
    for method in ("diagatt", "pooled-joined", "pooled"):
        scenarios.UCI().run(method, 0, 1.0)
    assert seen[1::2] == ["joined", "joined", "auto"]  # the first call is for the texts
    with_rows = {m: scenarios.UCI().parameters(m, 1.0) for m in ("pooled", "pooled-joined")}
    assert with_rows["pooled"]["layers"] != with_rows["pooled-joined"]["layers"]
    assert with_rows["pooled"]["method"] == with_rows["pooled-joined"]["method"]


def test_splits_are_not_those_that_defaults_were_chosen_on(texts, monkeypatch):
    from diagatt.datasets import splits

    seen, real = [], splits.split_texts
    monkeypatch.setattr(
        splits, "split_texts", lambda t, seed: seen.append(seed) or real(t, seed=seed)
    )
    scenarios.UCI().run("pooled", 3, 1.0)
    assert seen == [103]


def test_without_the_original_lists_they_are_skipped_with_a_reason(
    texts, tmp_path, monkeypatch, caplog
):
    monkeypatch.delenv(scenarios.KEYWORD_LISTS, raising=False)
    study = get_study("keywords")
    assert run_tasks(study.tasks(1, ["pooled"]), ResultStore(tmp_path)) == 1
    assert "keywords is skipped: the original word lists are not here" in caplog.text


def test_reports_show_words_splits_and_figure_2(run_once, tmp_path, monkeypatch):
    monkeypatch.delenv(scenarios.KEYWORD_LISTS, raising=False)
    store = ResultStore(tmp_path)
    for name, replications in (("uci", 2), ("keywords", 1)):
        run_tasks(get_study(name).tasks(replications, ["pooled", "diagatt"]), store)
        write_report(get_study(name), store, tmp_path)
    page = (tmp_path / "uci.md").read_text(encoding="utf-8")
    assert "| positive | 1 | good |" in page
    assert (tmp_path / "uci.png").exists()
    own = [x for x in store.lines() if x["scenario"] == "uci"]
    assert top_located(own)["diagatt"]["0"][0][0] == "bad"
    assert "| pooled | 2 |" in paired_table(get_study("uci"), own)
    assert "| positive | 1 | good |" in word_table(get_study("uci"), own)
    line = next(x for x in store.lines() if (x["scenario"], x["method"]) == ("uci", "diagatt"))
    assert json.loads(line["details"])["words"]["1"]
    assert "| keywords-bundled | diagatt |" in (tmp_path / "keywords.md").read_text("utf-8")
