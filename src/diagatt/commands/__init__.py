"""The commands behind `diagatt`: one file each; heavy imports stay inside functions."""
