"""What the documentation tells people to type."""

import re
import shlex
from pathlib import Path

ROOT = Path(__file__).parent.parent
GUIDE = ROOT / "docs" / "guide"
DOCUMENTED = [
    ROOT / "README.md",
    ROOT / "docs" / "index.md",
    *sorted(GUIDE.glob("*.md")),
]
"""Pages that people read to use the package."""


def code_blocks(text, language):
    """The fenced blocks of a page in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def section(text, heading):
    """A page from one heading to the next of the same level."""
    start = text.index(f"\n{heading}\n")
    level = heading.split()[0]
    end = text.find(f"\n{level} ", start + 1)
    return text[start:] if end < 0 else text[start:end]


def commands(text):
    """Every command of the bash blocks, as a list of words."""
    lines = "".join(code_blocks(text, "bash")).replace("\\\n", " ").splitlines()
    found = [shlex.split(line, comments=True) for line in lines]
    return [words for words in found if words]
