"""Clients of HTTP and servers of CoAP; see `check`.

curl asks through an edge and a gateway for what libcoap's server and one of aiocoap have: by whole
URLs, by the path that stands for them (RFC 8075 §5.3), and by a reverse proxy. Each line is a check,
ok or FAIL with what came instead. Exit status 1 where one failed.
"""

import base64
import contextlib
import http.server
import os
import subprocess
import sys
import threading
import time

from run import (
    FAILED, LARGE, LONGWIRE, MAX_START_S, MAX_STEP_S, SERVER, UPLOAD, WORK,
    check, coap, free_port, process, wait_for,
)


def curl(*args, stdin=b""):
    """What curl does: status of the answer, head, body."""
    done = subprocess.run(
        ["curl", "-sS", "-i", "--http1.1", "--max-time", str(MAX_STEP_S), *args],
        input=stdin, capture_output=True, timeout=2 * MAX_STEP_S, check=False,
    )
    out = done.stdout
    while out.startswith(b"HTTP/1.1 1"):
        out = out.partition(b"\r\n\r\n")[2]
    head, _, body = out.partition(b"\r\n\r\n")
    words = head.split(b" ", 2)
    status = int(words[1]) if len(words) > 1 else 0
    return status, head.decode("latin-1").lower(), body or done.stderr


def free_tcp(listening):
    """The address that a side says it listens at."""
    return listening.rsplit(" ", 1)[-1].strip()


