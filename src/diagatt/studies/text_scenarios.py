"""Studies of texts: the UCI comments (Section 6) and the comments with a known keyword (S6).

The paper embeds with one layer of a 1024-dimensional RoBERTa; here it is MiniLM, so values differ
from the published ones, and only the order of the methods can be compared. Our default takes the
rows of `TextClassifier`, several layers joined; the others take one layer and, as "...-joined",
the same rows as our default. Competitors are tuned on grids other than the paper's, because rows of
texts need other values.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from diagatt.metrics import accuracy, crlr
from diagatt.ragged import RaggedRows
from diagatt.studies.methods import METHODS, make_estimator
from diagatt.studies.scenarios import Scenario, answers, chosen_by_tuning

KEYWORD_LISTS = "DIAGATT_KEYWORD_LISTS"
KEYWORD_FOLDS = 5
# Rows that the competitors may name (R̃). For keywords the supplement says 3, but group lasso's
# rate is R̃ over the count of rows: the published 41 % and MDSP's 40 % are 5 of 12.75, not 3.
LOCATED = 5
WORDS_KEPT = 60  # located words per class and fit that are kept for Table 3
FIRST_SPLIT = 100  # splits 0 to 19 were seen while defaults were being chosen
# Rows that "pooled-best" chooses among by validation.
CANDIDATE_LAYERS: tuple[Any, ...] = (3, 4, 5, 6, (4, 5, 6), "joined")
# Grids for validation, placed around what held-out comments of split 1000 prefer; nothing is tested
# on that split. DiagAtt's own settings are fixed.
TUNED: dict[str, dict[str, Any]] = {
    "pooled": {"ridge": (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)},
    "grouplasso": {"alpha": (0.1, 0.03, 0.01)},
    "two-step": {"ridge": (0.1, 1.0, 10.0, 30.0, 100.0, 300.0)},
    "stdatt-1": {"max_epochs": (1, 2, 4)},
    "stdatt-r": {"max_epochs": (1, 2, 4)},
    "gated": {"max_epochs": (1, 2, 3, 5), "ridge": (1.0, 10.0)},
}


@dataclass(frozen=True)
class UCI(Scenario):
    """3,000 comments, cut at random into 70 % training, 10 % validation and 20 % test.

    Hyperparameters are chosen by cross-entropy on an eighth of the first two parts, which are
    then refitted together. A sentence that occurs twice is never both in training and in test, and
    within training its second copy is left out.
    """

    name = "uci"

    def parameters(self, method: str, scale: float) -> dict[str, Any]:
        """Return what a result depends on, for its key."""
        described = _described(method, "text")
        return {"layers": _uci_layers(method), "method": described, "first split": FIRST_SPLIT}

    def run(self, method: str, replication: int, scale: float) -> dict[str, Any]:
        """Split, tune, refit, test; then locate in all comments."""
        from diagatt.datasets.splits import split_texts, text_groups
        from diagatt.kinds.text.embedded import top_words

        embedded, y = uci_comments()
        train, validation, test = split_texts(embedded.texts, seed=FIRST_SPLIT + replication)
        both = np.sort(np.concatenate([train, validation]))
        groups = text_groups([embedded.texts[i] for i in both])
        both = both[np.sort(np.unique(groups, return_index=True)[1])]
        both = both[: round(scale * len(both))]
        start = time.perf_counter()
        fits = []
        for layers in _uci_layers(method):
            embedded, y = uci_comments(layers)
            model = _estimator(method, "text", replication, len(both))
            fits.append((layers, embedded, model.fit(embedded.rows[both], y[both])))
        if len(fits) > 1:  # refitted each, but compared on the same held-out comments
            fits.sort(key=lambda fit: min(tried["loss"] for tried in fit[2].selection_))
        layers, embedded, model = fits[0]
        seconds = time.perf_counter() - start
        shown = (y[test],) if method == "mdsp" else ()
        predicted = model.predict(_shortened(embedded.rows[test], model), *shown)
        shown = (y,) if method == "mdsp" else ()
        located = model.locate(_shortened(embedded.rows, model), *shown)
        words = top_words(embedded.located(located), y, WORDS_KEPT)
        return {
            "accuracy": 100 * accuracy(y[test], predicted),
            "seconds": seconds,
            "details": {
                "chosen": {"layers": layers, **chosen_by_tuning(model)},
                "words": {str(label): found for label, found in words.items()},
            },
        }


@dataclass(frozen=True)
class Keywords(Scenario):
    """15,552 training and 7,920 test comments, each decided by one keyword; rows are shuffled.

    Hyperparameters are chosen by five-fold cross-validation. ``original`` needs the lists of
    Marion et al. at the path in ``DIAGATT_KEYWORD_LISTS``; our own lists come with the library.
    """

    original: bool

    @property
    def name(self) -> str:
        """Name of the scenario; the published numbers are of the original lists."""
        return "keywords" if self.original else "keywords-bundled"

    def reason_to_skip(self) -> str | None:
        """Return why the scenario cannot be run here, or None."""
        if self.original and not os.environ.get(KEYWORD_LISTS):
            return f"the original word lists are not here: give their path in {KEYWORD_LISTS}."
        return None

    def parameters(self, method: str, scale: float) -> dict[str, Any]:
        """Return what a result depends on, for its key."""
        return {"layers": _layers(method), "method": _described(method, "keyword")}

    def run(self, method: str, replication: int, scale: float) -> dict[str, Any]:
        """Shuffle rows, tune, refit, test on all splits together and one by one."""
        path = os.environ[KEYWORD_LISTS] if self.original else None
        data, train, test = _keywords(path, _layers(method))
        order = np.random.default_rng(replication).permutation(len(train))
        part = np.sort(order[: round(scale * len(train))])
        train_rows = train[part].shuffled(2 * replication).rows
        test = test.shuffled(2 * replication + 1)
        model = _estimator(method, "keyword", replication, len(part))
        start = time.perf_counter()
        model.fit(train_rows, data.train.y[part])
        seconds = time.perf_counter() - start
        predicted, located = answers(method, model, _shortened(test.rows, model), data.test.y)
        true = test.rows_at(data.test.spans.tolist())

        def rates(here: np.ndarray) -> dict[str, float]:
            right = accuracy(data.test.y[here], predicted[here])
            found = crlr([true[i] for i in here], [located[i] for i in here])
            return {"accuracy": 100 * right, "crlr": 100 * found}

        splits = {
            str(name): rates(np.flatnonzero(data.test.split == name))
            for name in np.unique(data.test.split)
        }
        details = {"chosen": chosen_by_tuning(model), "splits": splits}
        return rates(np.arange(len(test))) | {"seconds": seconds, "details": details}


@cache
def _embedder(layers: Any) -> Any:
    """Return a transformer for all studies; the rows it makes are kept in the user's cache."""
    import pooch

    from diagatt.kinds.text.rows import TextRows

    return TextRows(layers=layers, cache=str(Path(pooch.os_cache("diagatt")) / "rows"))


