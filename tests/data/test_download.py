import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from ecg_gnn.data.catalogue import fetch as download
from ecg_gnn.system.checks import InputError

CONTENT = bytes(range(256)) * 4096  # 1 MiB, several pieces
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/absent":
            self.send_error(404)
            return
        self.send_response(200)
        if self.path != "/endless":
            self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        if self.path == "/broken":  # the connection closes half-way
            self.wfile.write(CONTENT[: len(CONTENT) // 2])
            return
        self.wfile.write(CONTENT)
        if self.path == "/endless":
            self.wfile.write(CONTENT)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{httpd.server_port}"
        httpd.shutdown()
        thread.join()


def test_whole_file_arrives(server, tmp_path):
    path = tmp_path / "new" / "file.npz"
    download(f"{server}/file", path, SHA256, len(CONTENT))
    assert path.read_bytes() == CONTENT
    assert list(path.parent.iterdir()) == [path]


def test_file_url(tmp_path):
    source, path = tmp_path / "source", tmp_path / "out" / "file"
    source.write_bytes(CONTENT)
    download(source.as_uri(), path, SHA256, len(CONTENT))
    assert path.read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("page", "sha256", "size", "message"),
    [
        ("file", "0" * 64, len(CONTENT), rf"sha256 must be 0+ \(got {SHA256}\)"),
        ("file", SHA256, len(CONTENT) - 1, r"must have 1048575 bytes \(got more\)"),
        ("file", SHA256, len(CONTENT) + 1, r"must have 1048577 bytes \(got 1048576\)"),
        ("endless", SHA256, len(CONTENT), r"must have 1048576 bytes \(got more\)"),
        ("broken", SHA256, len(CONTENT), r"must have 1048576 bytes \(got 524288\)"),
        ("absent", SHA256, len(CONTENT), r"cannot be downloaded \(Not Found\)"),
    ],
)
def test_wrong_answer_leaves_nothing(server, tmp_path, page, sha256, size, message):
    with pytest.raises(InputError, match=message):
        download(f"{server}/{page}", tmp_path / "file", sha256, size)
    assert list(tmp_path.iterdir()) == []


def test_failure_keeps_the_file_that_was_there(server, tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(InputError, match="sha256"):
        download(f"{server}/file", path, "0" * 64, len(CONTENT))
    assert path.read_text() == "old"


def test_no_server_and_no_folder(tmp_path):
    with pytest.raises(InputError, match=r"cannot be downloaded \(.*refused"):
        download("http://127.0.0.1:9/x", tmp_path / "file", SHA256, 9)
    (tmp_path / "in-the-way").write_text("")
    with pytest.raises(InputError, match="cannot be downloaded"):
        download("http://127.0.0.1:9/x", tmp_path / "in-the-way" / "x", SHA256, 9)
