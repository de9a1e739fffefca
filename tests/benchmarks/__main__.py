"""All benchmarks: `python -m tests.benchmarks`. Prints and saves ratios; seconds mean nothing on another machine.

Two pieces of work are compared by turns, each time in a fresh process, and the median of the turns' ratios is shown:
of the time, and of the processors' time, which other users of the machine disturb less. `--counts` checks numbers of
tasks, reads and bytes instead, in under a minute; `--long` compares large data with small.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import psutil

from tests.benchmarks import counts, work

Side = tuple[str, dict[str, Any]]


class Pair(NamedTuple):
    """Two pieces of work, a goal for the ratio of their times, and a factor on it, such as that of their sizes."""

    group: str
    what: str
    first: Side
    second: Side | float
    goal: str = ""
    factor: float = 1.0


class Ran(NamedTuple):
    """Seconds, processor seconds, and the most bytes that the process and its children held."""

    seconds: float
    processor: float
    memory: int


def pairs(side: int, cases: int, chunks: int) -> list[Pair]:
    """Return everything that is compared."""
    warm = {"warm": {"side": 512}}
    small = min(side, 1024)

    def cube(name: str, /, **options: Any) -> Side:
        return name, {"side": side, **warm, **options}

    def large(name: str, /, **options: Any) -> Side:  # pixels of one probability are small
        return cube(name, **options | {"side": 2 * side})

    def one_core(name: str, /, **options: Any) -> Side:
        return name, {"side": small, "workers": 1, **warm, **options}

    full, soft = "full set, 16 classes", "binary, p c u"
    found = []
    for codec, goals in (("zstd", ("at most 2.0", "at most 2.0")), ("lz4", ("at most 3.2", ""))):
        read, read_binary = cube("reading", codec=codec), large("reading", codec=codec, kind="binary")
        found += [
            Pair("reading", f"{full}, {codec}: ours against reading", cube("ours", codec=codec), read, goals[0]),
            Pair("reading", f"{soft}, joint histogram, {codec}: ours against reading", large("binary", codec=codec), read_binary, goals[1]),
        ]  # fmt: skip
    found += [
        Pair("maps", f"{full}, four maps: ours against reading and writing them", cube("ours", maps=True), cube("reading", maps=True), "at most 2.0"),
        Pair("reading", f"{soft}: one direct setting against the joint histogram", large("binary", soft="direct"), large("binary"), "at most 1"),
        Pair("kernels", f"{full}, one core: plain NumPy against ours", one_core("in_memory", form="numpy"), one_core("in_memory", form="ours"), "at least 4"),
        Pair("kernels", f"{full}, one core: the papers' formulas against ours", one_core("in_memory", form="published"), one_core("in_memory", form="ours"), "at least 15"),
        Pair("kernels", f"{full}: dask arrays against ours", ("in_memory", {"side": small, "form": "dask", **warm}), ("ours", {"side": small, **warm})),
        Pair("kernels", "100 settings of soft confusion: the papers' formulas against ours", one_core("settings", form="published"), one_core("settings", form="ours")),
    ]  # fmt: skip
    for name in ("scikit-learn", "torchmetrics", "MONAI", "xskillscore", "scores"):
        theirs, own = one_core("peer", name=name), one_core("peer", name=f"ours {name}")
        found.append(Pair("peers", f"what {name} has, one core: {name} against ours", theirs, own, "at least 4"))
    half = {"side": side // 2, **warm}
    found += [
        Pair("scaling", f"{full}: time per pixel of {side}² against {side // 2}²", cube("ours"), ("ours", half), "0.9 to 1.1", 0.25),
        Pair("scaling", f"{full}: 1 worker against 2", cube("ours", workers=1), cube("ours", workers=2), "at least 1.8"),
        Pair("cluster", f"{full}, simulated: share of time that 256 workers are busy; as proc., that the scheduler is", ("simulated", {"side": 125 * side, "size": 256}), 1.0, "at least 0.85"),
        Pair("fixed", f"plan a store of {2 * (chunks // 64) ** 2:,} chunks, first block: share of 10 s", ("planned", {"side": chunks, "warm": {"side": 640}}), 10.0, "at most 1"),
        Pair("fixed", f"cohort of {cases:,} small cases: the job against evaluating arrays", ("cohort", {"cases": cases, "form": "job", "warm": {"cases": 20}}), ("cohort", {"cases": cases, "form": "plain", "warm": {"cases": 20}})),
        Pair("fixed", "import: share of .1 s", ("command", {"words": ["python", "-c", "import dask_uncert"]}), 0.1, "at most 1"),
        Pair("fixed", "--help: share of .3 s", ("command", {"words": ["--help"]}), 0.3, "at most 1"),
        Pair("fixed", "small job (Indian Pines) to its page: share of 5 s", ("command", {"words": ["run", "workflows/hyperspectral_scene.yaml", "--quiet", "--out", "{folder}/out"]}), 5.0, "at most 1"),
        Pair("plan", f"{full}: the plan's time against the pass", cube("estimated", form="estimate classes"), cube("estimated", form="pass classes"), "0.67 to 1.5"),
        Pair("plan", f"{soft}: the plan's time against the pass", cube("estimated", form="estimate binary"), cube("estimated", form="pass binary"), "0.67 to 1.5"),
    ]  # fmt: skip
    return found


def long_pairs(side: int = 2048) -> list[Pair]:
    """Return what needs 25 GB of disk for its cubes: memory up to 16 GB of data, time up to 10^9 pixels."""
    warm = {"warm": {"side": 512}}
    small, large = (("memory", {"side": n * side, **warm}) for n in (2, 8))
    few, many = (
        ("binary", {"side": n * side // 2, "kind": "half", "warm": {"side": 512, "kind": "half"}}) for n in (3, 32)
    )
    return [
        Pair("long", "full set, 16 classes: memory for 16 GB of data against 1 GB", large, small, "0.9 to 1.1"),
        Pair("long", "full set, 16 classes: memory for 16 GB of data: share of 1 GB", large, 1.0, "at most 1"),
        Pair("long", "binary float16, p c u: time per pixel of 10^9 against 10^7", many, few, "0.9 to 1.1", (3 / 32) ** 2),
    ]  # fmt: skip


def run(name: str, options: dict[str, Any]) -> Ran | str:
    """Run a piece of work in a fresh process; return the missing library instead if it needs one."""
    line = [sys.executable, "-m", "tests.benchmarks.work", name, json.dumps(options)]
    process = psutil.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    most, over = [0], threading.Event()

    def watch() -> None:
        while not over.wait(0.05):
            total = 0
            for one in [process, *process.children(recursive=True)] if process.is_running() else []:
                try:
                    total += one.memory_info().rss
                except psutil.Error:
                    continue
            most[0] = max(most[0], total)

    def safely() -> None:
        while not over.is_set():
            try:
                watch()
            except psutil.Error:
                time.sleep(0.05)

    watcher = threading.Thread(target=safely)
    watcher.start()
    out, said = process.communicate()
    over.set()
    watcher.join()
    if process.returncode == work.MISSING:
        return str(out).strip()
    if process.returncode:
        raise SystemExit(f"{name} {options} failed:\n{said[-2000:]}")
    found = json.loads(str(out).splitlines()[-1])
    return Ran(found["seconds"], found["processor"], most[0])


def compare(pair: Pair, turns: int) -> dict[str, Any]:
    """Return the median ratios of a pair as a row of the table."""
    rows: list[tuple[float, float]] = []
    memory = [0, 0]
    for turn in range(turns):
        order = [pair.first, pair.second] if turn % 2 == 0 else [pair.second, pair.first]
        ran = {}
        for side in order:
            if isinstance(side, float):
                continue
            result = run(*side)
            if isinstance(result, str):
                return {"group": pair.group, "what": pair.what, "skipped": f"{result} is not installed"}
            ran[id(side)] = result
        first = ran[id(pair.first)]
        second = Ran(pair.second, pair.second, 0) if isinstance(pair.second, float) else ran[id(pair.second)]
        rows.append((pair.factor * first.seconds / second.seconds, pair.factor * first.processor / second.processor))
        memory = [max(memory[0], first.memory), max(memory[1], second.memory)]
    times, processors = zip(*rows, strict=True)
    return {
        "group": pair.group,
        "what": pair.what,
        "ratio": median(times),
        "lowest": min(times),
        "highest": max(times),
        "of processor time": median(processors),
        "memory MiB": [round(n / 2**20) for n in memory],
        "goal": pair.goal,
    }


def table(rows: list[dict[str, Any]]) -> str:
    """Return the rows as text."""
    wide = max(len(row["what"]) for row in rows)
    head = f"{'':{wide}}  {'ratio':>7} {'lowest':>7} {'highest':>7} {'proc.':>7}  {'memory, MiB':>14}  goal"
    lines = [head]
    for row in rows:
        if "skipped" in row:
            lines.append(f"{row['what']:{wide}}  skipped: {row['skipped']}")
            continue
        numbers = " ".join(f"{row[name]:7.3g}" for name in ("ratio", "lowest", "highest", "of processor time"))
        memory = " / ".join(str(n) for n in row["memory MiB"] if n)
        lines.append(f"{row['what']:{wide}}  {numbers}  {memory:>14}  {row['goal']}")
    return "\n".join(lines)


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument(
        "--counts", action="store_true", help="check numbers of tasks, reads and bytes instead of times"
    )
    parser.add_argument("--side", type=int, default=2048, help="pixels along a side of the cubes, a multiple of 1024")
    parser.add_argument("--pairs", type=int, default=5, help="turns of each pair")
    parser.add_argument("--cases", type=int, default=10_000, help="cases of the cohort")
    parser.add_argument(
        "--chunks-side", type=int, default=44_800, help="pixels along a side of the store in many chunks"
    )
    parser.add_argument(
        "--only",
        default="",
        help="a group (reading, maps, kernels, peers, scaling, cluster, fixed, plan) or a part of a line",
    )
    parser.add_argument("--save", type=Path, default=Path("benchmarks.json"), help="file for the ratios")
    parser.add_argument("--long", action="store_true", help="compare 1 GB with 16 GB and 10^7 with 10^9 pixels instead")
    options = parser.parse_args()
    if options.counts:
        counts.main()
        return
    rows: list[dict[str, Any]] = []
    compared = long_pairs(options.side) if options.long else pairs(options.side, options.cases, options.chunks_side)
    chosen = [pair for pair in compared if options.only in (pair.group, "") or options.only in pair.what]
    if not chosen:
        parser.error(f"--only {options.only}: there is no such group, and no line holds it")
    for pair in chosen:
        rows.append(compare(pair, options.pairs))
        print(f"{rows[-1]['what']}: {rows[-1].get('ratio', rows[-1].get('skipped'))}", file=sys.stderr)
    print(table(rows))
    options.save.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
