import hashlib
import http.server
import threading
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from diagatt.datasets import uci
from diagatt.datasets.splits import fold_texts, split_texts, text_groups
from diagatt.datasets.uci import load_uci_sentiment, parse_labelled

SHARED = Path(__file__).parents[3] / "shared" / "data" / "uci_sentiment"
needs_files = pytest.mark.skipif(not SHARED.is_dir(), reason="the UCI files are not here")


@needs_files
def test_the_published_counts():
    data = load_uci_sentiment(SHARED)
    assert len(data.texts) == len(data.y) == 3000
    for name in ("amazon", "imdb", "yelp"):
        own = data.source == name
        assert own.sum() == 1000
        assert data.y[own].sum() == 500
        texts = [t for t, here in zip(data.texts, own, strict=True) if here]
        assert len(texts) - len(set(texts)) == {"amazon": 10, "imdb": 3, "yelp": 4}[name]
    assert sum("\x85" in text for text in data.texts) == 2


@needs_files
def test_the_path_may_come_from_the_environment(monkeypatch):
    monkeypatch.setenv(uci.ENVIRONMENT, str(SHARED))
    assert len(load_uci_sentiment().texts) == 3000


def test_a_missing_and_a_changed_file_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"amazon_cells_labelled\.txt does not exist"):
        load_uci_sentiment(tmp_path)
    (tmp_path / "amazon_cells_labelled.txt").write_text("Good.\t1\r\n")
    with pytest.raises(ValueError, match="is not the published file"):
        load_uci_sentiment(tmp_path)


def test_a_line_without_label_is_named():
    with pytest.raises(ValueError, match="the file, line 2"):
        parse_labelled("Good.\t1\nBad.\n")


@given(st.lists(st.tuples(st.text().filter(lambda t: "\n" not in t), st.sampled_from([0, 1]))))
def test_parsing_undoes_writing(lines):
    assert parse_labelled("".join(f"{text}\t{label}\n" for text, label in lines)) == lines


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def served(tmp_path, monkeypatch):
    """Small files of the same names on a server of this machine, and an empty cache."""
    folder = tmp_path / "web"
    (folder / "Datasets").mkdir(parents=True)
    files = {}
    for name, (file, _) in uci.FILES.items():
        content = f"I like {name}.\t1\nI do not.\t0\n".encode()
        (folder / uci._REMOTE[file]).write_bytes(content)
        files[name] = (file, hashlib.sha256(content).hexdigest())
    monkeypatch.setattr(uci, "FILES", files)
    monkeypatch.delenv(uci.ENVIRONMENT, raising=False)
    monkeypatch.setattr("pooch.os_cache", lambda project: tmp_path / "cache")
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(QuietHandler, directory=str(folder))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setattr(uci, "BASE_URL", f"http://127.0.0.1:{server.server_port}/")
    yield folder
    server.shutdown()
    server.server_close()


def test_a_download_is_checked_and_kept(served, monkeypatch):
    assert load_uci_sentiment().y.tolist() == [1, 0] * 3
    monkeypatch.setattr(uci, "BASE_URL", "http://127.0.0.1:9/")
    assert load_uci_sentiment().source.tolist() == ["amazon"] * 2 + ["imdb"] * 2 + ["yelp"] * 2


def test_a_wrong_download_is_refused(served):
    (served / "Datasets" / "imdb_labelled.txt").write_text("Forged.\t1\n")
    with pytest.raises(ValueError, match="hash"):
        load_uci_sentiment()


def test_no_network_says_what_to_do(served, monkeypatch):
    monkeypatch.setattr(uci, "BASE_URL", "http://127.0.0.1:9/")
    with pytest.raises(OSError, match="fetch UCI data set 331 by hand"):
        load_uci_sentiment()


# ---------------------------------------------------------------------- splits

TEXTS = st.lists(st.sampled_from(["a", "b", "c ", "C", "d e", "d  e", "f"]), min_size=1)


@given(TEXTS, st.integers(0, 99))
def test_no_sentence_stands_on_two_sides(texts, seed):
    parts = split_texts(texts, seed=seed)
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(texts)))
    group = text_groups(texts)
    sides = [set(group[part].tolist()) for part in parts]
    assert all(a.isdisjoint(b) for i, a in enumerate(sides) for b in sides[:i])


@given(st.integers(10, 300), st.integers(0, 99))
def test_parts_have_their_shares(n, seed):
    sizes = [len(part) for part in split_texts([f"text {i}" for i in range(n)], seed=seed)]
    np.testing.assert_allclose(sizes, [0.7 * n, 0.1 * n, 0.2 * n], atol=1)


@given(TEXTS.filter(lambda t: len(set(text_groups(t))) >= 2), st.integers(0, 9))
def test_folds_keep_duplicates_together(texts, seed):
    fold, group = fold_texts(texts, 2, seed), text_groups(texts)
    assert all(len(set(fold[group == g].tolist())) == 1 for g in group)
    assert set(fold.tolist()) == {0, 1}


def test_impossible_splits_are_refused():
    with pytest.raises(ValueError, match="add up to 1"):
        split_texts(["a", "b"], shares=(0.5, 0.6))
    with pytest.raises(ValueError, match="n_folds must lie between 2 and 2"):
        fold_texts(["a", "b"], 3)
