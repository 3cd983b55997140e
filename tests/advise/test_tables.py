"""Tables: a row for everything that was trained, with the differences that count."""

from ecg_gnn.advise.tables import graph_table, score_table
from small_advice import gains, made_advice, whole_plan


def test_every_contender_is_a_row_with_its_differences():
    plan = whole_plan(embeddings=("mlp", "bgrl"), ks=(10,))
    header, rows = score_table(made_advice(gains(ecg=0.05, identity=0.01), plan=plan))
    assert header[1] == "test accuracy (%)"
    cells = {row[0]: row[1:] for row in rows}
    assert list(cells) == [
        *("baseline", "ECG (mlp, k = 10)", "ECG (bgrl, k = 10)", "identity", "random")
    ]
    assert cells["baseline"][2:] == ["", ""]
    assert cells["ECG (mlp, k = 10)"][1:] == [
        *("60.00", "+5.00 [+4.92, +5.08]", "+4.00 [+3.95, +4.05]")
    ]
    assert cells["identity"][2:] == ["+1.00 [+0.97, +1.03]", ""]
    assert cells["random"][3].startswith("-1.00")
    assert all("±" in row[0] for row in cells.values())


def test_one_split_shows_neither_deviation_nor_interval():
    _, rows = score_table(made_advice(plan=whole_plan(splits=1)))
    assert not any("±" in cell or "[" in cell for row in rows for cell in row)


def test_every_graph_is_a_row():
    plan = whole_plan(embeddings=("mlp",), ks=(10, 3))
    header, rows = graph_table(made_advice(plan=plan))
    assert header == ["graph", "edges", "h_edge", "h_node", "h_class", "h_adj", "LI"]
    assert [row[0] for row in rows] == [
        *("G", "G_ECG (mlp, k = 10)", "G_ECG (mlp, k = 3)", "G_ECG (random)")
    ]
    assert rows[0][5] == "0.000"
    assert rows[1][5] == "0.500"
