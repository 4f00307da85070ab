"""The documentation: its content, and the built site in a browser.

The tests of the built site take the folder in ``SKMC_SITE``. To make it and to run all:

    python -m pip install -c constraints.txt -e ".[docs,test]"
    python -m sphinx -W docs docs/_build
    SKMC_SITE=docs/_build python -m pytest tests/project/test_site.py
"""

from __future__ import annotations

import ast
import functools
import http.server
import importlib
import inspect
import os
import pkgutil
import re
import shlex
import shutil
import sys
import threading
import time
import types
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin

import pytest
from sklearn.base import BaseEstimator

import skmc
from skmc import patterns
from skmc._command.arguments import parse
from skmc.checks import all_completers

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
OURS = [
    path
    for path in (*ROOT.glob("*.md"), *DOCS.rglob("*.md"))
    if not {"_build", "gallery", "generated", "templates"}
    & set(path.relative_to(ROOT).parts)
]
WIDTHS = {"desktop": 1280, "phone": 390}


@pytest.fixture
def extensions(monkeypatch):
    """Makes the modules of docs/_ext importable."""
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    yield
    for path in (DOCS / "_ext").glob("*.py"):
        sys.modules.pop(path.stem, None)


def ids(path):
    return path.relative_to(ROOT).as_posix()


def blocks(path):
    return re.findall(r"```python\n(.*?)```", path.read_text(), re.DOTALL)


RUN = [
    DOCS / "choosing.md",
    DOCS / "evaluate.md",
    DOCS / "extend.md",
    *sorted((DOCS / "guide").glob("*.md")),
]


@pytest.mark.long
@pytest.mark.parametrize("path", [path for path in RUN if blocks(path)], ids=ids)
def test_code_of_a_page_runs(path, capsys):
    # A module, because classes of other places cannot be pickled.
    module = sys.modules["page"] = types.ModuleType("page")
    page, all_printed = vars(module), ""
    shown = r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?"
    number = r"\d+(?:\.\d+)?"
    for code, output in re.findall(shown, path.read_text(), re.DOTALL):
        exec(code, page)
        printed = capsys.readouterr().out
        all_printed += printed
        if output:  # the words literally, the numbers nearly
            assert re.split(number, output) == re.split(number, printed)
            assert [float(n) for n in re.findall(number, output)] == pytest.approx(
                [float(n) for n in re.findall(number, printed)], rel=0.1, abs=0.03
            )
    assert all_printed


@pytest.mark.parametrize("path", OURS, ids=ids)
def test_commands_of_a_page_are_valid(path):
    for block in re.findall(r"```console\n(.*?)```", path.read_text(), re.DOTALL):
        for command in re.findall(r"(?:^|\| )skmc (.*)$", block, re.MULTILINE):
            parse(shlex.split(command))


def test_the_page_of_the_command_has_every_option(extensions):
    options = importlib.import_module("command_options")
    page = options.with_all_options((DOCS / "command.md").read_text())
    for option in ("--ordinal COLUMN=LOW,...,HIGH", "--html"):
        assert option in page
    assert page.count("\n### skmc") == 1 + 4


@pytest.mark.parametrize("path", OURS, ids=ids)
def test_links_of_markdown(path):
    text = re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"https?:|#", target) or target.lstrip("/").startswith(
            ("gallery/", "api/")
        ):
            continue
        assert (path.parent / urldefrag(target).url).exists(), target


@pytest.fixture
def mathml(extensions):
    pytest.importorskip(
        "docutils.utils.math.latex2mathml", reason="docutils comes with the extra docs"
    )
    return importlib.import_module("mathml")


def test_formulas_of_pages_have_mathml(mathml):
    formula = re.compile(r"\$\$(.*?)\$\$|\$([^$]+)\$", re.DOTALL)
    for path in OURS:
        text = re.sub(r"```.*?```|`[^`]*`", "", path.read_text(), flags=re.DOTALL)
        for display, inline in formula.findall(text):
            assert "<math" in mathml.equations(display or inline), path


def prose_of(path):
    """The texts of a file: its strings, and the comments of an example."""
    source = path.read_text()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
    if "examples" in path.parts:
        yield "\n".join(re.findall("^# ?(.*)$", source, re.MULTILINE))


def test_formulas_of_docstrings_have_mathml(mathml):
    block = r"^( *)\.\. math:: *(.*(?:\n(?:\1 +.*| *$))*)"
    for path in [*(ROOT / "skmc").rglob("*.py"), *(ROOT / "examples").rglob("*.py")]:
        for text in prose_of(path):
            for _, formula in re.findall(block, text, re.MULTILINE):
                assert "<math" in mathml.equations(formula), path
            for formula in re.findall(r":math:`([^`]+)`", text):
                assert "<math" in mathml.translated(formula, as_block=False), path


