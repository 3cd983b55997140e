"""The page of the command line, written from the verbs themselves when it is built."""

import re
from collections.abc import Iterator
from typing import Any

import typer

from ecg_gnn.cli.verbs import app

PAGE, HERE = "guide/cli.md", "<!-- every verb -->"


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Put every verb's section where the page wants them."""
    if page.file.src_uri != PAGE:
        return markdown
    return markdown.replace(HERE, "\n".join(sections()))


def sections() -> Iterator[str]:
    """Group by group and verb by verb, in the order of ``--help``."""
    commands = typer.main.get_command(app).commands
    for panel in dict.fromkeys(one.rich_help_panel for one in commands.values()):
        yield f"## {panel}\n"
        for name, command in commands.items():
            if command.rich_help_panel == panel:
                yield from _section(f"ecg-gnn {name}", command, "###")


def _section(name: str, command: Any, heading: str) -> Iterator[str]:
    yield f"{heading} {name}\n\n{_text(command.help)}\n"
    inner = getattr(command, "commands", {})
    for each, below in inner.items():
        yield from _section(f"{name} {each}", below, f"{heading}#")
    if not inner:
        usage = command.get_usage(typer.Context(command, info_name=name))
        yield f"```text\n{' '.join(usage.split()[1:])}\n```\n"
        yield from _table(command.params)


def _table(parameters: list[Any]) -> Iterator[str]:
    yield "| option | what it does |\n| --- | --- |"
    for one in parameters:
        flags = " ".join(f"`{flag}`" for flag in (*one.opts, *one.secondary_opts))
        if one.param_type_name == "argument":
            flags = f"`{one.metavar or one.name.upper()}`"
        text = "Required. " * one.required + _text(one.help or "")
        if one.default is not None and not isinstance(one.default, bool):
            text += f" Default: {one.default}."
        yield f"| {flags} | {text} |"
    yield ""


def _text(help: str) -> str:
    """Help text as Markdown, in which these are marks."""
    return re.sub(r"([|<*])", r"\\\1", help)
