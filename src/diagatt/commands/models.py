"""Models behind the commands: which one a file of samples asks for, and reading any of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from diagatt.commands.inputs import Columns, Inputs

__all__ = ["Choice", "load_model", "new_model", "save_model"]

# Whole numbers with more different values than this are a count, not classes.
MOST_CLASSES = 20
CLASS_FAMILIES = ("bernoulli", "multinomial")


@dataclass(frozen=True)
class Choice:
    """What the user asked for."""

    family: str = "auto"
    heads: int | str = 1
    solver: str = "auto"
    seed: int = 0
    patch: int = 8
    stride: int | None = None
    preset: str = "text"

    def __post_init__(self) -> None:
        """Refuse what a preset does not know or would not heed."""
        if self.preset not in ("text", "keyword"):
            raise ValueError(f"unknown --preset {self.preset!r}: choose text or keyword.")
        defaults = (self.family, self.heads, self.solver) == ("auto", 1, "auto")
        if self.preset == "keyword" and not defaults:
            raise ValueError(
                "--preset keyword fixes heads, family and solver: leave those options out."
            )


def new_model(inputs: Inputs, choice: Choice) -> Any:
    """Return the unfitted model: for classes or numbers, of rows, texts or images."""
    classifies = _classifies(_some_responses(inputs), choice.family)
    from diagatt.estimators import DiagAttClassifier, DiagAttRegressor

    face = DiagAttClassifier if classifies else DiagAttRegressor
    asked: dict[str, Any] = {"n_heads": choice.heads, "family": choice.family}
    if choice.solver != "auto":
        asked["solver"] = choice.solver
    if choice.preset == "keyword" and inputs.kind != "text":
        raise ValueError("--preset keyword is for texts: name their column with --text.")
    if inputs.kind in ("rows", "store"):
        return face(**asked, random_state=choice.seed, verbose=True)
    if inputs.kind == "text":
        from diagatt.text import TextClassifier, TextRegressor, TextRows
        from diagatt.text.presets import text_settings

        estimator = None  # that of the preset
        if choice.preset == "text":
            estimator = face(**{**text_settings(len(inputs)), **asked})
        return (TextClassifier if classifies else TextRegressor)(
            text_rows=TextRows(layers="joined", verbose=True),
            estimator=estimator,
            preset=choice.preset,
            random_state=choice.seed,
        )
    from diagatt.images import ImageClassifier, ImageRegressor

    return (ImageClassifier if classifies else ImageRegressor)(
        (choice.patch, choice.patch),
        choice.stride,
        padding="edge",
        estimator=face(**asked),
        random_state=choice.seed,
    )


def _some_responses(inputs: Inputs) -> np.ndarray:
    """Responses that show their kind: all, or of a store those that differ."""
    if inputs.kind == "store":
        from diagatt.estimators.stored import check_given, stored_classes

        check_given(inputs.X)
        return stored_classes(inputs.X)
    assert inputs.y is not None
    return inputs.y


def _classifies(y: np.ndarray, family: str) -> bool:
    """Words, truth values and few whole numbers are classes, unless a family says otherwise."""
    if family != "auto":
        return family in CLASS_FAMILIES
    if y.dtype.kind in "OUSb":
        return True
    return y.dtype.kind in "iu" and len(np.unique(y)) <= MOST_CLASSES


def save_model(model: Any, path: Path, columns: Columns) -> None:
    """Write the model with the columns it was fitted to, so that they need not be said again."""
    from diagatt import modelfile

    tensors, document = model.to_document()
    modelfile.write(path, tensors, {**document, "columns": columns.asdict()})


def load_model(path: Path) -> tuple[Any, Columns]:
    """Read any model of this library, and the columns it was fitted to."""
    from diagatt import competitors, estimators, images, modelfile, text

    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist.")
    tensors, document = modelfile.read(path)
    name = str(document.get("class"))
    for room in (estimators, competitors, text, images):
        if name in room.__all__ and hasattr(getattr(room, name), "from_document"):
            model = getattr(room, name).from_document(tensors, document, path)
            return model, Columns.fromdict(document.get("columns", {}))
    raise modelfile.ModelFileError(f"{path} holds a {name}, which no command knows.")