@pytest.mark.parametrize(
    ("latex", "shown"),
    [
        (r"\tfrac12 x", ["<mn>1</mn>", "<mn>2</mn>", "<mi>x</mi>"]),
        (r"a &= b \\ c &= d", ["<mtable", "<mi>d</mi>"]),
        ("a = b\n\nc = d", ["<mi>b</mi>", "<math", "<mi>d</mi>"]),
    ],
)
def test_shorthands_of_formulas(latex, shown, mathml):
    made = mathml.equations(latex)
    places = [made.find(part, 1) for part in shown]
    assert -1 not in places and places == sorted(places), made


@pytest.mark.parametrize("path", sorted((DOCS / "figures").glob("*.py")), ids=ids)
def test_imports_of_figures_exist(path):
    """They run when the site is built, which takes a minute."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module.startswith("skmc"):
            module = importlib.import_module(node.module)
            for alias in node.names:
                assert hasattr(module, alias.name), alias.name
    pages = "\n".join(page.read_text() for page in OURS)
    assert f".. plot:: {path.name}\n   :alt: " in pages


def test_names_of_pages_exist():
    """Every ``skmc.something`` on the pages exists."""
    for path in OURS:
        if path.name == "CHANGELOG.md":
            continue
        for name in re.findall(r"`(skmc(?:\.\w+)+)`", path.read_text()):
            try:
                importlib.import_module(name)
            except ImportError:
                module, _, last = name.rpartition(".")
                assert hasattr(importlib.import_module(module), last), (path, name)


def test_the_reference_has_every_public_name_once(extensions):
    pages = importlib.import_module("api_pages")
    groups = pages.groups()
    rooms = [r.name for r in pkgutil.iter_modules(skmc.__path__) if r.name[0] != "_"]
    public = [
        module
        for module in ("skmc", *(f"skmc.{room}" for room in rooms))
        if hasattr(importlib.import_module(module), "__all__")
    ]
    assert sorted(module for _, module in groups) == sorted(public)
    called = [
        f"{module}.{name}" for (_, module), some in groups.items() for name in some
    ]
    assert len(called) == len(set(called))
    made = pages.pages(groups)
    assert list(made) == called
    assert {f"skmc.{name}" for name in skmc.__all__} <= set(called)
    for name in patterns.__all__:
        assert f".. autofunction:: {name}\n" in made[f"skmc.patterns.{name}"]


def programs(path):
    """Code of a page or an example, as trees."""
    found = blocks(path) if path.suffix == ".md" else [path.read_text()]
    return map(ast.parse, found)


def test_pages_and_examples_use_public_names():
    for path in (*OURS, *ROOT.glob("examples/*/*.py"), *DOCS.glob("figures/*.py")):
        for node in (n for tree in programs(path) for n in ast.walk(tree)):
            called = f"{getattr(node, 'module', None)}."
            if isinstance(node, ast.ImportFrom) and called.startswith("skmc."):
                module = importlib.import_module(node.module)
                for name in (alias.name for alias in node.names):
                    room = isinstance(getattr(module, name), types.ModuleType)
                    assert room or name in module.__all__, f"{path}: {called}{name}"


def test_html_of_estimators_links_to_their_pages(extensions):
    pages = importlib.import_module("api_pages")
    made = pages.pages(pages.groups())
    found = [
        getattr(importlib.import_module(module), name)
        for (_, module), names in pages.groups().items()
        for name in names
    ]
    classes = [
        cls
        for cls in found
        if inspect.isclass(cls)
        and issubclass(cls, BaseEstimator)
        and not inspect.isabstract(cls)
    ]
    rooms = {cls.__module__.split(".")[1] for cls in classes}
    assert {"sensing", "model_selection", "tables", "uncertainty"} <= rooms
    for cls in classes:
        address = object.__new__(cls)._get_doc_link()
        folder, _, page = address.removesuffix(".html").rpartition("/")
        assert folder.endswith("/docs/api") and page in made, address
        assert page.endswith(f".{cls.__name__}")
    mean = skmc.MeanCompleter()
    assert f'href="{mean._get_doc_link()}"' in mean._repr_html_()
    derived = type("Own", (skmc.MeanCompleter,), {"__module__": __name__})
    assert not derived()._get_doc_link()


# ---------------------------------------------------------------- the built site


@pytest.fixture(scope="module")
def site():
    if "SKMC_SITE" not in os.environ:
        pytest.skip("SKMC_SITE names no folder with the built site")
    return Path(os.environ["SKMC_SITE"]).resolve()


def pages_of(site):
    paths = (path.relative_to(site) for path in sorted(site.rglob("*.html")))
    return [path for path in paths if path.parts[0] != "_static"]


class Page(HTMLParser):
    """What a page links to, and what can be linked to in it."""

    def __init__(self, path):
        super().__init__()
        self.targets, self.anchors = [], set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.anchors.update(attrs[name] for name in ("id", "name") if attrs.get(name))
        for name in ("href", "src"):
            if attrs.get(name):
                self.targets.append((tag, attrs[name]))


def test_no_link_is_broken(site):
    pages = {site / path: Page(site / path) for path in pages_of(site)}
    assert len(pages) > 100
    broken = []
    for path, page in pages.items():
        for tag, target in page.targets:
            if re.match(r"[a-z]+:", target):
                if tag in ("script", "link", "img"):
                    broken.append(f"{path.name} loads {target[:80]}")
                continue
            url, anchor = urldefrag(urljoin(path.as_uri(), target))
            there = Path(unquote(url.removeprefix("file://").split("?")[0]))
            there = there / "index.html" if there.is_dir() else there
            if not there.exists() or (
                anchor
                and there in pages
                and unquote(anchor) not in (pages[there].anchors)
            ):
                broken.append(f"{path.name} -> {target}")
    assert not broken, "\n".join(sorted(set(broken))[:30])


def test_tables_are_shown_as_tables(site):
    for path in pages_of(site):
        assert not re.search(r"<p>\s*\|", (site / path).read_text()), path


def test_every_method_has_its_advice():
    page = (DOCS / "choosing.md").read_text()
    for cls in all_completers():
        assert f"\n| `{cls.__name__}`" in page, cls


def test_every_page_of_methods_has_a_figure(site):
    pages = [path for path in (site / "how").glob("*.html") if path.stem != "index"]
    assert len(pages) == len(list((DOCS / "how").glob("*.md"))) - 1
    for path in pages:
        assert any(
            tag == "img" and "_images/" in target for tag, target in Page(path).targets
        ), path.name


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def address(site):
    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    webdriver = pytest.importorskip(
        "selenium.webdriver", reason="selenium comes with the extra docs"
    )
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if not (chromium and driver):
        pytest.skip("Chromium and its driver are not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for argument in (
        "headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run",
        "disable-background-networking", "disable-component-update", "disable-sync",
        f"user-data-dir={tmp_path_factory.mktemp('chromium')}",
    ):  # fmt: skip
        options.add_argument(f"--{argument}")
    service = webdriver.ChromeService(executable_path=driver)
    with webdriver.Chrome(options=options, service=service) as opened:
        opened.set_page_load_timeout(60)
        yield opened


def shown_pages(site):
    """All pages but those of single names, of which there are many alike."""
    skipped = re.compile(r"api/skmc\.(?!AIR|patterns\.random|inverses\.DSVD)|_modules/")
    return [page for page in map(str, pages_of(site)) if not skipped.match(page)]


LOOK = """
const wide = document.documentElement.scrollWidth - window.innerWidth;
const broken = [...document.images].filter(i => i.complete && !i.naturalWidth);
const outside = performance.getEntriesByType("resource").map(e => e.name)
    .filter(n => !n.startsWith(location.origin) && !n.startsWith("data:"));
