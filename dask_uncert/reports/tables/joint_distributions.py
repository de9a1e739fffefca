"""The table of joint distributions of confidence and uncertainty: a row per bin that holds pixels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

ENDS = ("confidence above", "confidence up to", "uncertainty above", "uncertainty up to")


def joint_distributions_table(joints: Mapping[str, Mapping[str, Any]]) -> list[list[Any]]:
    """Return the table, a header first; the lowest bins include 0."""
    rows: list[list[Any]] = [["measure", *ENDS, "correct (pixels)", "wrong (pixels)"]]
    for name, joint in joints.items():
        x, y = joint["confidence_edges"], joint["edges"]
        correct, wrong = np.asarray(joint["correct"]), np.asarray(joint["wrong"])
        for i, j in np.argwhere(correct + wrong).tolist():
            rows.append([name, x[i], x[i + 1], y[j], y[j + 1], int(correct[i, j]), int(wrong[i, j])])
    return rows
