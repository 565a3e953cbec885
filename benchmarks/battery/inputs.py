"""Texts and images: what is no text, what is no image, for every method."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from benchmarks.battery.judge import Case, equal

N = 12
METHODS = ("predict", "predict_proba", "decision_function", "locate", "attention", "rows")
TEXTS = [f"a {word} day" for word in ("good", "bad", "fine") for _ in range(N // 3)]
IMAGES = np.random.default_rng(0).integers(0, 255, (N, 8, 8)).astype(float)


def _texts(value: Any) -> list[Any]:
    return [value if i == 5 else text for i, text in enumerate(TEXTS)]


def _images(change: Any) -> list[Any]:
    return [change(image) if i == 5 else image for i, image in enumerate(IMAGES)]


def _with(value: Any, kind: Any = float) -> Any:
    def change(image: np.ndarray) -> np.ndarray:
        image = image.astype(kind)
        image[3, 4] = value
        return image

    return change


def _masked(image: np.ndarray) -> np.ndarray:
    hidden = np.ma.masked_array(image, mask=np.zeros(image.shape))
    hidden[3, 4] = np.ma.masked
    return hidden


NO_TEXTS: dict[str, Any] = {
    "None": _texts(None),
    "NaN": _texts(np.nan),
    "a number": _texts(3),
    "bytes": _texts(b"word"),
    "a list": _texts(["word"]),
    "an empty text": _texts(""),
    "white space": _texts(" \n\t"),
    "half a pair": _texts("\ud800"),
    "pandas.NA": pd.Series(_texts(pd.NA)),
    "one string": "one string",
    "one number": 3.0,
    "nothing": None,
    "no texts": [],
    "an array of numbers": np.zeros((N, 2)),
    "an object": object(),
    "a set": set(TEXTS),
    "values of a dictionary": dict(enumerate(TEXTS)).values(),
    "a column with a null": pa.array(_texts(None)),
}
NO_IMAGES: dict[str, Any] = {
    "NaN": _images(_with(np.nan)),
    "infinity": _images(_with(np.inf)),
    "masked": _images(_masked),
    "a word": _images(_with("a", object)),
    "None": _images(_with(None, object)),
    "no image": _images(lambda image: None),
    "complex": _images(lambda image: image + 1j),
    "too small": _images(lambda image: image[:2]),
    "no pixels": _images(lambda image: image[:0]),
    "a vector": _images(lambda image: image[0]),
    "another size": _images(lambda image: image[:7]),
    "colour": _images(lambda image: np.stack([image] * 3, axis=2)),
    "NaN in an array": np.where(IMAGES[3, 2, 1] == IMAGES, np.nan, IMAGES),
    "masked array": np.ma.masked_equal(IMAGES, IMAGES[3, 2, 1]),
    "dates": IMAGES.astype("M8[D]"),
    "words": IMAGES.astype(str),
    "one image": IMAGES[0],
    "nothing": None,
    "no images": [],
    "one number": 3.0,
    "an object": object(),
    "a dictionary": {"a": 1},
    "no such file": ["nowhere.png"] * N,
    "a set": {"nowhere.png"},
    "values of a dictionary": dict(enumerate(IMAGES)).values(),
}
SAME_IMAGES: dict[str, Any] = {
    "list": list(IMAGES),
    "tuple": tuple(IMAGES),
    "float32": IMAGES.astype(np.float32),
    "bytes": IMAGES.astype(np.uint8),
    "whole numbers": IMAGES.astype(np.int64),
    "backwards": IMAGES[::-1].copy()[::-1],
    "columns first": np.asfortranarray(IMAGES),
    "nested lists": [image.tolist() for image in IMAGES],
    "no mask": np.ma.masked_array(IMAGES),
    "one channel": IMAGES[..., None],
    "big endian": IMAGES.astype(">f8"),
}
SAME_TEXTS: dict[str, Any] = {
    "tuple": tuple(TEXTS),
    "array": np.array(TEXTS),
    "objects": np.array(TEXTS, dtype=object),
    "series": pd.Series(TEXTS, index=range(5, 5 + N)),
    "column of Arrow": pa.array(TEXTS),
}


@cache
def fitted(name: str) -> Any:
    """Return a fitted model of texts or images."""
    from diagatt import DiagAttClassifier, DiagAttRegressor, images, text
    from diagatt.solvers import Gradient

    classifies = name.endswith("Classifier")
    y = ["a", "b"] * (N // 2) if classifies else np.arange(N) % 5
    inner = (DiagAttClassifier if classifies else DiagAttRegressor)(solver=Gradient(max_epochs=2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name.startswith("Text"):
            rows = text.TextRows(layers=0)
            return getattr(text, name)(text_rows=rows, estimator=inner).fit(TEXTS, y)
        return getattr(images, name)(4, estimator=inner, random_state=0).fit(IMAGES, y)


def cases() -> Iterator[Case]:
    """Yield the cases of texts and images."""
    for kind, wrong, same, plain in (
        ("Text", NO_TEXTS, SAME_TEXTS, TEXTS),
        ("Image", NO_IMAGES, SAME_IMAGES, IMAGES),
    ):
        for name in (f"{kind}Classifier", f"{kind}Regressor"):
            for method in METHODS:
                if name.endswith("Regressor") and method in METHODS[1:3]:
                    continue

                def ask(given: Any, name: str = name, method: str = method) -> Any:
                    answer = getattr(fitted(name), method)(given)
                    return answer.values if method == "rows" else answer

                for what, given in wrong.items():
                    yield Case(
                        "texts and images",
                        f"{name} · {what} · {method}",
                        lambda ask=ask, given=given: ask(given),
                        True,
                        words=r"text|image|X\b",
                    )
                for what, given in same.items():
                    yield Case(
                        "texts and images",
                        f"{name} · same in {what} · {method}",
                        lambda ask=ask, given=given: ask(given),
                        False,
                        lambda answer, ask=ask, plain=plain: _same(answer, ask(plain)),
                    )


def _same(answer: Any, expected: Any) -> bool:
    if isinstance(answer, list) and isinstance(answer[0], list):  # words with their weights
        pairs = [
            (a, b) for x, y in zip(answer, expected, strict=True) for a, b in zip(x, y, strict=True)
        ]
        return all(a[:3] == b[:3] and np.isclose(a[3], b[3]) for a, b in pairs)
    return equal(answer, expected)
