"""Samples on disk: written by streaming, read in bounded memory, verified."""

from diagatt.stores.manifest import ShardInfo, StoreError
from diagatt.stores.parts import StoredPart
from diagatt.stores.reading import RowStore
from diagatt.stores.writing import RowStoreWriter

__all__ = ["RowStore", "RowStoreWriter", "ShardInfo", "StoreError", "StoredPart"]
