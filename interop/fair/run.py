#!/usr/bin/env python3
"""Another client's and another edge's requests while somebody holds what can be held.

  interop/fair/run.py [--requests 200] [--rounds 9] [--over 1.10] [--json FILE]

LONGWIRE names the binary. Three cases, each as A B A B ...: the same requests in peace (A) and
while it is held (B), in turn, so that what else the machine does falls on both.

  tunnels    300 idle tunnels of one client (127.0.0.1); another asks (127.0.0.2), and another edge
  readers    256 readers of one client that do not read; another asks, and another edge
  strangers  200 idle connections at the gateway's port, renewed at 5 a second; another edge asks

For each round the median of B is divided by that of the A before it; told are the medians over the
rounds, of these ratios with the least and the greatest. Beside them stands the same client without
the pair, straight to the origin, which holds what is held too: what its ratio departs from 1 is this
instrument's and the machine's, and is divided out. Exit status 1 where the median ratio through the
pair is over 1.10 times the one without it, or a request failed. What follows a change from A to B or
back by 0.5 s is not counted.
"""

import argparse
import contextlib
import json
import os
import resource
import shutil
import socket
import socketserver
import statistics
import subprocess
import sys
import tempfile
import threading
import time

READY = b"listening on "
SETTLE_S = 0.5
# Readers' buffers, of the kernel too, are full within this.
MAX_FILL_S = 30
RENEWED_PER_S = 5
SMALL = b"x" * 300
# The client that the others are to be seen beside.
STRAIGHT = "without the pair"


class Origin(socketserver.ThreadingTCPServer):
    """Answers /small; of /big as much as is taken; keeps what else comes open."""

    # Pieces of /big that were taken: about so many, for threads count at once.
    given = 0
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 512

    def __init__(self):
        super().__init__(("127.0.0.1", 0), OneOrigin)
        threading.Thread(target=self.serve_forever, daemon=True).start()
        self.port = self.server_address[1]


class OneOrigin(socketserver.BaseRequestHandler):
    """A connection to the origin."""

    def handle(self):
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        came = b""
        with contextlib.suppress(OSError):
            while True:
                while b"\r\n\r\n" not in came:
                    more = self.request.recv(65536)
                    if not more:
                        return
                    came += more
                head, came = came.split(b"\r\n\r\n", 1)
                if b" /big" in head:
                    self.request.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
                    for _ in range(1526):
                        self.request.sendall(bytes(65536))
                        Origin.given += 1
                    return
                length = b"Content-Length: %d\r\n\r\n" % len(SMALL)
                self.request.sendall(b"HTTP/1.1 200 OK\r\n" + length + SMALL)


