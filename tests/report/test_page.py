"""The file itself: one file, a policy that fits, whole or not at all."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from importlib.resources import files

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from diagatt import DiagAttClassifier, DiagAttRegressor, PooledRegressor
from diagatt.images import ImageClassifier
from diagatt.kinds import KINDS
from diagatt.report import render_page, write_page
from tests.report.hostile import HOSTILE


class Elements(HTMLParser):
    """Every element with its attributes, and the text of scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict]] = []
        self.inside: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        self.raw = tag in ("script", "style")

    def handle_data(self, data):
        if getattr(self, "raw", False):
            self.inside.append(data)
            self.raw = False


@pytest.fixture(scope="module")
def page(pages):
    return (pages / "hostile.html").read_text(encoding="utf-8")


def test_policy_names_the_digests_of_the_pages_own_script_and_style(page):
    elements = Elements(page)
    policy = next(a["content"] for t, a in elements.found if a.get("http-equiv"))
    style, data, script = elements.inside
    for text, kind in ((style, "style"), (script, "script")):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert json.loads(data)["ids"] == list(HOSTILE)


def test_nothing_is_loaded_and_hostile_text_made_no_element(page):
    elements = Elements(page).found
    assert [t for t, _ in elements].count("script") == 2
    for _tag, attributes in elements:
        assert "src" not in attributes
        assert not any(name.startswith("on") for name in attributes)
        assert attributes.get("href", "data:,").startswith(("data:,", "#"))


def test_scripts_never_make_markup_from_text():
    for asset in files("diagatt.report").iterdir():
        if asset.name.endswith(".js"):
            text = asset.read_text(encoding="utf-8")
            assert not re.search(
                r"(inner|outer)HTML|insertAdjacent|\.write|eval\(|Function\(", text
            )
            assert "</" not in text
            assert "<!--" not in text


def test_colours_are_readable_light_and_dark():
    """Contrast of at least 4.5 (WCAG AA), also on words of the largest weight."""
    style = files("diagatt.report").joinpath("page.css").read_text(encoding="utf-8")
    light, dark = style.split("@media (prefers-color-scheme: dark)")[:2]
    base = dict(re.findall(r"--([\w]+): (#\w{6}|\d+%)", light))
    for scheme in (base, {**base, **dict(re.findall(r"--([\w]+): (#\w{6}|\d+%)", dark))}):
        for back in ("paper", "card", "wash"):
            for ink in ("ink", "soft", "right", "wrong", "unsure", "accent"):
                assert _contrast(_rgb(scheme[ink]), _rgb(scheme[back])) >= 4.5, (ink, back)
        share = int(scheme["shade"][:-1]) / 100
        for head in range(8):
            back = share * _rgb(scheme[f"h{head}"]) + (1 - share) * _rgb(scheme["card"])
            assert _contrast(_rgb(scheme["ink"]), back) >= 4.5, head


def _rgb(colour: str) -> np.ndarray:
    return np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255


def _contrast(a: np.ndarray, b: np.ndarray) -> float:
    def luminance(rgb):
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        return linear @ [0.2126, 0.7152, 0.0722]

    dark, bright = sorted([luminance(a), luminance(b)])
    return (bright + 0.05) / (dark + 0.05)


def test_a_failed_page_leaves_the_old_one(tmp_path, reviews, monkeypatch):
    target = tmp_path / "page.html"
    target.write_text("old")
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        write_page(target, reviews.model, reviews.data.X)
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]
    assert target.read_text() == "old"


def test_feature_names_and_payload_are_checked(two_heads):
    model, X = two_heads.model, two_heads.data.X
    assert "gene &amp; co" not in render_page(model, X, feature_names=["gene & co"] * 6)
    with pytest.raises(ValueError, match="feature_names has 1 entries, rows have 6 features"):
        render_page(model, X, feature_names=["a"])
    with pytest.raises(ValueError, match="texts or images"):
        render_page(model, X, texts=["a"], images=[1])
    with pytest.raises(NotFittedError):
        render_page(DiagAttRegressor(), X)


def test_small_data(reviews):
    """One-row samples, where the model is a plain GLM; and one sample alone."""
    X = np.random.default_rng(0).normal(size=(30, 2))
    page = render_page(DiagAttRegressor(random_state=0).fit(X, X[:, 0]), X, X[:, 0])
    told = json.loads(Elements(page).inside[1])
    assert np.frombuffer(base64.b64decode(told["rows"]["data"]), np.uint8).tolist() == [1] * 30
    new = reviews.data
    payload = {"texts": new.texts[:1], "spans": new.spans[:1]}
    assert new.texts[0] in render_page(reviews.model, new.X[:1], new.y[:1], **payload)


def test_the_same_page_twice(two_heads):
    model, new = two_heads.model, two_heads.data
    assert render_page(model, new.X, new.y) == render_page(model, new.X, new.y)


def test_notebook_tables_are_escaped(reviews, two_heads):
    text = two_heads.model.summary()._repr_html_()
    assert text.count("<table>") == 3
    assert "intercept" in text
    summary = two_heads.model.summary()
    summary.facts["<script>"] = '"&'
    assert "<script>" not in summary._repr_html_()
    certainty = reviews.model.certainty(reviews.data.X)
    table = certainty._repr_html_()
    assert table.count("<tr>") == 1 + 40 + 1
    assert "… and 260 more" in table
    assert not hasattr(PooledRegressor, "summary")


def test_a_model_of_images_draws_its_rows_on_them():
    rng = np.random.default_rng(0)
    images = rng.integers(0, 255, (24, 8, 8)).astype(np.uint8)
    model = ImageClassifier(patch=4, estimator=DiagAttClassifier(solver="likelihood")).fit(
        images, np.arange(24) % 2
    )
    page = render_page(model, images[:3], [0, 1, 0])
    prepared = model.prepare(images[:3])
    drawn = KINDS["image"].drawing(prepared)
    assert page == render_page(model.estimator_, prepared.rows, [0, 1, 0], **drawn)
    assert "data:image" in page or '"images"' in page
