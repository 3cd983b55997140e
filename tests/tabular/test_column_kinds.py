"""Which kind a column is taken for, as people have them."""

import numpy as np
import pytest

from ecg_gnn.tabular.column_kinds import guess_kind, split_set

RNG = np.random.default_rng(0)


def texts(values):
    return [str(value) for value in values]


def draw(values, size=400, weights=None):
    p = None if weights is None else np.array(weights) / np.sum(weights)
    return texts(RNG.choice(values, size, p=p))


def sets(separator, elements, size=60, most=5):
    return [
        separator.join(RNG.choice(elements, RNG.integers(1, most), replace=False))
        for _ in range(size)
    ]


DORMS = RNG.choice(np.arange(100, 400), 30, replace=False)
TAGS = ["drama", "film noir", "comedy", "action", "sci-fi"]
WORDS = ["red", "old", "new", "round"]
LANGUAGES = ["Dari", "Pashto", "Dutch", "Swiss German", "Sign Language of New Zealand"]
LANGUAGES += [f"Language {i}" for i in range(30)]
SENTENCES = [
    "the old man sat by the sea and waited",
    "nobody knew, of course, what he had seen",
    "a red house; a blue one behind it",
] * 10
KINDS = {
    "age": (texts(RNG.normal(35, 9, 400).astype(int)), "numeric"),
    "rounded age": (
        texts([*5 * RNG.poisson(8, 300), *RNG.normal(40, 12, 700).astype(int)]),
        "numeric",
    ),
    "orders": (texts(RNG.negative_binomial(0.5, 0.05, 400)), "numeric"),
    "views": (texts(RNG.lognormal(6, 2, 400).astype(int)), "numeric"),
    "posts": (texts(RNG.zipf(1.7, 2000)), "numeric"),
    "differences": (
        texts([*(RNG.geometric(0.4, 1500) - 1), *[-9] * 200, *range(-8, 0)]),
        "numeric",
    ),
    "mostly zero": ([*texts(range(1, 200)), *["0"] * 300], "numeric"),
    "hundreds": (texts(100 * RNG.normal(35, 9, 400).astype(int)), "numeric"),
    "gross": (
        texts([*RNG.lognormal(16, 2, 300).astype(int), *list(DORMS) * 4]),
        "numeric",
    ),
    "schools": (texts([*RNG.integers(1, 60_000, 500), *[2028] * 250]), "categorical"),
    "budget": (draw([*(100_000 * DORMS), 1234, 95_117]), "numeric"),
    "round codes": (draw([f"{dorm}00" for dorm in DORMS], 400), "categorical"),
    "measured": (texts(RNG.normal(size=50)), "numeric"),
    "flags": (draw(["True", "False"]), "numeric"),
    "answers": (draw(["yes", "No", ""]), "numeric"),
    "dorm": (draw(DORMS, weights=RNG.exponential(size=30)), "categorical"),
    "zip": (draw(RNG.choice(90_000, 200) + 10_000, 1000), "categorical"),
    "grade": (draw(range(1, 7)), "ordinal"),
    "city": (draw(["Oslo", "Lima", "Pune"]), "categorical"),
    "country": (draw(["no", "se", "dk"]), "categorical"),
    "games": (sets(" ", texts(range(30, 60)), most=9), "set"),
    "tags": (sets("|", TAGS), "set"),
    "semicolons": (sets(";", TAGS), "set"),
    "commas": (sets(", ", TAGS, most=6), "set"),
    "numbered": (sets(",", texts(range(30, 60)), most=9), "set"),
    "few commas": (sets(",", LANGUAGES, 200, most=3), "set"),
    "towns": (draw(["Oslo, Norway", "Lima, Peru", "Rome", "Bonn"]), "categorical"),
    "partly shared": ([f"p{i}" for i in [*range(97), *range(50)]], "categorical"),
    "decimal commas": (draw(["1,5", "2,5", "-3,5", "4"]), "categorical"),
    "postcodes": (draw(["01067", "04109", "10115", "80331"]), "categorical"),
    "calendar": (draw([f"{month:02}" for month in range(1, 13)]), "categorical"),
    "lists": (['["a", "b"]', "[]", "[1, null]", ""], "set"),
    "joined": (["2024-05-01", "2023-12-24", ""], "date"),
    "times": (["2024-05-01T12:00:00Z", "2024-05-01 13:30"], "date"),
    "slashes": (["2024/5/1", "2023/12/24"], "date"),
    "points": (["1.5.2024", "24.12.2023"], "date"),
    "sentences": (SENTENCES, "text"),
    "words": ([" ".join(RNG.choice(WORDS, 4)) for _ in range(60)], "text"),
}


@pytest.mark.parametrize("name", KINDS)
def test_kinds(name):
    column, kind = KINDS[name]
    assert guess_kind(column).kind == kind


@pytest.mark.parametrize(
    ("column", "why"),
    [
        (["", "NA", None], "no values"),
        (["7", "7"], "constant"),
        (["2024-05-01"] * 3, "constant"),
        ([f"person{i}" for i in range(60)], "a different value in nearly every row"),
        ([f"{7 * i:05}" for i in range(60)], "a different value in nearly every row"),
        (
            [f"{i % 9}.5,{i % 4 - 2}" for i in range(60)],
            "two numbers in a cell, to be split into two columns",
        ),
        (texts(range(1, 51)), "the number of the row"),
        (np.arange(50.0), "the number of the row"),
    ],
)
def test_what_tells_nothing(column, why):
    guess = guess_kind(column)
    assert (guess.kind, guess.why) == (None, why)


def test_what_is_decided_is_said():
    column, _ = KINDS["dorm"]
    count = len(set(column))
    assert guess_kind(column).explain("dorm") == (
        f"{count} integer codes, read as categories; --numeric dorm reads them as "
        "numbers"
    )
    assert "; --numeric 'my dorm' reads" in guess_kind(column).explain("my dorm")


@pytest.mark.parametrize(
    ("text", "separator", "elements"),
    [
        ("12 55  12", " ", ["12", "55"]),
        ("a; b;;a", ";", ["a", "b"]),
        ('["a", 1, null, "a"]', "json", ["a", "1"]),
        ("", " ", []),
        ("no list", "json", []),
    ],
)
def test_split(text, separator, elements):
    assert split_set(text, separator) == elements
