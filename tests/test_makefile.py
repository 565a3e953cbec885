"""What the two commands install, as make itself would do it in a new folder."""

import re
import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def commands(target, tmp_path):
    """The commands that make would run for a target, without running them."""
    dry = ["make", "--dry-run", "--directory", str(ROOT), f"VENV={tmp_path / 'new'}", target]
    return subprocess.run(dry, capture_output=True, text=True, check=True).stdout


def test_the_demo_installs_the_library_alone(tmp_path):
    demo = commands("demo", tmp_path)
    assert re.search(r"pip install .* -e \.$", demo, re.MULTILINE)
    assert "[dev]" not in demo
    assert "-m diagatt demo\n" in demo


def test_a_test_after_the_demo_installs_the_rest(tmp_path):
    venv = tmp_path / "new"
    venv.mkdir()
    (venv / ".core").touch()  # as the demo leaves it
    asked = commands("test", tmp_path)
    assert '-e ".[dev]"' in asked
    assert "-m venv" not in asked
    assert "pytest" in asked


def test_the_documentation_installs_what_its_examples_read(tmp_path):
    """Without the cells of scanpy an example fails, and with it the build."""
    asked = commands("docs", tmp_path)
    assert '-e ".[docs]"' in asked
    assert "--no-deps scanpy\n" in asked
    assert "[dev]" not in asked
    assert "OMP_NUM_THREADS=1" in asked.partition("sphinx-build")[0].splitlines()[-1]


def test_the_oldest_versions_are_those_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    bounds = dict(re.fullmatch(r"([\w-]+)>=(.+)", d).groups() for d in project["dependencies"])
    text = (ROOT / "constraints-oldest.txt").read_text()
    pins = dict(re.findall(r"^([\w-]+)==(.+)$", text, re.MULTILINE))
    assert set(pins) == set(bounds) - {"torch"}
    for name, pin in pins.items():  # 1.6 allows 1.6.0
        zeros = pin.removeprefix(bounds[name])
        assert pin.startswith(bounds[name]), name
        assert re.fullmatch(r"(\.0)*", zeros), name


def test_python_is_as_new_as_the_readme_says():
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    said = re.search(r"require\s+Python (\d\.\d+) or newer", (ROOT / "README.md").read_text())
    assert wanted == f">={said[1]}"
