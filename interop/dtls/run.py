"""CoAP over DTLS with libcoap in both roles: python run.py BUILD...; see `check`.

LONGWIRE names the program, WORK a folder. Each line is a check, ok or FAIL with what came instead.
Exit status 1 where one failed.
"""

import contextlib
import http.server
import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

LONGWIRE = os.environ["LONGWIRE"]
WORK = Path(os.environ["WORK"])
IDENTITY, KEY = "device-01", "a key of 24 bytes length"
LARGE = bytes(i * 7 % 251 for i in range(10_000))
UPLOAD = bytes(i * 11 % 253 for i in range(10_000))
MAX_STEP_S, MAX_START_S = 30, 10
FAILED = []


def check(name, good, came=""):
    """Prints one line."""
    print(f"{'ok  ' if good else 'FAIL'}  {name}" + ("" if good else f": {came!r:.400}"), flush=True)
    if not good:
        FAILED.append(name)


def free_port():
    """A port that nobody has, neither for streams nor for datagrams."""
    with socket.socket() as stream, socket.socket(type=socket.SOCK_DGRAM) as datagrams:
        stream.bind(("127.0.0.1", 0))
        datagrams.bind(stream.getsockname())
        return stream.getsockname()[1]


def coap(*args, identity=IDENTITY, key=KEY, stdin=b"", wait="10 s"):
    """What `longwire coap` does: status, stdout, stderr."""
    done = subprocess.run(
        [LONGWIRE, "coap", *args, "-u", identity, "-k", key, "--timeout", wait],
        input=stdin, capture_output=True, timeout=MAX_STEP_S, check=False,
    )
    return done.returncode, done.stdout, done.stderr.decode()


@contextlib.contextmanager
def process(*args, ready=None):
    """A process that ends with the block."""
    child = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        if ready is not None and ready not in child.stdout.readline():
            child.kill()
            sys.exit(f"{args[0]} did not start: {child.stderr.read(2000)}")
        yield child
    finally:
        child.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(3)
        child.kill()
        child.wait()


class Origin(http.server.BaseHTTPRequestHandler):
    """An origin of HTTP that keeps what is put there."""

    protocol_version = "HTTP/1.1"
    stored = {}

    def log_message(self, *_):
        pass

    def answer(self, status, body=b""):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        body = {"/small": b'{"a":1}', "/large": LARGE, **Origin.stored}.get(self.path)
        self.answer(404 if body is None else 200, body or b"")

    def do_PUT(self):
        Origin.stored[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(204)


def of_libcoap(build):
    """Our client, libcoap's server."""
    name, port = f"libcoap ({build}) server", free_port()
    # It listens for DTLS one port up.
    url = f"coaps://127.0.0.1:{port + 1}"
    args = ("-A", "127.0.0.1", "-p", str(port), "-k", KEY, "-d", "10")
    with process(f"coap-server-{build}", *args):
        until = time.monotonic() + MAX_START_S
        while coap("ping", url, wait="1 s")[0] != 0 and time.monotonic() < until:
            pass
        status, body, why = coap("get", f"{url}/")
        check(f"{name}: get", status == 0 and b"libcoap" in body, (body, why))
        status, body, why = coap("observe", f"{url}/time", "--count", "3", "--json")
        codes = [json.loads(line)["code"] for line in body.splitlines()]
        check(f"{name}: observe", status == 0 and codes == ["2.05"] * 3, (body, why))
        status, _, why = coap("put", f"{url}/b", "--file", "-", stdin=UPLOAD)
        check(f"{name}: put 10 KB", status == 0, why)
        status, body, why = coap("get", f"{url}/b")
        check(f"{name}: get 10 KB", status == 0 and body == UPLOAD, (len(body), why))
        status, _, why = coap("get", f"{url}/", key="another key of length")
        # With such a key nothing verifies, and neither side may say so.
        check(f"{name}: with another key no answer", status == 1 and "no answer" in why, why)


def by_libcoap(build, origin):
    """libcoap's client, our gateway."""
    name, port = f"libcoap ({build}) client", free_port()
    keys = WORK / "keys.toml"
    keys.unlink(missing_ok=True)
    keys.touch(0o600)
    keys.write_text(f'"{IDENTITY}" = "{KEY}"\n')
    gateway = (
        LONGWIRE, "gateway", "--listen", "127.0.0.1:0", "--log", "error", "--allow", origin,
        "--coaps", f"0.0.0.0:{port}", "--coaps-psk", str(keys), "--coap-upstream", origin,
    )
    url = f"coaps://127.0.0.1:{port}"

    def libcoap(*args, identity=IDENTITY, key=KEY):
        by = (f"coap-client-{build}", "-B", "10", "-u", identity, "-k", key)
        done = subprocess.run(
            [*by, *args], capture_output=True, timeout=MAX_STEP_S, check=False)
        return done.stdout, done.stderr.decode()

    with process(*gateway, ready=b"listening on "):
        body, why = libcoap("-m", "get", f"{url}/small")
        check(f"{name}: get", b'{"a":1}' in body, (body, why))
        into, upload = WORK / "large", WORK / "upload"
        into.unlink(missing_ok=True)
        upload.write_bytes(UPLOAD)
        _, why = libcoap("-m", "get", "-o", str(into), f"{url}/large")
        body = into.read_bytes() if into.exists() else b""
        check(f"{name}: get 10 KB", body == LARGE, (len(body), why))
        body, why = libcoap("-m", "put", "-f", str(upload), "-b", "512", f"{url}/by-{build}")
        check(f"{name}: put 10 KB", Origin.stored.get(f"/by-{build}") == UPLOAD, (body, why))
        # Both give up by themselves, the one with an alert, the other in silence.
        for what, more in (("key", {"key": "another key of length"}), ("name", {"identity": "x"})):
            body, why = libcoap("-m", "get", f"{url}/small", **more)
            check(f"{name}: another {what} is refused", b'{"a":1}' not in body, (body, why))
        status, body, why = coap("get", f"{url}/large")
        check("ours: get 10 KB", status == 0 and body == LARGE, (len(body), why))


if __name__ == "__main__":
    began = time.monotonic()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Origin)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for one in sys.argv[1:]:
        of_libcoap(one)
        by_libcoap(one, f"http://127.0.0.1:{server.server_address[1]}")
    server.shutdown()
    took = f"{time.monotonic() - began:.0f} s"
    print(f"{len(FAILED)} failed, {took}" if FAILED else f"all ok, {took}")
    sys.exit(1 if FAILED else 0)
