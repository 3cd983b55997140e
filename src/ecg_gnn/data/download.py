"""Download a file completely, or leave nothing behind."""

import hashlib
import http.client
import time
import urllib.request
from pathlib import Path

from ecg_gnn.system.checks import InputError
from ecg_gnn.system.files import atomic_path

_PIECE = 1 << 18
_TIMEOUT = 30.0  # seconds in which the server sends nothing
_SLOWEST = 1000  # bytes a second, on the average

# For a file of unknown size: several times the largest one we know.
_MAX_BYTES = 1 << 30


def download(
    url: str,
    path: str | Path,
    sha256: str | None,
    size: int | None,
) -> None:
    """Download ``url`` to ``path``, which appears only once its contents are right.

    Another checksum, more or fewer bytes are refused; None accepts any (of sizes, up to
    1 GiB). Folders are made.
    """
    limit = _MAX_BYTES if size is None else size
    received, digest, start = 0, hashlib.sha256(), time.monotonic()
    try:
        with (
            atomic_path(Path(path)) as temporary,
            urllib.request.urlopen(url, timeout=_TIMEOUT) as response,
            temporary.open("wb") as file,
        ):
            while piece := response.read1(_PIECE):
                received += len(piece)
                if time.monotonic() - start > _TIMEOUT + received / _SLOWEST:
                    raise TimeoutError(f"less than {_SLOWEST} bytes a second")
                if received > limit:
                    most = f"at most {limit} bytes"
                    raise InputError(f"{url}: must have {most} (got more)")
                file.write(piece)
                digest.update(piece)
            if size is not None and received != size:
                raise InputError(f"{url}: must have {size} bytes (got {received})")
            if missing := getattr(response, "length", None):
                raise InputError(f"{url}: must be whole ({missing} bytes did not come)")
            if sha256 is not None and (got := digest.hexdigest()) != sha256:
                raise InputError(f"{url}: sha256 must be {sha256} (got {got})")
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise InputError(f"{url}: cannot be downloaded ({reason})") from error
