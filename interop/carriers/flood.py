#!/usr/bin/env python3
"""Half-open handshakes by the thousand from many addresses: what others feel of it, and what stays.

  interop/carriers/flood.py [--carriers burst,quic] [--rate 2000] [--addresses 4096]
                            [--seconds 20] [--rounds 2] [--json FILE]

LONGWIRE names the binary; root is needed, for network namespaces, and Python's `cryptography`. One
carrier after another has an emulated link of its own: `los` (2 Mbit/s, 5 ms each way). A client
asks for 200 bytes that do not compress, one answer after another, in phases of --seconds: quiet,
flooded, quiet, flooded (--rounds times). In the flooded ones, beside the gateway and not over the
link, so many handshakes a second (--rate) begin with it, from one of --addresses after another
(`strangers.py`): each shows that it receives at its address where the gateway asks for that, and
goes no further.

Figures are of all phases of a kind: the time of an exchange, the gateway's processor time, its
resident memory at the most, descriptors behind it, the lines that it logged beside those of
exchanges, and what its /metrics counted.

Exit status 1 where an exchange fails or a carrier ends, the 99th percentile is over 1.1 times the
quiet one, resident memory grows by more than 32 MiB, or there are more than 10 lines a second.
"""

import argparse
import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

from ground import ADMIN, EDGE_PORT, HERE, Ground
from measuring import as_seconds, emulation, lateness, link_state, median, percentile, ready
from pair import GATEWAY_PORT

LINK, ANSWER_BYTES = "los", 200
MAX_TIMES, MAX_GROWTH_BYTES, MAX_LINES_PER_S = 1.1, 32 << 20, 10
# An Initial that an edge sends to nobody: it has so long for it.
HARVEST_S, CLIENT_TIMEOUT_S, READY_S = 30, 60, 60
# Places of strangers are free again by then, and whoever was asked for a token has been.
SETTLE_S = 2
LOST_PORT = 4999
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
COUNTED = ("limits_reached_total", "datagrams_refused_total", "carriers_up_total",
           "carriers_down_total")


def harvest(binary, ground, folder):
    """The first QUIC packet of an edge whose key the gateway does not know, as hexadecimal text."""
    key = os.path.join(folder, "stranger")
    subprocess.run([binary, "keygen", key], check=True, capture_output=True, timeout=20)
    found = []

    def catch():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as nobody:
            nobody.bind(("127.0.0.1", LOST_PORT))
            nobody.settimeout(HARVEST_S)
            command = [binary, "edge", "--listen", "127.0.0.1:0", "--gateway",
                       f"127.0.0.1:{LOST_PORT}", "--key", f"{key}/longwire.key", "--peer",
                       os.path.join(folder, "gateway", "longwire.pub"), "--carrier", "quic"]
            edge = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                while not found:
                    came = nobody.recv(2048)
                    if came[0] & 0xF0 == 0xC0:
                        found.append(came.hex())
            except TimeoutError:
                pass
            finally:
                edge.kill()
                edge.wait()

    ground.inside(ground.lab.b, catch).join()
    if not found:
        raise OSError(f"an edge sent no Initial in {HARVEST_S} s")
    return found[0]


class Strangers:
    """The process that floods, from its start to its end."""

    def __init__(self, ground, what):
        command = ["nsenter", f"--net={ground.lab.b}", sys.executable,
                   os.path.join(HERE, "strangers.py")]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()
        if self.process.stdout.readline() != "ready\n":
            raise OSError("the strangers did not begin")

    def end(self):
        self.process.stdin.close()
        return json.loads(self.process.stdout.readline())

    def kill(self):
        self.process.kill()
        self.process.wait()


