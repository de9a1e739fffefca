"""Parts of docstrings that several public functions share."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

Documented = TypeVar("Documented", bound=Callable[..., Any])
SHARED = {
    "evaluation": """evaluation : Evaluation
    Evaluation of a scene, or the sum of several.""",
    "class name": """class_name : str
    Name of a class in the class table.""",
    "unknown class": """InputError
    If there is no such class; the message names those there are.""",
    "regression": """evaluation : RegressionEvaluation
    Evaluation of a regression, or the sum of several.""",
    "measure": """measure : str
    Name of an evaluated measure, such as ``"gini"``.""",
    "outcome": """outcome : {"all", "correct", "wrong"}, default "all"
    Which decisions take part.""",
    "probabilities": """probabilities : array_like
    Probability vectors (..., C, ...), C >= 2 classes along `axis`, any real dtype; numpy, dask or xarray.""",
    "axis": """axis : int or str, default -1
    Class axis: a number, or the name of a dimension.""",
    "uncertainty": """array
    The shape of the input without `axis`; float32 for float32 and float16, otherwise float64. Range
    [0, 1]; 0 is best (certain). NaN where p has a NaN.""",
    "bound": """bound : bool, default False
    Whether to return the bounds as well: values of one bin are ties, and their true order is unknown.""",
    "calibration error": """float
    In [0, 1], best 0; NaN where no pixel is counted.""",
    "unknown measure": """KeyError
    If the measure was not evaluated; the message names those that were.""",
    "entropies of [C23]": "[C23] table VII.",
    "case names": """names : iterable of str
    Names of cases.""",
    "no such case": """InputError
    If there is no case of a name.""",
    "array path": """path : str
    Path of the array, a key of `layout`.""",
    "no such array": """KeyError
    If there is no such array, or an array without such a dimension.""",
    "group column": """column : str
    Name of a grouping column; `by` takes "patient", too.""",
    "stack": """Stack
    Of the same frame; counts are copied only where they are added.""",
    "sum": """Evaluation
    Their counts, exact.""",
    "submitted output": """output : str or path
    The job's output folder, as `submit` returned it.""",
    "last status": """JobStatus
    The status at the end.""",
    "never submitted": """InputError
    If no job was submitted for this output.""",
    "three pixels": """>>> import dask_uncert as du
>>> evaluation = du.evaluate([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], [0, 1, 1])""",
}


def shared_sections(documented: Documented) -> Documented:
    """Fill in the shared parts of a function's docstring, or of those of a class and its methods.

    ``{Parameters: evaluation, measure}`` on a line becomes that section with these entries; ``{axis}`` an entry.
    """

    def text(line: re.Match[str]) -> str:
        title, names = line.groups()
        heading = [title, "-" * len(title)] if title else []
        return "\n".join([*heading, *(SHARED[name] for name in names.split(", "))])

    members = [*vars(documented).values()] if inspect.isclass(documented) else []
    functions = [getattr(member, "__func__", member) for member in members]  # also of class methods
    for part in (documented, *filter(inspect.isfunction, functions)):
        if part.__doc__:  # python -OO has none
            part.__doc__ = re.sub(r"^\{(?:(\w+): )?(.+)\}$", text, inspect.cleandoc(part.__doc__), flags=re.MULTILINE)
    return documented
