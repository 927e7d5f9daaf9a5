"""OSCORE with aiocoap in both roles; see `check`.

LONGWIRE names the program, WORK a folder. Each line is a check, ok or FAIL with what came instead.
Exit status 1 where one failed.
"""

import asyncio
import contextlib
import http.server
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import aiocoap

LONGWIRE = os.environ["LONGWIRE"]
WORK = Path(os.environ["WORK"])
LARGE = bytes(i * 7 % 251 for i in range(10_000))
UPLOAD = bytes(i * 11 % 253 for i in range(10_000))
SECRET, SALT = "0102030405060708090a0b0c0d0e0f10", "9e7ca92223786340"
# Of one step: all of them together take less than a minute.
MAX_STEP_S = 20
OSCORE, MAX_DATAGRAM_BYTES = 9, 65536
FAILED = []


def check(name, good, came=""):
    """Prints one line."""
    print(f"{'ok  ' if good else 'FAIL'}  {name}" + ("" if good else f": {came!r:.300}"), flush=True)
    if not good:
        FAILED.append(name)


def free_port():
    """A port that nobody has, neither for streams nor for datagrams."""
    with socket.socket() as stream, socket.socket(type=socket.SOCK_DGRAM) as datagrams:
        stream.bind(("127.0.0.1", 0))
        datagrams.bind(stream.getsockname())
        return stream.getsockname()[1]


def context(name, sender, recipient, secret=SECRET, **more):
    """A file of ours with one end of a security context."""
    values = {"master_secret": secret, "master_salt": SALT, "sender_id": sender,
              "recipient_id": recipient, **more}
    path = WORK / name
    path.unlink(missing_ok=True)
    path.with_name(f"{name}.state").unlink(missing_ok=True)
    path.touch(0o600)
    path.write_text("".join(f"{key} = '{value}'\n" for key, value in values.items()))
    return str(path)


def context_of_aiocoap(name, sender, recipient, **more):
    """A folder of aiocoap with one end of a security context; its credentials."""
    folder = WORK / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    settings = {"secret_hex": SECRET, "salt_hex": SALT, "sender-id_hex": sender,
                "recipient-id_hex": recipient, **more}
    (folder / "settings.json").write_text(json.dumps(settings))
    return {"basedir": f"{folder}/"}


def coap(*args, stdin=b""):
    """What `longwire coap` does: status, stdout, stderr."""
    done = subprocess.run(
        [LONGWIRE, "coap", *args, "--timeout", "10 s"],
        input=stdin, capture_output=True, timeout=MAX_STEP_S, check=False,
    )
    return done.returncode, done.stdout, done.stderr.decode()


@contextlib.contextmanager
def process(*args, ready, end=signal.SIGTERM):
    """A process that is ready, and ends with the block."""
    child = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        if ready not in child.stdout.readline():
            child.kill()
            sys.exit(f"{args[0]} did not start: {child.stderr.read(2000)}")
        yield child
    finally:
        child.send_signal(end)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(5)
        child.kill()
        child.wait()


