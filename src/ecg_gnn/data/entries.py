"""Every graph that has a name, with what is known of it before it is loaded."""

from dataclasses import dataclass
from typing import Literal

from ecg_gnn.system.metric_names import default_metric

Kind = Literal["official", "substitute", "planetoid", "generator"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One named graph; the sizes of generators are those of their defaults."""

    name: str
    kind: Kind
    nodes: int
    edges: int | None
    """Each undirected edge once; None where chance decides."""
    features: int
    classes: int
    description: str
    file: str | None = None
    sha256: str | None = None
    size: int | None = None
    """Bytes of the file."""
    note: str = ""

    @property
    def metric(self) -> str:
        """ROC AUC for two classes, accuracy for more."""
        return default_metric(self.classes)


CATALOGUE: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        Entry(
            name="roman-empire",
            kind="official",
            file="roman_empire.npz",
            sha256="a58ba741d123bf892fe5c872138d07463d75a2e9012360b8dd78ac2d4766d428",
            size=20_401_489,
            nodes=22_662,
            edges=32_927,
            features=300,
            classes=18,
            description="words of one long article; classes are syntactic roles",
        ),
        Entry(
            name="amazon-ratings",
            kind="official",
            file="amazon_ratings.npz",
            sha256="4c3a3e3b9d9f6cba0fede4625a00aad8c5721c1a36ed771367f446763241c7dd",
            size=27_744_018,
            nodes=24_492,
            edges=93_050,
            features=300,
            classes=5,
            description="products often bought together; classes are ratings",
        ),
        Entry(
            name="minesweeper",
            kind="official",
            file="minesweeper.npz",
            sha256="e664c8dacf1e8ac466c2c09ed4b237bd2c5541f47a6eae9c6092cb87f16412b3",
            size=135_045,
            nodes=10_000,
            edges=39_402,
            features=7,
            classes=2,
            description="a 100 by 100 Minesweeper board; class 1 is a mine",
        ),
        Entry(
            name="tolokers",
            kind="official",
            file="tolokers.npz",
            sha256="dacf3ac94cec53d03cd2adb5255c08b33dee1656c33ca8164a464bd9450a1667",
            size=1_329_769,
            nodes=11_758,
            edges=519_000,
            features=10,
            classes=2,
            description="workers who shared a task; class 1 was banned from a project",
        ),
        Entry(
            name="questions",
            kind="official",
            file="questions.npz",
            sha256="757ebd772bab1475c4dd951ca9e364400c6db161656cff9d21780ee874cf3074",
            size=47_369_919,
            nodes=48_921,
            edges=153_540,
            features=301,
            classes=2,
            description="users who answered each other; class 1 stayed active",
        ),
        Entry(
            name="actor",
            kind="official",
            file="actor.npz",
            sha256="c350eef06b2c2a9bf8218be2b57cac6d4003d0922eb597a039e9123f75817816",
            size=252_956,
            nodes=7600,
            edges=26_659,
            features=932,
            classes=5,
            description="actors named on one page; classes group their pages' words",
        ),
        Entry(
            name="chameleon",
            kind="official",
            file="chameleon.npz",
            sha256="4c640bd2877fc4f9f101531e2f977bc16445a54e09a5cb01178df608e552f3fd",
            size=177_840,
            nodes=2277,
            edges=31_371,
            features=2325,
            classes=5,
            description="Wikipedia pages; duplicates leak labels, prefer -filtered",
        ),
        Entry(
            name="chameleon-filtered",
            kind="official",
            file="chameleon_filtered.npz",
            sha256="bf46f07e1fb5249280447e5fe3100f3e82fc4b93ad1e13ffcfdec924b6ac0bb5",
            size=58_924,
            nodes=890,
            edges=8854,
            features=2325,
            classes=5,
            description="chameleon without its duplicate nodes",
        ),
        Entry(
            name="squirrel",
            kind="official",
            file="squirrel.npz",
            sha256="d436e3b42c0546b105241c0ab0766097074e68e55f67b133eeb9b0162e55cbd9",
            size=704_277,
            nodes=5201,
            edges=198_353,
            features=2089,
            classes=5,
            description="Wikipedia pages; duplicates leak labels, prefer -filtered",
        ),
        Entry(
            name="squirrel-filtered",
            kind="official",
            file="squirrel_filtered.npz",
            sha256="f06370ffb3116c5de8b7a600005400b2293c025e0ce2f6916d8201a825505ac7",
            size=208_215,
            nodes=2223,
            edges=46_998,
            features=2089,
            classes=5,
            description="squirrel without its duplicate nodes",
        ),
        Entry(
            name="cornell",
            kind="official",
            file="cornell.npz",
            sha256="684c54ba3daa13b0ba1f04a3d6dd1b1175c1ae9bdeb982851fd4ff96d3aac298",
            size=30_515,
            nodes=183,
            edges=277,
            features=1703,
            classes=5,
            description="web pages of one university; very small",
        ),
        Entry(
            name="texas",
            kind="official",
            file="texas.npz",
            sha256="b164b99e6c3d43e4ab07488ec59bd8c815f90cbc1bd4cf425ce587d2b534d844",
            size=28_586,
            nodes=183,
            edges=279,
            features=1703,
            classes=5,
            description="web pages of one university; 183 nodes, one class of one",
        ),
        Entry(
            name="wisconsin",
            kind="official",
            file="wisconsin.npz",
            sha256="2543c89838cfc75f737f7c4664cc1d097f8268602c20b2d1bd4f21407df9c074",
            size=41_672,
            nodes=251,
            edges=450,
            features=1703,
            classes=5,
            description="web pages of one university; very small",
        ),
        Entry(
            name="roman-empire-glove",
            kind="substitute",
            file="roman_empire_glove.npz",
            sha256="28a76cc6607f4150e2d4cf5b86c9901dacb8a8ceae02da8e30c01241006738ed",
            size=8_623_515,
            nodes=22_662,
            edges=32_927,
            features=207,
            classes=18,
            description="the graph of roman-empire under substitute word features",
            note=(
                "substitute features (GloVe, character n-grams, word shape): "
                "not roman-empire, never to be compared with its numbers"
            ),
        ),
        Entry(
            name="cora",
            kind="planetoid",
            nodes=2708,
            edges=5278,
            features=1433,
            classes=7,
            description="papers citing each other (homophilous); random splits",
        ),
        Entry(
            name="citeseer",
            kind="planetoid",
            nodes=3327,
            edges=4552,
            features=3703,
            classes=6,
            description="papers citing each other (homophilous); random splits",
        ),
        Entry(
            name="pubmed",
            kind="planetoid",
            nodes=19_717,
            edges=44_324,
            features=500,
            classes=3,
            description="papers citing each other (homophilous); random splits",
        ),
        Entry(
            name="minesweeper-gen",
            kind="generator",
            nodes=2500,
            edges=9702,
            features=7,
            classes=2,
            description="a Minesweeper board; rows=, cols=, mines=, unknown=, seed=",
        ),
        Entry(
            name="csbm",
            kind="generator",
            nodes=2000,
            edges=None,
            features=16,
            classes=2,
            description="contextual block model; nodes=, homophily=, signal=, seed=",
        ),
    )
}
