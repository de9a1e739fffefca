"""Names of measures, maps, exclusion reasons and files in reports, and units of measures."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import count

from dask_uncert.formulas.measures import SAMPLE_KINDS, Measure
from dask_uncert.spec.map_names import IN_SET, SET_SIZE

PRETTY = {
    "gini": "Gini",
    "entropy": "Entropy",
    "fisher_rao": "Fisher-Rao",
    "homophily": "Homophily",
    "renyi": "Rényi entropy",
    "tsallis": "Tsallis entropy",
    "t_entropy": "t-entropy",
    "variance": "Binary variance",
    "max_probability": "1 - largest probability",
    "margin": "1 - margin of the two largest",
    "predictive_entropy": "Predictive entropy",
    "expected_entropy": "Expected entropy",
    "mutual_information": "Mutual information",
    "variation_ratio": "Variation ratio",
    "uncertainty": "Predicted uncertainty",
    "correct": "Correct or wrong",
    "predicted": "Predicted class",
    "confused_classes": "Confused classes",
    "nssr": "Normalised squared residual (NSSR)",
    "predicted_probability": "Predicted probability",
}
"""Display names of measures and maps; measures with parameters keep their names."""
_INPUTS = {
    "mask": "mask",
    "reference": "reference",
    "uncertainty": "predicted uncertainty",
    "weight": "weight",
    "samples": "sample",
    "probabilities": "prediction",
    "prediction": "predicted class",
    "mean": "predicted mean",
    "variance": "predicted variance or covariance",
    "zones": "array of zones",
}
_FAULTS = {
    "outside": "the {} does not cover the pixel",
    "missing_chunk": "the chunk of the {} is missing",
    "nodata": "the {} has its no-data value, or is masked",
    "nan": "the {} is NaN",
    "off": "the {} is not a probability vector within the tolerance, and the job excludes such pixels",
}
REASONS = {
    "masked": "excluded by the mask",
    "ignored": "the reference has a code that the job ignores",
    **{f"{name}_{fault}": why.format(of) for name, of in _INPUTS.items() for fault, why in _FAULTS.items()},
    "reference_nodata": "unlabelled: the reference has its no-data value, or is masked",
    "zones_nodata": "in no zone: the array of zones has its no-data value, or is masked",
    "clipped": "probabilities outside [0, 1] by rounding, set to 0 or 1",
    "renormalised": "probabilities whose sum missed 1 by rounding, divided by it",
}
"""Why pixels were excluded or repaired."""


def pretty(name: str) -> str:
    """Return the display name of a measure or map.

    >>> pretty("fisher_rao"), pretty("geometric(fisher-rao, n=1)"), pretty("in_set_0.1_Corn")
    ('Fisher-Rao', 'Geometric (fisher-rao, n=1)', 'Corn in the set at 0.1')
    """
    if name.startswith(SET_SIZE):
        return f"Classes in the set at {name.removeprefix(SET_SIZE)}"
    if name.startswith(IN_SET):
        threshold, _, label = name.removeprefix(IN_SET).partition("_")
        return f"{label} in the set at {threshold}"
    return PRETTY.get(name, name[:1].upper() + name[1:].replace("(", " (", 1))


def unit(measure: Measure) -> str:
    """Return the unit of a measure's values: "nat" for entropies of samples, otherwise "1".

    >>> unit(Measure("gini", "geometric"))
    '1'
    """
    return "nat" if measure.kind in SAMPLE_KINDS and measure.kind != "variation_ratio" else "1"


def file_names(names: Iterable[str]) -> dict[str, str]:
    """Return a safe and unique file name (letters, digits, `.`, `_`, `-`; no extension) for every name.

    Names that would be equal, ignoring case, get `_2`, `_3`, ... in their order.

    >>> file_names(["gini", "geometric(fisher-rao, n=1)", "GINI"])
    {'gini': 'gini', 'geometric(fisher-rao, n=1)': 'geometric_fisher-rao_n_1', 'GINI': 'GINI_2'}
    """
    files: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        stem = re.sub(r"[^A-Za-z0-9._-]+", "_", name).strip("._-")[:100] or "unnamed"
        candidates = (stem if number == 1 else f"{stem}_{number}" for number in count(1))
        files[name] = next(candidate for candidate in candidates if candidate.lower() not in taken)
        taken.add(files[name].lower())
    return files


def axis_name(name: str, most: int = 28) -> str:
    r"""Return a class name on one line, shortened and with `$` escaped, for an axis.

    >>> axis_name("maize, no till", most=8), axis_name("US$")
    ('maize, …', 'US\\$')
    """
    flat = " ".join(name.split())
    return (flat if len(flat) <= most else f"{flat[: most - 1]}…").replace("$", r"\$")


def in_unit(text: str, unit: str) -> str:
    """Return a text of this package with the unit, "pixel" or "voxel", in the place of the word pixel.

    >>> in_unit("Pixels of a pixelated map (pixels)", "voxel")
    'Voxels of a pixelated map (voxels)'
    """
    if unit == "pixel":
        return text
    return re.sub(r"\b([Pp])ixel(s?)\b", lambda word: (unit.title() if word[1] == "P" else unit) + word[2], text)
