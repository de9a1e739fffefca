"""Helpers that several tests share; `ROOT` is the checkout, `DATA` the folder of small third-party files."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
