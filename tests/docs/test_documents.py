"""What README and docs show works: code blocks run as a reader runs them, examples too, links lead somewhere."""

from __future__ import annotations

import doctest
import json
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from sybil import Document, Example, Sybil
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser

import dask_uncert as du
from tests.support import ROOT
from tests.support.schedulers import free_port, scheduler

DOCS = ROOT / "docs"
PAGES = [*ROOT.glob("*.md"), *(page for page in DOCS.rglob("*.md") if "generated" not in page.parts)]
WITH_CODE = [page for page in PAGES if re.search(r"^```(python|bash|yaml|text)$", page.read_text("utf-8"), re.M)]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
SAME = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def run_commands(example: Example) -> None:
    """Run a block of commands; set-up commands are run by .ci/run in a fresh environment."""
    lines = re.sub(r"^\S*python3? -m pip install [^&\n]*(&& )?", "", example.parsed, flags=re.M)
    if "pytest" in lines:
        return
    ran = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", lines], capture_output=True, text=True, check=False, timeout=400
    )
    assert ran.returncode == 0, ran.stderr
    example.namespace["output"] = ran.stdout


def compare_output(example: Example) -> None:
    """Compare a block of text with what the last commands printed; `...` stands for anything."""
    got = re.sub(r"\x1b\[[0-9;]*m", "", example.namespace["output"])
    assert doctest.OutputChecker().check_output(example.parsed, got, SAME), got


def read_job(example: Example) -> None:
    """Write a job that begins with `# NAME.yaml` to that file; of a part of a job, check that each key exists."""
    loaded = yaml.safe_load(example.parsed)
    name = re.match(r"# (\S+\.yaml)\n", example.parsed)
    if name:
        Path(name[1]).write_text(example.parsed, encoding="utf-8")
    else:
        known = {key for part in json.loads(du.job_schema())["$defs"].values() for key in part.get("properties", {})}
        assert {*loaded} <= known


SYBIL = Sybil(
    parsers=[
        PythonCodeBlockParser(doctest_optionflags=SAME),
        CodeBlockParser("bash", run_commands),
        CodeBlockParser("text", compare_output),
        CodeBlockParser("yaml", read_job),
    ]
)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that looks like the top of the repository, where a reader's output harms nothing.

    The cohort has eight cases, and few replicates: tests/jobs/cohort/test_examples.py runs the whole.
    """
    for name in ("examples", "cluster", "tests"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "workflows").mkdir()
    for job in (ROOT / "workflows").iterdir():
        if job.is_file():
            text = job.read_text("utf-8").replace("replicates: 1000", "replicates: 20")
            text = text.replace("../examples/data/lidc_nodules/manifest.csv", "few.csv")
            (tmp_path / "workflows" / job.name).write_text(text, "utf-8")
    nodules = ROOT / "examples" / "data" / "lidc_nodules"
    header, *rows = (nodules / "manifest.csv").read_text("utf-8").splitlines(keepends=True)
    few = re.sub(r"\bnodule\w+\.nii\.gz", lambda name: str(nodules / name[0]), "".join(rows[:32:4]))
    (tmp_path / "workflows" / "few.csv").write_text(header + few, "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.stem)
def test_code_blocks_run(page: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def evaluate() -> None:
        document: Document = SYBIL.parse(page)
        examples = list(document.examples())
        assert examples
        for example in examples:
            example.evaluate()

    if "tcp://10.0.0.5:8786" not in page.read_text("utf-8"):
        evaluate()
        return
    with scheduler(checkout, threads=1) as (address, _):
        text = page.read_text("utf-8").replace("tcp://10.0.0.5:8786", address)
        page = checkout / page.name
        page.write_text(text, encoding="utf-8")
        evaluate()


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("script", EXAMPLES, ids=lambda script: script.stem)
def test_examples_run(script: Path, checkout: Path) -> None:
    environment = {**os.environ, "MPLBACKEND": "agg"}
    ran = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout


@pytest.mark.slow
def test_the_script_that_submits_shows_its_page(checkout: Path) -> None:
    words = ["bash", "workflows/submit.sh"]
    environment = {**os.environ, "PORT": str(free_port()), "DISPLAY": ""}
    ran = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert ran.returncode == 0, ran.stderr
    first, last, page = ran.stdout.splitlines()
    assert first.partition(":")[0] in ("waiting", "running", "done")
    assert last.startswith("done: the result is in")
    results = checkout / "workflows" / "results" / "submitted"
    assert page == f"page: {results}/report.html"
    assert (results / "report.html").exists()
    assert du.load(results).ledger.counted == 9203


def test_table_1_of_a22_comes_from_its_counts(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / "asgharnezhad_table.py"))
    shares = [re.findall(r"\.\d{3}", line) for line in capsys.readouterr().out.splitlines()]
    assert shares == [
        [".833", ".704", ".119", ".710"],
        [".778", ".762", ".194", ".763"],
        [".833", ".776", ".152", ".779"],
    ]


def links(page: Path) -> Iterator[str]:
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.M | re.S)
    yield from re.findall(r"\]\(([^)\s]+)\)", text)


def anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def broken(page: Path) -> Iterator[str]:
    """Links of a page that lead to no file or to no heading; other sites are not asked."""
    for link in links(page):
        target, _, anchor = link.partition("#")
        if "://" in link or "generated/" in link:  # the strict build checks generated pages
            continue
        path = (page.parent / target).resolve() if target else page
        if not path.exists() or (anchor and anchor not in anchors(path)):
            yield link


def test_links_lead_to_files_and_headings(tmp_path: Path) -> None:
    assert {str(page): [*broken(page)] for page in PAGES if [*broken(page)]} == {}
    (tmp_path / "a.md").write_text("# A b\n[x](#a-b) [y](#c) [z](b.md) [w](https://example.org)\n")
    assert [*broken(tmp_path / "a.md")] == ["#c", "b.md"]
