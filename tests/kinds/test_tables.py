"""Tables that spreadsheets wrote for other readers: the message says what to change."""

import datetime
import gzip

import pytest

from diagatt.kinds.categories import refuse_words
from diagatt.kinds.tables import Table

LINES = "who,size\nann,1.5\nbob,2.5\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (LINES.replace(",", ";").encode(), "separated by semicolons: separate them by commas"),
        (LINES.replace(",", "\t").encode(), "separated by tabs"),
        (LINES.replace(",", ";").replace(".", ",").encode(), "separated by semicolons"),
        (LINES.replace(",", "|").encode(), "separated by bars"),
        (gzip.compress(LINES.encode(), mtime=0), "The file is compressed, or a workbook: unpack"),
        (b"PK\x03\x04,;\x00\n1,2\n" + 300 * b"\xff;\x01,", "The file is compressed, or a workb"),
        (LINES.encode("utf-16"), "UTF-16: save it as UTF-8"),
        (LINES.replace("ann", "änn").encode("latin-1"), "t.csv is not written in UTF-8"),
        (LINES.replace("who", "whö").encode("latin-1"), "t.csv is not written in UTF-8"),
    ],
)
def test_what_other_programs_write(content, message, tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        Table.read(path).numbers(["who"])


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("t.csv.gz", "unpack it; give one of .csv"),
        ("t.xlsx", "save the sheet as CSV; give one of"),
        ("t.json", "one object per line, and call it .jsonl; give one of"),
        ("t.txt", "call it .csv if commas"),
        ("t.pkl", "unknown kind of file; give one of"),
    ],
)
def test_files_of_other_programs(name, advice, tmp_path):
    (tmp_path / name).write_text(LINES)
    with pytest.raises(ValueError, match=advice):
        Table.read(tmp_path / name)


def test_endings_may_be_capitals_and_bytes_are_not_shown(tmp_path):
    (tmp_path / "T.CSV").write_text(LINES)
    assert Table.read(tmp_path / "T.CSV").names == ["who", "size"]
    (tmp_path / "t.csv").write_bytes(b"a,b\n1,2\n" + bytes(range(256)) * 4)
    with pytest.raises(ValueError, match="cannot be read") as error:
        Table.read(tmp_path / "t.csv")
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 400 + len(str(tmp_path))


def test_covariates_that_are_dates():
    dates = Table({"born": [datetime.date(1990, 1, 1)]})
    with pytest.raises(ValueError, match="covariate 'born' holds dates or durations: write number"):
        dates.numbers(["born"])


def test_a_table_of_commas_gets_no_hint(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(LINES)
    with pytest.raises(ValueError, match=r"it has who, size\.$"):
        Table.read(path).column("age")


def test_digits_with_underscores_are_words(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("size\n1.5\n2.5\n1_0\n")
    with pytest.raises(ValueError, match=r"line 4: 'size' is '1_0'.* drop the 1 line with words"):
        refuse_words(Table.read(path), "size")


def test_messages_about_wide_tables_are_short():
    table = Table({f"x{i}": [0.0] for i in range(20_000)})
    assert table.names is table.names  # every new list of 20,000 names takes a millisecond
    with pytest.raises(ValueError, match=r"has no column 'y'; it has x0, x1, .* and 19980 others"):
        table.column("y")
