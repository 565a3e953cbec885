"""The printed table of a contest."""

from diagatt.certainty import ContestReport


def line(place, weight=0.0, judged=True):
    """Return a line whose log score falls with its place."""
    return {
        "solver": "gradient",
        "what": f"contestant {place}",
        "log_score": -float(place) if judged else None,
        "se": 0.1,
        "auc": 0.5,
        "weight": weight,
        "vote": weight,
        "seconds": 0.25,
    }


def test_a_long_contest_prints_the_best_and_all_that_have_weight():
    judged = [line(place, weight=0.5 if place in (0, 30) else 0.0) for place in range(40)]
    report = ContestReport([*judged, line(40, judged=False), line(41, judged=False)])
    head, *shown, rest = str(report).splitlines()
    assert [text.split("  ")[1].strip() for text in shown] == [
        f"contestant {place}" for place in [*range(10), 30]
    ]
    assert rest == "29 more had lower scores; 2 were dropped after the first folds."
    assert head.split()[-2:] == ["weight", "seconds"]
    assert len(report) == 42
    assert [entry["what"] for entry in report][-1] == "contestant 41"


def test_a_short_contest_prints_everything():
    report = ContestReport([line(0, weight=1.0), line(1)])
    assert len(str(report).splitlines()) == 3
    assert "contestant 1" in report._repr_html_()


def test_nothing_to_compare_prints_the_head_alone():
    assert str(ContestReport([])).split() == [
        "solver",
        "what",
        "log",
        "score",
        "±",
        "gap",
        "weight",
        "seconds",
    ]
