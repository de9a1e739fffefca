"""Pages to test with: written with the figures they show alone, read by a strict parser, opened in a browser."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

from dask_uncert.reports.figures.registry import figure_files, figures
from dask_uncert.reports.page.scene import FIGURES, page_maps, scene_page
from dask_uncert.reports.results.scene import scene_results

VOID = {"meta", "link", "img", "br", "hr", "input", "wbr"}


def write_page(evaluation, path, maps=None, about=None, results=None, statistics=None) -> None:
    """Write the page of an evaluation, drawing no other figures."""
    maps = maps or {}
    results = scene_results(evaluation) if results is None else results
    files = figure_files(figures(evaluation, maps, {*FIGURES, "confusion", *page_maps(maps).values()}), both=False)
    text = scene_page(evaluation, results, maps, about or {}, files, statistics)
    Path(path).write_text(text, encoding="utf-8")


class Page(HTMLParser):
    """A page's tags and text; its nesting is checked."""

    def __init__(self, path) -> None:
        super().__init__()
        self.open, self.tags, self.text = [], [], []
        self.source = Path(path).read_text(encoding="utf-8")
        self.feed(self.source)
        self.close()
        assert self.open == []
        self.ids = [attrs["id"] for _, attrs in self.tags if "id" in attrs]
        assert len(self.ids) == len(set(self.ids))
        links = {attrs["href"][1:] for _, attrs in self.tags if attrs.get("href", "").startswith("#")}
        assert links <= {*self.ids}

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] not in (["script"], ["style"]):
            self.text.append(data)


def resize(browser, width) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
