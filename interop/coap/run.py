"""CoAP with peers of others; see `check`.

LONGWIRE, COAP_CLIENT and COAP_SERVER name the programs, WORK a folder. Each line is a check, ok or
FAIL with what came instead. Exit status 1 where one failed.
"""

import asyncio
import contextlib
import http.server
import json
import os
import socket
import subprocess
import sys
import threading
import time

import aiocoap

LONGWIRE = os.environ["LONGWIRE"]
CLIENT, SERVER = os.environ["COAP_CLIENT"], os.environ["COAP_SERVER"]
WORK = os.environ["WORK"]
LARGE = bytes(i * 7 % 251 for i in range(100_000))
UPLOAD = bytes(i * 11 % 253 for i in range(50_000))
# Of one step: all of them together take much less than a minute.
MAX_STEP_S = 20
MAX_START_S = 10
# For documentation (RFC 6676 §2).
GROUP = "233.252.0.1"
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


def coap(*args, stdin=b""):
    """What `longwire coap` does: status, stdout, stderr."""
    done = subprocess.run(
        [LONGWIRE, "coap", *args, "--timeout", "10 s"],
        input=stdin, capture_output=True, timeout=MAX_STEP_S, check=False,
    )
    return done.returncode, done.stdout, done.stderr.decode()


def libcoap(*args):
    """What coap-client prints."""
    done = subprocess.run(
        [CLIENT, "-B", "10", *args], capture_output=True, timeout=MAX_STEP_S, check=False
    )
    return done.stdout, done.stderr.decode()


