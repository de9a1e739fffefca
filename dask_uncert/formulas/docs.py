"""Parts of docstrings that several public functions share."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])
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
    "submitted output": """output : str or path
    The job's output folder, as `submit` returned it.""",
    "last status": """JobStatus
    The status at the end.""",
    "never submitted": """InputError
    If no job was submitted for this output.""",
    "three pixels": """>>> import dask_uncert as du
>>> evaluation = du.evaluate([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], [0, 1, 1])""",
}


def shared_sections(function: AnyFunction) -> AnyFunction:
    """Fill in the shared parts of a docstring.

    ``{Parameters: evaluation, measure}`` on a line becomes that section with these entries; ``{axis}`` an entry.
    """

    def text(line: re.Match[str]) -> str:
        title, names = line.groups()
        heading = [title, "-" * len(title)] if title else []
        return "\n".join([*heading, *(SHARED[name] for name in names.split(", "))])

    if function.__doc__:  # python -OO has none
        lines = inspect.cleandoc(function.__doc__)
        function.__doc__ = re.sub(r"^\{(?:(\w+): )?(.+)\}$", text, lines, flags=re.MULTILINE)
    return function
