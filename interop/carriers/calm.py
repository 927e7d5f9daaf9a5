#!/usr/bin/env python3
"""A slow link, full in both directions for long: no carrier reconnects, control gets through.

  interop/carriers/calm.py [--carriers burst,stream,quic] [--seconds 600] [--json FILE]

LONGWIRE names the binary; root is needed, for network namespaces. Each carrier has an emulated
link of its own, all at the same time: 50 kbit/s and 100 ms each way, no loss, a queue of 1000
packets, which nothing but the sender's own care keeps short. Three clients send 20 KB that do not
compress, again and again, and three others ask for as much; 30 s later another begins to send a
byte every 2 s, to a service of the urgency "flash", and is answered with 204.

  reconnects  carriers that ended, or that came up, since the load began: `carriers_down_total` and
              `carriers_up_total` of the edge's /metrics; the greater of the two
  stalls      how often the edge held the peer for silent (`carriers_stalled_total`)
  control     time of those urgent exchanges. No metric has the round trip of the carriers' own
              control frames for all kinds; an urgent exchange stands in the same lines as these do
  transport   the longest smoothed round trip of the transport itself, looked at every 5 s
              (`carrier_rtt_seconds`); burst has none

Exit status 1 where a carrier reconnects, an exchange fails, or the 99th percentile of control over
burst is over 1 s.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import threading
import time

from ground import ADMIN, Ground
from measuring import (as_seconds, emulation, lateness, link_state, median, percentile, ready,
                       together)

MAX_CONTROL_P99_S = 1.0
LINK = "los"
SETTINGS = {"rate": "50 kbit/s", "delay": "100 ms", "loss": "0 %"}
BULK_BYTES, CLIENTS = 20_000, 3
WARM_S = 30
ASK_EVERY_S, LOOK_EVERY_S = 2, 5
# What carriers are beside the first one are up by then, such as the TCP beside QUIC.
SETTLE_S = 5
CLIENT_TIMEOUT_S = 120
COUNTERS = ("up", "down", "stalled")


class Case:
    """A pair with one carrier at the ends of a link of its own, with its clients."""

    def __init__(self, binary, carrier, options, folder):
        self.carrier, self.asks = carrier, max(1, options.seconds // ASK_EVERY_S)
        self.took, self.failed, self.bulk = {}, 0, {"up": 0, "down": 0, "failed": 0}
        self.transport_s, self.rates = None, {}
        self.lock, self.over = threading.Lock(), threading.Event()
        edge = ADMIN + '[[service]]\nmatch = "{origin}/flash"\nurgency = "flash"\n'
        self.ground = Ground(binary, f"calm{os.getpid()}{carrier}", LINK,
                             os.path.join(folder, carrier), carrier, SETTINGS, edge=edge)

    def inside(self, work):
        return self.ground.inside(self.ground.lab.a, work)

    def fill(self, way):
        """A bulk client, of one direction."""
        while not self.over.is_set():
            up = way == "up"
            done = (self.ground.post("/bulk", BULK_BYTES, CLIENT_TIMEOUT_S) if up
                    else self.ground.get(BULK_BYTES, CLIENT_TIMEOUT_S))
            with self.lock:
                if done:
                    self.bulk[way] += BULK_BYTES
                elif not self.over.is_set():
                    self.bulk["failed"] += 1
            if not done:
                self.over.wait(1)

    def flash(self, at_s):
        began = time.perf_counter()
        done = self.ground.post("/flash", 1, CLIENT_TIMEOUT_S)
        with self.lock:
            if done:
                self.took[at_s] = time.perf_counter() - began
            else:
                self.failed += 1

    def metrics(self):
        """The edge's metrics by name, each with the values of all its labels."""
        found = {}
        for name, value in self.ground.metrics(self.ground.lab.a):
            found.setdefault(name.split("{")[0], []).append(value)
        return found

    def counts(self):
        found = self.metrics()
        self.look(found)
        return {name: int(found[f"carriers_{name}_total"][0]) for name in COUNTERS}

    def look(self, found):
        for value in found.get("carrier_rtt_seconds", []):
            self.transport_s = max(value, self.transport_s or 0.0)

    def run(self):
        ready(self.ground)
        time.sleep(SETTLE_S)
        before = self.counts()
        self.transport_s = None
        for way in ["up", "down"] * CLIENTS:
            self.inside(lambda way=way: self.fill(way))
        time.sleep(WARM_S)
        began, askers = time.monotonic(), []
        with self.lock:
            bulk = dict(self.bulk)
        for at in range(self.asks):
            askers.append(self.inside(lambda at=at: self.flash(at * ASK_EVERY_S)))
            if at * ASK_EVERY_S % LOOK_EVERY_S < ASK_EVERY_S:
                self.look(self.metrics())
            if at % 30 == 29:
                print(f"     {self.carrier}: {at + 1} of {self.asks} sent", flush=True)
            time.sleep(max(0.0, began + (at + 1) * ASK_EVERY_S - time.monotonic()))
        with self.lock:
            took_s = time.monotonic() - began
            self.rates = {way: (self.bulk[way] - bulk[way]) * 8 / took_s for way in ("up", "down")}
        for asker in askers:
            asker.join()
        after = self.counts()
        self.since = {name: after[name] - before[name] for name in COUNTERS}
        self.state = link_state(self.ground)
        self.over.set()

    def facts(self):
        took = list(self.took.values())
        minutes = [[value for at, value in self.took.items() if at // 60 == minute]
                   for minute in range(self.asks * ASK_EVERY_S // 60 + 1)]
        return {"carrier": self.carrier, "carriers": self.since,
                "reconnects": max(self.since["up"], self.since["down"]),
                "asked": self.asks, "failed": self.failed,
                "control_median_s": median(took), "control_p99_s": percentile(took, 99),
                "control_longest_s": percentile(took, 100), "control_s": self.took,
                "longest_of_minutes_s": [max(of) for of in minutes if of],
                "transport_s": self.transport_s, "bulk_failed": self.bulk["failed"],
                "bulk_up_bit_per_s": self.rates["up"], "bulk_down_bit_per_s": self.rates["down"],
                "emulation": emulation(self.state)}


def judge(one):
    """Prints a carrier's figures; whether they are as they should be."""
    well = one["reconnects"] == 0 and one["failed"] == 0 and one["bulk_failed"] == 0
    if one["carrier"] == "burst":
        well = well and (one["control_p99_s"] or 0.0) <= MAX_CONTROL_P99_S
    queues = "/".join(f"{one['emulation'][way]['queue_peak_bytes'] / 1e3:.0f}"
                      for way in ("ab", "ba"))
    print(("ok   " if well else "FAIL ") + f"{one['carrier']:7} {one['reconnects']} reconnects, "
          f"{one['carriers']['stalled']} stalls; control median "
          f"{as_seconds(one['control_median_s'])}, p99 {as_seconds(one['control_p99_s'])}, "
          f"longest {as_seconds(one['control_longest_s'])}, {one['failed']} of {one['asked']} "
          f"failed\n             transport at most {as_seconds(one['transport_s'])}; bulk "
          f"{one['bulk_up_bit_per_s'] / 1e3:.1f} kbit/s up, "
          f"{one['bulk_down_bit_per_s'] / 1e3:.1f} down, {one['bulk_failed']} failed; "
          f"longest queues {queues} KB\n             {lateness(one['emulation'])}; "
          "control's longest in each minute: "
          + ", ".join(f"{value:.2f}" for value in one["longest_of_minutes_s"]), flush=True)
    return well


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--carriers", default="burst,stream,quic", type=lambda at: at.split(","))
    parser.add_argument("--seconds", type=int, default=600, help="of measuring, after 30 s")
    parser.add_argument("--json", help="file for the figures")
    options = parser.parse_args()
    binary = os.environ.get("LONGWIRE", "target/release/longwire")
    print(f"     {', '.join(options.carriers)} at once, "
          f"about {(WARM_S + SETTLE_S + options.seconds) / 60:.1f} min", flush=True)
    folder, cases = tempfile.mkdtemp(prefix="longwire-calm-"), []
    try:
        for carrier in options.carriers:
            cases.append(Case(binary, carrier, options, folder))
        together([case.run for case in cases])
    finally:
        for case in cases:
            case.over.set()
            case.ground.stop()
        shutil.rmtree(folder, ignore_errors=True)
    facts = [case.facts() for case in cases]
    well = all([judge(one) for one in facts])
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump({"settings": SETTINGS, "seconds": options.seconds, "cases": facts}, out,
                      indent=1)
    sys.exit(0 if well else 1)


if __name__ == "__main__":
    main()
