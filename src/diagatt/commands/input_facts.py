"""Facts about the input of a command, which are printed before any work is done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from diagatt.commands.messages import counted
from diagatt.kinds import KINDS
from diagatt.tables import percent

if TYPE_CHECKING:
    import numpy as np

    from diagatt.kinds import Inputs

# Whole numbers with more different values than this are a count, not classes.
MAX_CLASSES = 20
SHOWN = 6  # classes or names that are listed before the rest is counted


def facts(inputs: Inputs, classes: bool, family: str = "auto") -> dict[str, str]:
    """Return what the samples, their rows, features, covariates and responses are."""
    said = {"samples": f"{len(inputs):,}{_source(inputs)}"}
    lengths = _lengths(inputs.X)
    if lengths is not None:
        said["rows"] = f"{lengths.sum():,}, {_range(lengths)} per sample"
    elif hasattr(inputs.X, "n_rows"):
        said["rows"] = f"{inputs.X.n_rows:,}"
    count = getattr(inputs.X, "n_features", None)
    if count is not None:
        names = getattr(inputs.X, "feature_names", None)
        said["features"] = str(count) + (f": {some(names)}" if names else "")
    if absent := _missing(inputs.X):
        said["missing"] = absent
    if inputs.columns.covariates:
        said["covariates"] = some(inputs.covariate_names or inputs.columns.covariates)
    elif inputs.covariates is not None:
        said["covariates"] = str(inputs.covariates.shape[1])
    if inputs.groups is not None:
        import numpy as np

        said["groups"] = f"{inputs.columns.groups}: {len(np.unique(inputs.groups))}"
    if inputs.columns.row_weight is not None:
        weights = inputs.X.row_weight
        said["row weights"] = f"{inputs.columns.row_weight}, mean {weights.mean():.4g}"
    if inputs.columns.drop:
        said["not used"] = some(inputs.columns.drop)
    if inputs.y is not None:
        columns = inputs.columns
        name = columns.known.get("time") or columns.target or inputs.kind.target
        said["target"] = f"{name}, {_responses(inputs.y, classes)}"
        if classes and family == "auto" and _are_grades(inputs.y):
            said["target"] += "; as numbers: --family gaussian or poisson, in order: ordinal"
        if family == "auto" and not classes and _are_few_whole(inputs.y):
            two = len(set(inputs.y.tolist())) == 2
            said["target"] += f"; as classes: --family {'bernoulli' if two else 'multinomial'}"
    for role, numbers in inputs.known.items():
        said[role] = f"{inputs.columns.known[role]}, mean {numbers.mean():.4g}"
    return said


def _missing(X: Any) -> str:
    """Say how many entries of rows are missing; nothing if none are, or if rows are not at hand."""
    import numpy as np

    from diagatt.ragged import RaggedRows

    if not isinstance(X, RaggedRows) or X.is_sparse:
        return ""
    missing = np.isnan(X.values)
    count, rows = int(missing.sum()), int(missing.any(axis=1).sum())
    share = percent(count / missing.size)
    return f"{count:,} entries ({share}) in {rows:,} rows" if count else ""


def show(console: Any, title: str, said: dict[str, str]) -> None:
    """Print facts as two columns that wrap inside the second."""
    from rich.table import Table

    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, fact in said.items():
        table.add_row(name, fact)
    console.print(title, markup=False, soft_wrap=True)
    console.print(table, markup=False)


def are_classes(y: np.ndarray, family: str) -> bool:
    """Take words, truth values and few whole numbers as classes, unless a family is given."""
    import numpy as np

    from diagatt.families import Times, get_family

    if y.dtype.names is not None:  # times to an event
        return False
    if y.ndim == 2 and family == "auto":  # several outcomes
        return bool(np.isin(y, (0, 1)).all())
    if family != "auto":
        if isinstance(get_family(family), Times):
            raise ValueError(
                f"--family {family} is for times to an event: name their column with --time."
            )
        classes = get_family(family).classifies
        if not classes and y.dtype.kind in "OUS":
            raise ValueError(
                f"--family {family} is for numbers, and the responses are words, such as {y[0]!s}."
            )
        if classes and y.dtype.kind == "f" and (y != np.round(y)).any():
            broken = y[y != np.round(y)][0]
            raise ValueError(
                f"--family {family} is for classes, and the responses are numbers, such as "
                f"{broken:g}."
            )
        return classes
    return y.dtype.kind in "OUSb" or (y.dtype.kind in "iu" and len(np.unique(y)) <= MAX_CLASSES)


def in_words(inputs: Inputs) -> str:
    """Return how many samples there are of what: "30 samples with 4 to 8 rows of 3 features"."""
    said, lengths = counted(len(inputs)), _lengths(inputs.X)
    if lengths is None:
        return f"{len(inputs)} {inputs.kind.name}s"
    return f"{said} with {_range(lengths)} rows of {inputs.X.n_features} features"


def one_number(y: Any, estimator: Any) -> Any:
    """Return what a sample's response is in a figure: of trials, the share of successes."""
    from diagatt.families import counts_trials
    from diagatt.metrics.numbers import shares

    family = getattr(estimator, "family", "auto")
    return shares(y) if y is not None and counts_trials(family) else y


