"""The README for package indexes: its relative links lead to the repository."""

import re
from configparser import ConfigParser
from pathlib import Path

from setuptools import setup

config = ConfigParser()
config.read("setup.cfg")
url = config["metadata"]["url"]


def absolute(match: re.Match) -> str:
    image, text, path = match.groups()
    return f"{image}[{text}]({url}/{'raw' if image else 'blob'}/main/{path})"


readme = Path("README.md").read_text(encoding="utf-8")
setup(
    long_description=re.sub(
        r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)]+)\)", absolute, readme
    ),
    long_description_content_type="text/markdown",
)
