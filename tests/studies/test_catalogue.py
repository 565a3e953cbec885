"""Studies by name."""

import pytest

from diagatt.studies import get_study


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="unknown study 'tableX': choose among table1"):
        get_study("tableX")
    with pytest.raises(ValueError, match="has no method 'lasso': choose among grouplasso"):
        get_study("table1").tasks(methods=["lasso"])