@contextlib.contextmanager
def side(*args):
    """An edge or a gateway, and where it is."""
    child = subprocess.Popen(
        [LONGWIRE, *args, "--log", "error"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        line = child.stdout.readline().decode()
        if "listening on " not in line:
            sys.exit(f"longwire {args[0]} did not start: {child.stderr.read(500)}")
        yield free_tcp(line)
    finally:
        child.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(2)
        child.kill()
        child.wait()


@contextlib.contextmanager
def pair(*allow, edge=(), gateway=()):
    """An edge and a gateway; where the edge is."""
    allowed = [word for pattern in allow for word in ("--allow", pattern)]
    with side("gateway", "--listen", "127.0.0.1:0", *allowed, *gateway) as far:
        with side("edge", "--listen", "127.0.0.1:0", "--gateway", far, *edge) as near:
            yield near


def events(url, count, seconds):
    """Data of the first events of a stream, with the names of those that have one."""
    child = subprocess.Popen(
        ["curl", "-sSN", "-H", "Accept: text/event-stream", "--max-time", str(seconds), url],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )
    found, name = [], ""
    try:
        while len(found) < count:
            line = child.stdout.readline().decode()
            if not line:
                break
            field, _, value = line.rstrip("\n").partition(": ")
            name = value if field == "event" else name
            if field == "data":
                found.append((name, value))
                name = ""
    finally:
        child.kill()
        child.wait()
    return found


def by_any(name, edge, origin, large):
    """What both servers can do: `large` is a path with 100 KB, if there is one."""
    whole = lambda path: ("--request-target", f"{origin}{path}", f"http://{edge}/")
    hosted = lambda path: (f"http://{edge}/hc/{origin}{path}",)
    status, head, body = curl(*whole("/.well-known/core"))
    good = status == 200 and "content-type: application/link-format" in head and b"<" in body
    check(f"{name}: links by a whole URL", good, (status, head, body))
    status, head, body = curl(*hosted("/.well-known/core"))
    check(f"{name}: links by the mapping", status == 200 and b"<" in body, (status, head, body))
    status, head, body = curl(*hosted("/nothing"))
    check(f"{name}: 4.04 is 404", status == 404, (status, head, body))
    if large:
        status, head, body = curl(*hosted(large))
        check(f"{name}: get 100 KB", status == 200 and body == LARGE, (status, len(body)))


def of_libcoap():
    """libcoap's server."""
    port = free_port()
    origin = f"coap://127.0.0.1:{port}"
    with process(SERVER, "-A", "127.0.0.1", "-p", str(port), "-d", "10"), pair(origin) as edge:
        wait_for(origin)
        name = "curl to libcoap"
        by_any(name, edge, origin, None)
        hosted = f"http://{edge}/hc/{origin}"
        status, head, body = curl(f"{hosted}/")
        good = status == 200 and b"libcoap" in body and "cache-control: max-age=" in head
        check(f"{name}: get, with its age", good, (status, head, body))
        binary = ("-H", "Content-Type: application/octet-stream", "--data-binary", "@-")
        for path, content in (("/up50", UPLOAD), ("/up100", LARGE)):
            status, head, body = curl("-X", "PUT", *binary, hosted + path, stdin=content)
            kilobytes = len(content) // 1000
            check(f"{name}: put {kilobytes} KB", status in (201, 204), (status, head, body))
            status, head, body = curl(hosted + path)
            good = status == 200 and body == content
            check(f"{name}: get them again", good, (status, len(body)))
        status, head, body = curl("-X", "PUT", *binary, f"{hosted}/up50", stdin=b"short")
        check(f"{name}: put again is 204", status == 204, (status, head, body))
        status, head, body = curl("-X", "DELETE", f"{hosted}/up50")
        check(f"{name}: delete", status == 204, (status, head, body))
        status, head, body = curl(f"{hosted}/up50")
        check(f"{name}: what is gone is 404", status == 404, (status, head, body))
        found = events(f"{hosted}/time", 3, 10)
        good = len(found) == 3 and len(set(found)) == 3 and all(not event for event, _ in found)
        check(f"{name}: observe as events", good, found)
        status, head, body = curl("-X", "PATCH", "-d", "x", f"{hosted}/")
        check(f"{name}: what cannot be patched", 400 <= status < 500, (status, head, body))


def of_aiocoap():
    """A server of aiocoap."""
    port = free_port()
    origin = f"coap://127.0.0.1:{port}"
    server = process(sys.executable, "server.py", str(port), ready=b"ready")
    with server, pair(origin, gateway=("--coap-cache", "1 MiB")) as edge:
        name = "curl to aiocoap"
        by_any(name, edge, origin, "/large")
        hosted = f"http://{edge}/hc/{origin}"
        binary = ("-H", "Content-Type: application/octet-stream", "--data-binary", "@-")
        status, head, body = curl("-X", "PUT", *binary, f"{hosted}/stored", stdin=UPLOAD)
        good = status == 200 and body == b"50000"
        check(f"{name}: put 50 KB", good, (status, head, body))
        status, head, body = curl(f"{hosted}/stored")
        check(f"{name}: get them again", status == 200 and body == UPLOAD, (status, len(body)))
        status, head, body = curl("-X", "QUERY", *binary, f"{hosted}/stored", stdin=b"7")
        good = status == 200 and body == UPLOAD[:7]
        check(f"{name}: QUERY is FETCH", good, (status, head, body))
        status, head, body = curl("-X", "POST", "-d", "x", f"{hosted}/large")
        check(f"{name}: 4.05 is 400", status == 400, (status, head, body))
        found = events(f"{hosted}/clock", 4, 10)
        check(f"{name}: observe as events", len(set(found)) == 4, found)
        status, head, body = curl("-X", "DELETE", f"{hosted}/stored")
        check(f"{name}: delete", status == 204, (status, head, body))


def of_nobody():
    """Where no server is, or none that is allowed."""
    port = free_port()
    origin = f"coap://127.0.0.1:{port}"
    with pair(origin) as edge:
        status, head, body = curl(f"http://{edge}/hc/{origin}/")
        check("nobody there is 502", status == 502, (status, head, body))
        status, head, body = curl(f"http://{edge}/hc/coap://127.0.0.1:9/")
        check("what is not allowed is 403", status == 403, (status, head, body))


if __name__ == "__main__":
    of_libcoap()
    of_aiocoap()
    of_nobody()
    print(f"{len(FAILED)} failed" if FAILED else "all ok")
    sys.exit(1 if FAILED else 0)
