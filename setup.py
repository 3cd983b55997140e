"""The long description of the package: an index has the README, but not its links."""

import re
from pathlib import Path

from setuptools import setup

readme = Path("README.md").read_text(encoding="utf-8")
readme = re.sub(r"!\[[^]]*\]\((?!https?:)[^)]*\)\n*", "", readme)  # pictures
readme = re.sub(r"\[([^]]*)\]\((?!https?:)[^)]*\)", r"\1", readme)
setup(long_description=readme, long_description_content_type="text/markdown")
