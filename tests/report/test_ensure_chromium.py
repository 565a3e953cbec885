"""The script that sees to the browser: installed, or asked for in plain words."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "ensure_chromium.sh"


@pytest.fixture
def run(tmp_path):
    """Run the script where only these commands exist, each printing its text."""

    def run_with(**commands: str) -> subprocess.CompletedProcess:
        for name, text in commands.items():
            path = tmp_path / name
            path.write_text(f"#!/bin/sh\necho {text}\n")
            path.chmod(0o755)
        return subprocess.run(
            ["/bin/sh", SCRIPT], env={"PATH": str(tmp_path)}, capture_output=True, text=True
        )

    return run_with


def test_nothing_to_do_where_both_are_found(run):
    done = run(chromium="", chromedriver="")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_user_who_may_not_install_is_told_what_to_install(run):
    done = run(id="1000")
    assert done.returncode == 1
    assert "apt-get install chromium chromium-driver" in done.stderr


def test_an_installation_that_brought_no_browser_fails(run):
    done = run(**{"id": "0", "apt-get": "done"})
    assert done.returncode == 1
    assert "could not install" in done.stderr
