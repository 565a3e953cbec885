"""The pictures of a page in the README: comments about furniture, and the word that decides each.

Run ``python examples/readme_page.py`` to draw docs/images/page-desktop.png and page-phone.png
again; it needs Chromium with its driver, and the extras dev and text.
"""

import shutil
import tempfile
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from diagatt import DiagAttClassifier
from diagatt.datasets.keywords import keyword_sentiment
from diagatt.report import write_page
from diagatt.text import TextClassifier

IMAGES = Path(__file__).parent.parent / "docs" / "images"
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--hide-scrollbars"),
    *("--no-first-run", "--disable-background-networking", "--disable-component-update"),
    "--disable-sync",
)
MOODS = ("complaint", "praise")


def write(path: Path) -> None:
    """Fit to 120 comments, and write the page of 305 new ones with new words."""
    data = keyword_sentiment()
    moods = [MOODS[y] for y in data.train.y[::130]]
    model = TextClassifier(estimator=DiagAttClassifier(random_state=0), random_state=0)
    model.fit(data.train.texts[::130], moods)
    texts, y = data.test.texts[::26], [MOODS[y] for y in data.test.y[::26]]
    write_page(
        path,
        model,
        texts,
        y,
        ids=[f"comment {i}" for i in range(len(texts))],
        title="Comments about furniture: which word decided?",
    )


def photograph(page: Path, profile: str) -> None:
    """Take the page on a desktop in light colours, and on a phone in dark ones."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    browser = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    screens = {"desktop": (1280, 880, 1, "light"), "phone": (390, 844, 1.5, "dark")}
    for name, (width, height, scale, colours) in screens.items():
        screen = {
            "width": width,
            "height": height,
            "deviceScaleFactor": scale,
            "mobile": width < 600,
        }
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        features = [{"name": "prefers-color-scheme", "value": colours}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        browser.get(page.as_uri())
        browser.save_screenshot(str(IMAGES / f"page-{name}.png"))
    browser.quit()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / "page.html")
        photograph(Path(folder) / "page.html", f"{folder}/profile")
