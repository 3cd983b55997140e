"""Reading untrusted files: within a size limit, and nothing in them is ever run."""

from ecg_gnn.reading.npy_files import AnyArray as AnyArray
from ecg_gnn.reading.npy_files import read_archive as read_archive
from ecg_gnn.reading.npy_files import read_array_file as read_array_file
from ecg_gnn.reading.untrusted import BYTES_PER_CELL as BYTES_PER_CELL
from ecg_gnn.reading.untrusted import MAX_CELLS as MAX_CELLS
from ecg_gnn.reading.untrusted import check_cells as check_cells
from ecg_gnn.reading.untrusted import check_file as check_file
from ecg_gnn.reading.untrusted import first_line as first_line
from ecg_gnn.reading.untrusted import max_cells as max_cells
from ecg_gnn.reading.untrusted import read_json as read_json
from ecg_gnn.reading.untrusted import read_text as read_text
from ecg_gnn.reading.untrusted import read_yaml as read_yaml
from ecg_gnn.reading.untrusted import refusing as refusing
