"""Every table and figure of the paper: scenario × method × scoring, cached and resumable."""

from diagatt.studies.catalogue import STUDIES, Study, get_study
from diagatt.studies.comparison import RULES, Cell, compare, matching
from diagatt.studies.published import Published, published
from diagatt.studies.report import write_index, write_report
from diagatt.studies.results import ResultStore
from diagatt.studies.tasks import Task, run_task, run_tasks

__all__ = [
    "RULES",
    "STUDIES",
    "Cell",
    "Published",
    "ResultStore",
    "Study",
    "Task",
    "compare",
    "get_study",
    "matching",
    "published",
    "run_task",
    "run_tasks",
    "write_index",
    "write_report",
]
