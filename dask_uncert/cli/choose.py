"""The command that chooses a threshold on some zones or patients and reports it on the others."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from dask_uncert.cli import console

if TYPE_CHECKING:
    from dask_uncert.io.paths import AnyPath


ALL = "all"


def _selection(ctx: Any, param: Any, texts: tuple[str, ...]) -> dict[str, list[str]] | str:
    """Return values by column; those of one column that is named several times are put together."""
    if texts == (ALL,) and param.name == "report":
        return ALL
    found: dict[str, list[str]] = {}
    for text in texts:
        column, equals, values = text.partition("=")
        named = [value for value in values.split(",") if value]
        if not (column and equals and named):
            raise click.BadParameter(f"expected COLUMN=VALUE, found {text!r}.", ctx, param)
        found.setdefault(column, []).extend(named)
    return found


def _where(flag: str, text: str, required: bool = False) -> Callable[[Any], Any]:
    help_text = f"{text} Repeatable."
    return click.option(
        flag, multiple=True, callback=_selection, metavar="COLUMN=VALUE", help=help_text, required=required
    )


@click.command("choose")
@console.folder_argument
@_where("--on", "Where to choose, e.g. zone=train or site=A,B.", required=True)
@_where("--report", "Where to report: others by default, or `all`.")
@click.option(
    "--for",
    "goal",
    default="f1",
    metavar="GOAL",
    help="f1, youden, precision, recall, precision=0.9, recall=0.9, coverage=0.9 or missed=0.1.",
)
@click.option("--class", "class_name", help="The class whose decision threshold is chosen.")
@click.option("--uncertainty", help="The measure whose threshold finds wrong decisions, instead of a class.")
@click.option("--replicates", default=1000, help="Number of bootstrap replicates.")
@click.option("--level", default=0.95, help="Confidence level of the intervals.")
@click.option("--seed", default=0, help="Seed of the random draws.")
@console.json_option
def choose_command(
    folder: AnyPath,
    on: dict[str, list[str]],
    report: dict[str, list[str]] | Any,
    goal: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Choose a threshold on some zones, folds or patients and report it on the others.

    FOLDER is the output folder of a scene with zones, or of a cohort. A threshold finds what lies above it: a class by its
    probability, wrong decisions by an uncertainty, or sets of classes (coverage). Reads no pixel.
    """
    from dask_uncert.io.summary_store import load
    from dask_uncert.jobs.cohort.output import is_cohort, load_cases
    from dask_uncert.metrics.choose import choose
    from dask_uncert.summaries.evaluation import Evaluation
    from dask_uncert.summaries.stack import Stack

    result = load_cases(folder) if is_cohort(folder) else load(folder)
    by, _, value = goal.partition("=")
    try:
        wanted = float(value) if value else None
    except ValueError:
        raise click.UsageError(f"--for: {value!r} is not a number; write for example {by}=0.9.") from None
    if not isinstance(result, Evaluation | Stack):
        raise click.UsageError(f"{folder} is not a classification, so it has no such threshold.")
    choice = choose(result, on, by, wanted, report=report or "others", **options)  # type: ignore[arg-type]
    click.echo(json.dumps(choice.to_dict(), indent=1, ensure_ascii=False) if as_json else repr(choice))


COMMANDS = (choose_command,)
