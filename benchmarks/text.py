"""Text: what the default was chosen by, how it compares, which words it finds, how fast it is.

Run ``python -m benchmarks.text`` with one of

* ``uci``         every method on random 70/10/20 splits of the UCI comments, paired;
* ``tokens``      the paper's Table 3 from the fits of ``uci``;
* ``keywords``    accuracy and CRLR split by split (``--lists PATH`` for the original lists);
* ``ablation``    cross-validation inside training data only, by which the default was chosen;
* ``throughput``  embedding against a bare loop of ``transformers``, and against the cache.

Results are kept in ``results/text-*.jsonl``; a run that was killed goes on where it stopped.
The UCI files are found through ``DIAGATT_UCI_SENTIMENT`` or beside the repository.
"""

import argparse
import os
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.stats import t as student
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from benchmarks.store import recall, remember

SHARED = Path(__file__).parents[2] / "shared" / "data"
CACHE = Path(tempfile.gettempdir()) / "diagatt-text"
N_LOCATED = 5  # the paper's R̃ on the UCI comments
TOP = 60  # located words a class that a fit leaves in the store

# What is tuned on the validation part; DiagAtt's default is fixed.
GRIDS: dict[str, list[dict[str, Any]]] = {
    "pooled": [{"C": c} for c in (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)],
    "gated": [{"max_epochs": e} for e in (2, 5, 10)],
    "stdatt": [{"max_epochs": e} for e in (1, 2, 4)],
    "grouplasso": [{"alpha": a} for a in (1.0, 0.1, 0.01)],
    "two-step": [{"ridge": r, "active_component": c} for r in (0.01, 0.1, 1.0) for c in (0, 1)],
    "diagatt": [{}],
}


