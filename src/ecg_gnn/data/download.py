"""Download a file completely, or leave nothing behind."""

import hashlib
import http.client
import urllib.request
from pathlib import Path

from ecg_gnn.system.checks import InputError
from ecg_gnn.system.files import atomic_path

_PIECE = 1 << 18
_TIMEOUT = 30.0  # seconds in which the server sends nothing


def download(url: str, path: Path, sha256: str, size: int) -> None:
    """Download ``url`` to ``path``, which appears only once its contents are right.

    Another checksum, more or fewer bytes are refused. Folders are made.
    """
    received, digest = 0, hashlib.sha256()
    try:
        with (
            atomic_path(path) as temporary,
            urllib.request.urlopen(url, timeout=_TIMEOUT) as response,
            temporary.open("wb") as file,
        ):
            while received <= size and (piece := response.read1(_PIECE)):
                received += len(piece)
                file.write(piece)
                digest.update(piece)
            if received != size:
                got = "more" if received > size else received
                raise InputError(f"{url}: must have {size} bytes (got {got})")
            if (got := digest.hexdigest()) != sha256:
                raise InputError(f"{url}: sha256 must be {sha256} (got {got})")
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise InputError(f"{url}: cannot be downloaded ({reason})") from error
