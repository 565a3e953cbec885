"""Texts: the evidence for the default, the words it locates, and the speed of making rows.

Run ``python -m benchmarks.text`` with one of

* ``ablation``    variants of the preset ``text`` or ``keyword`` on held-out training texts;
* ``tokens``      words located most often in the study ``uci``, compared with a lexicon;
* ``throughput``  embedding compared with a bare loop of ``transformers`` and with the cache.

Comparisons with other methods are studies: ``diagatt study run uci`` and ``keywords``. Results of
``ablation`` are kept in ``results/``, with a table in Markdown; a killed run resumes where it
stopped. The UCI files are found through ``DIAGATT_UCI_SENTIMENT`` or next to the repository.
"""

import argparse
import os
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.metrics import log_loss

from benchmarks.store import FOLDER, remember

SHARED = Path(__file__).parents[2] / "shared" / "data"
CACHE = Path(tempfile.gettempdir()) / "diagatt-text"


def uci_sentiment() -> Any:
    """Return the UCI comments."""
    from diagatt.datasets.uci import ENVIRONMENT, load_uci_sentiment

    return load_uci_sentiment(os.environ.get(ENVIRONMENT) or SHARED / "uci_sentiment")


def print_tokens(folder: Path) -> None:
    """Print the words located most often over all stored fits, and whether the lexicon agrees."""
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

    from diagatt.studies import ResultStore
    from diagatt.studies.report import CLASSES, top_located

    lexicon = SentimentIntensityAnalyzer().lexicon
    lines = [x for x in ResultStore(folder).lines() if x["scenario"] == "uci" and x["scale"] == 1]
    top = top_located(x for x in lines if x["method"] == "diagatt").get("diagatt")
    if top is None:
        raise SystemExit(f"{folder} holds no fit: run `diagatt study run uci --methods diagatt`.")
    table = Table("class", "word", "located", "lexicon")
    for label, sign in [("1", 1), ("0", -1)]:
        for word, count in top[label]:
            table.add_row(CLASSES[label], word, str(count), f"{lexicon.get(word, 0):+.1f}")
        agree = sum(sign * lexicon.get(word, 0) > 0 for word, _ in top[label])
        note = f"{agree} of {len(top[label])} carry the polarity"
        table.add_row(CLASSES[label], note, "", "", end_section=True)
    Console().print(table)


def run_throughput(rounds: int) -> None:
    """Embed 3,000 comments by a bare loop, by TextRows, and from the cache; best of rounds."""
    from diagatt.kinds.text.language_model import load_language_model
    from diagatt.text import TextRows

    texts = uci_sentiment().texts
    backend = load_language_model("minilm")
    best = {"bare": np.inf, "TextRows": np.inf, "TextRows, filling the cache": np.inf}
    best["from the cache"] = np.inf
    for _ in range(rounds):  # interleaved: other work on the machine disturbs all equally
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
    """Embed without our code: sort by length, pad, run the model, keep one hidden layer."""
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


# Each line changes one thing in a preset. "text" is fitted from six starts; in the blend "keyword"
# members are left out, or those that read a single layer are trained differently.
VARIANTS: dict[str, dict[str, dict[str, Any]]] = {
    "text": {
        "nothing else": {},
        "one start": {"n_restarts": 1},
        "no row dropped": {"row_dropout": 0.0},
        "half of the rows dropped": {"row_dropout": 0.5},
        "layer 4": {"layers": 4},
        "layers 0 and 6": {"layers": (0, 6)},
        "layers 4, 5 and 6": {"layers": (4, 5, 6)},
        "temperature 1": {"temperature": 1.0},
        "rank 8": {"rank": 8},
        "quadratic score": {"score_form": "quadratic"},
        "no ridge": {"ridge": 0.0},
        "three times the steps": {"max_epochs": 21},
    },
    "keyword": {
        "nothing else": {},
        "layers 0 and 6 alone": {"members": (0,)},
        "layer 4 alone": {"members": (1,)},
        "layer 5 alone": {"members": (2,)},
        "layers 4 and 5 alone": {"members": (1, 2)},
        "these, no value dropout": {"members": (1, 2), "value_dropout": 0.0},
        "these, rows dropped for scores, too": {
            "members": (1, 2),
            "value_dropout": 0.0,
            "row_dropout": 0.8,
        },
        "these, no ridge": {"members": (1, 2), "ridge": 0.0},
        "these, temperature 1": {"members": (1, 2), "temperature": 1.0},
        "these, a quarter of the steps": {"members": (1, 2), "steps": 0.25},
    },
}
DEVELOPMENT_SPLIT = 1000  # not one of the splits on which the study tests
N_FOLDS = 3
KEYWORD_PAIRS = (("wonderful", "awful"), ("elegant", "hideous"), ("superb", "shoddy"))
N_KEYWORD_COMMENTS = 1200


