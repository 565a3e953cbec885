"""Texts: a sample is a text, and its rows are words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from diagatt.kinds.base import Kind, Option, diagonal

if TYPE_CHECKING:
    from diagatt.kinds.answers import Answers
    from diagatt.kinds.base import Inputs
    from diagatt.kinds.tables import Table


class Text(Kind):
    """Texts in a column of a table."""

    name = "text"
    columns = (Option("text", "Column of texts."),)
    settings = (
        Option(
            "preset",
            'Preset for texts: "text" for overall tone, "keyword" if a single word decides.',
            str,
            "text",
            value="text|keyword",
        ),
        Option(
            "language_model",
            "Language model for texts: minilm, a folder, or a Hugging Face id.",
            str,
            "minilm",
            makes_rows=True,
        ),
        Option(
            "cache",
            "Folder that keeps the rows of texts for later commands.",
            str | None,
            makes_rows=True,
            value="FOLDER",
        ),
    )
    home = "diagatt.kinds.text.estimator"
    models = ("TextClassifier", "TextRegressor")
    payload = "text"

    def samples(self, table: Table, column: str) -> tuple[list[str], Sequence[Any]]:
        """Return the texts; their names are their indices."""
        from diagatt.kinds.categories import is_text

        if not is_text(table, column):
            raise ValueError(
                f"{table.name}: column {column!r} holds {table.kind_of(column)} and no texts: name "
                "another column with --text."
            )
        return table.strings(column), [str(i) for i in range(len(table))]

    def transformer(self, X: Any, **settings: Any) -> Any:
        """Return `TextRows` with its defaults."""
        from diagatt.kinds.text.rows import TextRows

        name = settings.get("language_model", "minilm")
        return TextRows(name, cache=settings.get("cache"))

    def model(
        self, classifies: bool, n_samples: int, asked: dict[str, Any], seed: int, **settings: Any
    ) -> Any:
        """Return a `TextClassifier` or `TextRegressor` with the estimator of the preset."""
        from diagatt.kinds.text.estimator import TextClassifier, TextRegressor
        from diagatt.kinds.text.presets import text_estimator
        from diagatt.kinds.text.rows import TextRows

        preset, name = settings["preset"], settings.get("language_model", "minilm")
        estimator = text_estimator(n_samples, diagonal(classifies), preset, **asked)
        for part in [m for _, m, _ in getattr(estimator, "members", [("", estimator, None)])]:
            part.set_params(verbose=True)
        return (TextClassifier if classifies else TextRegressor)(
            text_rows=TextRows(name, layers="joined", cache=settings.get("cache"), verbose=True),
            estimator=estimator,
            random_state=seed,
        )

    def hints(self, inputs: Inputs, **settings: Any) -> list[str]:
        """Say if texts do not look like what the language model has read."""
        from diagatt.kinds.text.words import ENGLISH_MODELS, LEAST_SHARE, english_share

        name, share = settings.get("language_model", "minilm"), english_share(inputs.X)
        if name not in ENGLISH_MODELS or share is None or share >= LEAST_SHARE:
            return []
        return [
            f"these texts do not look English ({100 * share:.0f} % of their words are common "
            f"English ones), and the model {name} has read little else: name another with "
            "--language-model."
        ]

    def places(self, answers: Answers, head: int) -> dict[str, Any]:
        """Return the word of interest, its characters and its weight."""
        weight = super().places(answers, head)
        weight.pop("row")
        words = [w[0] if w else None for w in answers.prepared.located(answers.located[:, [head]])]
        names = ("word", "start", "stop")
        return {name: [getattr(word, name, None) for word in words] for name in names} | weight

    def drawing(self, prepared: Any) -> dict[str, Any]:
        """Return the texts and the characters of every row."""
        spans = [prepared.spans_of(i) for i in range(len(prepared))]
        return {"texts": prepared.texts, "spans": spans}