const flat = [...document.querySelectorAll("math")].filter(m =>
    m.getBoundingClientRect().width === 0 && m.offsetParent !== null);
return {wide, broken: broken.map(i => i.src), outside, flat: flat.length,
        heading: document.querySelector("h1")?.textContent};
"""


BARE = ("search.html", "genindex.html")  # pages without a heading


def whole(browser, page):
    """What a page looks like once it has its heading: a busy machine loads slowly."""
    end = time.monotonic() + 20
    while not (look := browser.execute_script(LOOK))["heading"]:
        if page in BARE or time.monotonic() > end:
            break
        time.sleep(0.1)
    return look


@pytest.mark.parametrize("device", WIDTHS)
def test_pages_in_a_browser(device, site, address, browser):
    size = {"width": WIDTHS[device], "height": 900, "deviceScaleFactor": 1}
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {**size, "mobile": device == "phone"}
    )
    pictures = os.environ.get("SKMC_SCREENSHOTS")
    wrong = []
    for page in shown_pages(site):
        browser.get(address + page)
        look = whole(browser, page)
        logged = [e for e in browser.get_log("browser") if e["level"] == "SEVERE"]
        if look["wide"] > 0:
            wrong.append(f"{page} is {look['wide']} pixels too wide")
        if look["flat"]:
            wrong.append(f"{page} has {look['flat']} formulas that are not shown")
        if not look["heading"] and page not in BARE:
            wrong.append(f"{page} has no heading")
        wrong += [f"{page}: {entry['message']}" for entry in logged]
        wrong += [f"{page} cannot show {source}" for source in look["broken"]]
        wrong += [f"{page} asks elsewhere for {source}" for source in look["outside"]]
        if pictures:
            name = page.removesuffix(".html").replace("/", "-")
            browser.save_screenshot(f"{pictures}/{name}-{device}.png")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("words", ["laplacian", "AIRCompleter", "held-out cells"])
def test_search_finds(words, address, browser):
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get(f"{address}search.html?q={words}")
    found = WebDriverWait(browser, 30).until(
        lambda b: b.find_elements("css selector", "#search-results li a")
    )
    assert found[0].get_attribute("href").startswith(address)
    assert not [e for e in browser.get_log("browser") if e["level"] == "SEVERE"]
