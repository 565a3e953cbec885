"""Samples on disk: written by streaming, read in bounded memory, verified."""

from diagatt.stores.part import StoredPart
from diagatt.stores.shard import ShardInfo, StoreError
from diagatt.stores.store import RowStore
from diagatt.stores.writer import RowStoreWriter

__all__ = ["RowStore", "RowStoreWriter", "ShardInfo", "StoreError", "StoredPart"]
