"""How the source is built: what a reader of it counts.

``python -m benchmarks.house`` prints constructor parameters, the files that a default fit and a
prediction pass through, decisions that are made by name, and lines and files of the source.
"""

from __future__ import annotations

import cProfile
import inspect
import re
import warnings
from collections.abc import Callable
from pathlib import Path

import diagatt
from diagatt import DiagAttRegressor, simulate
from diagatt.attention.coupling import COUPLINGS
from diagatt.families import FAMILIES
from diagatt.kinds.base import KINDS
from diagatt.scores import SCORE_FORMS
from diagatt.solvers import SOLVERS

SOURCE = Path(diagatt.__file__).parent
# Who may ask by name: the file or folder that owns it.
OWNERS = {
    "family": (FAMILIES, ["families/"]),
    "score form": (SCORE_FORMS, ["scores.py"]),
    "solver": (SOLVERS, ["solvers/"]),
    "coupling": (COUPLINGS, ["attention/coupling.py"]),
    "kind of input": (KINDS, ["kinds/"]),
}
# What is asked by its type: families by their classes, and whether samples lie on a disk.
TYPES = {
    "family": (
        [*(type(known).__name__ for known in FAMILIES.values()), "Times", "Outcomes"],
        ["families/"],
    ),
    "solver": ([kind.__name__ for kind in SOLVERS.values()], ["solvers/"]),
    "memory or disk": (["RowStore", "StoredProblem", "Samples"], ["stores/", "solvers/stored"]),
}
# Readouts and row maps have names that solvers and score forms have, too.
OTHERS = re.compile(r"readout|SHAPES|for \w+ in")
# Why a file that owns nothing asks nevertheless.
REASONS = {
    "estimators/diagonal_problem.py": "fit takes what users have, whose type says where it lies",
    "estimators/containers.py": "predict takes what users have, whose type says where it lies",
    "estimators/survival.py": "a user may name any family, and this estimator is for times",
    "solvers/auto/report.py": "times are scored by concordance, which needs their events",
}


def files_touched(call: Callable[[], object]) -> set[str]:
    """Return the files of the library whose functions run during a call.

    The profiler is written in C, so that a default fit takes seconds; a Python function that is
    called at every call would take minutes.
    """
    profile = cProfile.Profile(subcalls=False, builtins=False)
    profile.runcall(call)
    codes = (entry.code for entry in profile.getstats())
    names = (Path(code.co_filename) for code in codes if not isinstance(code, str))
    return {str(name.relative_to(SOURCE)) for name in names if SOURCE in name.parents}


def decisions_by_name() -> list[str]:
    """Return the lines that ask for the name or type of a thing outside the file that owns it."""
    patterns = []
    for what, (names, homes) in OWNERS.items():
        words = "|".join(re.escape(word) for word in names if word != "auto")
        patterns.append((what, rf"(==|!=|\bin) *\(?\"({words})\"", homes))
    for what, (classes, homes) in TYPES.items():
        words = "|".join(classes)
        patterns.append((what, rf"(?<!assert )isinstance\([^)]*\b({words})\b", homes))
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        name = str(path.relative_to(SOURCE))
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for what, pattern, homes in patterns:
                asks = re.search(pattern, line) and not OTHERS.search(line)
                if asks and not name.startswith(tuple(homes)):
                    found.append(f"{name}:{number} ({what}): {line.strip()}")
    return found


def main() -> None:
    """Print all counts."""
    warnings.simplefilter("ignore")
    for kind in (diagatt.DiagAttRegressor, diagatt.DiagAttClassifier):
        print(
            f"parameters of {kind.__name__}: {len(inspect.signature(kind.__init__).parameters) - 1}"
        )
    data = simulate.regression(600, p=6, d=4, mu=(3,), sigma2=(4,), seed=0)
    samples, model = list(data.X), DiagAttRegressor(random_state=0)
    model.fit(samples, data.y)  # imports are not part of a fit
    fitted = files_touched(lambda: model.fit(samples, data.y))
    print(f"files that a default fit passes through: {len(fitted)}")
    print("  " + ", ".join(sorted(fitted)))
    print(
        f"files that predict passes through: {len(files_touched(lambda: model.predict(samples)))}"
    )
    decisions = decisions_by_name()
    print(f"decisions by name, type or shape outside the owner: {len(decisions)}")
    for line in decisions:
        print(f"  {line}\n    {REASONS.get(line.split(':')[0], 'without a reason')}")
    files = list(SOURCE.rglob("*.py"))
    lines = sum(len(path.read_text().splitlines()) for path in files)
    print(f"source: {lines:,} lines in {len(files)} files")


if __name__ == "__main__":
    main()
