#!/usr/bin/env python3
"""A path that takes shorter and shorter packets while a carrier is up: nothing is lost of it.

  interop/carriers/narrow.py [--carriers burst,quic,stream] [--exchanges 20] [--lose-pieces]
                             [--json FILE]

LONGWIRE names the binary; root is needed, for network namespaces. One carrier after another has an
emulated link of its own: `los` (2 Mbit/s, 5 ms each way). One client sends 20 KB that do not
compress, and asks for as much, in turn; then both ends of the link take packets of no more than
1400 bytes, then of 900, then of 576, then of 1500 again. What is longer goes in pieces, as behind
any router on the way: carriers set no bit against that.

With --lose-pieces neither end puts pieces together: what is longer than a packet is lost, and nothing
says so. QUIC needs 1200 bytes in a piece (RFC 9000 section 14) and gives way to the TCP beside it.

Exit status 1 where an exchange fails, or a carrier ends or comes up beside those of the beginning
(but QUIC with --lose-pieces).
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from ground import ADMIN, Ground
from measuring import as_seconds, link_state, median, percentile, ready

LINK, BODY_BYTES = "los", 20_000
PACKET_BYTES = (1500, 1400, 900, 576, 1500)
# What carriers are beside the first one are up by then, such as the TCP beside QUIC.
SETTLE_S, CLIENT_TIMEOUT_S = 5, 60
# Addresses of groups and of all.
NO_HOST = ("224.", "255.")


class Case:
    """A pair with one carrier at the ends of a link of its own."""

    def __init__(self, binary, carrier, options, folder):
        self.carrier, self.exchanges = carrier, options.exchanges
        self.loses_pieces = options.lose_pieces
        self.phases = []
        self.ground = Ground(binary, f"narrow{os.getpid()}{carrier}", LINK,
                             os.path.join(folder, carrier), carrier,
                             edge=ADMIN)

    def narrow(self, most_bytes):
        for namespace in (self.ground.lab.a, self.ground.lab.b):
            def inside(*command):
                return subprocess.run(["nsenter", f"--net={namespace}", "ip", *command],
                                      check=True, capture_output=True, timeout=20).stdout

            for route in json.loads(inside("-json", "route")):
                if route.get("prefsrc") and not route["dst"].startswith(NO_HOST):
                    inside("route", "change", route["dst"], "dev", route["dev"], "scope", "link",
                           "src", route["prefsrc"], "mtu", str(most_bytes))
            if self.loses_pieces:
                # No memory for pieces: each is dropped (ip-sysctl: ipfrag_high_thresh).
                refuse = ("cd /proc/sys/net/ipv4 && echo 0 > ipfrag_low_thresh"
                          " && echo 0 > ipfrag_high_thresh")
                subprocess.run(["nsenter", f"--net={namespace}", "sh", "-c", refuse],
                               check=True, timeout=20)

    def ask(self, phase):
        for _ in range(self.exchanges):
            for do in (lambda: self.ground.get(BODY_BYTES, CLIENT_TIMEOUT_S),
                       lambda: self.ground.post("/", BODY_BYTES, CLIENT_TIMEOUT_S)):
                began = time.perf_counter()
                if do():
                    phase["took_s"].append(time.perf_counter() - began)
                else:
                    phase["failed"] += 1

    def carriers(self):
        """How many came up, and how many ended."""
        found = dict(self.ground.metrics(self.ground.lab.a))
        return {which: int(found[f"carriers_{which}_total"]) for which in ("up", "down")}

    def packets(self):
        """Those that the link has carried, in both directions."""
        state = link_state(self.ground)
        return sum(state[way]["traffic"]["packets_in"] for way in ("ab", "ba"))

    def run(self):
        ready(self.ground)
        time.sleep(SETTLE_S)
        before = self.carriers()
        for most_bytes in PACKET_BYTES:
            self.narrow(most_bytes)
            phase = {"packet_bytes": most_bytes, "took_s": [], "failed": 0}
            before_packets = self.packets()
            self.ground.inside(self.ground.lab.a, lambda phase=phase: self.ask(phase)).join()
            phase["packets"] = (self.packets() - before_packets) / self.exchanges / 2
            self.phases.append(phase)
        after = self.carriers()
        self.since = {which: after[which] - before[which] for which in before}

    def facts(self):
        may_end = self.loses_pieces and self.carrier == "quic"
        return {"carrier": self.carrier, "carriers": self.since, "may_end": may_end,
                "phases": self.phases}


def judge(one):
    """Prints a carrier's figures; whether they are as they should be."""
    failed = sum(phase["failed"] for phase in one["phases"])
    well = failed == 0 and (one["may_end"] or not any(one["carriers"].values()))
    print(("ok   " if well else "FAIL ") + f"{one['carrier']:7} {failed} failed, "
          f"{one['carriers']['down']} carriers ended, {one['carriers']['up']} came up; by packets: "
          + ", ".join(f"{phase['packet_bytes']} {as_seconds(median(phase['took_s']))} (p95 "
                      f"{as_seconds(percentile(phase['took_s'], 95))}, {phase['packets']:.0f} "
                      "packets)" for phase in one["phases"]), flush=True)
    return well


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--carriers", default="burst,quic,stream", type=lambda at: at.split(","))
    parser.add_argument("--exchanges", type=int, default=20, help="each way, of a length")
    parser.add_argument("--lose-pieces", action="store_true", help="drop pieces of datagrams")
    parser.add_argument("--json", help="file for the figures")
    options = parser.parse_args()
    binary = os.environ.get("LONGWIRE", "target/release/longwire")
    folder, facts = tempfile.mkdtemp(prefix="longwire-narrow-"), []
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
            json.dump({"link": LINK, "cases": facts}, out, indent=1)
    sys.exit(0 if well else 1)


if __name__ == "__main__":
    main()
