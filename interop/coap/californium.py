"""Californium, in both roles; see `check`.

LONGWIRE names the program, CALIFORNIUM the class path of Peer. Each line is a check, ok or FAIL
with what came instead. Exit status 1 where one failed.
"""

import http.server
import os
import subprocess
import sys
import threading
import zlib

import run
from run import LARGE, UPLOAD, Origin, check, coap, free_port, gateway, process

PEER = ("java", "-cp", os.environ["CALIFORNIUM"], "Peer")
EVENTS = ("first", "second", "third")
# A virtual machine starts in a second or two, and asks in turn.
MAX_PEER_S = 60


class Events(Origin):
    """The same origin, with a stream of events."""

    def do_GET(self):
        if self.path != "/events":
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for event in EVENTS:
            self.wfile.write(f"data: {event}\n\n".encode())
            self.wfile.flush()
            # The newest of what comes within 100 ms becomes a notification.
            if STOP.wait(0.4):
                return None
        STOP.wait(MAX_PEER_S)
        return None


STOP = threading.Event()


def of_californium():
    """Our client, Californium's server."""
    port = free_port()
    url = f"coap://127.0.0.1:{port}"
    with process(*PEER, "serve", str(port), ready=b"ready"):
        status, body, why = coap("discover", url)
        good = status == 0 and b"</clock>" in body and b"obs" in body
        check("Californium server: discover", good, (body, why))
        status, body, why = coap("get", f"{url}/large")
        check("Californium server: get 100 KB", status == 0 and body == LARGE, (len(body), why))
        for block in ("1024", "64"):
            size = ("--block-size", block)
            status, _, why = coap("put", f"{url}/stored", "--file", "-", *size, stdin=UPLOAD)
            check(f"Californium server: put 50 KB in blocks of {block}", status == 0, why)
            status, body, why = coap("get", f"{url}/stored", *size)
            good = status == 0 and body == UPLOAD
            check(f"Californium server: get it in blocks of {block}", good, (len(body), why))
        status, body, why = coap("fetch", f"{url}/stored", "--payload", "7")
        check("Californium server: fetch", status == 0 and body == UPLOAD[:7], (body, why))
        status, body, why = coap("get", f"{url}/large", "--non")
        check("Californium server: non-confirmable", status == 0 and body == LARGE, why)
        status, body, why = coap("get", f"{url}/large", "--q-block")
        good = status == 0 and body == LARGE
        check("Californium server: asked for Q-Block, goes by Block", good, (len(body), why))
        status, body, why = coap("observe", f"{url}/clock", "--count", "4")
        lines = body.split()
        check("Californium server: observe", status == 0 and len(set(lines)) == 4, (body, why))
        status, _, why = coap("delete", f"{url}/stored", "-v")
        check("Californium server: delete", status == 0 and "2.02" in why, why)
        status, _, why = coap("get", f"{url}/stored")
        check("Californium server: what is gone is 4.04", status == 1 and "4.04" in why, why)


def said(code, body=b"", content_format=-1, max_age=None):
    """A line of Peer's; an age of None is any."""
    return code, len(body), f"{zlib.crc32(body):08x}", content_format, max_age


def by_californium():
    """Californium's client through our gateway to an origin of HTTP."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Events)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    origin = f"http://127.0.0.1:{server.server_address[1]}"
    port = free_port()
    steps = (
        ("get, format and age", "GET", "/small", 0, [said("2.05", b'{"a":1}', 50, 30)]),
        ("get 100 KB by Block2", "GET", "/large", 0, [said("2.05", LARGE, 42)]),
        ("put 50 KB by Block1", "PUT", "/by-californium", 50_000, [said("2.01")]),
        ("get what was put", "GET", "/by-californium", 0, [said("2.05", UPLOAD, 0)]),
        ("put again is 2.04", "PUT", "/by-californium", 5, [said("2.04")]),
        ("delete", "DELETE", "/by-californium", 0, [said("2.02")]),
        ("4.04", "GET", "/by-californium", 0, ["4.04"]),
        ("observe", "OBSERVE", "/events", len(EVENTS),
         [said("2.05", event.encode(), 0) for event in EVENTS]),
    )
    with gateway(origin, port, "--coap", f"127.0.0.1:{port}"):
        url = f"coap://127.0.0.1:{port}"
        asked = "".join(f"{step[1]} {url} {origin}{step[2]} {step[3]}\n" for step in steps)
        asked += f"GET {url} http://127.0.0.1:9/ 0\n"
        done = subprocess.run([*PEER, "ask"], input=asked.encode(), capture_output=True,
                              timeout=MAX_PEER_S, check=False)
    lines = iter(done.stdout.decode().splitlines())
    for name, _, _, _, expected in steps:
        came = [next(lines, "nothing") for _ in expected]
        good = all(is_said(line, one) for line, one in zip(came, expected))
        check(f"Californium client: {name}", good, (came, done.stderr))
    last = next(lines, "nothing")
    check("Californium client: 5.05 for what is not allowed", last.startswith("5.05"), last)
    STOP.set()
    server.shutdown()


def is_said(line, expected):
    """Whether a line says what is expected; of a code alone only that."""
    if isinstance(expected, str):
        return line.startswith(expected)
    words = line.split()
    if len(words) != 5:
        return False
    came = (words[0], int(words[1]), words[2], int(words[3]), int(words[4]))
    return all(one is None or one == other for one, other in zip(expected, came))


if __name__ == "__main__":
    of_californium()
    by_californium()
    print(f"{len(run.FAILED)} failed" if run.FAILED else "all ok")
    sys.exit(1 if run.FAILED else 0)
