"""The long description of the package: the README, without what it links to here."""

import re
from pathlib import Path

from setuptools import setup

readme = Path("README.md").read_text(encoding="utf-8")
# Pictures, with the paragraph below that explains them.
picture = r"!\[[^]]*\]\((?!https?:)[^)]*\)\n\n.*?\n\n"
readme = re.sub(picture, "", readme, flags=re.DOTALL)
readme = re.sub(r"\[([^]]*)\]\((?!https?:)[^)]*\)", r"\1", readme)
setup(long_description=readme, long_description_content_type="text/markdown")
