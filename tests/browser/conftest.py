"""A real browser against a real server."""

import shutil

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1440,1000",
)
#: A page that is refused something by its policy says so in these words.
_COMPLAINTS = ("Content Security Policy", "Uncaught", "SyntaxError", "TypeError")


class Browser:
    """Chromium, and what a person does with it."""

    def __init__(self, driver, address):
        self.driver = driver
        self.address = address

    def open(self, path):
        self.driver.get(self.address + path)

    def sign_in(self, name):
        self.open("/login/")
        self.find("#username").send_keys(name)
        self.find("#password").send_keys(name[0])
        self.find("button[type=submit]").click()
        self.until(lambda: self.all("[data-ask]"))
        self.wait_until_loaded()

    def ask(self, text):
        box = self.find("#query")
        box.clear()
        box.send_keys(text)
        box.submit()

    def wait_until_loaded(self):
        """Wait until the page's scripts have run; before that its links and forms work as without them."""
        self.until(lambda: self.run("return document.readyState") == "complete")

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def find(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def shown(self, selector):
        return [element for element in self.all(selector) if element.is_displayed()]

    def until(self, condition):
        return WebDriverWait(self.driver, 10, ignored_exceptions=[Exception]).until(lambda _: condition())

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def resize(self, width, height):
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def scrolls_sideways(self):
        return self.run("return document.documentElement.scrollWidth > document.documentElement.clientWidth")

    def complaints(self):
        lines = [entry["message"] for entry in self.driver.get_log("browser")]
        return [line for line in lines if any(complaint in line for complaint in _COMPLAINTS)]


def _driver(profile, preferences):
    if not (shutil.which("chromium") and shutil.which("chromedriver")):
        pytest.skip("needs chromium and chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in (*_FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.add_experimental_option("prefs", preferences)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))


@pytest.fixture
def start(live_server, world, tmp_path_factory):
    """Return a function that starts a browser; all are closed at the end."""
    drivers = []

    def started(*, javascript=True):
        preferences = {} if javascript else {"profile.managed_default_content_settings.javascript": 2}
        drivers.append(_driver(tmp_path_factory.mktemp("profile"), preferences))
        return Browser(drivers[-1], live_server.url)

    yield started
    for driver in drivers:
        driver.quit()


@pytest.fixture
def browser(start):
    return start()