@cache
def uci_comments(layers: Any = "auto") -> tuple[Any, np.ndarray]:
    """Return the embedded comments and their labels."""
    from diagatt.datasets import load_uci_sentiment

    data = load_uci_sentiment()
    return _embedder(layers).embed(data.texts), data.y


@cache
def _keywords(path: str | None, layers: Any) -> tuple[Any, Any, Any]:
    from diagatt.datasets import keyword_sentiment

    data = keyword_sentiment(path)
    embed = _embedder(layers).embed
    return data, embed(data.train.texts), embed(data.test.texts)


def _layers(method: str) -> str:
    return "joined" if method == "diagatt" or method.endswith("-joined") else "auto"


def _uci_layers(method: str) -> tuple[Any, ...]:
    return CANDIDATE_LAYERS if method == "pooled-best" else (_layers(method),)


def _changed(method: str, preset: str) -> tuple[str, dict[str, Any]]:
    """Return the method's name without its suffix for rows, and the settings that texts change."""
    method = method.removesuffix("-best").removesuffix("-joined")
    if method == "diagatt":
        return method, {"preset": preset}
    located = {} if method.startswith("diagatt") else {"n_located": LOCATED}
    folds = {"selection": KEYWORD_FOLDS} if preset == "keyword" else {}
    return method, {**TUNED.get(method, {}), **located, **folds}


def _described(method: str, preset: str) -> dict[str, Any]:
    method, changed = _changed(method, preset)
    return METHODS[method].described(**changed)


def _estimator(method: str, preset: str, seed: int, n_texts: int) -> Any:
    """Return the method's estimator, or ours for this many texts."""
    from diagatt.kinds.text.presets import text_estimator

    method, changed = _changed(method, preset)
    if method == "diagatt":
        return text_estimator(n_texts, preset=preset).set_params(random_state=seed)
    return make_estimator(method, classifies=True, seed=seed, **changed)


def _shortened(rows: RaggedRows, model: Any) -> RaggedRows:
    """Return the first rows of long samples, for models with one coefficient per position."""
    longest = getattr(model, "n_rows_", None)
    if longest is None or rows.lengths.max() <= longest:
        return rows
    return RaggedRows.from_samples([sample[:longest] for sample in rows])
