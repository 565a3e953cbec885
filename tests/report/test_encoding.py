"""Compact arrays and safe JSON: what goes in comes out, and nothing gets out of its place."""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diagatt.report import encoding
from diagatt.report.encoding import (
    data_uris,
    halves,
    integers,
    kept_rows,
    safe_json,
    shares,
    utf16_spans,
)
from diagatt.report.samples import collect

ANY_TEXT = st.text(st.characters(codec=None), max_size=40)


@settings(max_examples=200)
@given(st.lists(ANY_TEXT, max_size=4))
def test_json_reads_back_and_holds_nothing_unsafe(strings):
    text = safe_json({"strings": strings})
    assert json.loads(text)["strings"] == strings
    assert not set(text) & set("<>&\u2028\u2029\x00")
    text.encode("utf-8")


def test_json_refuses_what_browsers_cannot_read():
    with pytest.raises(ValueError, match="not JSON compliant"):
        safe_json([float("nan")])


@settings(max_examples=100)
@given(st.lists(st.integers(0, 2**32 - 1), max_size=20))
def test_integers_read_back(numbers):
    packed = integers(np.array(numbers, dtype=np.int64))
    raw = np.frombuffer(base64.b64decode(packed["data"]), f"<{packed['type']}")
    assert raw.tolist() == numbers


@settings(max_examples=100)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20))
def test_halves_keep_three_digits(numbers):
    raw = np.frombuffer(base64.b64decode(halves(np.array(numbers))["data"]), "<f2").astype(float)
    np.testing.assert_allclose(raw, np.clip(numbers, -65504, 65504), rtol=5e-4, atol=6e-8)


@settings(max_examples=100)
@given(st.lists(st.integers(1, 12), min_size=1, max_size=8), st.integers(0, 60), st.integers(0, 9))
def test_kept_rows_are_the_best_of_every_sample(lengths, most, seed):
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    priority = np.random.default_rng(seed).permutation(offsets[-1]).astype(float)
    kept = kept_rows(priority, offsets, most)
    counts = np.diff(np.searchsorted(kept, offsets))
    per_sample = max(counts)
    assert len(kept) <= max(most, np.minimum(lengths, 5).sum())
    for start, stop, count, length in zip(offsets, offsets[1:], counts, lengths, strict=False):
        assert count == min(length, per_sample)
        inside = np.isin(np.arange(start, stop), kept)
        here = priority[start:stop]
        assert here[inside].min() >= here[~inside].max(initial=-1)


@settings(max_examples=100)
@given(ANY_TEXT, st.data())
def test_spans_cut_the_same_text_in_utf16(text, data):
    a, b = sorted(data.draw(st.integers(0, len(text))) for _ in range(2))
    ((start, stop),) = utf16_spans(text, np.array([[a, b]]))
    raw = text.encode("utf-16-le", "surrogatepass")[2 * start : 2 * stop]
    # A text may itself hold two surrogates side by side: compare units, not characters.
    assert raw == text[a:b].encode("utf-16-le", "surrogatepass")


def test_pictures_read_back_and_shrink_to_the_budget():
    from io import BytesIO

    from PIL import Image

    rng = np.random.default_rng(0)
    small = [rng.integers(0, 256, size=(9, 7, 3)).astype(np.uint8), np.eye(5, dtype=np.uint8)]
    for image, uri in zip(small, data_uris(small, 10_000), strict=True):
        assert uri.startswith("data:image/png;base64,")
        read = np.asarray(Image.open(BytesIO(base64.b64decode(uri.split(",")[1]))))
        np.testing.assert_array_equal(read, image)
    large = [rng.integers(0, 256, size=(300, 200)).astype(np.uint8)] * 3
    assert sum(map(len, data_uris(large, 50_000))) <= 50_000


def test_rows_that_do_not_fit_are_left_out_by_weight(two_heads, monkeypatch):
    model, new = two_heads.model, two_heads.data
    samples = collect(model, new.X, new.y)
    monkeypatch.setattr(encoding, "PAGE_BYTES", 0)
    monkeypatch.setattr(encoding, "ROW_BYTES", len(samples) * 6 * 10 * 4 // 3)
    told = encoding.contents(samples)
    kept = np.frombuffer(base64.b64decode(told["kept"]["data"]), np.uint8)
    index = np.frombuffer(base64.b64decode(told["index"]["data"]), np.uint8)
    assert set(kept) == {6}
    for i, rows in enumerate(np.split(index, np.cumsum(kept)[:-1])):
        assert set(samples.located[i]) <= set(rows)
        assert np.argmax(samples.weights[15 * i : 15 * (i + 1)].max(axis=1)) in rows


def test_only_one_is_one_and_only_zero_is_zero():
    given = np.array([0.0, 1e-12, 0.5, 0.9998, 1 - 1e-12, 1.0])
    found = np.frombuffer(base64.b64decode(shares(given)["data"]), "<f2").astype(float)
    assert ((found == 0) == (given == 0)).all()
    assert ((found == 1) == (given == 1)).all()
    assert found == pytest.approx(given, abs=1e-3)
