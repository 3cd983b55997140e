"""Recipes and settings in YAML that are damaged, wrong, or made to grow."""

import yaml

from malformed.case import Case, cut, overwritten, spoiled
from small_runs import BOARD

RECIPE = {
    "description": "Small.",
    "datasets": [BOARD],
    "models": ["gcn"],
    "variants": ["baseline", "mlp", "identity"],
    "splits": [0, 1],
    "seeds": [0],
    "settings": {"model.hidden": 8, "train.steps": 4},
    "grid": {"evolve.k": [3, 4]},
    "overrides": [{"models": ["gcn"], "settings": {"model.layers": 1}}],
}
SETTINGS = {
    "dataset": "absent.npz",
    "splits": [0],
    "model": {"name": "gcn", "layers": 1, "options": {}},
    "train": {"steps": 3, "lr": 0.01},
    "evolve": {"k": 3},
}
VALID = {"taken": b"mine"}
ABSURD = (None, "x", -1, 2**64, 1e400, True, [], {}, [[]], [None], {"x": 1})
# All of it is looked at before the store is opened, and this is no store.
STUDY = ("study", "run", "recipe.yaml", "--store", "taken", "--device", "cpu")
RUN = ("run", "--config", "run.yaml", "--dataset", "absent.npz", "--out", "out")

TAGS = (
    "!!python/object/apply:os.mkdir [evil]",
    "!!python/name:os.system",
    "!!python/module:os",
    "!!binary '%%%'",
    "!!timestamp x",
    "!!int ''",
    "!!float ''",
    "!!bool x",
    "!!set [1]",
    "!!omap {a: 1}",
    "!own x",
    "2001-99-99",
    "0x",
    "1" * 5000,
    "{[a]: 1}",
    "{{a: b}: 1}",
    "<<: 1",
    "&a [*a]",
    "&a {a: *a}",
    "*nobody",
    "\t- tab",
    "'open",
    "[" * 700,
    "{a: " * 700,
    "%YAML 9.9",
    "--- 1\n--- 2",
    "\x07",
    "\ufffe",
)


def laughs(depth=30):
    """Each line ten times the one before."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for place in range(1, depth):
        many = ", ".join([f"*a{place - 1}"] * 10)
        lines.append(f"a{place}: &a{place} [{many}]")
    return "\n".join(lines)


def recipe_cases():
    """For ``study run``, which must not get as far as its store."""
    for how, text in _texts(RECIPE):
        yield Case(how, STUDY, {"recipe.yaml": text}, passed="'store' 'taken'")
    grid = {f"model.{name}": list(range(1, 2000)) for name in ("hidden", "layers")}
    steps = {"train.steps": list(range(1, 2000))}
    huge = yaml.safe_dump(RECIPE | {"settings": {}, "grid": grid | steps}).encode()
    yield Case("grid of a billion", STUDY, {"recipe.yaml": huge})
    for name in ("none", "none.yaml", "../x.yaml", "taken/x.yaml", "", "."):
        asked = ("study", "run", name, "--store", "taken")
        yield Case(f"recipe {name!r}", asked, passed="'store' 'taken'")


def settings_cases():
    """For ``run --config``."""
    for how, text in _texts(SETTINGS):
        yield Case(how, RUN, {"run.yaml": text}, passed="absent.npz: cannot be read")


def _texts(values):
    whole = yaml.safe_dump(values, allow_unicode=True).encode()
    for where, changed in spoiled(values, ABSURD):
        text = yaml.safe_dump(changed).encode()
        yield " ".join(map(str, where)), text
    yield from cut(whole, 30)
    for new in (b"{", b"\0", b"\xff", b"*", b": "):
        yield from overwritten(whole, 12, new)
    for tag in TAGS:
        yield f"{tag:.20} alone", tag.encode("utf-8", "surrogatepass")
        yield f"{tag:.20} inside", whole + b"settings: " + tag.encode()
        yield f"{tag:.20} as a list", whole + b"splits: [" + tag.encode() + b"]"
    bomb = laughs().encode()
    yield "laughs alone", bomb
    for key in ("datasets", "splits", "settings", "model", "description"):
        yield f"laughs in {key}", bomb + f"\n{key}: *a29\n".encode()
        yield f"laughs in {key} only", bomb.replace(b"a29:", f"{key}:".encode())
    yield "UTF-16", whole.decode().encode("utf-16")
    yield "UTF-16 without a mark", whole.decode().encode("utf-16-le")
