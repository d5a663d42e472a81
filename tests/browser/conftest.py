"""A headless Chromium, Debian's; without one these tests are skipped, unless they are required."""

from __future__ import annotations

import shutil

import pytest

from tests.demands import demand


@pytest.fixture(scope="session")
def chromium(tmp_path_factory):
    """One browser for all tests; nothing is downloaded."""
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    lacking = browser is None or driver is None
    why = "chromium and chromedriver are not there (Debian: chromium, chromium-driver)"
    demand(why if lacking else None, "STREAMCLUST_REQUIRE_BROWSER")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for one in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
        options.add_argument(one)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('chromium')}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    window = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield window
    window.quit()


@pytest.fixture
def window(chromium):
    """The browser as a desktop of 1280 pixels, with nothing in its log."""
    resize(chromium, 1280)
    chromium.get("about:blank")
    chromium.execute_cdp_cmd("Network.clearBrowserCookies", {})  # of all hosts
    chromium.get_log("browser")
    return chromium


def resize(window, width):
    """Give the page a width in CSS pixels, as a screen of that width does."""
    screen = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
    window.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