def _source(inputs: Inputs) -> str:
    own = {option.name for kind in KINDS.values() for option in kind.columns}
    said = [f"by {o} column {c}" for o, c in inputs.columns.asked.items() if o in own]
    others = [f"{o} {c}" for o, c in inputs.columns.asked.items() if o not in own]
    return "".join(f", {part}" for part in (*said, *others))


def _lengths(X: Any) -> Any:
    return X.lengths if hasattr(X, "offsets") else None  # a store would have to be read


def _range(lengths: Any) -> str:
    low, high = int(lengths.min()), int(lengths.max())
    return str(low) if low == high else f"{low} to {high}"


def _responses(y: np.ndarray, classes: bool) -> str:
    import numpy as np

    if y.dtype.names is not None:
        return times(y)
    if y.ndim == 2:
        what = "labels of 0 and 1" if classes else "columns of numbers"
        return f"{y.shape[1]} {what}, means {', '.join(f'{m:.4g}' for m in y.mean(axis=0)[:SHOWN])}"
    if not classes:
        numbers = np.asarray(y, dtype=float)
        return f"numbers from {numbers.min():.4g} to {numbers.max():.4g}, mean {numbers.mean():.4g}"
    labels, counts = np.unique(y, return_counts=True)
    listed = some([f"{a} ({k:,})" for a, k in zip(labels.tolist(), counts.tolist(), strict=True)])
    return f"{len(labels)} {'class' if len(labels) == 1 else 'classes'}: {listed}"


def _are_grades(y: np.ndarray) -> bool:
    """Return whether classes are whole numbers, more than two, which may be counts or grades."""
    return y.ndim == 1 and y.dtype.kind in "iu" and len(set(y.tolist())) > 2


def _are_few_whole(y: np.ndarray) -> bool:
    """Return whether numbers are few whole ones with a point, such as 1.0, which may be classes."""
    import numpy as np

    if y.ndim != 1 or y.dtype.kind != "f" or (y != np.round(y)).any():
        return False
    return 2 <= len(np.unique(y)) <= MAX_CLASSES


def times(y: np.ndarray) -> str:
    """Describe times to an event by their range and the count of events."""
    names = y.dtype.names or ()
    if "event" not in names:
        return f"times between {names[-2]} and {names[-1]}, up to {y[names[-2]].max():.4g}"
    ends = y["time" if "time" in names else "stop"]
    return f"times from {ends.min():.4g} to {ends.max():.4g}, {y['event'].sum():,} with the event"


def some(names: Any) -> str:
    """List the first names and count the others."""
    listed = ", ".join(names[:SHOWN])
    return listed if len(names) <= SHOWN else f"{listed} and {len(names) - SHOWN} more"
