"""Graphs as GraphML that is damaged, or that grows."""

import networkx as nx

from malformed.archives import N, importing
from malformed.case import Case, cut, overwritten


def graphml():
    graph = nx.cycle_graph(N * 2)
    for node in graph:
        graph.nodes[node].update(kind="ab"[node % 2], size=node % 5)
    return "\n".join(nx.generate_graphml(graph)).encode()


def graphml_cases():
    """XML that is damaged, or that grows."""
    asked, whole = importing("g.graphml", "--label", "kind"), graphml()
    for how, content in cut(whole[:-20], 70):
        yield Case(how, asked, {"g.graphml": content})
    for new in (b"<", b"\xff", b"\0", b"&"):
        for how, content in overwritten(whole[:-20], 40, new):
            yield Case(how, asked, {"g.graphml": content})
    for how, content in _odd_graphml(whole).items():
        yield Case(how, asked, {"g.graphml": content})
    for value in ("none", "", "size" * 100):
        yield Case(
            f"label {value!r:.9}", (*asked, "--label", value), {"g.graphml": whole}
        )


def _odd_graphml(whole):
    ten = "".join(
        f'<!ENTITY {chr(98 + i)} "{f"&{chr(97 + i)};" * 50}">' for i in range(8)
    )
    laughs = f'<!DOCTYPE g [<!ENTITY a "{"a" * 24}">{ten}]>'.encode()
    outside = b'<!DOCTYPE g [<!ENTITY x SYSTEM "file:///etc/hostname">]>'
    start = whole.index(b"<graphml")
    with_entity = whole.replace(b">a</data>", b">&x;</data>")
    return {
        "empty": b"",
        "no XML": b"hello",
        "HTML": b"<html><body>404</body></html>",
        "no graph": b"<graphml></graphml>",
        "no nodes": b'<graphml><graph edgedefault="undirected"/></graphml>',
        "billion laughs": whole[:start]
        + laughs
        + whole[start:].replace(b">a<", b">&i;<"),
        "file outside": with_entity[:start] + outside + with_entity[start:],
        "no label": whole.replace(b"kind", b"kinds"),
        "size as text": whole.replace(b">3</data>", b">three</data>"),
        "label of one class": whole.replace(b">b</data>", b">a</data>"),
        "unknown key": whole.replace(b'key="d0"', b'key="d9"'),
        "hyperedge": whole.replace(b"</graph>", b"<hyperedge/></graph>"),
        "other namespace": whole.replace(b"graphml.graphdrawing.org", b"example.org"),
        "deep": b"<a>" * 20_000,
        "infinite": whole.replace(b">3</data>", b">1e400</data>").replace(
            b'attr.type="long"', b'attr.type="double"'
        ),
    }
