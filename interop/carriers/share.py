#!/usr/bin/env python3
"""A bulk download through the pair beside one plain TCP flow: what share of the link it takes.

  interop/carriers/share.py [--carriers burst,quic,stream] [--seconds 60] [--repeat 1] [--own]
                            [--json FILE]

LONGWIRE names the binary; root is needed, for network namespaces. Each carrier has an emulated
link of its own, `los` (2 Mbit/s, 5 ms each way) with a queue of 50 KB in each direction, all at
the same time. Over it go, both from host b to host a and both begun at the same moment:

  pair  GETs of 20 MB that do not compress, by two clients of the edge, one after another
  tcp   one plain TCP connection whose sender, pinned to CUBIC, sends as fast as it can

After 10 s what comes is counted at the receivers, for both over the same --seconds: bytes of the
bodies that the edge's clients read, and bytes that the socket's client reads. The share is
pair / (pair + tcp). TCP carriers of the pair, and its QUIC, are pinned to CUBIC too, so that the
share of `stream` tells how well two TCP flows share here. --own puts `own = true` under [link] of
both sides' files: then there is no target.

Exit status 1 where the share of burst (the median of --repeat runs) is not within 25 % to 55 %.
"""

import argparse
import collections
import http.client
import json
import os
import shutil
import socket
import sys
import tempfile
import threading
import time

from ground import EDGE_PORT, Ground
from measuring import emulation, lateness, link_state, median, ready, together

MIN_SHARE, MAX_SHARE = 0.25, 0.55
LINK, QUEUE = "los", "50 KB"
BODY_BYTES, CLIENTS = 20_000_000, 2
WARM_S = 10
SERIES_S = 5
TCP_PORT = 8081
PIECE_BYTES = 65536
# Longer than a queue of 50 KB, and a retransmission behind it, take.
SILENCE_TIMEOUT_S = 30
CONGESTION = b"cubic"
OWN = "[link]\nown = true\n"


class Arrivals:
    """Bytes that came, by seconds since a moment."""

    def __init__(self):
        self.began, self.lock, self.seconds = None, threading.Lock(), collections.Counter()

    def add(self, count):
        with self.lock:
            self.seconds[int(time.monotonic() - self.began)] += count

    def rate(self, first, last):
        """Mbit/s from the second `first` to before `last`."""
        with self.lock:
            came = sum(self.seconds[at] for at in range(first, last))
        return came * 8 / (last - first) / 1e6


class Contest:
    """The pair with one carrier, and the plain flow, on a link of their own."""

    def __init__(self, binary, name, carrier, options, folder):
        self.carrier, self.seconds = carrier, options.seconds
        self.pair, self.tcp, self.failed = Arrivals(), Arrivals(), 0
        self.over, self.congestion = threading.Event(), None
        own = OWN if options.own else ""
        common = f'encoding = "identity"\ncongestion = "{CONGESTION.decode()}"\n'
        self.ground = Ground(binary, name, LINK, folder, carrier, {"queue_bytes": QUEUE},
                             edge=own, gateway=own, common=common)

    def download(self):
        """A client of the edge."""
        while not self.over.is_set():
            connection = http.client.HTTPConnection("127.0.0.1", EDGE_PORT,
                                                    timeout=SILENCE_TIMEOUT_S)
            try:
                connection.request("GET", f"{self.ground.origin}/{BODY_BYTES}")
                answer = connection.getresponse()
                if answer.status != 200:
                    raise OSError(f"status {answer.status}")
                while not self.over.is_set() and (piece := answer.read1(PIECE_BYTES)):
                    self.pair.add(len(piece))
            except (OSError, http.client.HTTPException):
                self.failed += not self.over.is_set()
                self.over.wait(1)
            finally:
                connection.close()

    def listen(self):
        return socket.create_server((self.ground.lab.gateway, TCP_PORT))

    def send(self):
        """The plain flow's sender, in host b."""
        with self.listen() as listener:
            listener.settimeout(SILENCE_TIMEOUT_S)
            self.listening.set()
            sender = listener.accept()[0]
        with sender:
            sender.settimeout(SILENCE_TIMEOUT_S)
            sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, CONGESTION)
            in_force = sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
            self.congestion = in_force.rstrip(b"\0").decode()
            piece = os.urandom(PIECE_BYTES)
            try:
                while not self.over.is_set():
                    sender.sendall(piece)
            except OSError:
                pass

    def receive(self):
        """Its receiver, in host a."""
        address = (self.ground.lab.gateway, TCP_PORT)
        try:
            with socket.create_connection(address, SILENCE_TIMEOUT_S) as receiver:
                while not self.over.is_set() and (piece := receiver.recv(PIECE_BYTES)):
                    self.tcp.add(len(piece))
        except OSError:
            pass
        self.failed += not self.over.is_set()

    def run(self):
        ready(self.ground)
        self.listening = threading.Event()
        self.ground.inside(self.ground.lab.b, self.send)
        if not self.listening.wait(SILENCE_TIMEOUT_S):
            raise OSError("the plain flow's sender does not listen")
        self.pair.began = self.tcp.began = time.monotonic()
        for work in [self.receive] + [self.download] * CLIENTS:
            self.ground.inside(self.ground.lab.a, work)
        time.sleep(WARM_S + self.seconds)
        self.state = link_state(self.ground)
        self.over.set()

    def facts(self):
        until = WARM_S + self.seconds
        pair, tcp = (flow.rate(WARM_S, until) for flow in (self.pair, self.tcp))
        series = [{"from_s": at, "pair": self.pair.rate(at, min(at + SERIES_S, until)),
                   "tcp": self.tcp.rate(at, min(at + SERIES_S, until))}
                  for at in range(0, until, SERIES_S)]
        return {"carrier": self.carrier, "tcp_congestion": self.congestion,
                "failed": self.failed, "pair_mbit_per_s": pair, "tcp_mbit_per_s": tcp,
                "share": pair / (pair + tcp) if pair + tcp else 0.0, "series": series,
                "emulation": emulation(self.state)}


