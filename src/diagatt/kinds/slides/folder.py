"""A folder of slide features, as each tool lays it out: which file belongs to which slide."""

from __future__ import annotations

import os
from pathlib import Path

from diagatt.kinds.slides.files import ENDINGS, SlideFile
from diagatt.names import listed

# Where features lie below a folder, by tool; the first pattern that finds some decides.
_PLACES = (
    ".",  # the files themselves: STAMP, plain folders
    "h5_files",  # CLAM
    "pt_files",
    "features*",  # torchmil, TRIDENT within one magnification
    "*/features*",  # TRIDENT
)


class SlideFolder:
    """Files of slide features by the name of the slide.

    Parameters
    ----------
    path : path-like
        The output folder of TRIDENT, CLAM or STAMP, a folder of torchmil with ``features`` and
        ``coords``, or a folder of ``.h5``, ``.pt`` or ``.npy`` files.
    """

    def __init__(self, path: str | os.PathLike) -> None:
        self.path = Path(path)
        if not self.path.is_dir():
            raise FileNotFoundError(f"{self.path} is not a folder of slide features.")
        self.place = _place(self.path)
        ranked = sorted(_files(self.place), key=lambda file: ENDINGS.index(file.suffix))
        self._files = {file.stem: file for file in reversed(ranked)}
        self._coords = _coords_folder(self.place)

    def __len__(self) -> int:
        return len(self._files)

    @property
    def names(self) -> list[str]:
        """Names of the slides, sorted."""
        return sorted(self._files)

    def find(self, slide: str) -> str | None:
        """Return the name of the file of a slide, which tables call with or without its ending."""
        for name in (slide, Path(slide).stem, slide.partition(".")[0]):
            if name in self._files:
                return name
        return None

    def file(self, name: str) -> SlideFile:
        """Return the file of a slide."""
        coords = None if self._coords is None else self._coords / f"{name}.npy"
        return SlideFile.of(self._files[name], coords if coords and coords.exists() else None)


def _files(folder: Path) -> list[Path]:
    return [file for file in folder.iterdir() if file.suffix in ENDINGS and file.is_file()]


def _place(path: Path) -> Path:
    """Return the folder that holds the features."""
    for pattern in _PLACES:
        folders = [path] if pattern == "." else sorted(path.glob(pattern))
        found = [folder for folder in folders if folder.is_dir() and _files(folder)]
        if len(found) > 1:
            shown = [str(folder.relative_to(path)) for folder in found]
            raise ValueError(f"{path} holds several sets of features, {listed(shown)}: name one.")
        if found:
            return found[0]
    raise ValueError(
        f"{path} holds no slide features: there is no {', '.join(ENDINGS)} in it, nor in h5_files, "
        "pt_files or a folder features*."
    )


def _coords_folder(place: Path) -> Path | None:
    """Return the folder of coordinates next to one of arrays, as torchmil lays them out."""
    if not place.name.startswith("features"):
        return None
    folder = place.parent / place.name.replace("features", "coords", 1)
    folder = folder if folder.is_dir() else place.parent / "coords"
    return folder if folder.is_dir() else None
