"""What a good researcher would write without this library; only benchmarks import it."""