class MeanRows:
    """Logistic regression on mean rows, with the face of the other methods."""

    def __init__(self, C: float) -> None:
        self.model = LogisticRegression(C=C, max_iter=1000)

    def fit(self, X: Any, y: np.ndarray) -> "MeanRows":
        """Fit to the mean rows of the samples."""
        self.model.fit(self._pooled(X), y)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities."""
        return self.model.predict_proba(self._pooled(X))

    @staticmethod
    def _pooled(X: Any) -> np.ndarray:
        return np.add.reduceat(X.values, X.offsets[:-1], axis=0) / X.lengths[:, None]


def make(method: str, seed: int, n_samples: int, settings: dict[str, Any]) -> Any:
    """Return the untrained estimator of a method."""
    import diagatt
    from diagatt.text.pipelines import text_settings

    if method == "pooled":
        return MeanRows(**settings)
    if method == "diagatt":
        return diagatt.DiagAttClassifier(
            **{**text_settings(n_samples), **settings}, random_state=seed
        )
    unpenalized = {"ridge": 0.0, "score_ridge": 0.0}  # as the paper trains
    classes: dict[str, Callable[[], Any]] = {
        "gated": lambda: diagatt.GatedAttentionClassifier(),
        "stdatt": lambda: diagatt.StdAttClassifier(1, n_located=N_LOCATED, **unpenalized),
        "grouplasso": lambda: diagatt.GroupLassoClassifier(n_located=N_LOCATED),
        "two-step": lambda: diagatt.TwoStepClassifier(n_located=N_LOCATED),
    }
    return classes[method]().set_params(random_state=seed, **settings)


def shortened(rows: Any, longest: int) -> Any:
    """First rows of longer samples: methods with one coefficient a position have none beyond."""
    from diagatt import RaggedRows

    if rows.lengths.max() <= longest:
        return rows
    return RaggedRows.from_samples([sample[:longest] for sample in rows])


def tune_and_test(method: str, seed: int, rows: Any, y: np.ndarray, parts: list) -> tuple:
    """Choose by validation cross-entropy, refit on training and validation part, predict."""
    train, validation, test = parts
    grid, chosen = GRIDS[method], GRIDS[method][0]
    if len(grid) > 1:
        losses, longest = [], rows[train].lengths.max()
        for settings in grid:
            model = make(method, seed, len(train), settings).fit(rows[train], y[train])
            probability = model.predict_proba(shortened(rows[validation], longest))
            losses.append(log_loss(y[validation], probability))
        chosen = grid[int(np.argmin(losses))]
    both = np.sort(np.concatenate([train, validation]))
    model = make(method, seed, len(both), chosen).fit(rows[both], y[both])
    probability = model.predict_proba(shortened(rows[test], rows[both].lengths.max()))
    return model, chosen, probability[:, 1]


# ---------------------------------------------------------------------- UCI


def uci_data() -> tuple[Any, np.ndarray]:
    """Embedded comments (from the cache if they are there) and labels."""
    from diagatt.datasets.uci import ENVIRONMENT, load_uci_sentiment
    from diagatt.text import TextRows

    data = load_uci_sentiment(os.environ.get(ENVIRONMENT) or SHARED / "uci_sentiment")
    return TextRows(cache=CACHE, verbose=True).embed(data.texts), data.y


def run_uci(methods: list[str], seeds: range) -> None:
    """Fit and test what is not in the store; print the paired table."""
    from diagatt.datasets.splits import split_texts
    from diagatt.text import top_words

    embedded, y = uci_data()

    def one(method: str, seed: int) -> dict[str, Any]:
        parts = split_texts(embedded.texts, seed=seed)
        start = time.perf_counter()
        model, chosen, p = tune_and_test(method, seed, embedded.rows, y, parts)
        result = {
            "accuracy": float(np.mean((p > 0.5) == y[parts[2]])),
            "cross_entropy": float(log_loss(y[parts[2]], p)),
            "chosen": chosen,
            "seconds": round(time.perf_counter() - start, 1),
        }
        if method == "diagatt":
            located = embedded.located(model.locate(embedded.rows))
            result["words"] = {str(k): v for k, v in top_words(located, y, TOP).items()}
        return result

    for seed in seeds:
        for method in methods:
            result = remember("text-uci", f"{method} {seed}", lambda m=method, s=seed: one(m, s))
            print(f"{method} {seed}: {result['accuracy']:.4f} {result['chosen']}", flush=True)
    print_uci()


def print_uci() -> None:
    """Mean accuracies, and DiagAtt's advantage with its 95 % interval."""
    found = recall("text-uci")
    table = Table(
        "method", "splits", "accuracy %", "cross-entropy", "DiagAtt ahead by, points (95 %)"
    )
    for method in GRIDS:
        seeds = [int(k.split()[1]) for k in found if k.split()[0] == method]
        if not seeds:
            continue
        own = np.array([found[f"{method} {s}"]["accuracy"] for s in seeds])
        entropy = np.mean([found[f"{method} {s}"]["cross_entropy"] for s in seeds])
        ahead = "–"
        common = [s for s in seeds if f"diagatt {s}" in found]
        if method != "diagatt" and len(common) > 1:
            pairs = [(found[f"diagatt {s}"], found[f"{method} {s}"]) for s in common]
            ahead = interval([100 * (a["accuracy"] - b["accuracy"]) for a, b in pairs])
        table.add_row(method, str(len(seeds)), f"{100 * own.mean():.2f}", f"{entropy:.4f}", ahead)
    Console().print(table)


def interval(differences: list[float]) -> str:
    """Mean and its 95 % interval by Student's t over splits."""
    d = np.array(differences)
    half = student.ppf(0.975, len(d) - 1) * d.std(ddof=1) / len(d) ** 0.5
    return f"{d.mean():+.2f} ({d.mean() - half:+.2f} to {d.mean() + half:+.2f})"


