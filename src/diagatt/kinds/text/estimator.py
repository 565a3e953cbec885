"""From texts to predictions and the words behind them, in one estimator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted

from diagatt.estimators import DiagAttClassifier, DiagAttRegressor
from diagatt.estimators.routing import Scored
from diagatt.kinds.answers import answer
from diagatt.kinds.certainty import inner_has
from diagatt.kinds.estimator import KindClassifier, KindEstimator
from diagatt.kinds.text.embedded import EmbeddedTexts, WordWeight, top_words
from diagatt.kinds.text.presets import text_estimator
from diagatt.kinds.text.rows import TextRows
from diagatt.parameters import Rule, instance, one_of, optional
from diagatt.persistence import from_document, to_document
from diagatt.ragged import RaggedRows


@dataclass(eq=False, repr=False)
class _TextEstimator(KindEstimator):
    """What the classifier and the regressor share."""

    _: KW_ONLY
    text_rows: TextRows | None = None
    estimator: Any = None
    preset: str = "text"
    random_state: Any = None

    rules: ClassVar[Mapping[str, Rule]] = {
        "text_rows": optional(instance("a TextRows", TextRows)),
        "preset": one_of("text", "keyword"),
    }
    kind = "text"
    text_rows_: TextRows = field(init=False)
    _inner: ClassVar[type]
    _steps = ("text_rows", "estimator")

    def prepare(self, inputs: Any) -> EmbeddedTexts:
        """Return the rows of the texts with the words they stand for; see `TextRows.embed`."""
        check_is_fitted(self)
        return self.text_rows_.embed(inputs)

    embed = prepare

    @inner_has("attention")
    def attention(self, texts: Any) -> list[list[WordWeight]]:
        """Return every word of every text with its attention weight, head after head."""
        embedded = self.prepare(texts)
        return embedded.weighted(self.estimator_.attention(embedded.rows))

    def locate(self, texts: Any) -> list[list[WordWeight]]:
        """Return the words behind the predictions, one per head, ``text[w.start:w.stop]``.

        The weight is the attention that the head pays to the word, NaN if the estimator has none.
        """
        found = answer(self, texts)
        return found.prepared.located(found.located, found.weights)

    def _default_estimator(self, n_samples: int) -> Any:
        return text_estimator(n_samples, self._inner, self.preset)

    def _fit_rows(self, inputs: Any) -> RaggedRows:
        if self.estimator is not None and self.preset != "text":
            raise ValueError(
                f"preset {self.preset!r} chooses the default estimator, and an estimator is given: "
                "leave one of them out."
            )
        rows = TextRows(layers="joined") if self.text_rows is None else self.text_rows
        self.text_rows_ = clone(rows)
        return self.text_rows_.fit(inputs).transform(inputs)

    def _rows_document(self) -> dict[str, Any]:
        # The folder of the cache belongs to this machine, not to the model.
        portable = clone(self.text_rows_).set_params(cache=None)
        portable.fingerprint_ = self.text_rows_.fingerprint_
        return to_document(portable)[1]

    def _restore_rows(self, document: Mapping[str, Any], path: Any) -> None:
        self.text_rows_ = from_document(TextRows, {}, document, path)
        self.text_rows = clone(self.text_rows_)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


class TextClassifier(KindClassifier, _TextEstimator):
    """Classify texts and point at the words that decide.

    Parameters
    ----------
    text_rows : TextRows, optional
        How texts become rows; ``TextRows(layers="joined")`` by default.
    estimator : classifier of diagatt, optional
        By default `text_estimator` of the preset; any competitor works as well.
    preset : {"text", "keyword"}
        `DiagAttClassifier` for the tone of texts, or a `BlendedClassifier` for texts in which one
        word decides.
    random_state : int, RandomState or None
        Passed to the estimator unless None.

    Attributes
    ----------
    text_rows_ : TextRows
    estimator_ : classifier
        Fitted.
    classes_ : array of shape (n_classes,)

    Examples
    --------
    >>> from diagatt.text import TextClassifier, text_estimator
    >>> texts = ["What a lovely phone.", "A dreadful film.", "Great food!", "The worst service."]
    >>> quick = text_estimator(20, n_restarts=6, max_epochs=20, ridge=1)
    >>> model = TextClassifier(estimator=quick, random_state=0)
    >>> model = model.fit(texts * 5, ["good", "bad", "good", "bad"] * 5)
    >>> model.predict(["A great film.", "Dreadful food!"])
    array(['good', 'bad'], dtype='<U4')
    >>> model.locate(["A great film."])[0][0].word
    'great'
    """

    _inner = DiagAttClassifier

    def top_words(self, texts: Any, y: Any, k: int = 10) -> dict[Any, list[tuple[str, int]]]:
        """Return the k words located most often in the texts of each class (Table 3).

        `y` are the classes to sort by: the true ones, or the predicted ones.
        """
        return top_words(self.locate(texts), y, k)


class TextRegressor(Scored, RegressorMixin, _TextEstimator):
    """Predict a number from texts and point at the words behind it.

    Parameters
    ----------
    text_rows, estimator, preset, random_state
        As in `TextClassifier`, with regressors.

    Attributes
    ----------
    text_rows_, estimator_
        As in `TextClassifier`.

    Examples
    --------
    >>> from diagatt import DiagAttRegressor
    >>> from diagatt.text import TextRegressor, text_estimator
    >>> texts = ["What a lovely phone.", "A dreadful film.", "Great food!", "The worst service."]
    >>> quick = text_estimator(20, DiagAttRegressor, n_restarts=2, max_epochs=60, ridge=1)
    >>> model = TextRegressor(estimator=quick, random_state=0).fit(texts * 5, [5, 1, 5, 1] * 5)
    >>> model.predict(["Great phone.", "The worst film."]).round() > 3
    array([ True, False])
    """

    _inner = DiagAttRegressor

    def top_words(self, texts: Any, y: Any, k: int = 10) -> dict[str, list[tuple[str, int]]]:
        """Return the k words located most often where y is "low" (up to its median) or "high"."""
        y = np.asarray(y, dtype=float)
        return top_words(self.locate(texts), np.where(y > np.median(y), "high", "low"), k)
