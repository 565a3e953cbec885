"""Limits of a fit: the system enforces them, the reason is kept."""

import os
import subprocess
import sys

import numpy as np

from diagatt.bench.confined import Limits, run_confined


def test_what_is_returned_comes_back():
    found = run_confined(lambda: {"a": np.arange(3), "b": "text"}, Limits())
    assert found["a"].tolist() == [0, 1, 2]
    assert found["b"] == "text"


def test_a_fit_that_takes_too_long_is_stopped_by_the_system():
    def endless():
        while True:
            pass

    assert run_confined(endless, Limits(seconds=1)) == {"failed": "took more than 1 s of CPU time"}


def test_too_much_memory_is_a_reason():
    found = run_confined(lambda: {"n": np.ones(2**29).sum()}, Limits(gigabytes=1))
    assert found == {"failed": "took more than 1 GB of memory"}


def test_errors_and_silent_deaths_are_reasons():
    def raises():
        raise ValueError("two\nlines")

    assert run_confined(raises, Limits()) == {"failed": "ValueError: two lines"}
    assert run_confined(lambda: os._exit(3), Limits())["failed"] == "the process ended with code 3"


def test_nothing_of_the_child_is_seen(capfd):
    def prints():
        print("noise")
        os.write(2, b"more noise")
        return {}

    run_confined(prints, Limits())
    assert capfd.readouterr() == ("", "")


def test_memory_is_that_of_the_call():
    """In a new process: this one may have memory left that earlier tests have freed."""
    script = """
import numpy as np
from diagatt.bench.confined import measured
held, _, megabytes = measured(lambda: np.ones(8 * 2**20))  # 64 MB
print(len(held), megabytes)
"""
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    count, megabytes = done.stdout.split()
    assert int(count) == 8 * 2**20
    assert 60 < float(megabytes) < 200
