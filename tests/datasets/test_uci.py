"""The UCI comments: read, checked, downloaded."""

import hashlib
import http.server
import threading
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diagatt.datasets import uci
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
    for name, (path, _) in uci.FILES.items():
        content = f"I like {name}.\t1\nI do not.\t0\n".encode()
        (folder / path).write_bytes(content)
        files[name] = (path, hashlib.sha256(content).hexdigest())
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
