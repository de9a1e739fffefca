"""Take the pictures of the page and of the terminal from a real run of the shipped scene.

    python docs/images/take_screenshots.py

Needs Chromium with its driver, and the extra `test`.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from selenium import webdriver

ROOT = Path(__file__).parents[2]
JOB = ROOT / "workflows" / "hyperspectral_scene.yaml"


def main() -> None:
    """Run the job in a scratch folder, open its page, keep what a reader sees first."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["--out", f"{folder}/out", "--set", "confidence={size: 16}"]
        subprocess.run([sys.executable, "-m", "dask_uncert", "run", str(JOB), *options], cwd=ROOT, check=True)
        browser = webdriver.ChromeOptions()
        for option in ("--headless=new", "--no-sandbox", "--window-size=1280,1000", "--hide-scrollbars"):
            browser.add_argument(option)
        driver = webdriver.Chrome(browser, webdriver.ChromeService(shutil.which("chromedriver")))
        driver.get(f"file://{folder}/out/report.html")
        time.sleep(3)  # the charts draw themselves
        driver.save_screenshot(str(Path(__file__).with_name("page.png")))
        driver.quit()


if __name__ == "__main__":
    main()
