"""Write the splits of the bench's sets, which come with the library.

`python -m benchmarks.bag_splits`. Only sets without stored splits are added: a split that results
were made with never changes.
"""

import json
from pathlib import Path

import diagatt.bench
from diagatt.bench import SETS, load_set
from diagatt.bench.sets import STORED, described


def main() -> None:
    """Add what is missing."""
    path = Path(diagatt.bench.__file__).parent / STORED
    stored = json.loads(path.read_text("utf-8")) if path.exists() else {}
    for name, chosen in SETS.items():
        if name not in stored:
            stored[name] = described(load_set(chosen))
            print(f"{name}: {len(stored[name]['folds'])} × 5 splits")
    path.write_text(json.dumps(stored, indent=0, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
