"""Take the pictures of the page and of the terminal from a real run of the shipped scene.

    python docs/images/take_screenshots.py

Needs Chromium with its driver, and the extra `test`.
"""

import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.text import Text
from selenium import webdriver

ROOT = Path(__file__).parents[2]
JOB = "workflows/hyperspectral_scene.yaml"
HERE = Path(__file__).parent


def terminal_picture(command: str, printed: str) -> str:
    """Return an SVG of a terminal with a command and what it printed, without fonts from the network."""
    console = Console(record=True, width=120, file=io.StringIO())
    console.print(Text(f"$ {command}", style="bold"))
    console.print(Text(printed))
    picture = console.export_svg(title="dask-uncert", unique_id="terminal")
    return re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.S)


def main() -> None:
    """Run the job in a scratch folder, keep what it prints and what a reader of its page sees first."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["run", JOB, "--set", "confidence={size: 16}"]
        command = [sys.executable, "-m", "dask_uncert", *words, "--out", f"{folder}/out"]
        terminal = {**os.environ, "COLUMNS": "120"}
        ran = subprocess.run(command, cwd=ROOT, env=terminal, check=True, stdout=subprocess.PIPE, text=True)
        shown = f"dask-uncert {shlex.join(words)} --out out"
        (HERE / "terminal.svg").write_text(
            terminal_picture(shown, ran.stdout.replace(f"{folder}/", "")), encoding="utf-8"
        )
        browser = webdriver.ChromeOptions()
        for option in ("--headless=new", "--no-sandbox", "--window-size=1280,1000", "--hide-scrollbars"):
            browser.add_argument(option)
        driver = webdriver.Chrome(browser, webdriver.ChromeService(shutil.which("chromedriver")))
        driver.get(f"file://{folder}/out/report.html")
        time.sleep(3)  # the charts draw themselves
        driver.save_screenshot(str(HERE / "page.png"))
        driver.quit()


if __name__ == "__main__":
    main()
