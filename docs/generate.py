"""Write the reference pages: keys of a job from the JSON Schema, numbers of a result from its schema, public names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import dask_uncert as du
from dask_uncert.formulas.measures import MEASURES, upper_bound

PACKAGE = Path(du.__file__).parent
GROUPS = {
    "Evaluate": "evaluate evaluate_regression Input Evaluation RegressionEvaluation Stack Case zones save load load_cases",
    "Measures of uncertainty": "geometric_uncertainty renyi_entropy tsallis_entropy t_entropy binary_variance max_probability "
    "margin confused_classes homophily_uncertainty class_distances simplex_maximum sample_uncertainty soft_weights",
    "Jobs": "run plan merge report convert export compare submit status submissions wait cancel connect demo init job_schema",
}
CARDS = {
    "geometric": "geometric_uncertainty",
    "homophily": "homophily_uncertainty",
    "renyi": "renyi_entropy",
    "tsallis": "tsallis_entropy",
    "t_entropy": "t_entropy",
    "variance": "binary_variance",
    "max_probability": "max_probability",
    "margin": "margin",
    "confused_classes": "confused_classes",
    "uncertainty": "",
}


def write_references(folder: Path) -> None:
    """Write `job.md`, `results.md` and `names.md` into a folder, each only if it changes."""
    folder.mkdir(exist_ok=True)
    schema = json.loads((PACKAGE / "reports" / "results" / "results.schema.json").read_text(encoding="utf-8"))
    pages = {
        "job.md": _job(json.loads(du.job_schema())),
        "results.md": _results(schema),
        "names.md": _names(),
        "measures.md": _measures(),
    }
    for name, lines in pages.items():
        text = "\n".join(lines) + "\n"
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def _job(schema: Mapping[str, Any]) -> Iterator[str]:
    yield from (
        "# Keys of a job",
        "",
        "`dask-uncert schema KEY` says the same in the terminal. A key in bold must be given.",
        "",
    )
    names = [ref["$ref"].rpartition("/")[2] for ref in schema["oneOf"]]
    kinds = {schema["$defs"][name]["properties"]["kind"]["const"]: name for name in names}
    sections = {f"A job of `kind: {kind}`": name for kind, name in kinds.items()}
    sections |= {f"{name} options": name for name in sorted(schema["$defs"]) if name not in kinds.values()}
    for title, name in sections.items():
        part = schema["$defs"][name]
        yield from (f"({_anchor(name)})=", f"## {title}", "", _text(part.get("description", "")), "")
        if part.get("properties"):
            yield from ("| key | takes | default | meaning |", "|---|---|---|---|")
        for key, value in part.get("properties", {}).items():
            label = f"**`{key}`**" if key in part.get("required", ()) else f"`{key}`"
            default = f"`{json.dumps(value['default'])}`" if value.get("default") not in (None, "") else ""
            yield f"| {label} | {_type(value)} | {default} | {_text(value.get('description', ''))} |"
        if "enum" in part:
            yield ", ".join(f"`{value}`" for value in part["enum"])
        yield ""


def _results(schema: Mapping[str, Any]) -> Iterator[str]:
    yield from (
        "# Numbers of a result",
        "",
        "What `results.json` holds. JSON has no NaN: an undefined number is `null`.",
        "",
    )
    parts = {schema.get("title", "results.json"): schema, **schema.get("$defs", {})}
    for name, part in parts.items():
        yield from (f"(result-{_anchor(name)})=", f"## {name}", "", _text(part.get("description", "")), "")
        rows = [*_leaves(part, "")]
        if rows:
            yield from ("| name | holds | meaning |", "|---|---|---|")
            yield from (f"| `{path}` | {kind} | {text} |" for path, kind, text in rows)
        yield ""


def _leaves(part: Mapping[str, Any], path: str) -> Iterator[tuple[str, str, str]]:
    named = {**part.get("properties", {}), **part.get("patternProperties", {})}
    if isinstance(part.get("additionalProperties"), dict):
        named["NAME"] = part["additionalProperties"]
    for key, value in named.items():
        here = f"{path}/{key}" if path else key
        yield here, _type(value, "result-"), _text(value.get("description", ""))
        yield from _leaves(value, here)


def _type(value: Mapping[str, Any], prefix: str = "") -> str:
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        return f"[{name}](#{prefix}{_anchor(name)})"
    if "const" in value or "enum" in value:
        return " or ".join(f"`{one}`" for one in value.get("enum", [value.get("const")]))
    options = [*value.get("anyOf", ()), *value.get("oneOf", ())]
    if options:
        return " or ".join(dict.fromkeys(_type(one, prefix) for one in options if one.get("type") != "null"))
    kind = value.get("type", "any")
    kind = "/".join(kind) if isinstance(kind, list) else kind
    if kind == "array" and isinstance(value.get("items"), dict):
        return f"list of {_type(value['items'], prefix)}"
    return {"object": "mapping", "array": "list", "string": "text", "number": "number"}.get(kind, kind)


def _measures() -> Iterator[str]:
    yield from (
        "# Measures",
        "",
        "The names that `measures` takes. [The cards](names.md) have formula, range and source.",
        "",
    )
    yield from ("| measure | largest value, 2 classes | 16 classes | card |", "|---|---|---|---|")
    for name, measure in MEASURES.items():
        card = CARDS.get(measure.kind, "sample_uncertainty")
        bounds = " | ".join(f"{upper_bound(measure, classes):.4g}" for classes in (2, 16))
        yield f"| `{name}` | {bounds} | {f'[{card}](names.md#{card})' if card else 'your own array'} |"


def _names() -> Iterator[str]:
    yield from ("# Public names", "", "Everything `import dask_uncert as du` gives, from the docstrings.", "")
    groups = {title: names.split() for title, names in GROUPS.items()}
    others = [name for name in du.__all__ if all(name not in names for names in groups.values())]
    errors = [
        name for name in others if isinstance(getattr(du, name), type) and issubclass(getattr(du, name), Exception)
    ]
    groups |= {"Metrics": [name for name in others if name not in errors], "Errors": errors}
    for title, names in groups.items():
        yield from (f"## {title}", "")
        for name in names:
            value = getattr(du, name)
            kind = "autoexception" if name in errors else "autoclass" if isinstance(value, type) else "autofunction"
            yield from (f"### {name}", "", "```{eval-rst}", f".. {kind}:: dask_uncert.{name}", "```", "")


def _anchor(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower())


def _text(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
