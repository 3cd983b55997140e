"""A recipe's search as work: one search per dataset, model and variant."""

from collections.abc import Sequence

from ecg_gnn.study.bind import Graphs
from ecg_gnn.study.expand import Space
from ecg_gnn.study.outcomes import Outcome
from ecg_gnn.study.search.cell import SearchCell
from ecg_gnn.study.search.cell_search import CellSearch
from ecg_gnn.study.search.options import Search
from ecg_gnn.study.search.past import Past, known_trials
from ecg_gnn.study.store import StoreWriter
from ecg_gnn.study.work import CellSummary, Counts, Piece, TrialEnded
from ecg_gnn.system.checks import InputError


def search_cells(
    spaces: Sequence[Space], graphs: Graphs, device: str
) -> list[SearchCell]:
    """Where a recipe is searched, every value of its grid checked.

    Raises:
        InputError: For a value that no run can have, or a recipe that trains nothing.
    """
    cells = []
    for space in spaces:
        if space.task != "train":
            raise InputError(
                f"'search' must be of a recipe with the task 'train' (got {space.task})"
            )
        if (graph := graphs.loaded.get(space.dataset)) is not None:
            cells.append(SearchCell(space=space, graph=graph, device=device))
    for cell in cells:
        cell.check()
    return cells


class SearchWork:
    """Cell after cell; where a cell waits for scores, the next ones go on.

    Args:
        cells: Where to look.
        search: How to.
        recipe: The recipe's name.
        retry_failed: Whether to do again what failed.
        writer: The store.
    """

    def __init__(
        self,
        cells: Sequence[SearchCell],
        search: Search,
        recipe: str,
        retry_failed: bool,
        writer: StoreWriter,
    ) -> None:
        name, past = search.recipe_name(recipe), Past.read(writer)
        configurations, members = writer.configurations(), writer.recipes_of_units()
        places = {id: place for place, id in enumerate(configurations)}
        self._cells = []
        self._running: dict[str, CellSearch] = {}  # by unit
        for cell in cells:
            trials = known_trials(cell, configurations.values(), members, name)
            for trial in trials:
                past.tell(trial, retry_failed=retry_failed)
            self._cells.append(
                CellSearch(
                    cell,
                    search,
                    name,
                    writer,
                    trials,
                    places,
                    retry_failed=retry_failed,
                )
            )

    def counts(self) -> Counts:
        """Units of all trials, those included that are still to be proposed."""
        found = [cell.counts() for cell in self._cells]
        return Counts(
            total=sum(counts.total for counts in found),
            done=sum(counts.done for counts in found),
            failed=sum(counts.failed for counts in found),
            running=sum(counts.running for counts in found),
        )

    def total(self) -> int:
        """Units of all trials, as far as one can know."""
        return self.counts().total

    def left(self) -> int:
        """Units that this process may still have to do."""
        counts = self.counts()
        return counts.total - counts.done - counts.failed - counts.running

    def next(self) -> Piece | None:
        """Claimed units of the first trial that has any."""
        for cell in self._cells:
            if (piece := cell.next()) is not None:
                units = [piece.group.units[split] for split in piece.splits]
                self._running |= dict.fromkeys(units, cell)
                return piece
        return None

    def ended(
        self, piece: Piece, split: int, outcome: Outcome
    ) -> tuple[Outcome, TrialEnded | None]:
        """Tell the cell that a unit belongs to."""
        cell = self._running.pop(piece.group.units[split])
        return cell.ended(piece, split, outcome)

    def summaries(self) -> list[CellSummary]:
        """How far every cell is."""
        return [cell.summary() for cell in self._cells]
