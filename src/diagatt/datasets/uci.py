"""Sentiment Labelled Sentences (UCI data set 331): the 3,000 comments of the paper's Section 6.

They come as texts, or as bags of word vectors.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from diagatt.datasets.bags import Bags, provides
from diagatt.datasets.splits import text_groups

ENVIRONMENT = "DIAGATT_UCI_SENTIMENT"
# The original files, byte for byte, at a fixed commit; the checksums below verify them.
BASE_URL = (
    "https://raw.githubusercontent.com/Nanofication/TWC-Naive-Bayes/"
    "5bc4715169b40c627e082a27321215a2719a0347/"
)
FILES = {  # path below BASE_URL, and SHA-256
    "amazon": (
        "amazon_cells_labelled.txt",
        "47003fc0a0d4840b00e96e715b6189bad09e7443a3da41c4cbe12ffc79f86ae3",
    ),
    "imdb": (
        "Datasets/imdb_labelled.txt",
        "aef2e49e3da25714d61175e3a6e68eeef74a20a2f914318dc3be9947ea86512d",
    ),
    "yelp": (
        "Datasets/yelp_labelled.txt",
        "c76468b7b5c6e56a0804d728345c5f84aa2142ddb214420f61cc9cfd4c00d2ea",
    ),
}
_LAYER = 5  # of MiniLM; its rows are best for mean pooling, too


@dataclass(frozen=True)
class UCISentiment:
    """Comments and their sentiment.

    Attributes
    ----------
    texts : list of str
    y : int array of shape (n,)
        1 positive, 0 negative.
    source : str array of shape (n,)
        "amazon", "imdb" or "yelp".
    """

    texts: list[str]
    y: np.ndarray
    source: np.ndarray


def load_uci_sentiment(path: Any = None) -> UCISentiment:
    """Read the 3,000 comments on products, films and restaurants (paper, Section 6).

    Some sentences occur twice: split them with `diagatt.datasets.splits.split_texts`, which keeps
    duplicates together.

    Parameters
    ----------
    path : path-like, optional
        Folder with ``amazon_cells_labelled.txt``, ``imdb_labelled.txt`` and
        ``yelp_labelled.txt``; by default the folder named by the environment variable
        ``DIAGATT_UCI_SENTIMENT``, else a download into the user's cache. All files are checked
        against their published contents.

    References
    ----------
    D. Kotzias, M. Denil, N. de Freitas, P. Smyth: From Group to Individual Labels Using Deep
    Features, KDD 2015. CC BY 4.0, https://archive.ics.uci.edu/dataset/331.
    """
    path = path or os.environ.get(ENVIRONMENT)
    texts: list[str] = []
    labels: list[int] = []
    source: list[str] = []
    for name, (remote, sha256) in FILES.items():
        file = Path(remote).name
        content = _local(Path(path) / file, sha256) if path else _download(remote, sha256)
        lines = parse_labelled(content.decode("utf-8"), file)
        texts += [text for text, _ in lines]
        labels += [label for _, label in lines]
        source += [name] * len(lines)
    return UCISentiment(texts, np.array(labels), np.array(source))


def parse_labelled(content: str, file: str = "the file") -> list[tuple[str, int]]:
    r"""Parse lines ``sentence<TAB>label``; only ``\n`` ends a line, only the last tab separates.

    Sentences contain U+0085 and unbalanced quotes, which mislead `str.splitlines` and CSV readers.

    Examples
    --------
    >>> parse_labelled('A "great\x85 film.\t1\nBad.\t0\n')
    [('A "great\x85 film.', 1), ('Bad.', 0)]
    """
    result = []
    for number, line in enumerate(content.split("\n"), start=1):
        if not line:
            continue
        text, tab, label = line.rpartition("\t")
        if not tab or label not in ("0", "1"):
            raise ValueError(
                f"{file}, line {number}: expected 'sentence<TAB>0 or 1', got {line!r}."
            )
        result.append((text, int(label)))
    return result


def _local(path: Path, sha256: str) -> bytes:
    if not path.is_file():
        names = [Path(remote).name for remote, _ in FILES.values()]
        raise FileNotFoundError(
            f"{path} does not exist: pass the folder that contains {names}, or no path to download "
            "them."
        )
    content = path.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise ValueError(
            f"{path} is not the published file (sha256 {found[:12]}…, expected {sha256[:12]}…): "
            "its line ends may have been changed; download it again."
        )
    return content


def _download(remote: str, sha256: str) -> bytes:
    import pooch

    try:
        stored = pooch.retrieve(
            BASE_URL + remote,
            known_hash=f"sha256:{sha256}",
            fname=Path(remote).name,
            path=pooch.os_cache("diagatt"),
        )
    except OSError as error:  # no network, no such page
        raise OSError(
            f"{Path(remote).name} cannot be downloaded ({error}): fetch UCI data set 331 by hand "
            f"and pass its folder as path or in the environment variable {ENVIRONMENT}."
        ) from error
    return Path(stored).read_bytes()


@provides("comments")
def comment_bags(name: str, path: Any = None) -> Bags:
    """Embed the 3,000 comments of `load_uci_sentiment`; equal sentences form a group."""
    import pooch

    from diagatt.kinds.text.rows import TextRows

    data = load_uci_sentiment(path)
    cache = str(Path(pooch.os_cache("diagatt")) / "rows")
    return Bags(
        name,
        TextRows(layers=_LAYER, cache=cache).embed(data.texts).rows,
        data.y,
        "binary",
        groups=text_groups(data.texts),
        description="Comments, a vector of MiniLM per token as rows; positive ones are favourable.",
        licence="CC BY 4.0",
        source="UCI data set 331",
    )