def run_ablation(preset: str) -> None:
    """Print accuracy and a second measure of each variant of a preset on held-out training texts.

    For "text": three folds of the training and validation part of one UCI split. For "keyword":
    comments with two of the six bundled training keywords, after a fit to comments with the other
    four; and comments of template A, after a fit to template B.
    """
    metric = "cross-entropy" if preset == "text" else "CRLR %"
    rows = [["six starts and" if preset == "text" else "blend, but", "accuracy %", metric]]
    rows.append(["---"] * 3)
    ablate = ablate_uci if preset == "text" else ablate_keywords
    for name in VARIANTS[preset]:
        result = remember(f"{preset}-ablation", name, lambda n=name: ablate(n))
        second = result.get("cross_entropy")
        shown = f"{100 * result['crlr']:.1f}" if second is None else f"{second:.4f}"
        rows.append([name, f"{100 * result['accuracy']:.2f}", shown])
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    text = "\n".join([f"# Ablation of the preset {preset}", "", *lines, ""])
    (FOLDER / f"{preset}-ablation.md").write_text(text, encoding="utf-8")
    Console().print(text)


def text_variant(name: str, n_samples: int) -> tuple[Any, Any]:
    """Rows and estimator of a variant of "text"."""
    from diagatt.text import TextRows, text_estimator

    settings = {"n_restarts": 6, "random_state": 0, **VARIANTS["text"][name]}
    rows = TextRows(layers=settings.pop("layers", "joined"), cache=CACHE)
    return rows, text_estimator(n_samples, **settings)


def keyword_variant(name: str, n_samples: int) -> tuple[Any, Any]:
    """Rows and estimator of a variant of "keyword"."""
    from diagatt.text import TextRows, text_estimator

    settings = dict(VARIANTS["keyword"][name])
    blend = text_estimator(n_samples, preset="keyword").set_params(random_state=0)
    members, steps = settings.pop("members", (0, 1, 2)), settings.pop("steps", 1)
    for _, member, _ in blend.members[1:]:
        member.set_params(max_epochs=round(member.max_epochs * steps), **settings)
    blend.members = [blend.members[k] for k in members]
    return TextRows(layers="joined", cache=CACHE), blend


def ablate_uci(name: str) -> dict[str, float]:
    """Cross-validate within the training and validation part of the development split."""
    from diagatt.datasets.splits import fold_texts, split_texts

    data = uci_sentiment()
    parts = split_texts(data.texts, seed=DEVELOPMENT_SPLIT)
    own = np.sort(np.concatenate(parts[:2]))
    texts, y = [data.texts[i] for i in own], data.y[own]
    fold, probability = fold_texts(texts, N_FOLDS), np.empty(len(y))
    for k in range(N_FOLDS):
        rows, model = text_variant(name, int((fold != k).sum()))
        X = rows.transform(texts)
        model.fit(X[fold != k], y[fold != k])
        probability[fold == k] = model.predict_proba(X[fold == k])[:, 1]
    right = float(np.mean((probability > 0.5) == y))
    return {"accuracy": right, "cross_entropy": float(log_loss(y, probability))}


def ablate_keywords(name: str) -> dict[str, float]:
    """Test new keywords and a new template, all within the bundled training comments."""
    from diagatt.datasets.keywords import keyword_sentiment

    train = keyword_sentiment().train
    chosen = np.random.default_rng(0).permutation(len(train))
    word = np.array([t[a:b] for t, (a, b) in zip(train.texts, train.spans, strict=True)])
    held_out = [np.isin(word, pair) for pair in KEYWORD_PAIRS] + [train.split == "train_a"]
    right, hits = [], []
    for out in held_out:
        fit_on = chosen[~out[chosen]][:N_KEYWORD_COMMENTS]
        test_on = chosen[out[chosen]][: N_KEYWORD_COMMENTS // 2]
        rows, model = keyword_variant(name, len(fit_on))
        model.fit(rows.transform([train.texts[i] for i in fit_on]), train.y[fit_on])
        test = rows.embed([train.texts[i] for i in test_on])
        true = test.rows_at(train.spans[test_on].tolist())
        right.append(np.mean(model.predict(test.rows) == train.y[test_on]))
        located = model.locate(test.rows)
        hits.append(
            np.mean([bool(t & set(r.tolist())) for t, r in zip(true, located, strict=True)])
        )
    return {"accuracy": float(np.mean(right)), "crlr": float(np.mean(hits))}


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    ablation = commands.add_parser("ablation")
    ablation.add_argument("preset", choices=list(VARIANTS))
    tokens = commands.add_parser("tokens")
    tokens.add_argument("--store", type=Path, default=Path("results"))
    speed = commands.add_parser("throughput")
    speed.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # near-uniform attention and unfinished solvers show in the table
        if options.command == "ablation":
            run_ablation(options.preset)
        elif options.command == "tokens":
            print_tokens(options.store)
        else:
            run_throughput(options.rounds)


if __name__ == "__main__":
    main()
