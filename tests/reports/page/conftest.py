"""A browser without network."""

import shutil

import pytest


@pytest.fixture(scope="session")
def driver():
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    from selenium.webdriver.chrome.service import Service

    binary, program = shutil.which("chromium"), shutil.which("chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for option in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "force-device-scale-factor=1",
                   "host-resolver-rules=MAP * ~NOTFOUND", "no-proxy-server"):  # fmt: skip
        options.add_argument(f"--{option}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(program))
    yield driver
    driver.quit()


@pytest.fixture
def browser(driver):
    """The browser; afterwards, checks that it logged no warnings."""
    driver.get_log("browser"), driver.get_log("performance")
    yield driver
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert not [entry for entry in driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
