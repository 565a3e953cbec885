"""Time and memory of the commands on the UCI comments, and the delay of ``diagatt --help``.

Run ``python -m benchmarks.commands`` on a quiet machine. The comments are found through
``DIAGATT_UCI_SENTIMENT`` or next to the repository; they are written to one CSV file, fitted and
explained as a user would do it, each command in its own process.
"""

import csv
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

SHARED = Path(__file__).parents[2] / "shared" / "data" / "uci_sentiment"


def seconds_of(*command: str, cwd: str | None = None) -> float:
    """Return the wall time of a command, which must succeed."""
    start = time.perf_counter()
    subprocess.run(command, check=True, cwd=cwd, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def reviews(path: Path) -> None:
    """Write all comments to one CSV file."""
    from diagatt.datasets import load_uci_sentiment

    data = load_uci_sentiment(os.environ.get("DIAGATT_UCI_SENTIMENT") or SHARED)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerows([("sentence", "label"), *zip(data.texts, data.y.tolist(), strict=True)])


def main() -> None:
    """Measure, and print each number next to the promised one."""
    diagatt = str(Path(sys.executable).with_name("diagatt"))
    bare = min(seconds_of(sys.executable, "-c", "pass") for _ in range(10))
    answer = min(seconds_of(diagatt, "--help") for _ in range(10))
    table = Table("", "measured", "promised", title=f"{os.cpu_count()} cores")
    table.add_row("diagatt --help, more than python -c pass", f"{answer - bare:.2f} s", "< 0.5 s")
    with tempfile.TemporaryDirectory() as folder:
        reviews(Path(folder) / "reviews.csv")
        columns = ("--text", "sentence", "--target", "label")
        fit = seconds_of(diagatt, "fit", "reviews.csv", *columns, "-o", "m.safetensors", cwd=folder)
        explain = seconds_of(
            *(diagatt, "explain", "m.safetensors", "reviews.csv", "-o", "page.html"), cwd=folder
        )
        size = (Path(folder) / "page.html").stat().st_size / 2**20
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    table.add_row("fit, 3,000 comments", f"{fit:.0f} s", "")
    table.add_row("explain", f"{explain:.0f} s ({size:.1f} MB)", "")
    table.add_row("together", f"{fit + explain:.0f} s", "< 180 s")
    table.add_row("peak memory of a command", f"{peak:.2f} GB", "< 2 GB")
    Console().print(table)


if __name__ == "__main__":
    main()
