"""What the documentation shows is what happens: its examples run, its links lead somewhere."""

import doctest
import importlib
import re
import shlex
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from diagatt.commands import cli
from diagatt.families import FAMILIES
from diagatt.kinds import KINDS
from diagatt.kinds.text import presets
from diagatt.studies import STUDIES

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
# Pages whose examples are complete: every prompt in them is run.
COMPLETE = (
    "get-started.md",
    "extending.md",
    "scikit-learn.md",
    "responses.md",
    "stores.md",
    "scaling.md",
    "cost.md",
    "cells.md",
    "slides.md",
    "sparse.md",
    "what-you-may-believe.md",
)
RUNNABLE = [*(DOCS / name for name in COMPLETE), *sorted(DOCS.glob("tutorials/*.md"))]
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md")), *sorted(DOCS.glob("tutorials/*.md"))]
PUBLIC = (
    *("diagatt", "diagatt.text", "diagatt.images", "diagatt.simulate", "diagatt.studies"),
    *("diagatt.theory", "diagatt.plots", "diagatt.report", "diagatt.metrics", "diagatt.stores"),
    *("diagatt.solvers", "diagatt.cells", "diagatt.slides"),
    *("diagatt.scoring", "diagatt.resampling", "diagatt.encoders"),
)
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BAR = re.compile(r"^.*━.* \d+/[\d?]+ .*\n", re.MULTILINE)  # progress: gone when it is done
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def relative(path):
    return str(path.relative_to(ROOT))


@pytest.fixture
def empty_folder(tmp_path, monkeypatch):
    """Work where nothing is, and take back what the page registers.

    Models of texts average fewer starts than users' do, which nothing that pages show depends on.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setitem(presets._TEXT, "n_restarts", 6)
    before = [(registry, dict(registry)) for registry in (FAMILIES, STUDIES, KINDS)]
    yield tmp_path
    for registry, own in before:
        registry.clear()
        registry.update(own)


def blocks(path):
    """Language, content and first line of every fenced block."""
    text = path.read_text(encoding="utf-8")
    return [(m[1], m[2], text.count("\n", 0, m.start()) + 1) for m in FENCE.finditer(text)]


def run_python(content, names, path, line):
    """Run a block with prompts as a doctest; its names are kept for the next block."""
    test = doctest.DocTestParser().get_doctest(content, {}, relative(path), str(path), line)
    test.globs = names  # the runner would clear a copy
    said = []
    failed = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=said.append, clear_globs=False)
    assert not failed.failed, "".join(said)


def run_commands(content, path, line):
    """Run each ``$ diagatt …`` of a block and compare what it says with what stands below it."""
    for part in re.split(r"^\$ ", content, flags=re.MULTILINE)[1:]:
        command, _, shown = part.replace("\\\n", " ").partition("\n")
        program, *arguments = shlex.split(command)
        where = f"{relative(path)}, block in line {line}: {command}"
        if program == "head":  # the one other program shown: the first lines of a file
            said = "\n".join(Path(arguments[-1]).read_text().splitlines()[: int(arguments[1])])
        else:
            assert program == "diagatt", where
            result = CliRunner().invoke(cli.app, arguments)
            assert result.exit_code == 0, f"{where}\n{result.output}\n{result.exception!r}"
            said = BAR.sub("", result.output)
        if shown.strip():
            same = doctest.OutputChecker().check_output(shown, said + "\n", FLAGS)
            assert same, f"{where}\nshown:\n{shown}\nsaid:\n{said}"


@pytest.mark.parametrize("path", RUNNABLE, ids=relative)
def test_examples_of_a_page_run_as_shown(path, empty_folder):
    names = {"__name__": "__main__"}
    ran = 0
    for language, content, line in blocks(path):
        if language == "pycon":
            run_python(content, names, path, line)
        elif language == "console":
            run_commands(content, path, line)
        ran += language in ("pycon", "console")
    assert ran or path.name == "commands.md"


def test_readme_example_runs(empty_folder, capsys):
    names: dict = {}
    code = [content for language, content, _ in blocks(ROOT / "README.md") if language == "python"]
    assert code
    for content in code:
        exec(compile(content, "README.md", "exec"), names)
    shapes = [names["model"].predict(names["test"].X).shape, names["test"].rows.shape]
    assert shapes == [(500,), (500, 1)]
    assert "BIC" in capsys.readouterr().out


@pytest.mark.parametrize("path", PAGES, ids=relative)
def test_links_lead_to_files(path):
    text = FENCE.sub("", path.read_text(encoding="utf-8"))
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    missing = []
    for target in targets:
        file, _, anchor = target.partition("#")
        if "://" in target:
            continue
        page = path.parent / file if file else path
        # The gallery is made by the build, from the examples.
        source = ROOT / "examples" / Path(file).name.replace(".rst", ".py")
        found = page.exists() or ("gallery/" in file and (source.exists() or "index" in file))
        if not found or (anchor and anchor not in anchors(page)):
            missing.append(target)
    assert not missing


def anchors(page):
    """Names of the headings of a Markdown page, as MyST makes them."""
    headings = re.findall(r"^#{1,3} (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in headings}


@pytest.mark.parametrize("page", ["mathematics.md", "extending.md"])
def test_files_named_on_a_page_exist(page):
    text = (DOCS / page).read_text(encoding="utf-8")
    files = set(re.findall(r"`([\w/]+\.(?:py|csv))`", text))
    assert len(files) > 2
    assert not [
        f for f in files if not ((ROOT / "src/diagatt" / f).exists() or (ROOT / f).exists())
    ]


def test_names_in_the_mathematics_exist():
    """Every ``room.name`` in backticks is a module or a name in one."""
    text = (DOCS / "mathematics.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(diagatt(?:\.\w+)+)`", text))
    assert len(named) > 20
    for name in named:
        assert resolve(name) is not None, name


def resolve(name):
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part, None)
        return found
    return None


@pytest.mark.parametrize("module", PUBLIC)
def test_reference_lists_every_public_name(module):
    text = (DOCS / "api.rst").read_text(encoding="utf-8")
    section = text.split(f"\n{module}\n---")[1].split("\n---")[0]
    listed = set(re.findall(r"^   (\w+)$", section, re.MULTILINE))
    names = importlib.import_module(module).__all__
    elsewhere = {"simulate", "RowStore"} if module == "diagatt" else set()  # own sections
    assert {n for n in names if not n.isupper()} - listed <= elsewhere


def test_every_page_stands_in_the_contents():
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    pages = {str(p.relative_to(DOCS).with_suffix("")) for p in DOCS.rglob("*.md")}
    made = {p for p in pages if p.startswith(("_build", "gallery", "generated"))}
    assert pages - made - {"index"} <= set(text.split())


def test_command_page_names_every_command_and_option():
    text = (DOCS / "tutorials/commands.md").read_text(encoding="utf-8")
    root = typer.main.get_command(cli.app)
    named = set(re.findall(r"`(--?[a-z-]+)", text))
    known = set()
    for name, command in root.commands.items():
        assert f"diagatt {name}" in text
        for part in getattr(command, "commands", {"": command}).values():
            known |= {option for p in part.params for option in p.opts if option.startswith("-")}
    assert named - known - {"--debug", "--help", "--install-completion"} == set()
    assert known - named == set()


@pytest.mark.parametrize(
    ("tex", "mathml"),
    [
        (r"\tfrac12 x", "<mn>1</mn><mn>2</mn></mfrac><mi>x</mi>"),
        (r"\hat j_r", "</mover><mrow></mrow></mrow><mi>r</mi></msub>"),
        ("⟨x⟩ ≥ ½", "<mo>≥</mo><mfrac"),
    ],
)
def test_formulas_become_mathml(tex, mathml, monkeypatch):
    pytest.importorskip("docutils", reason="comes with the extra docs")
    monkeypatch.syspath_prepend(str(DOCS))
    made = importlib.import_module("conf").to_mathml(tex, as_block=False)
    assert mathml in re.sub(r">\s+<", "><", made)


def test_pages_name_no_path_of_a_machine():
    for path in (*PAGES, DOCS / "api.rst", DOCS / "conf.py"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"/(work|home|root|tmp)/", text), path


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_quoted_results_are_those_of_the_studies(page, monkeypatch):
    monkeypatch.syspath_prepend(DOCS)
    quote = importlib.import_module("quote")
    text = page.read_text(encoding="utf-8")
    assert quote.quoted(text) == text, "run `python docs/quote.py`"
    if page.name in ("which-method.md", "text.md"):
        assert quote.QUOTATION.search(text)