class Origin(http.server.BaseHTTPRequestHandler):
    """An origin of HTTP that keeps what is put there."""

    protocol_version = "HTTP/1.1"
    stored = {}
    asked = []

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", **fields):
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        Origin.asked.append(self.headers)
        if self.path == "/small":
            if self.headers.get("If-None-Match") == '"version-1"':
                return self.answer(304, ETag='"version-1"')
            return self.answer(
                200, b'{"a":1}', Content_Type="application/json", Cache_Control="max-age=30",
                ETag='"version-1"',
            )
        if self.path == "/large":
            return self.answer(200, LARGE, Content_Type="application/octet-stream")
        if self.path in Origin.stored:
            return self.answer(200, Origin.stored[self.path], Content_Type="text/plain")
        return self.answer(404, b"no such thing", Content_Type="text/plain")

    def do_PUT(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status = 204 if self.path in Origin.stored else 201
        Origin.stored[self.path] = body
        self.answer(status, **({"Location": self.path} if status == 201 else {}))

    def do_DELETE(self):
        Origin.stored.pop(self.path, None)
        self.answer(204)


@contextlib.contextmanager
def process(*args, ready=None):
    """A process that is ready, and ends with the block."""
    child = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        if ready is not None and ready not in child.stdout.readline():
            sys.exit(f"{args[0]} did not start: {child.stderr.read(500)}")
        yield child
    finally:
        child.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(2)
        child.kill()
        child.wait()


def wait_for(url):
    """Until a server is there."""
    until = time.monotonic() + MAX_START_S
    while time.monotonic() < until:
        if coap("ping", url)[0] == 0:
            return
        time.sleep(0.1)
    sys.exit(f"nobody answers at {url}")


def of_libcoap():
    """Our client, libcoap's server."""
    port = free_port()
    url = f"coap://127.0.0.1:{port}"
    with process(SERVER, "-A", "127.0.0.1", "-p", str(port), "-d", "10"):
        wait_for(url)
        status, body, _ = coap("get", f"{url}/")
        check("libcoap server: get", status == 0 and b"libcoap" in body, body)
        status, body, _ = coap("discover", url)
        check("libcoap server: discover", status == 0 and b"</time>" in body, body)
        status, body, why = coap("observe", f"{url}/time", "--count", "3", "--json")
        codes = [json.loads(line)["code"] for line in body.splitlines()]
        check("libcoap server: observe", status == 0 and codes == ["2.05"] * 3, (body, why))
        for block in (1024, 64):
            size = ("--block-size", str(block))
            status, _, why = coap("put", f"{url}/b{block}", "--file", "-", *size, stdin=UPLOAD)
            check(f"libcoap server: put 50 KB in blocks of {block}", status == 0, why)
            status, body, why = coap("get", f"{url}/b{block}", *size)
            good = status == 0 and body == UPLOAD
            check(f"libcoap server: get it in blocks of {block}", good, (len(body), why))
        status, _, why = coap("delete", f"{url}/b64", "-v")
        check("libcoap server: delete", status == 0 and "2.02" in why, why)
        status, _, why = coap("get", f"{url}/b64")
        check("libcoap server: what is gone is 4.04", status == 1 and "4.04" in why, why)
        status, _, why = coap("get", f"{url}/", "--non")
        check("libcoap server: non-confirmable", status == 0, why)


def knows_q_block(gateway, origin):
    """Whether this build of libcoap asks by Q-Block2 where it is told to."""
    output, why = libcoap("-v", "7", "-N", "-L", "7", "-P", gateway, "-m", "get", f"{origin}/small")
    return "Q-Block2" in output.decode("latin-1") + why


def q_block_by_libcoap(gateway, origin):
    """libcoap's client through our gateway, by RFC 9177."""
    ask = ("-N", "-L", "7", "-P", gateway)
    into = os.path.join(WORK, "large")
    with contextlib.suppress(FileNotFoundError):
        os.remove(into)
    # Without a size of blocks it asks for all of it, and gets Block2.
    get = ("-v", "7", *ask, "-b", "1024", "-m", "get", "-o", into)
    output, why = libcoap(*get, f"{origin}/large")
    with open(into, "rb") if os.path.exists(into) else contextlib.nullcontext() as file:
        body = file.read() if file else b""
    good = body == LARGE and "Q-Block2:97" in output.decode("latin-1") + why
    check("libcoap client: get 100 KB by Q-Block2", good, len(body))
    upload = os.path.join(WORK, "upload")
    libcoap(*ask, "-m", "put", "-f", upload, f"{origin}/by-q-block")
    good = Origin.stored.get("/by-q-block") == UPLOAD
    check("libcoap client: put 50 KB by Q-Block1", good, len(Origin.stored.get("/by-q-block", "")))
    # Each fifth datagram is lost.
    lossy = ("-l", "20%", *ask, "-m", "put", "-f", upload, f"{origin}/with-loss")
    subprocess.run([CLIENT, "-B", "60", *lossy], capture_output=True, timeout=70, check=False)
    good = Origin.stored.get("/with-loss") == UPLOAD
    check("libcoap client: put 50 KB by Q-Block1, some lost", good)


def q_block_of_libcoap():
    """Our client, libcoap's server, by RFC 9177."""
    port = free_port()
    url = f"coap://127.0.0.1:{port}"
    with process(SERVER, "-A", "127.0.0.1", "-p", str(port), "-d", "10", "-L", "7"):
        wait_for(url)
        status, _, why = coap("put", f"{url}/q", "--file", "-", "--q-block", stdin=UPLOAD)
        check("libcoap server: put 50 KB by Q-Block1", status == 0, why)
        status, body, why = coap("get", f"{url}/q", "--q-block")
        good = status == 0 and body == UPLOAD
        check("libcoap server: get it by Q-Block2", good, (len(body), why))


def of_aiocoap():
    """Our client, a server of aiocoap."""
    port = free_port()
    url = f"coap://127.0.0.1:{port}"
    with process(sys.executable, "server.py", str(port), ready=b"ready"):
        status, body, why = coap("get", f"{url}/large")
        check("aiocoap server: get 100 KB", status == 0 and body == LARGE, (len(body), why))
        status, body, why = coap("put", f"{url}/stored", "--file", "-", stdin=UPLOAD)
        check("aiocoap server: put 50 KB", status == 0 and body == b"50000", (body, why))
        status, body, why = coap("fetch", f"{url}/stored", "--payload", "7")
        check("aiocoap server: fetch", status == 0 and body == UPLOAD[:7], (body, why))
        status, body, why = coap("observe", f"{url}/clock", "--count", "4")
        lines = body.split()
        check("aiocoap server: observe", status == 0 and len(set(lines)) == 4, (body, why))
        status, body, why = coap("discover", url)
        check("aiocoap server: discover", status == 0 and b"</large>" in body, (body, why))
        status, _, why = coap("delete", f"{url}/stored", "-v")
        check("aiocoap server: delete", status == 0 and "2.02" in why, why)
        status, _, why = coap("post", f"{url}/large", "--payload", "x")
        check("aiocoap server: post is 4.05", status == 1 and "4.05" in why, why)


def of_group():
    """Our client, and libcoap's server in a group, on the loopback interface."""
    port = free_port()
    group = f"coap://{GROUP}:{port}"
    # Bound to an address it would hear no group.
    with process(SERVER, "-p", str(port), "-g", GROUP, "-G", "lo"):
        wait_for(f"coap://127.0.0.1:{port}")
        gather = ("--interface", "127.0.0.1", "--gather", "7 s")
        status, body, why = coap("discover", group, *gather)
        good = status == 0 and f"127.0.0.1:{port} </time>".encode() in body
        check("libcoap server: discover it in a group", good, (body, why))
        status, _, why = coap("put", group + "/x", "--payload", "1", *gather)
        check("a group is not asked to change", status == 2 and "group" in why, why)


def by_group():
    """libcoap's client, and our gateway in a group."""
    port = free_port()
    at = ("gateway", "--listen", "127.0.0.1:0", "--allow", "http://127.0.0.1:9")
    group = ("--coap", f"127.0.0.1:{port}", "--coap-multicast", GROUP)
    with process(LONGWIRE, *at, *group):
        wait_for(f"coap://127.0.0.1:{port}")
        ask = ("-N", "-a", "127.0.0.1", "-m", "get")
        body, why = libcoap(*ask, f"coap://{GROUP}:{port}/.well-known/core")
        check("libcoap client: our gateway in a group", b"</.well-known/core>" in body, (body, why))
        body, why = libcoap(*ask, f"coap://{GROUP}:{port}/elsewhere")
        check("libcoap client: no error of a group", not body and "4.0" not in why, (body, why))


def by_libcoap(gateway, origin):
    """libcoap's client through our gateway."""
    by = ("-P", gateway)
    body, why = libcoap(*by, "-m", "get", f"{origin}/small")
    check("libcoap client: get", b'{"a":1}' in body, (body, why))
    into = os.path.join(WORK, "large")
    with contextlib.suppress(FileNotFoundError):
        os.remove(into)
    _, why = libcoap(*by, "-m", "get", "-o", into, f"{origin}/large")
    with open(into, "rb") if os.path.exists(into) else contextlib.nullcontext() as file:
        body = file.read() if file else b""
    check("libcoap client: get 100 KB by Block2", body == LARGE, (len(body), why))
    upload = os.path.join(WORK, "upload")
    with open(upload, "wb") as file:
        file.write(UPLOAD)
    _, why = libcoap(*by, "-m", "put", "-f", upload, "-b", "512", f"{origin}/by-libcoap")
    good = Origin.stored.get("/by-libcoap") == UPLOAD
    check("libcoap client: put 50 KB by Block1", good, why)
    body, why = libcoap(*by, "-m", "get", f"{origin}/nothing")
    check("libcoap client: 4.04", "4.04" in why + body.decode("latin-1"), (body, why))
    body, why = libcoap(*by, "-m", "get", "http://127.0.0.1:9/")
    # RFC 7252 §5.10.2: of what a proxy is unwilling to ask for.
    check("libcoap client: 5.05 for what is not allowed", "5.05" in why + body.decode("latin-1"),
          (body, why))


async def by_aiocoap(gateway, origin, name):
    """aiocoap's client through our gateway."""
    context = await aiocoap.Context.create_client_context()

    async def ask(code, path, echo=None, **more):
        request = aiocoap.Message(code=code, **more)
        request.opt.proxy_uri = path if "://" in path else origin + path
        request.opt.echo = echo
        request.unresolved_remote = gateway.removeprefix("coap://")
        answer = await asyncio.wait_for(context.request(request).response, MAX_STEP_S)
        if answer.code == aiocoap.UNAUTHORIZED and answer.opt.echo and not echo:
            return await ask(code, path, echo=answer.opt.echo, **more)
        return answer

    answer = await ask(aiocoap.GET, "/small")
    opt = answer.opt
    good = answer.payload == b'{"a":1}' and int(opt.content_format) == 50 and opt.max_age == 30
    check(f"{name}: get, format and age", good, answer)
    again = await ask(aiocoap.GET, "/small", etags=[opt.etag])
    check(f"{name}: 2.03 for what is here", again.code == aiocoap.VALID and not again.payload, again)
    seen = Origin.asked[-1].get("If-None-Match")
    check(f"{name}: the origin saw its own tag", seen == '"version-1"', seen)
    answer = await ask(aiocoap.GET, "/large")
    check(f"{name}: get 100 KB by Block2", answer.payload == LARGE, len(answer.payload))
    path = "/" + name.replace(" ", "-")
    answer = await ask(aiocoap.PUT, path, payload=UPLOAD)
    good = answer.code == aiocoap.CREATED and Origin.stored.get(path) == UPLOAD
    check(f"{name}: put 50 KB by Block1", good, answer)
    good = list(answer.opt.location_path) == [path[1:]]
    check(f"{name}: where it was made", good, answer.opt.location_path)
    answer = await ask(aiocoap.PUT, path, payload=b"short")
    check(f"{name}: put again is 2.04", answer.code == aiocoap.CHANGED, answer)
    answer = await ask(aiocoap.DELETE, path)
    check(f"{name}: delete", answer.code == aiocoap.DELETED and path not in Origin.stored, answer)
    answer = await ask(aiocoap.GET, path)
    check(f"{name}: 4.04", answer.code == aiocoap.NOT_FOUND, answer)
    answer = await ask(aiocoap.GET, "http://127.0.0.1:9/")
    good = answer.code == aiocoap.PROXYING_NOT_SUPPORTED
    check(f"{name}: 5.05 for what is not allowed", good, answer)
    answer = await ask(aiocoap.GET, "/small", accept=60)
    check(f"{name}: 4.06 for another format", answer.code == aiocoap.NOT_ACCEPTABLE, answer)
    await context.shutdown()


def gateway(origin, port, *more):
    """Our gateway with a listener for CoAP."""
    args = ("--listen", "127.0.0.1:0", "--log", "error", "--allow", origin)
    return process(LONGWIRE, "gateway", *args, *more, ready=b"listening on ")


def by_clients():
    """The clients of others, through our gateway to an origin of HTTP."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Origin)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    origin = f"http://127.0.0.1:{server.server_address[1]}"
    port = free_port()
    with gateway(origin, port, "--coap", f"127.0.0.1:{port}"):
        url = f"coap://127.0.0.1:{port}"
        by_libcoap(url, origin)
        asyncio.run(by_aiocoap(url, origin, "aiocoap client"))
        status, body, why = coap("get", f"{origin}/large", "--proxy", url, "--q-block")
        check("our client: get 100 KB by Q-Block2", status == 0 and body == LARGE, why)
        quick = ("--proxy", url, "--q-block")
        status, _, why = coap("put", f"{origin}/q-block", "--file", "-", *quick, stdin=UPLOAD)
        good = status == 0 and Origin.stored.get("/q-block") == UPLOAD
        check("our client: put 50 KB by Q-Block1", good, why)
        if knows_q_block(url, origin):
            q_block_by_libcoap(url, origin)
            q_block_of_libcoap()
        else:
            print("      Q-Block (RFC 9177) with libcoap is left out: this build does not know it")
    # Where others than this machine reach it, an address has to be borne out (RFC 9175).
    port = free_port()
    with gateway(origin, port, "--coap", f"0.0.0.0:{port}", "--coap-anywhere"):
        url = f"coap://127.0.0.1:{port}"
        asyncio.run(by_aiocoap(url, origin, "aiocoap client with Echo"))
        status, body, why = coap("get", f"{origin}/large", "--proxy", url)
        check("our client with Echo: get 100 KB", status == 0 and body == LARGE, why)
    server.shutdown()


if __name__ == "__main__":
    of_libcoap()
    of_aiocoap()
    of_group()
    by_group()
    by_clients()
    print(f"{len(FAILED)} failed" if FAILED else "all ok")
    sys.exit(1 if FAILED else 0)
