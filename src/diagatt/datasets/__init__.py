"""Data sets to try the library on: real ones by path or checked download, and made ones."""
