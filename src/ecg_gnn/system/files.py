"""Files that are either whole or not there."""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError

from ecg_gnn.system.checks import InputError

if TYPE_CHECKING:
    from torch import Tensor

_T = TypeVar("_T")


def cache_folder(name: str) -> Path:
    """A folder of the user's cache: in ``ECG_CACHE``, else in ~/.cache/ecg_gnn."""
    root = os.environ.get("ECG_CACHE") or "~/.cache/ecg_gnn"
    return Path(root).expanduser() / name


@contextmanager
def made_folder(path: Path) -> Iterator[None]:
    """Make a folder and its parents; if the block fails, remove new empty ones."""
    new = [folder for folder in (path, *path.parents) if not folder.exists()]
    try:
        path.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for folder in new:
            with suppress(OSError):
                folder.rmdir()
        raise


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Give a temporary path beside ``path`` that replaces it when the block succeeds.

    A block that raises, or a process that is killed, leaves ``path`` as it was.
    """
    with _hidden_folder(path, path.parent) as folder:
        yield folder / path.name


@contextmanager
def _hidden_folder(path: Path, home: Path) -> Iterator[Path]:
    """Give a folder; what is in it under the name of ``path`` is then moved there."""
    with made_folder(path.parent):
        folder = Path(tempfile.mkdtemp(dir=home, prefix=f".{path.name}."))
        try:
            yield folder
            temporary = folder / path.name
            for written in (temporary, *temporary.rglob("*")):
                # On the disk first, and for everybody to read.
                written.chmod(0o755 if written.is_dir() else 0o644)
                if written.is_file():
                    with written.open("rb") as file:
                        os.fsync(file.fileno())
            temporary.replace(path)
        except OSError as error:  # such as that of a full disk, which lacks the path
            if error.filename is None and error.errno is not None:
                error.filename = str(path)
            raise
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def atomic_folder(path: Path, work: Path | None = None) -> Iterator[Path]:
    """Give a temporary folder beside ``path`` that becomes it when the block succeeds.

    ``path`` must not exist or be an empty folder. A block that raises leaves nothing; a
    process that is killed, nothing outside of ``work`` if there is such a folder.
    """
    with _hidden_folder(path, work or path.parent) as folder:
        (folder / path.name).mkdir()
        yield folder / path.name


@contextmanager
def kept_until(done: Path, work: Path) -> Iterator[None]:
    """Remove the folder of unfinished work once there is a result, Ctrl-C or not.

    Without a result, the work is kept: the same call resumes it.
    """
    try:
        yield
    finally:
        if done.exists():
            try:
                shutil.rmtree(work, ignore_errors=True)
            except BaseException:  # an interrupt meanwhile
                shutil.rmtree(work, ignore_errors=True)
                raise


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn a failed write into one line with the path and the reason."""
    try:
        yield
    except (OSError, SafetensorError) as error:  # full disks raise either
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{path}: cannot be written ({reason})") from error


def check_free(path: Path) -> None:
    """Refuse an output folder that has something in it already, or cannot be made."""
    with writing(path):
        is_empty = path.is_dir() and not any(path.iterdir())
        taken = path.is_symlink() or (path.exists() and not is_empty)
    if not path.name:  # an empty one could not be replaced, since it is in use
        raise InputError(f"'out' must not be the current folder (got {path})")
    if taken:
        raise InputError(
            "'out' must not exist yet or be an empty folder: existing files are "
            f"never overwritten (got {path})"
        )
    home = next(folder for folder in path.absolute().parents if folder.exists())
    with writing(path), tempfile.TemporaryDirectory(dir=home, prefix=f".{path.name}."):
        pass


@contextmanager
def claiming(folder: Path, mark: str, what: str) -> Iterator[None]:
    """Refuse an output folder of other contents than ours, or one not to be written.

    One that has the file ``mark`` holds ``what`` was made before, and may be used.
    """
    shown = f"'out' {str(folder)!r}"
    if folder.exists() and not folder.is_dir():
        raise InputError(f"'out' must be a folder (got the file {str(folder)!r})")
    try:
        # A killed first write leaves a file behind that begins like this.
        others = [p for p in folder.glob("*") if not p.name.startswith(f".{mark}.")]
        if others and not (folder / mark).is_file():
            raise InputError(
                f"{shown} is not empty and holds no {what}: choose another folder"
            )
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"{shown} cannot be written ({reason})") from None


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_array(path: Path, array: NDArray[Any]) -> None:
    """Write an .npy file atomically.

    ``numpy.save`` does not notice where a full disk cuts off the end of a file.
    """
    whole = np.ascontiguousarray(array)
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        header = np.lib.format.header_data_from_array_1_0(whole)
        np.lib.format.write_array_header_1_0(file, header)
        file.write(whole.reshape(-1).view(np.uint8).data)


def write_json(path: Path, value: Any) -> None:
    """Write indented JSON atomically; NaN is refused, as JSON has none."""
    write_text(path, json.dumps(value, indent=2, allow_nan=False) + "\n")


def sha256_of_file(path: Path) -> str:
    """The SHA-256 of a file's bytes, read in pieces."""
    with path.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


def content_hash(tensors: "Iterable[Tensor]") -> str:
    """The SHA-256 of the types, shapes and values of tensors, in their order."""
    import torch  # which not every caller of this module has a use for

    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(f"{tensor.dtype}{list(tensor.shape)}".encode())
        flat = tensor.detach().cpu().contiguous().flatten()
        if flat.numel():  # nothing cannot be viewed as bytes
            digest.update(flat.view(torch.uint8).numpy().data)  # for bfloat16, too
    return digest.hexdigest()


def expanded(path: str | Path) -> Path:
    """A path with its ~ replaced by the home folder it stands for."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise InputError(
            f"{path}: must begin with the home of an existing user"
        ) from None


def below(entries: Mapping[str, _T], name: str) -> dict[str, _T]:
    """The entries of a file whose names begin with ``name.``, without that prefix."""
    start = f"{name}."
    return {
        key.removeprefix(start): entry
        for key, entry in entries.items()
        if key.startswith(start)
    }
