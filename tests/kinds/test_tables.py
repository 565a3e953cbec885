"""Tables that spreadsheets wrote for other readers: the message says what to change."""

import datetime
import gzip

import pyarrow as pa
import pytest
from pyarrow import parquet

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


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl"])
def test_a_cell_may_be_longer_than_the_block_of_a_reader(name, tmp_path):
    long = "x" * 3_000_000
    lines = {"t.csv": f"a,b\nx,1\n{long},2\n", "t.jsonl": f'{{"a": "x"}}\n{{"a": "{long}"}}\n'}
    (tmp_path / name).write_text(lines[name])
    assert Table.read(tmp_path / name).strings("a")[1] == long


def test_ids_that_are_bytes_or_look_like_dates_stay_as_they_are_written(tmp_path):
    parquet.write_table(pa.table({"who": [b"ann", b"bob"]}), tmp_path / "t.parquet")
    assert Table.read(tmp_path / "t.parquet").strings("who") == ["ann", "bob"]
    parquet.write_table(pa.table({"picture": [b"\xff\xfe"]}), tmp_path / "t.parquet")
    assert Table.read(tmp_path / "t.parquet").values("picture") == [b"\xff\xfe"]
    (tmp_path / "t.jsonl").write_text('{"who": "2020-01-02", "a": 1}\n')
    assert Table.read(tmp_path / "t.jsonl", text=("who", "other")).strings("who") == ["2020-01-02"]


def test_ids_that_are_rounded_numbers_are_refused(tmp_path):
    (tmp_path / "t.jsonl").write_text("".join(f'{{"who": {2**63 + i}}}\n' for i in (1, 2)))
    with pytest.raises(ValueError, match="'who' are numbers of float64 beyond 2\\^53"):
        Table.read(tmp_path / "t.jsonl", text=("who",)).labels("who")


def test_covariates_that_are_words_name_the_line():
    with pytest.raises(ValueError, match="line 3: covariate 'age' must be numbers, and this is 'o"):
        Table({"age": ["1", "old"]}).numbers(["age"])


def test_names_of_columns_are_shown_with_the_spaces_around_them():
    with pytest.raises(ValueError, match="no column 'a'; it has ' a', b\\."):
        Table({" a": [1], "b": [2]}).column("a")
    with pytest.raises(ValueError, match="no column 'a'; it has none\\."):
        Table({}).column("a")