def contests(binary, options, number, folder):
    """One run of all carriers."""
    runs = []
    try:
        for carrier in options.carriers:
            name = f"share{os.getpid()}{carrier}{number}"
            runs.append(Contest(binary, name, carrier, options, os.path.join(folder, name)))
        together([run.run for run in runs])
    finally:
        for run in runs:
            run.over.set()
            run.ground.stop()
    facts = [run.facts() for run in runs]
    for one in facts:
        ba = one["emulation"]["ba"]
        print(f"     {one['carrier']:7} run {number}: share {one['share']:.1%}, "
              f"plain flow by {one['tcp_congestion']}, {one['failed']} failed, "
              f"dropped {ba['dropped']}, {lateness(one['emulation'])}")
        print("             Mbit/s each 5 s, pair/tcp: " + " ".join(
            f"{step['pair']:.2f}/{step['tcp']:.2f}" for step in one["series"]), flush=True)
    return facts


def judge(carrier, facts, own):
    """Prints the medians of a carrier's runs; whether they are as they should be."""
    shares = [one["share"] for one in facts]
    pair, tcp = (median([one[key] for one in facts])
                 for key in ("pair_mbit_per_s", "tcp_mbit_per_s"))
    both = median([one["pair_mbit_per_s"] + one["tcp_mbit_per_s"] for one in facts])
    targeted = carrier == "burst" and not own
    failed = sum(one["failed"] for one in facts)
    well = not targeted or (failed == 0 and MIN_SHARE <= median(shares) <= MAX_SHARE)
    mark = "     " if not targeted else "ok   " if well else "FAIL "
    print(f"{mark}{carrier:7} share {median(shares):.1%} ({min(shares):.1%} to {max(shares):.1%}), "
          f"pair {pair:.3f} Mbit/s, tcp {tcp:.3f} Mbit/s, sum {both:.3f} Mbit/s", flush=True)
    return well


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--carriers", default="burst,quic,stream", type=lambda at: at.split(","))
    parser.add_argument("--seconds", type=int, default=60, help="of counting, after 10 s")
    parser.add_argument("--repeat", type=int, default=1, help="runs, one after another")
    parser.add_argument("--own", action="store_true", help="with own = true under [link]")
    parser.add_argument("--json", help="file for the figures")
    options = parser.parse_args()
    binary = os.environ.get("LONGWIRE", "target/release/longwire")
    print(f"     {LINK} with a queue of {QUEUE}: {', '.join(options.carriers)} at once, "
          f"{options.repeat} times {WARM_S + options.seconds} s", flush=True)
    folder, facts = tempfile.mkdtemp(prefix="longwire-share-"), []
    try:
        for number in range(1, options.repeat + 1):
            facts += contests(binary, options, number, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    well = True
    for carrier in options.carriers:
        of_carrier = [one for one in facts if one["carrier"] == carrier]
        well = judge(carrier, of_carrier, options.own) and well
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump({"link": LINK, "queue": QUEUE, "seconds": options.seconds,
                       "own": options.own, "runs": facts}, out, indent=1)
    sys.exit(0 if well else 1)


if __name__ == "__main__":
    main()