class Side:
    """A process of the pair, with the address that it tells."""

    def __init__(self, *args):
        binary = os.environ.get("LONGWIRE", "target/release/longwire")
        self.process = subprocess.Popen(
            [binary, *args, "--log", "error"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        line = self.process.stdout.readline()
        if not line.startswith(READY):
            sys.exit(f"{args[0]} did not start")
        self.port = int(line.strip().rsplit(b":", 1)[1])

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def resident_kib(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            lines = [line for line in status if line.startswith("VmRSS")]
        return int(lines[0].split()[1])

    def stop(self):
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(2)
        self.process.kill()
        self.process.wait()


class Asker:
    """A client that keeps its connection, as clients do."""

    def __init__(self, port, source, origin):
        self.port, self.source = port, source
        authority = f"127.0.0.1:{origin.port}"
        self.ask = f"GET http://{authority}/small HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode()
        self.socket = None

    def once(self):
        """Seconds that a request took; none where it failed."""
        began = time.perf_counter()
        try:
            if self.socket is None:
                self.socket = socket.create_connection(
                    ("127.0.0.1", self.port), 10, (self.source, 0)
                )
                self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.socket.sendall(self.ask)
            came = b""
            while not came.endswith(SMALL):
                more = self.socket.recv(65536)
                if not more:
                    raise OSError("closed")
                came += more
            if b" 200 " not in came[:16]:
                raise OSError("refused")
        except OSError:
            if self.socket is not None:
                self.socket.close()
            self.socket = None
            return None
        return time.perf_counter() - began


def held_tunnels(edge, origin):
    """300 tunnels through which nothing passes."""
    ask = f"CONNECT 127.0.0.1:{origin.port} HTTP/1.1\r\nHost: a\r\n\r\n".encode()
    held = [socket.create_connection(("127.0.0.1", edge.port)) for _ in range(300)]
    for one in held:
        one.sendall(ask)
    return held


def held_readers(edge, origin):
    """256 clients that ask for much and read none of it."""
    held = []
    for at in range(256):
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.connect(("127.0.0.1", edge.port))
        url = f"http://127.0.0.1:{origin.port}/big{at}"
        one.sendall(f"GET {url} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        held.append(one)
    # What buffers have room for is a transfer, and takes its share; then nothing moves.
    before, until = -1, time.monotonic() + MAX_FILL_S
    while Origin.given != before:
        if time.monotonic() > until:
            sys.exit(f"readers that do not read take on for {MAX_FILL_S} s")
        before = Origin.given
        time.sleep(SETTLE_S)
    return held


class Strangers:
    """200 connections that say nothing; the oldest is renewed five times a second."""

    def __init__(self, gateway):
        self.port = gateway.port
        self.all = [self.one() for _ in range(200)]
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.renew, daemon=True)
        self.thread.start()

    def one(self):
        return socket.create_connection(("127.0.0.1", self.port))

    def renew(self):
        while not self.ended.wait(1 / RENEWED_PER_S):
            self.all.pop(0).close()
            self.all.append(self.one())

    def close(self):
        self.ended.set()
        self.thread.join()
        for one in self.all:
            one.close()


def keys(directory):
    """Keys for both sides; what each side is told of them."""
    binary = os.environ.get("LONGWIRE", "target/release/longwire")
    for name in ("gateway", "edge"):
        command = [binary, "keygen", f"{directory}/{name}", "--name", name]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    def told(own, other):
        key, peer = f"{directory}/{own}/longwire.key", f"{directory}/{other}/longwire.pub"
        return ["--key", key, "--peer", peer]

    return told("gateway", "edge"), told("edge", "gateway")


def measure(case, options, directory):
    """Medians of each turn in peace and held, in ms; failures; what the sides had open."""
    origin = Origin()
    of_gateway, of_edge = keys(directory) if case == "strangers" else ([], [])
    allow = f"http://127.0.0.1:{origin.port}"
    gateway = Side("gateway", "--listen", "127.0.0.1:0", "--allow", allow, *of_gateway)
    to = ["--gateway", f"127.0.0.1:{gateway.port}"]
    edge = Side("edge", "--listen", "127.0.0.1:0", *to, *of_edge)
    # Of strangers at the gateway's port there is an edge that comes while they are there.
    other = None if case == "strangers" else Side("edge", "--listen", "127.0.0.1:0", *to)
    times, failed, most = {}, 0, {}
    try:
        for turn in range(2 * options.rounds):
            held = None
            if turn % 2 == 1 and case == "strangers":
                held = Strangers(gateway)
                # An edge that comes while the port is held.
                edge.stop()
                edge = Side("edge", "--listen", "127.0.0.1:0", *to, *of_edge)
            elif turn % 2 == 1:
                hold = held_tunnels if case == "tunnels" else held_readers
                held = hold(edge, origin)
            askers = {STRAIGHT: Asker(origin.port, "127.0.0.2", origin)}
            askers["another edge"] = Asker((other or edge).port, "127.0.0.2", origin)
            if other:
                askers["another client"] = Asker(edge.port, "127.0.0.2", origin)
            until = time.monotonic() + SETTLE_S
            while time.monotonic() < until:
                failed += sum(asker.once() is None for asker in askers.values())
            turns = {name: [] for name in askers}
            for _ in range(options.requests):
                for name, asker in askers.items():
                    took = asker.once()
                    failed += took is None
                    turns[name].append(float("inf") if took is None else took)
            for name, took in turns.items():
                of_name = times.setdefault(name, {"peace": [], "held": []})
                of_name["held" if held else "peace"].append(1e3 * statistics.median(took))
            if isinstance(held, Strangers):
                held.close()
            for one in held if isinstance(held, list) else []:
                one.close()
            for name, side in (("edge", edge), ("gateway", gateway)):
                now = {"descriptors": side.descriptors(), "rss_kib": side.resident_kib()}
                before = most.setdefault(name, now)
                most[name] = {key: max(now[key], before[key]) for key in now}
            if held:
                # Places come back before the next turn.
                time.sleep(SETTLE_S)
    finally:
        for side in [edge, gateway] + ([other] if other else []):
            side.stop()
        origin.shutdown()
    return times, failed, most


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=200, help="of each turn")
    parser.add_argument("--rounds", type=int, default=9, help="turns of each sort")
    parser.add_argument("--over", type=float, default=1.10, help="most of B for 1 of A, of the pair")
    parser.add_argument("--json", help="file for the figures")
    options = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 8192)), hard))
    figures, well = {}, True
    for case in ("tunnels", "readers", "strangers"):
        directory = tempfile.mkdtemp(prefix="longwire-fair-")
        try:
            times, failed, most = measure(case, options, directory)
        finally:
            shutil.rmtree(directory)
        figures[case] = {"failed": failed, "most": most}
        straight = 1.0
        for who, of_who in times.items():
            ratios = sorted(b / a for a, b in zip(of_who["peace"], of_who["held"]))
            peace, held = (statistics.median(of_who[name]) for name in ("peace", "held"))
            ratio, least, most = statistics.median(ratios), ratios[0], ratios[-1]
            figures[case][who] = {
                "peace_ms": peace, "held_ms": held, "ratio": ratio, "ratios": ratios,
                "of_the_pair": ratio / straight,
            }
            # It comes first.
            straight = ratio if who == STRAIGHT else straight
            right = failed == 0 and ratio / straight <= options.over
            well = well and (right or who == STRAIGHT)
            mark = "     " if who == STRAIGHT else "ok   " if right else "FAIL "
            told = f"{case:10} {who:15} {peace:7.3f} ms in peace, {held:7.3f} ms held: "
            told += f"{ratio:5.3f} ({least:5.3f} to {most:5.3f})"
            net = "" if who == STRAIGHT else f", {ratio / straight:5.3f} of the pair"
            print(mark + told + net + f", {failed} failed", flush=True)
    if options.json:
        with open(options.json, "w", encoding="ascii") as file:
            json.dump(figures, file, indent=2)
    sys.exit(0 if well else 1)


if __name__ == "__main__":
    main()
