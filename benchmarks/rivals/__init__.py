"""What others would use: one adapter per library for `diagatt bench`, and plain PyTorch for speed.

Every class with a `name`, `fit` and `predict` is a method of the bench, see
`diagatt.bench.methods`. Rows arrive standardized on the training part.
"""