class Origin(http.server.BaseHTTPRequestHandler):
    """An origin of HTTP that keeps what is put there and counts what is posted."""

    protocol_version = "HTTP/1.1"
    stored, posts = {}, 0

    def log_message(self, *_):
        pass

    def answer(self, status, body=b""):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        bodies = {"/small": b'{"a":1}', "/large": LARGE, **Origin.stored}
        body = bodies.get(self.path)
        self.answer(404 if body is None else 200, body or b"")

    def do_PUT(self):
        Origin.stored[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(204)

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        Origin.posts += 1
        self.answer(200, b"%d" % Origin.posts)


class Tap:
    """A way for datagrams to a server that keeps what passes."""

    def __init__(self, port):
        self.port, self.requests, self.answers = port, [], []
        self.near = socket.socket(type=socket.SOCK_DGRAM)
        self.near.bind(("127.0.0.1", 0))
        threading.Thread(target=self.run, daemon=True).start()

    def url(self):
        return f"coap://127.0.0.1:{self.near.getsockname()[1]}"

    def run(self):
        far, client = socket.socket(type=socket.SOCK_DGRAM), None
        far.connect(("127.0.0.1", self.port))
        far.settimeout(0.02)
        self.near.settimeout(0.02)
        while True:
            with contextlib.suppress(OSError):
                bytes_, client = self.near.recvfrom(MAX_DATAGRAM_BYTES)
                self.requests.append(bytes_)
                far.send(bytes_)
            with contextlib.suppress(OSError):
                bytes_ = far.recv(MAX_DATAGRAM_BYTES)
                self.answers.append(bytes_)
                self.near.sendto(bytes_, client)


def replay(port, bytes_, mid):
    """What a server answers to a datagram that was recorded, as a message of another id."""
    with socket.socket(type=socket.SOCK_DGRAM) as stranger:
        stranger.settimeout(5)
        stranger.sendto(bytes_[:2] + mid.to_bytes(2, "big") + bytes_[4:], ("127.0.0.1", port))
        return aiocoap.Message.decode(stranger.recv(MAX_DATAGRAM_BYTES))


def of_aiocoap():
    """Our client, a server of aiocoap."""
    port = free_port()
    url = f"coap://127.0.0.1:{port}"
    ours = context("to-aiocoap.toml", "63", "73")
    credentials = WORK / "server.json"
    credentials.write_text(json.dumps(context_of_aiocoap("aiocoap-server", "73", "63")))
    by = ("--oscore", ours)
    server = (sys.executable, "server.py", str(port), str(credentials))
    with process(*server, ready=b"ready", end=signal.SIGKILL):
        tap = Tap(port)
        status, body, why = coap("get", f"{tap.url()}/protected", *by)
        check("aiocoap server: get", status == 0 and body == b"OSCOREAddress", (body, why))
        seen = b"".join(tap.requests + tap.answers)
        check("aiocoap server: path and body are not in the open",
              b"protected" not in seen and b"Address" not in seen, seen)
        status, body, why = coap("put", f"{url}/stored", "--payload", "short", *by)
        check("aiocoap server: put", status == 0 and body == b"5", (body, why))
        status, body, why = coap("get", f"{url}/large", *by)
        check("aiocoap server: get 10 KB", status == 0 and body == LARGE, (len(body), why))
        for block in ("1024", "64"):
            size = ("--block-size", block)
            status, body, why = coap(
                "put", f"{url}/stored", "--file", "-", *by, *size, stdin=UPLOAD)
            check(f"aiocoap server: put 10 KB in blocks of {block}",
                  status == 0 and body == b"10000", (body, why))
            status, body, why = coap("get", f"{url}/stored", *by, *size)
            check(f"aiocoap server: get it in blocks of {block}",
                  status == 0 and body == UPLOAD, (len(body), why))
        status, body, why = coap("observe", f"{url}/clock", "--count", "4", *by)
        check("aiocoap server: observe", status == 0 and len(set(body.split())) == 4, (body, why))
        status, _, why = coap("get", f"{url}/nothing", *by)
        check("aiocoap server: a protected 4.04", status == 1 and "4.04" in why, why)
        other = context("other.toml", "78", "73")
        status, _, why = coap("get", f"{url}/large", "--oscore", other)
        check("aiocoap server: an unknown context is told", status == 1 and "4.01" in why, why)
        wrong = context("wrong.toml", "63", "73", secret=SECRET[::-1])
        status, _, why = coap("get", f"{url}/large", "--oscore", wrong)
        check("aiocoap server: a wrong key is told", status == 1 and "4.00" in why, why)
    # It was killed, has lost its window, and asks for an Echo (appendix B.1.2).
    with process(*server, ready=b"ready"):
        tap = Tap(port)
        status, body, why = coap("put", f"{tap.url()}/stored", "--payload", "again", *by)
        good = status == 0 and body == b"5" and len(tap.requests) == 2
        check("aiocoap server: after its restart one Echo", good, (body, why, len(tap.requests)))
        status, body, why = coap("get", f"{url}/stored", *by)
        check("aiocoap server: and none afterwards", status == 0 and body == b"again", (body, why))


async def by_aiocoap(url, credentials, name):
    """aiocoap's client, our gateway."""
    client = await aiocoap.Context.create_client_context()
    client.client_credentials.load_from_dict({f"{url}/*": {"oscore": credentials}})

    async def ask(code, path, **more):
        request = aiocoap.Message(code=code, uri=url + path, **more)
        return await asyncio.wait_for(client.request(request).response, MAX_STEP_S)

    answer = await ask(aiocoap.GET, "/small")
    good = answer.payload == b'{"a":1}' and type(answer.remote).__name__ == "OSCOREAddress"
    check(f"{name}: get", good, answer)
    answer = await ask(aiocoap.GET, "/large")
    check(f"{name}: get 10 KB", answer.payload == LARGE, len(answer.payload))
    answer = await ask(aiocoap.PUT, "/put", payload=b"short")
    good = answer.code == aiocoap.CHANGED and Origin.stored.get("/put") == b"short"
    check(f"{name}: put", good, answer)
    answer = await ask(aiocoap.PUT, "/put", payload=UPLOAD)
    good = answer.code == aiocoap.CHANGED and Origin.stored.get("/put") == UPLOAD
    check(f"{name}: put 10 KB", good, answer)
    answer = await ask(aiocoap.GET, "/nothing")
    check(f"{name}: a protected 4.04", answer.code == aiocoap.NOT_FOUND, answer)
    answer = await ask(aiocoap.GET, "/small", observe=0)
    check(f"{name}: what cannot be observed is answered once",
          answer.payload == b'{"a":1}' and answer.opt.observe is None, answer)
    await client.shutdown()


def by_ours(port, ours):
    """Our client, our gateway, and what was recorded between them."""
    tap = Tap(port)
    posts = Origin.posts
    status, body, why = coap("post", f"{tap.url()}/count", "--payload", "x", "--oscore", ours)
    check("ours: post", status == 0 and body == b"%d" % (posts + 1), (body, why))
    answer = replay(port, tap.requests[-1], 1)
    good = answer.code == aiocoap.UNAUTHORIZED and answer.payload == b"Replay detected"
    check("gateway: a replay is 4.01", good, answer)
    check("gateway: and does nothing", Origin.posts == posts + 1, Origin.posts)
    status, _, why = coap("get", f"coap://127.0.0.1:{port}/small")
    check("gateway: without protection 4.01", status == 1 and "OSCORE is required" in why, why)
    other = context("stranger.toml", "7878", "67")
    status, _, why = coap("get", f"coap://127.0.0.1:{port}/small", "--oscore", other)
    check("gateway: an unknown context is 4.01", status == 1 and "4.01" in why, why)
    return tap.requests[-1]


def by_clients():
    """Clients, our gateway in front of an origin of HTTP."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Origin)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    origin = f"http://127.0.0.1:{server.server_address[1]}"
    ours = context("ours.toml", "6f", "67")
    context("for-ours.toml", "67", "6f")
    # Where others than this machine reach it, an address has to be borne out too.
    for host, name in (("127.0.0.1", "61"), ("0.0.0.0", "62")):
        # aiocoap keeps a context locked until its process ends.
        theirs = context_of_aiocoap(f"aiocoap-client-{name}", name, "67")
        files = (context("for-aiocoap.toml", "67", name), WORK / "for-ours.toml")
        port = free_port()
        gateway = (
            LONGWIRE, "gateway", "--listen", "127.0.0.1:0", "--log", "error", "--allow", origin,
            "--coap", f"{host}:{port}", "--coap-upstream", origin,
            "--coap-oscore", files[0], "--coap-oscore", files[1],
        )
        with process(*gateway, ready=b"listening on "):
            url = f"coap://127.0.0.1:{port}"
            asyncio.run(by_aiocoap(url, theirs, f"aiocoap client at {host}"))
            old = by_ours(port, ours)
        posts = Origin.posts
        with process(*gateway, ready=b"listening on "):
            answer = replay(port, old, 2)
            good = answer.opt.get_option(OSCORE) and Origin.posts == posts
            check("gateway: a replay after its restart is challenged and does nothing", good, answer)
            tap = Tap(port)
            args = ("post", f"{tap.url()}/count", "--payload", "x", "--oscore", ours)
            status, body, why = coap(*args)
            good = status == 0 and body == b"%d" % (posts + 1) and len(tap.requests) == 2
            check("gateway: after its restart one Echo", good, (body, why, len(tap.requests)))
    server.shutdown()


if __name__ == "__main__":
    began = time.monotonic()
    of_aiocoap()
    by_clients()
    took = f"{time.monotonic() - began:.0f} s"
    print(f"{len(FAILED)} failed, {took}" if FAILED else f"all ok, {took}")
    sys.exit(1 if FAILED else 0)