def print_tokens() -> None:
    """Words located most often over all stored fits, and whether the lexicon agrees."""
    from vaderSentiment.vaderSentiment import NEGATE, SentimentIntensityAnalyzer

    lexicon = SentimentIntensityAnalyzer().lexicon
    fits = [r["words"] for k, r in recall("text-uci").items() if k.startswith("diagatt ")]
    table = Table("class", "word", "located", "lexicon", title=f"{len(fits)} fits")
    for label, sign in [("1", 1), ("0", -1)]:
        counts: Counter = Counter()
        for words in fits:
            counts.update(dict(words[label]))
        top = counts.most_common(10)
        for word, count in top:
            negation = " (negation)" if word in NEGATE else ""
            table.add_row(label, word, str(count), f"{lexicon.get(word, 0):+.1f}{negation}")
        agree = sum(sign * lexicon.get(word, 0) > 0 for word, _ in top)
        table.add_row(label, f"{agree} of 10 carry the polarity", "", "", end_section=True)
    Console().print(table)


# ---------------------------------------------------------------------- keywords


def run_keywords(lists: str | None, methods: list[str], seeds: range) -> None:
    """Train on the training comments with shuffled rows, test split by split."""
    from diagatt.datasets.keywords import keyword_sentiment
    from diagatt.metrics import crlr
    from diagatt.text import TextRows

    data, name = keyword_sentiment(lists), "original" if lists else "bundled"
    rows = TextRows(cache=CACHE, verbose=True)
    train = rows.embed(data.train.texts).shuffled(seed=0)
    test = rows.embed(data.test.texts).shuffled(seed=1)
    true = test.rows_at(data.test.spans.tolist())

    def one(method: str, seed: int) -> dict[str, Any]:
        start = time.perf_counter()
        model = make(method, seed, len(train), GRIDS[method][0]).fit(train.rows, data.train.y)
        right = model.predict(test.rows) == data.test.y
        located = model.locate(test.rows)
        result: dict[str, Any] = {"seconds": round(time.perf_counter() - start, 1)}
        for split in ["all", *np.unique(data.test.split).tolist()]:
            here = np.flatnonzero((data.test.split == split) | (split == "all"))
            rate = float(np.mean([bool(true[i] & set(located[i].tolist())) for i in here]))
            result[split] = {"n": len(here), "accuracy": float(right[here].mean()), "crlr": rate}
        # One row a keyword, so that the share of hits is the paper's CRLR.
        if all(len(t) == 1 for t in true):
            assert np.isclose(result["all"]["crlr"], crlr(true, located))
        return result

    for seed in seeds:
        for method in methods:
            key = f"{name} {method} {seed}"
            result = remember("text-keywords", key, lambda m=method, s=seed: one(m, s))
            table = Table("split", "comments", "accuracy %", "CRLR %", "what", title=key)
            for split, r in result.items():
                if split != "seconds":
                    cells = (f"{100 * r['accuracy']:.2f}", f"{100 * r['crlr']:.2f}")
                    table.add_row(split, str(r["n"]), *cells, data.notes.get(split, ""))
            Console().print(table)


# ---------------------------------------------------------------------- speed


def run_throughput(rounds: int) -> None:
    """Embed 3,000 comments by a bare loop, by TextRows, and from the cache; best of rounds."""
    from diagatt.datasets.uci import ENVIRONMENT, load_uci_sentiment
    from diagatt.text import TextRows
    from diagatt.text.backends import load_backend

    texts = load_uci_sentiment(os.environ.get(ENVIRONMENT) or SHARED / "uci_sentiment").texts
    backend = load_backend("minilm")
    best = {"bare": np.inf, "TextRows": np.inf, "TextRows, filling the cache": np.inf}
    best["from the cache"] = np.inf
    for _ in range(rounds):  # interleaved: whatever else the machine does hits all alike
        with tempfile.TemporaryDirectory() as folder:
            cached = TextRows(layers=5, cache=folder)
            for name, work in [
                ("bare", lambda: bare_loop(backend, texts)),
                ("TextRows", lambda: TextRows(layers=5).embed(texts)),
                ("TextRows, filling the cache", lambda c=cached: c.embed(texts)),
                ("from the cache", lambda c=cached: c.embed(texts)),
            ]:
                start = time.perf_counter()
                work()
                best[name] = min(best[name], time.perf_counter() - start)
    table = Table("way", "seconds", "throughput relative to bare")
    for name, seconds in best.items():
        table.add_row(name, f"{seconds:.2f}", f"{best['bare'] / seconds:.2f}")
    Console().print(table)
    print(f"cache: {best['TextRows'] / best['from the cache']:.0f} times as fast as embedding")


