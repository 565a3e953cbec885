"""The rooms of the house: no import goes upwards, and none goes in a circle."""

import ast
from pathlib import Path

import pytest

import diagatt
from benchmarks.house import REASONS, decisions_by_name

SOURCE = Path(diagatt.__file__).parent

# From the ground up: a module may import from its own room and from the lines above its own.
FLOORS = [
    {
        "files",
        "progress",
        "tables",
        "scoring",
        "resampling",
        "panels",
        "torch_settings",
        "spelling",
        "user_warnings",
    },
    {"modelfile", "distributed", "parameters", "arrays"},
    {"names"},
    {"coerce", "attributes", "arguments"},
    {"ragged", "lifetimes"},
    {"segments", "localization", "selection", "covariates"},
    {"scores", "families", "persistence", "stores", "rowmaps", "encoders", "missing"},
    {"metrics", "attention", "simulate"},
    {"survival_metrics"},
    {"solvers"},
    {"certainty"},
    {"estimators"},
    {"kinds"},
    {"datasets"},
    {"plots", "report"},
    {"validation"},
    # What stands aside: the paper, and the comparison with rivals. The core never imports it.
    {"theory"},
    {"competitors"},
    {"studies"},
    {"bench"},
    {"commands"},
]
# Doors to the house: they re-export what users import.
DOORS = {"__init__", "__main__", "text", "images", "cells", "slides"}


def modules():
    """Every module of the source: dotted name → path."""
    found = {}
    for path in SOURCE.rglob("*.py"):
        parts = ["diagatt", *path.relative_to(SOURCE).with_suffix("").parts]
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def imported(path):
    """Names of our modules that a file imports anywhere: in functions and for types, too."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: write absolute imports"
            names |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
    return {name for name in names if name in MODULES}


def room(module):
    return module.split(".")[1] if "." in module else "__init__"


def floor(module):
    return next(i for i, rooms in enumerate(FLOORS) if room(module) in rooms)


def test_every_module_has_a_room():
    rooms = set().union(*FLOORS) | DOORS
    assert {room(module) for module in MODULES} <= rooms


@pytest.mark.parametrize("module", sorted(m for m in MODULES if room(m) not in DOORS))
def test_nobody_imports_upwards(module):
    for name in sorted(imported(MODULES[module])):
        if name == "diagatt" or room(name) == room(module):
            continue
        assert room(name) not in DOORS, f"{module} imports {name}, a door for users"
        assert floor(name) < floor(module), f"{module} imports {name}, which stands above it"


def test_no_import_goes_in_a_circle():
    graph = {m: imported(path) - {m, "diagatt"} for m, path in MODULES.items()}
    # A package's own names come from its modules; importing one of those is no circle.
    for module, names in graph.items():
        graph[module] = {n for n in names if not module.startswith(f"{n}.")}
    done, path = set(), []

    def visit(module):
        if module in done:
            return
        assert module not in path, " → ".join([*path[path.index(module) :], module])
        path.append(module)
        for name in sorted(graph[module]):
            visit(name)
        done.add(path.pop())

    for module in graph:
        visit(module)


def test_whoever_asks_for_a_name_or_a_type_has_a_reason():
    found = decisions_by_name()
    assert [line for line in found if line.split(":")[0] not in REASONS] == []
    assert len(found) <= 5