class Case:
    """A pair with one carrier, a client and the strangers."""

    def __init__(self, binary, carrier, options, folder):
        self.carrier, self.options, self.folder = carrier, options, os.path.join(folder, carrier)
        self.ground = Ground(binary, f"flood{os.getpid()}{carrier}", LINK, self.folder, carrier,
                             gateway=ADMIN)
        self.gateway = self.ground.sides[0]
        self.took, self.failed, self.floods = {"quiet": [], "flooded": []}, 0, []
        self.used_s = {"quiet": 0.0, "flooded": 0.0}
        self.lines = {"quiet": 0, "flooded": 0}
        self.resident = {"before": 0, "most": 0}
        try:
            ready(self.ground)
            own_key = os.path.join(self.folder, "gateway", "longwire.pub")
            with open(own_key, encoding="ascii") as key:
                self.what = {"gateway": [self.ground.lab.gateway, GATEWAY_PORT],
                             "gateway_key": key.read(), "addresses": options.addresses,
                             "rate": options.rate}
            if carrier == "quic":
                self.what["initial"] = harvest(binary, self.ground, self.folder)
        except BaseException:
            self.ground.stop()
            raise

    def ask(self, kind, until):
        """A client of the edge, in host a: asks again and again over one connection."""
        connection = http.client.HTTPConnection("127.0.0.1", EDGE_PORT, timeout=CLIENT_TIMEOUT_S)
        while time.monotonic() < until:
            began = time.perf_counter()
            try:
                connection.request("GET", f"{self.ground.origin}/{ANSWER_BYTES}")
                answer = connection.getresponse()
                done = answer.status == 200 and len(answer.read()) == ANSWER_BYTES
            except (OSError, http.client.HTTPException):
                done = False
                connection.close()
            if done:
                self.took[kind].append(time.perf_counter() - began)
            else:
                self.failed += 1
        connection.close()

    def asking(self, kind, seconds):
        until = time.monotonic() + seconds
        return self.ground.inside(self.ground.lab.a, lambda: self.ask(kind, until))

    def processor_s(self):
        with open(f"/proc/{self.gateway.process.pid}/stat", encoding="ascii") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_S

    def logged(self):
        """Lines of the gateway's log, but for what it is asked to do."""
        with open(self.gateway.log, "rb") as log:
            return sum(b" INFO " not in line for line in log)

    def counted(self):
        """What the gateway's /metrics say of bounds, datagrams and carriers."""
        found = self.ground.metrics(self.ground.lab.b)
        return {key: int(value) for key, value in found if key.split("{")[0] in COUNTED}

    def phase(self, kind):
        strangers = Strangers(self.ground, self.what) if kind == "flooded" else None
        try:
            used_s, lines = self.processor_s(), self.logged()
            client = self.asking(kind, self.options.seconds)
            while client.is_alive():
                client.join(0.1)
                self.resident["most"] = max(self.resident["most"], self.gateway.resident())
            self.used_s[kind] += self.processor_s() - used_s
            self.lines[kind] += self.logged() - lines
            if strangers:
                self.floods.append(strangers.end())
        finally:
            if strangers:
                strangers.kill()
        time.sleep(SETTLE_S)

    def run(self):
        # What the first exchanges find out of the link is no figure of either kind.
        self.asking("quiet", SETTLE_S).join()
        self.took["quiet"].clear()
        before = self.counted()
        self.resident["before"] = self.gateway.resident()
        descriptors = self.gateway.descriptors()
        for _ in range(self.options.rounds):
            self.phase("quiet")
            self.phase("flooded")
        after = self.counted()
        self.state = link_state(self.ground)
        self.since = {key: after[key] - before.get(key, 0) for key in after
                      if after[key] != before.get(key, 0)}
        self.descriptors = self.gateway.descriptors() - descriptors

    def facts(self):
        all_s = self.options.seconds * self.options.rounds
        kinds = {kind: {"exchanges": len(took), "median_s": median(took),
                        "p99_s": percentile(took, 99), "longest_s": percentile(took, 100),
                        "processor": self.used_s[kind] / all_s,
                        "lines_per_s": self.lines[kind] / all_s}
                 for kind, took in self.took.items()}
        return {"carrier": self.carrier, "failed": self.failed, **kinds, "floods": self.floods,
                "resident_before_bytes": self.resident["before"],
                "resident_most_bytes": self.resident["most"],
                "descriptors_more": self.descriptors, "counted": self.since,
                "took_s": self.took, "emulation": emulation(self.state)}


def judge(one):
    """Prints a carrier's figures; whether they are as they should be."""
    quiet, flooded = one["quiet"], one["flooded"]
    times = flooded["p99_s"] / quiet["p99_s"]
    growth = one["resident_most_bytes"] - one["resident_before_bytes"]
    ended = one["counted"].get("carriers_down_total", 0)
    well = (one["failed"] == 0 and ended == 0 and times <= MAX_TIMES
            and growth <= MAX_GROWTH_BYTES and flooded["lines_per_s"] <= MAX_LINES_PER_S)
    took_s = sum(flood["took_s"] for flood in one["floods"])
    begun, asked, answered = (sum(flood[key] for flood in one["floods"]) / took_s
                              for key in ("begun", "asked", "answered"))
    print(("ok   " if well else "FAIL ") + f"{one['carrier']:6} {begun:.0f} handshakes begun a "
          f"second, {asked:.0f} shown an address, {answered:.0f} other answers; p99 {times:.2f} "
          f"times the quiet one\n             {one['failed']} failed, {ended} carriers ended; "
          f"resident {one['resident_before_bytes'] / 2**20:.0f} MiB, at most "
          f"{one['resident_most_bytes'] / 2**20:.0f}; {one['descriptors_more']} descriptors more; "
          f"{lateness(one['emulation'])}")
    for kind in ("quiet", "flooded"):
        of = one[kind]
        print(f"             {kind:7} {of['exchanges']} exchanges, median "
              f"{as_seconds(of['median_s'])}, p99 {as_seconds(of['p99_s'])}, longest "
              f"{as_seconds(of['longest_s'])}; processor {of['processor']:.0%}, "
              f"{of['lines_per_s']:.1f} lines a second")
    print("             counted: " + ", ".join(f"{key} {value}" for key, value
                                               in sorted(one["counted"].items())), flush=True)
    return well


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--carriers", default="burst,quic", type=lambda at: at.split(","))
    parser.add_argument("--rate", type=int, default=2000, help="handshakes begun in a second")
    parser.add_argument("--addresses", type=int, default=4096, help="of strangers")
    parser.add_argument("--seconds", type=int, default=20, help="of a phase")
    parser.add_argument("--rounds", type=int, default=2, help="of a quiet and a flooded phase")
    parser.add_argument("--json", help="file for the figures")
    options = parser.parse_args()
    binary = os.environ.get("LONGWIRE", "target/release/longwire")
    folder, facts = tempfile.mkdtemp(prefix="longwire-flood-"), []
    try:
        for carrier in options.carriers:
            case = Case(binary, carrier, options, folder)
            try:
                case.run()
            finally:
                case.ground.stop()
            facts.append(case.facts())
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    well = all([judge(one) for one in facts])
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump({"link": LINK, "rate": options.rate, "addresses": options.addresses,
                       "seconds": options.seconds, "rounds": options.rounds, "cases": facts}, out,
                      indent=1)
    sys.exit(0 if well else 1)


if __name__ == "__main__":
    main()
