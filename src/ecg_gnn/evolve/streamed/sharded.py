"""One search by several processes: each owns rows, and shards go round."""

from collections.abc import Callable, Sequence

import torch

from ecg_gnn.evolve.canonical import GridRule
from ecg_gnn.evolve.streamed.finished import Finished, Range, count_rows
from ecg_gnn.evolve.streamed.layout import Layout
from ecg_gnn.evolve.streamed.pieces import read_piece
from ecg_gnn.evolve.streamed.ring import Ring, RingPieces
from ecg_gnn.evolve.streamed.rows import Rows
from ecg_gnn.evolve.streamed.search import search_block
from ecg_gnn.system.memory import out_of_memory


def search_sharded(
    rows: Rows,
    metric: str,
    k: int,
    key: int,
    memory: int,
    ring: Ring,
    finished: Finished,
    progress: Callable[[int], None],
) -> None:
    """Find the neighbours of this process's rows that are not finished yet.

    All processes of the ring must call it, with the same rows and settings. The
    result is that of one process, edge for edge.

    Args:
        rows: All of them; each process reads its own only (for other similarities than
            the cosine the first one reads all, for their common scale).
        metric: What "similar" means.
        k: Neighbours per node.
        key: Of the random choice among ties.
        memory: Bytes that each process may take; the smallest of all counts.
        ring: The processes.
        finished: Where this process's rows go. What is missing is the first process's
            view of it.
        progress: Told how many more nodes are finished, of all processes together.
    """
    rows.refuse(ring.least(rows.first_bad(*ring.share(rows.num_nodes, ring.rank))))
    rule = _common_rule(rows, metric, ring)
    layout = Layout.fit(
        rows.num_nodes,
        rows.dim,
        k,
        ring.least(memory),
        on_gpu=ring.device.type == "cuda",
    )
    pieces = RingPieces(rows, rule, layout.piece, ring)
    missing = _agreed(ring, finished.missing())
    progress(rows.num_nodes - count_rows(missing))
    for turn in _turns(ring, rows.num_nodes, layout, missing):
        start, stop = turn[ring.rank]
        try:
            block = read_piece(rows, rule, start, stop, ring.device)
            found = search_block(block, k, key, pieces, layout.tile)
        except (MemoryError, RuntimeError) as error:
            if not out_of_memory(error):
                raise
            raise MemoryError(_too_much(layout, rows.dim, k)) from None
        finished.keep(start, found.cpu())
        progress(count_rows(turn))


def _too_much(layout: Layout, dim: int, k: int) -> str:
    taken = layout.bytes(dim, k)
    return (
        f"a kNN search in blocks of {layout.block:,} rows ({taken >> 20} MiB in each "
        f"process) does not fit: lower its memory to half, {taken / 2**31:.3g} GiB "
        "(`ecg-gnn knn` goes on after its finished rows)"
    )


def _common_rule(rows: Rows, metric: str, ring: Ring) -> GridRule:
    """One scale for all, which takes a look at all rows."""
    if metric == "cosine":
        return GridRule(metric)
    scale = torch.empty(2 + rows.dim, dtype=torch.float64)
    if ring.rank == 0:
        found = GridRule.of(rows.z, metric).scale
        assert found is not None, "only the cosine has no scale"
        scale = found
    return GridRule(metric, ring.tell(scale).cpu())


def _agreed(ring: Ring, missing: Sequence[Range]) -> list[Range]:
    """What the first process misses: a folder may look older to others."""
    count = ring.most(len(missing) if ring.rank == 0 else 0)
    ranges = torch.zeros((count, 2), dtype=torch.long)
    if ring.rank == 0 and count:
        ranges = torch.tensor(missing)
    if not count:
        return []
    return [(start, stop) for start, stop in ring.tell(ranges).tolist()]


def _turns(
    ring: Ring, num_nodes: int, layout: Layout, missing: Sequence[Range]
) -> list[list[Range]]:
    """Which rows each process does in each turn; those without any wait for others."""
    blocks = []
    for rank in range(ring.size):
        first, last = ring.share(num_nodes, rank)
        own = [(max(a, first), min(b, last)) for a, b in missing]
        blocks.append([part for a, b in own for part in layout.split(a, b)])
    nothing = (0, 0)
    return [
        [parts[turn] if turn < len(parts) else nothing for parts in blocks]
        for turn in range(max(map(len, blocks)))
    ]
