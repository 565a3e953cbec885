"""Packages that carry data, as small as can be, for tests of their readers."""

import numpy as np


def install(folder, name, version, files):
    """Put a distribution with some files into a folder that is on the path."""
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    for path, content in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            target.write_bytes(content)
        else:
            target.write_text(content)
    # Importing the package would be a mistake: its code must not run.
    (folder / name).mkdir(exist_ok=True)
    (folder / name / "__init__.py").write_text("raise RuntimeError('nobody imports me')")


def series(rng, n, low=3, high=5, d=2):
    return [rng.normal(size=(rng.integers(low, high + 1), d)).round(4) for _ in range(n)]


def ts(samples, labels):
    """Text of a .ts file."""
    lines = ["#comment", "@problemName toy", "@data"]
    for sample, label in zip(samples, labels, strict=True):
        channels = [",".join(f"{v:.4f}" for v in column) for column in np.transpose(sample)]
        lines.append(":".join([*channels, label]))
    return "\n".join(lines) + "\n"
