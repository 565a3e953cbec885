"""Files of slide features: HDF5 of TRIDENT, CLAM and STAMP, tensors of torch, arrays of NumPy.

A `SlideFolder` knows which file belongs to which slide in the layout of each tool.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from diagatt.kinds.hdf5 import open_hdf5
from diagatt.kinds.slides.tensor_file import TensorFile
from diagatt.names import listed

ENDINGS = (".h5", ".hdf5", ".npy", ".pt")  # if a slide has several files, the first of these
_FEATURES, _COORDS = ("features", "feats"), ("coords", "coordinates")
# Where tools note the side of a patch in the units of its coordinates; the best first.
_SIDES = ("patch_size_level0", "tile_size_um", "tile_size", "patch_size")
# Where features lie below a folder, by tool; the first pattern that finds some decides.
_PLACES = (
    ".",  # the files themselves: STAMP, plain folders
    "h5_files",  # CLAM
    "pt_files",
    "features*",  # torchmil, TRIDENT within one magnification
    "*/features*",  # TRIDENT
)


@dataclass(frozen=True)
class SlideFile:
    """A file of patch features.

    Attributes
    ----------
    path : Path
    shape : (n_patches, n_features)
    dtype : dtype
        float16, float32 or float64; bfloat16 is read as float32.
    side : float, or None
        Side of a patch in the units of its coordinates, if the file says so.
    unit : {"px", "um"}
        Unit of the coordinates: pixels of the full resolution, or micrometres (STAMP).
    coords_path : Path, or None
        The file of the coordinates, if it is another one.
    """

    path: Path
    shape: tuple[int, int]
    dtype: np.dtype
    side: float | None = None
    unit: str = "px"
    coords_path: Path | None = None

    @classmethod
    def of(cls, path: Path, coords_path: Path | None = None) -> SlideFile:
        """Look at a file without reading its features."""
        side, unit = None, "px"
        if path.suffix in (".h5", ".hdf5"):
            with open_hdf5(path, "slides") as file:
                found = _dataset(file, _FEATURES, path)
                shape, dtype = found.shape, found.dtype
                side, unit = _side_and_unit(file)
        elif path.suffix == ".npy":
            array = np.load(path, mmap_mode="r", allow_pickle=False)
            shape, dtype = array.shape, array.dtype
        else:
            tensor = TensorFile(path)
            shape, dtype = tensor.shape, tensor.dtype
        shape = shape[1:] if len(shape) == 3 and shape[0] == 1 else shape
        if len(shape) != 2 or 0 in shape or dtype.kind != "f":
            raise ValueError(
                f"{path} holds {dtype} of shape {shape}: features are floats of shape (patches, "
                "features), with at least one patch."
            )
        return cls(path, tuple(shape), np.dtype(dtype), side, unit, coords_path)

    def features(self) -> np.ndarray:
        """Read the features, (n_patches, n_features)."""
        if self.path.suffix in (".h5", ".hdf5"):
            with open_hdf5(self.path, "slides") as file:
                found = _dataset(file, _FEATURES, self.path)[()]
        elif self.path.suffix == ".npy":
            found = np.load(self.path, allow_pickle=False)
        else:
            found = TensorFile(self.path).read()
        return found.reshape(self.shape)

    def coordinates(self) -> np.ndarray | None:
        """Read the left upper corners of the patches, (n_patches, 2); None if there are none."""
        if self.coords_path is not None:
            found = np.load(self.coords_path, allow_pickle=False)
        elif self.path.suffix in (".h5", ".hdf5"):
            with open_hdf5(self.path, "slides") as file:
                name = next((name for name in _COORDS if name in file), None)
                if name is None:
                    return None
                found = file[name][()]
        else:
            return None
        found = found[0] if found.ndim == 3 and found.shape[0] == 1 else found
        if found.shape[0] != self.shape[0] or found.ndim != 2 or found.shape[1] < 2:
            raise ValueError(
                f"{self.coords_path or self.path} has coordinates of shape {found.shape} for "
                f"{self.shape[0]} patches: it must be ({self.shape[0]}, 2)."
            )
        return found[:, :2]

    def patch_side(self, coords: np.ndarray) -> float:
        """Return the side of a patch from the file, or else the smallest step between patches."""
        if self.side is not None:
            return self.side
        steps = [np.diff(np.unique(coords[:, axis])) for axis in (0, 1)]
        steps = [step.min() for step in steps if len(step)]
        return float(min(steps)) if steps else 256.0


def _dataset(file: Any, names: tuple[str, ...], path: Path) -> Any:
    for name in names:
        if name in file:
            return file[name]
    raise ValueError(f"{path} has no dataset {' or '.join(names)}; it has {', '.join(file)}.")


def _side_and_unit(file: Any) -> tuple[float | None, str]:
    name = next((name for name in _COORDS if name in file), None)
    said = {**dict(file.attrs), **({} if name is None else dict(file[name].attrs))}
    unit = said.get("unit", "px")
    unit = unit.decode() if isinstance(unit, bytes) else str(unit)
    sides = [float(said[key]) for key in _SIDES if key in said and np.size(said[key]) == 1]
    return (sides[0] if sides else None), "um" if unit == "um" else "px"


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
