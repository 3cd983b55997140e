"""Brings what docs/ links to from the folders beside it into the site.

Links are written as they are right in the repository, ``../results/README.md``; here
they are turned to where the file lies in the site. A folder has no page: its link
becomes text.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("benchmarks", "examples", "results")
ENDINGS = {".html", ".ipynb", ".json", ".jsonl", ".md", ".png", ".svg", ".yaml"}
CODE = re.compile(r"(?<!<span></span>)<code>[^<]*-[^<]*</code>")
HYPHENATED = re.compile(r"(?<![^\s>])[^\s<>]*-[^\s<>]{1,30}")
ROW, LONG = re.compile(r"<tr>.*?</tr>", re.DOTALL), re.compile(r"<td>(?=[^<]{30})")
LINK = re.compile(r"\[([^\[\]]*)\]\(([^()#\s:]+)(#[^()\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what lies beside docs/."""
    paths = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")]
    for path in sorted([*paths, ROOT / "CHANGELOG.md"]):
        if path.suffix in ENDINGS:
            name = path.relative_to(ROOT).as_posix()
            files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Turn links that leave a page's own side of docs/, and keep ± with its numbers."""
    folder = Path(str(page.file.abs_src_path)).parent

    def turned(link: re.Match[str]) -> str:
        text, target, anchor = link[1], (folder / link[2]).resolve(), link[3] or ""
        if target.is_dir():
            return text
        if not target.is_relative_to(ROOT) or not target.exists():
            return link[0]
        name = target.relative_to(ROOT).as_posix().removeprefix("docs/")
        start = posixpath.dirname(page.file.src_uri)
        return f"[{text}]({posixpath.relpath(name, start)}{anchor})"

    markdown = LINK.sub(turned, markdown)
    for sign in "±×":  # a mean and its deviation, or a size, stay on one line
        markdown = markdown.replace(f" {sign} ", f"\u00a0{sign}\u00a0")
    return markdown


def on_page_content(html: str, **_: object) -> str:
    """Break no option at its hyphens, and give long cells of wide tables room."""

    def kept(code: re.Match[str]) -> str:
        return HYPHENATED.sub(r'<span class="whole">\g<0></span>', code[0])

    def widened(row: re.Match[str]) -> str:
        wide = row[0].count("<td") >= 6
        return LONG.sub('<td class="long">', row[0]) if wide else row[0]

    return ROW.sub(widened, CODE.sub(kept, html))