def bare_loop(backend: Any, texts: list[str], batch_size: int = 64) -> list[np.ndarray]:
    """What one writes without us: sort by length, pad, run the model, keep one hidden layer."""
    import torch

    order = np.argsort([len(text) for text in texts])
    result = []
    with torch.inference_mode():
        for start in range(0, len(texts), batch_size):
            batch = [texts[i] for i in order[start : start + batch_size]]
            encoded = backend.tokenizer(batch, padding=True, truncation=True, return_tensors="pt")
            output = backend.model(**encoded, output_hidden_states=True)
            result.append(output.hidden_states[5].numpy())
    return result


# ---------------------------------------------------------------------- what the default rests on

# Each line changes one thing of the default.
VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "one start": {"n_restarts": 1},
    "four starts": {"n_restarts": 4},
    "no row dropped": {"row_dropout": 0.0},
    "a tenth of the rows dropped": {"row_dropout": 0.1},
    "half of the rows dropped": {"row_dropout": 0.5},
    "layer 0 (embedding)": {"layers": 0},
    "layer 3": {"layers": 3},
    "layer 5": {"layers": 5},
    "layer 6 (last)": {"layers": 6},
    "layers 0 and 5": {"layers": (0, 5)},
    "layers 0 and 6": {"layers": (0, 6)},
    "layers 3, 4 and 5": {"layers": (3, 4, 5)},
    "pieces": {"merge": None},
    "first pieces": {"merge": "first"},
    "rank 1": {"rank": 1},
    "rank 8": {"rank": 8},
    "no ridge": {"ridge": 0.0},
    "ridge 10": {"ridge": 10.0},
    "score_ridge 2.5": {"score_ridge": 2.5},
    "quadratic score": {"score_form": "quadratic"},
    "three times the steps": {"max_epochs": 30},
    "early stopping on a tenth": {"validation_fraction": 0.1, "max_epochs": 40},
    "values start pooled": {"init": "pooled"},
    "shrunk likelihood": {"solver": "likelihood", "covariance": "tied", "rank": None},
}
DEVELOPMENT_SPLIT = 1000  # none of the splits that `uci` tests on
N_FOLDS = 3
KEYWORD_PAIRS = (("wonderful", "awful"), ("elegant", "hideous"), ("superb", "shoddy"))
N_KEYWORD_COMMENTS = 1200


def run_ablation(names: list[str]) -> None:
    """Print what held-out training sentences say of each variant.

    UCI: three folds of the training and validation part of one split. Keywords (bundled lists):
    comments with two of the six training keywords, fitted to comments with the other four; and
    template A, fitted to template B.
    """
    table = Table(
        "default with", "UCI accuracy %", "cross-entropy", "keywords accuracy %", "CRLR %"
    )
    for name in names:
        result = remember(
            "text-ablation", name, lambda n=name: {**ablate_uci(n), **ablate_keywords(n)}
        )
        cells = (f"{100 * result['accuracy']:.2f}", f"{result['cross_entropy']:.4f}")
        cells += (f"{100 * result['keyword_accuracy']:.1f}", f"{100 * result['crlr']:.1f}")
        table.add_row(name, *cells)
        print(name, *cells, flush=True)
    Console().print(table)


