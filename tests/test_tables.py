"""One table in three languages."""

import csv
import re

from diagatt.tables import csv_table, html_table, markdown_table

HEAD, LINES = ["name", "value"], [["a < b", 1.5], ["c, d", 22], ["e", None]]


def test_every_language_has_every_cell():
    assert list(csv.reader(csv_table(HEAD, LINES).splitlines())) == [
        ["name", "value"],
        ["a < b", "1.5"],
        ["c, d", "22"],
        ["e", ""],
    ]
    assert markdown_table(HEAD, LINES).splitlines()[2] == "| a < b | 1.5 |"


def test_html_is_escaped_and_says_what_is_left_out():
    html = html_table("1 < 2", HEAD, LINES, left_out=1200)
    assert html.startswith("<table><caption>1 &lt; 2</caption><thead><tr><th>name</th>")
    assert "<td>a &lt; b</td>" in html
    assert "… and 1,200 more" in html
    assert "\n" not in html


def test_html_with_classes_has_a_line_per_row():
    html = html_table("t", HEAD, LINES[:2], classes=["good", "a&b"])
    rows = [line for line in html.splitlines() if line.startswith("<tr class")]
    assert [re.match(r'<tr class="(.*?)">', row)[1] for row in rows] == ["good", "a&amp;b"]


def test_an_empty_table_is_a_table():
    assert markdown_table(HEAD, []).count("\n") == 1
    assert html_table("t", [], []) == "<table><caption>t</caption><tbody></tbody></table>"
