"""Tables that spreadsheets wrote for other readers: the message says what to change."""

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
