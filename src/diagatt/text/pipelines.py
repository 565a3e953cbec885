"""From texts to predictions and the words behind them, in one estimator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted

from diagatt.estimators import DiagAttClassifier, DiagAttRegressor
from diagatt.persistence import from_document, to_document
from diagatt.pipelines import RowsPipeline, inner_has
from diagatt.ragged import RaggedRows
from diagatt.text.embedded import EmbeddedTexts, WordWeight
from diagatt.text.presets import keyword_blend, text_settings
from diagatt.text.rows import TextRows
from diagatt.text.top_words import top_words


class _TextPipeline(RowsPipeline):
    """What the classifier and the regressor share."""

    text_rows_: TextRows
    _kind: ClassVar[type]

    def __init__(
        self,
        *,
        text_rows: TextRows | None = None,
        estimator: Any = None,
        preset: str = "text",
        random_state: Any = None,
    ) -> None:
        self.text_rows = text_rows
        self.estimator = estimator
        self.preset = preset
        self.random_state = random_state

    def fit(self, texts: Any, y: Any, sample_weight: Any = None, covariates: Any = None) -> Self:
        """Embed the texts and fit the estimator to their rows.

        Parameters
        ----------
        texts : list of str
        y : array of shape (n_texts,)
        sample_weight : array of shape (n_texts,), optional
        covariates : array of shape (n_texts, q), optional
            If the estimator takes them.
        """
        return self._fit(texts, y, sample_weight=sample_weight, covariates=covariates)

    def embed(self, texts: Any) -> EmbeddedTexts:
        """Rows of the texts with the words they stand for; see `TextRows.embed`."""
        check_is_fitted(self)
        return self.text_rows_.embed(texts)

    def rows(self, inputs: Any) -> RaggedRows:
        """Rows of the texts as the estimator sees them."""
        return self.embed(inputs).rows

    def predict(self, texts: Any, covariates: Any = None) -> np.ndarray:
        """Predicted classes or expected responses, (n_texts,)."""
        return self._predict("predict", texts, covariates)

    @inner_has("attention")
    def attention(self, texts: Any) -> list[list[WordWeight]]:
        """Every word of every text with its attention weight, head after head."""
        embedded = self.embed(texts)
        return embedded.weighted(self.estimator_.attention(embedded.rows))

    def locate(self, texts: Any) -> list[list[WordWeight]]:
        """Words behind the predictions, one a head.

        Returns
        -------
        list of lists of WordWeight
            ``text[w.start:w.stop] == w.word``. The weight is the attention that the head pays to
            it, NaN if the estimator has none.
        """
        embedded = self.embed(texts)
        rows = self.estimator_.locate(embedded.rows)
        has_attention = hasattr(self.estimator_, "attention")
        weights = self.estimator_.attention(embedded.rows) if has_attention else None
        return embedded.located(rows, weights)

    def _default_estimator(self, n_texts: int) -> Any:
        if self.preset == "keyword":
            return keyword_blend(n_texts, self._kind)
        if self.preset == "text":
            return self._kind(**text_settings(n_texts))
        raise ValueError(f"unknown preset {self.preset!r}: choose 'text' or 'keyword'.")

    def _fit_rows(self, inputs: Any) -> RaggedRows:
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

    @classmethod
    def _steps(cls) -> tuple[str, ...]:
        return ("text_rows", "estimator")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


class TextClassifier(ClassifierMixin, _TextPipeline):
    """Classify texts and point at the words that decide.

    Parameters
    ----------
    text_rows : TextRows, optional
        How texts become rows; ``TextRows(layers="joined")`` by default.
    estimator : classifier of diagatt, optional
        By default that of `preset`; any competitor works as well.
    preset : {"text", "keyword"}
        `DiagAttClassifier` for the tone of texts, or a `BlendedClassifier` for texts in which one
        word decides (`diagatt.text.presets`).
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
    >>> from diagatt import DiagAttClassifier
    >>> from diagatt.text import TextClassifier
    >>> texts = ["What a lovely phone.", "A dreadful film.", "Great food!", "The worst service."]
    >>> quick = DiagAttClassifier.preset("text", n_restarts=6, max_epochs=20, ridge=1)
    >>> model = TextClassifier(estimator=quick, random_state=0)
    >>> model = model.fit(texts * 5, ["good", "bad", "good", "bad"] * 5)
    >>> model.predict(["A great film.", "Dreadful food!"])
    array(['good', 'bad'], dtype='<U4')
    >>> model.locate(["A great film."])[0][0].word
    'great'
    """

    _kind = DiagAttClassifier

    @property
    def classes_(self) -> np.ndarray:
        """Classes of the fitted estimator."""
        return self.estimator_.classes_

    def predict_proba(self, texts: Any, covariates: Any = None) -> np.ndarray:
        """Class probabilities, (n_texts, n_classes)."""
        return self._predict("predict_proba", texts, covariates)

    def top_words(self, texts: Any, y: Any, k: int = 10) -> dict[Any, list[tuple[str, int]]]:
        """Words located most often in the texts of each class (the paper's Table 3).

        Parameters
        ----------
        texts : list of str
        y : array of shape (n_texts,)
            Classes to sort the words by: the true ones, or the predicted ones.
        k : int
            Words a class.
        """
        return top_words(self.locate(texts), y, k)


class TextRegressor(RegressorMixin, _TextPipeline):
    """Predict a number from texts and point at the words behind it.

    Parameters
    ----------
    text_rows : TextRows, optional
        How texts become rows; ``TextRows(layers="joined")`` by default.
    estimator : regressor of diagatt, optional
        By default that of `preset`.
    preset : {"text", "keyword"}
        As in `TextClassifier`.
    random_state : int, RandomState or None
        Passed to the estimator unless None.

    Attributes
    ----------
    text_rows_ : TextRows
    estimator_ : regressor
        Fitted.

    Examples
    --------
    >>> from diagatt import DiagAttRegressor
    >>> from diagatt.text import TextRegressor
    >>> texts = ["What a lovely phone.", "A dreadful film.", "Great food!", "The worst service."]
    >>> quick = DiagAttRegressor.preset("text", n_restarts=2, max_epochs=60, ridge=1)
    >>> model = TextRegressor(estimator=quick, random_state=0).fit(texts * 5, [5, 1, 5, 1] * 5)
    >>> model.predict(["Great phone.", "The worst film."]).round() > 3
    array([ True, False])
    """

    _kind = DiagAttRegressor

    def top_words(self, texts: Any, y: Any, k: int = 10) -> dict[str, list[tuple[str, int]]]:
        """Words located most often in texts whose response is low (at most the median) and high.

        Parameters
        ----------
        texts : list of str
        y : array of shape (n_texts,)
        k : int
            Words a side.
        """
        y = np.asarray(y, dtype=float)
        return top_words(self.locate(texts), np.where(y > np.median(y), "high", "low"), k)