def variant(name: str, n_samples: int) -> tuple[Any, Any]:
    """Rows and estimator of a variant."""
    from diagatt.text import TextRows

    settings = dict(VARIANTS[name])
    of_rows = {key: settings.pop(key) for key in ("layers", "merge") if key in settings}
    return TextRows(cache=CACHE, **of_rows), make("diagatt", 0, n_samples, settings)


def ablate_uci(name: str) -> dict[str, float]:
    """Cross-validation within the training and validation part of the development split."""
    from diagatt.datasets.splits import fold_texts, split_texts
    from diagatt.datasets.uci import ENVIRONMENT, load_uci_sentiment

    data = load_uci_sentiment(os.environ.get(ENVIRONMENT) or SHARED / "uci_sentiment")
    parts = split_texts(data.texts, seed=DEVELOPMENT_SPLIT)
    own = np.sort(np.concatenate(parts[:2]))
    texts, y = [data.texts[i] for i in own], data.y[own]
    fold, probability = fold_texts(texts, N_FOLDS), np.empty(len(y))
    for k in range(N_FOLDS):
        rows, model = variant(name, int((fold != k).sum()))
        X = rows.transform(texts)
        model.fit(X[fold != k], y[fold != k])
        probability[fold == k] = model.predict_proba(X[fold == k])[:, 1]
    right = float(np.mean((probability > 0.5) == y))
    return {"accuracy": right, "cross_entropy": float(log_loss(y, probability))}


def ablate_keywords(name: str) -> dict[str, float]:
    """New keywords and a new template, all within the bundled training comments."""
    from diagatt.datasets.keywords import keyword_sentiment

    train = keyword_sentiment().train
    chosen = np.random.default_rng(0).permutation(len(train))
    word = np.array([t[a:b] for t, (a, b) in zip(train.texts, train.spans, strict=True)])
    held_out = [np.isin(word, pair) for pair in KEYWORD_PAIRS] + [train.split == "train_a"]
    right, hits = [], []
    for out in held_out:
        fit_on = chosen[~out[chosen]][:N_KEYWORD_COMMENTS]
        test_on = chosen[out[chosen]][: N_KEYWORD_COMMENTS // 2]
        rows, model = variant(name, len(fit_on))
        model.fit(rows.transform([train.texts[i] for i in fit_on]), train.y[fit_on])
        test = rows.embed([train.texts[i] for i in test_on])
        true = test.rows_at(train.spans[test_on].tolist())
        right.append(np.mean(model.predict(test.rows) == train.y[test_on]))
        located = model.locate(test.rows)
        hits.append(
            np.mean([bool(t & set(r.tolist())) for t, r in zip(true, located, strict=True)])
        )
    return {"keyword_accuracy": float(np.mean(right)), "crlr": float(np.mean(hits))}


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    compare = commands.add_parser("uci")
    compare.add_argument("--methods", nargs="+", choices=list(GRIDS), default=list(GRIDS))
    compare.add_argument("--splits", type=int, default=20)
    commands.add_parser("tokens")
    keywords = commands.add_parser("keywords")
    keywords.add_argument("--lists", help="JSON file of word lists; the bundled ones by default")
    keywords.add_argument("--methods", nargs="+", choices=list(GRIDS), default=["diagatt"])
    keywords.add_argument("--seeds", type=int, default=1)
    ablation = commands.add_parser("ablation")
    ablation.add_argument("--variants", nargs="+", choices=list(VARIANTS), default=list(VARIANTS))
    speed = commands.add_parser("throughput")
    speed.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # near-uniform attention, unfinished solvers: in the table
        if options.command == "uci":
            run_uci(options.methods, range(options.splits))
        elif options.command == "tokens":
            print_tokens()
        elif options.command == "keywords":
            run_keywords(options.lists, options.methods, range(options.seeds))
        elif options.command == "ablation":
            run_ablation(options.variants)
        else:
            run_throughput(options.rounds)


if __name__ == "__main__":
    main()
