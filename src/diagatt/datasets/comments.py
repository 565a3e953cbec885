"""The UCI comments as bags of word vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from diagatt.datasets.bags import Bags, provides
from diagatt.datasets.splits import text_groups
from diagatt.datasets.uci import load_uci_sentiment

_LAYER = 5  # of MiniLM; its rows are best for mean pooling, too


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
