"""YAML and JSON of strangers: plain values, or one line."""

import json
import os

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ecg_gnn.reading import read_json, read_text, read_yaml
from ecg_gnn.system.checks import InputError
from ecg_gnn.system.files import expanded

FEW = settings(max_examples=150, deadline=None)
LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=9)
LEAVES |= st.floats(allow_nan=False, allow_infinity=False)
PLAIN = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)


@FEW
@given(value=PLAIN)
def test_plain_values_come_back(value):
    assert read_json("f", json.dumps(value)) == value
    assert read_yaml("f", yaml.safe_dump(value)) == value


@FEW
@given(text=st.text(max_size=60) | st.text("&*!<>[]{}:,-#|?%@ a1\n\"'", max_size=40))
def test_any_text_is_a_value_or_one_line(text):
    for read in (read_json, read_yaml):
        found = outcome(read, text)
        if isinstance(found, InputError):
            assert str(found).startswith("the file")
        else:
            assert len(repr(found)) < 10_000


def outcome(read, text):
    try:
        return read("the file", text)
    except InputError as error:
        return error


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("&a [*a]", "must have no aliases"),
        ("2001-99-99", "month must be in 1..12"),
        ("!!python/object/apply:os.getcwd []", "could not determine a constructor"),
        ("[" * 5000, "recursion"),
        ("1" * 5000, "4300"),
    ],
)
def test_yaml_is_refused_for_a_reason(text, reason):
    with pytest.raises(InputError, match=rf"^f is not YAML or JSON: (.|\n)*{reason}"):
        read_yaml("f", text)


@pytest.mark.parametrize(
    "text", ["NaN", "[1e999]", "-Infinity", '"\\ud800"', "[" * 90_000, "1 2", "'a'"]
)
def test_json_that_could_not_be_written_again(text):
    with pytest.raises(InputError, match=r"^f: must be JSON \(got \w+Error"):
        read_json("f", text)


def test_texts_are_of_files_within_a_limit(tmp_path):
    (tmp_path / "large").touch()
    os.truncate(tmp_path / "large", 1 << 40)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "bytes").write_bytes(b"\xff")
    for name, said in {
        "large": r"must have at most 268435456 bytes \(got 1099511627776\)",
        "pipe": "a pipe or a device, not a file",
        "bytes": "cannot be read .*utf-8",
        ".": "Is a directory",
        "absent": "No such file",
    }.items():
        with pytest.raises(InputError, match=said):
            read_text(tmp_path / name)


def test_homes(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert expanded("~/x") == tmp_path / "x"
    with pytest.raises(InputError, match=r"~nobody-here/x: must begin with the home"):
        expanded("~nobody-here/x")
