"""Kinds of input: tables of rows, texts, images, cells, slides, stores.

Each kind is one subclass of `Kind`, which registers itself: it reads its samples, makes their rows
and their estimator, and says what `diagatt predict` writes and what `diagatt explain` draws.
Importing this room imports neither torch nor scikit-learn.
"""

from diagatt.kinds.base import KINDS, Columns, Inputs, Kind, Option
from diagatt.kinds.cells import Cells
from diagatt.kinds.image import Image
from diagatt.kinds.rows import Rows
from diagatt.kinds.slides import Slides
from diagatt.kinds.store import Store
from diagatt.kinds.text import Text

__all__ = [
    "KINDS",
    "Cells",
    "Columns",
    "Image",
    "Inputs",
    "Kind",
    "Option",
    "Rows",
    "Slides",
    "Store",
    "Text",
]
