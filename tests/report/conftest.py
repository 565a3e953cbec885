"""Fitted models, the pages made of them, and one browser for all tests that need it."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from diagatt import DiagAttClassifier, DiagAttRegressor, NoRowOfInterestWarning, simulate
from diagatt.report import write_page
from tests.models import classifier
from tests.report.hostile import HOSTILE
from tests.report.reviews import make_reviews


@pytest.fixture(scope="session")
def reviews():
    """A classifier of reviews, and new reviews with what it says about them."""
    train, test = make_reviews(500, seed=0, noise=0.9), make_reviews(300, seed=1, noise=0.9)
    model = DiagAttClassifier(solver="likelihood", score_form="affine", random_state=0)
    return SimpleNamespace(model=model.fit(train.X, train.y), data=test)


@pytest.fixture(scope="session")
def two_heads():
    """A regressor that looks for two rows."""
    train = simulate.regression(800, p=15, d=6, mu=(4, 3), sigma2=(4, 3), seed=0)
    model = DiagAttRegressor(n_heads=2, solver="likelihood", random_state=0)
    return SimpleNamespace(model=model.fit(train.X, train.y), data=train.draw(120, seed=1))


@pytest.fixture(scope="session")
def patches():
    """Three classes of bright patches on a dark picture, two restarts averaged."""
    rng = np.random.default_rng(0)
    n, side, size = 240, 4, 6
    boxes = np.array([(size * a, size * b, size, size) for a in range(side) for b in range(side)])
    y, at = rng.integers(3, size=n), rng.integers(side**2, size=n)
    images = rng.integers(0, 60, size=(n, side * size, side * size)).astype(np.uint8)
    for image, k, row in zip(images, y, at, strict=True):
        top, left, _, _ = boxes[row]
        image[top + 2 * k : top + 2 * k + 2, left : left + size] = 250
    cut = [[image[a : a + h, b : b + w].ravel() for a, b, h, w in boxes] for image in images]
    X = np.array(cut, dtype=float) / 255  # (n, 16, 36)
    training = {"optimizer": "adam", "learning_rate": 0.02, "max_epochs": 6}
    model = classifier(solver="gradient", n_restarts=2, random_state=0, **training)
    data = SimpleNamespace(X=X, y=y, images=list(images), boxes=[boxes] * n, rows=at)
    return SimpleNamespace(model=model.fit(X, y), data=data)


@pytest.fixture(scope="session")
def hostile():
    """Hostile texts, names, classes and title; the rows are the halves of each text."""
    rng = np.random.default_rng(0)
    n = len(HOSTILE)
    X = rng.normal(size=(n, 2, 3))
    labels = np.array(HOSTILE[:3], dtype=object)[np.arange(n) % 3]
    model = classifier(solver="gradient", max_epochs=5, optimizer="adam", random_state=0)
    spans = [[(0, len(text) // 2), (len(text) // 2, len(text))] for text in HOSTILE]
    payload = {"texts": HOSTILE, "spans": spans, "ids": HOSTILE, "title": HOSTILE[1]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoRowOfInterestWarning)  # there is none in noise
        model.fit(X, labels)
    return SimpleNamespace(model=model, X=X, y=labels, payload=payload)


@pytest.fixture(scope="session")
def pages(tmp_path_factory, reviews, two_heads, patches, hostile):
    """Files of the pages, by name."""
    folder = tmp_path_factory.mktemp("pages")
    new = reviews.data
    write_page(
        folder / "text.html", reviews.model, new.X, new.y, texts=new.texts, spans=new.spans,
        true_rows=new.rows, title="Film reviews",
    )  # fmt: skip
    new = two_heads.data
    write_page(folder / "rows.html", two_heads.model, new.X, new.y, true_rows=new.rows)
    new = patches.data
    write_page(
        folder / "image.html", patches.model, new.X, new.y, images=new.images, boxes=new.boxes,
        true_rows=new.rows,
    )  # fmt: skip
    write_page(folder / "hostile.html", hostile.model, hostile.X, hostile.y, **hostile.payload)
    return folder


ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,900",
)


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """Headless Chromium with a new profile; it logs every request it would send."""
    programs = [shutil.which("chromium"), shutil.which("chromedriver")]
    if None in programs:
        pytest.skip("no chromium or chromedriver here: run scripts/ensure_chromium.sh")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = programs[0]
    for argument in ARGUMENTS:
        options.add_argument(argument)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('profile')}")
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(programs[1]))
    driver.set_page_load_timeout(600)
    driver.set_script_timeout(600)
    yield driver
    driver.quit()


@pytest.fixture
def visit(browser, pages):
    """Open a page by its name, on a desktop in light colours, and forget older logs."""

    def open_page(name: str, width: int = 1280, height: int = 900, colours: str = "light"):
        screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        features = [{"name": "prefers-color-scheme", "value": colours}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        for log in ("performance", "browser"):
            browser.get_log(log)
        browser.get(Path(pages, name).as_uri())
        assert browser.execute_script("return document.documentElement.dataset.ready") == "yes"
        return browser

    return open_page
