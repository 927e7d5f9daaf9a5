#!/usr/bin/env python3
"""Small exchanges over a very slow link by burst: their time against what the link alone takes.

  interop/carriers/small.py [--link cnr] [--apis soap,rest-json] [--exchanges 200] [--json FILE]

LONGWIRE names the binary; root is needed, for network namespaces. Each interface has an emulated
link of its own, at the same time: `cnr` has 9.6 kbit/s and 100 ms each way, and loses 1 %. On host
b `longwire serve tracks` is the origin, on host a `longwire fetch tracks` the client of the edge;
carrier = "burst", encoding = "auto". The 22 tracks are fetched twice to warm up, so that there are
bases for deltas and dictionaries. Then, one exchange after another, pass after pass:

  small  tracks 1 to 4, answers of 0.7 to 3 KB as JSON, up to about 4 KB as SOAP
  all    the 22 tracks, answers of up to 110 KB as JSON

of each at least --exchanges, in whole passes. Told of each are

  median   of the times of exchanges, as the client has them: from before the first byte of the
           request to after the last of the answer
  bound    round trip + bytes up / rate up + bytes down / rate down. The round trip is twice the
           delay, without queue. Bytes up are those that host a's interface sent while measured
           exchanges went on, bytes down those that host b's sent, each with IP headers and without
           Ethernet's, divided by the number of exchanges: so with what seals, repairs and
           acknowledges, what the link then lost, and what belongs to no exchange (pieces of
           dictionaries). What crosses beside something else, such as an acknowledgement behind the
           answer, counts in full, so an exchange may take less
  content  the same with the bytes that the edge's log has for an exchange (`request_wire_bytes`,
           `answer_wire_bytes`): heads and bodies as they crossed, coded, in their frames, without
           datagrams. No datagrams can be that small

and the ratios of the median, and of the mean, to both: bytes are means, so where sizes differ much
the mean is the fairer one; and the median of the ratios of each exchange's time to its own
content's bound. Exit status 1 where median / bound is over 1.25, an exchange failed, or there were
fewer than 200 of a kind.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from ground import EDGE_PORT, ORIGIN_PORT, Ground
from measuring import (as_seconds, emulation, lateness, link_state, median, percentile, quantity,
                       ready, together)

MAX_RATIO = 1.25
MIN_EXCHANGES = 200
CARRIER = "burst"
GROUPS = {"small": range(1, 5), "all": range(1, 23)}
ETHERNET_BYTES = 14
# A pass of 22 by far, where the link is as slow as cnr.
PASS_TIMEOUT_S = 300
LOG_TIMEOUT_S = 20


class Tracks(Ground):
    """A pair with the tracks as its origin."""

    tracks = None

    def serve(self):
        command = [self.lab.binary, "serve", "tracks", "--listen",
                   f"{self.lab.gateway}:{ORIGIN_PORT}"]
        # Of this thread's namespace.
        self.tracks = subprocess.Popen(command, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def stop(self):
        if self.tracks:
            self.tracks.kill()
            self.tracks.wait()
        super().stop()

    def sent(self):
        """IP bytes that the interfaces of host a and host b have sent."""
        found = []
        for side in ("edge", "gateway"):
            process = next(one for one in self.sides if one.name == side).process
            with open(f"/proc/{process.pid}/net/dev", encoding="ascii") as table:
                line = next(line for line in table if line.strip().startswith("lw0:"))
            fields = line.split(":")[1].split()
            found.append(int(fields[8]) - ETHERNET_BYTES * int(fields[9]))
        return found


class Group:
    """Exchanges of some tracks, and the bytes that they took."""

    def __init__(self, name):
        self.name, self.took, self.failed = name, [], 0
        self.sent, self.content = [], []

    def facts(self, ways):
        """With the settings of both directions of the link."""
        count = max(1, len(self.took) + self.failed)
        round_trip_s = sum(quantity(way["delay"]) for way in ways)

        def bound(sizes):
            return round_trip_s + sum(size * 8 / quantity(way["rate"])
                                      for size, way in zip(sizes, ways))

        crossed = [size / count for size in self.sent]
        content = [sum(sizes) / len(self.content) for sizes in zip(*self.content)]
        facts = {"tracks": self.name, "exchanges": len(self.took), "failed": self.failed,
                 "median_s": median(self.took), "p90_s": percentile(self.took, 90),
                 "mean_s": sum(self.took) / len(self.took) if self.took else None,
                 "ip_bytes": crossed, "bound_s": bound(crossed), "content_bytes": content,
                 "content_bound_s": bound(content) if content else None, "took_s": self.took}
        for name, of in (("bound", "bound_s"), ("content", "content_bound_s")):
            for figure in ("median", "mean"):
                value = facts[f"{figure}_s"]
                facts[f"{figure}_of_{name}"] = value / facts[of] if value and facts[of] else None
        each = [took / bound(sizes) for took, sizes in zip(self.took, self.content)]
        # Only then it is known which line is whose.
        paired = self.failed == 0 and len(self.content) == len(self.took)
        facts["median_of_own_content"] = median(each) if paired else None
        return facts


class Case:
    """The exchanges of one interface."""

    def __init__(self, binary, api, options, folder):
        self.binary, self.api, self.exchanges = binary, api, options.exchanges
        self.groups = [Group(name) for name in GROUPS]
        self.ground = Tracks(binary, f"small{os.getpid()}{api}", options.link,
                             os.path.join(folder, api), CARRIER,
                             edge='[log]\nformat = "json"\n', common='encoding = "auto"\n')

    def fetch(self, *more):
        """One run of the client."""
        command = ["nsenter", f"--net={self.ground.lab.a}", self.binary, "fetch", "tracks", "--url",
                   self.ground.origin, "--api", self.api, "--proxy",
                   f"http://127.0.0.1:{EDGE_PORT}", "--budget", f"{PASS_TIMEOUT_S} s", "--json",
                   *more]
        done = subprocess.run(command, capture_output=True, timeout=2 * PASS_TIMEOUT_S)
        if not done.stdout:
            raise OSError(f"fetch {self.api}: {done.stderr.decode(errors='replace').strip()}")
        return json.loads(done.stdout)["measured"]

    def logged(self):
        """Bytes up and down of each exchange that the edge's log has."""
        edge = next(side for side in self.ground.sides if side.name == "edge")
        found = []
        with open(edge.log, encoding="utf-8", errors="replace") as log:
            for line in log:
                if '"request_wire_bytes"' in line and line.endswith("\n"):
                    entry = json.loads(line)
                    fields = entry.get("fields", entry)
                    found.append((fields["request_wire_bytes"], fields["answer_wire_bytes"]))
        return found

    def settled(self):
        """The same, once no line comes any more: the last one comes a moment behind its answer."""
        until, before = time.monotonic() + LOG_TIMEOUT_S, None
        while (now := self.logged()) != before and time.monotonic() < until:
            before = now
            time.sleep(0.5)
        return now

    def measure(self, group):
        tracks = GROUPS[group.name]
        passes = -(-self.exchanges // len(tracks))
        logged, before = len(self.settled()), self.ground.sent()
        for number in range(1, passes + 1):
            for exchange in self.fetch("--cold", "--tracks", f"{tracks[0]}-{tracks[-1]}"):
                if exchange["error"] or exchange["censored"]:
                    group.failed += 1
                else:
                    group.took.append(exchange["elapsed_s"])
            if number % 10 == 0 or number == passes:
                print(f"     {self.api} {group.name}: {number} of {passes} passes", flush=True)
        group.sent = [now - then for now, then in zip(self.ground.sent(), before)]
        group.content = self.settled()[logged:]

    def run(self):
        ready(self.ground, lambda: not self.fetch("--cold", "--tracks", "1")[0]["error"])
        # Warms up with all tracks, and then once more.
        self.fetch()
        for group in self.groups:
            self.measure(group)
        self.state = link_state(self.ground)

    def facts(self):
        ways = [self.state["ab"], self.state["ba"]]
        return {"api": self.api, "groups": [group.facts(ways) for group in self.groups],
                "emulation": emulation(self.state)}


def judge(api, one):
    """Prints the figures of a group; whether they are as they should be."""
    ratio = one["median_of_bound"]
    well = (ratio is not None and ratio <= MAX_RATIO and one["failed"] == 0
            and one["exchanges"] >= MIN_EXCHANGES)

    def times(value):
        return "none" if value is None else f"{value:.2f}"

    def column(name, sizes, bound_s):
        up, down = sizes or (0, 0)
        return (f"\n                     {name}: median {times(one[f'median_of_{name}'])}, mean "
                f"{times(one[f'mean_of_{name}'])} of {as_seconds(bound_s)} "
                f"({up:.0f} B up, {down:.0f} B down)")

    print(("ok   " if well else "FAIL ") + f"{api:9} {one['tracks']:5} "
          f"median {as_seconds(one['median_s'])}, mean {as_seconds(one['mean_s'])}, "
          f"p90 {as_seconds(one['p90_s'])}, "
          f"{one['failed']} of {one['exchanges'] + one['failed']} failed"
          + column("bound", one["ip_bytes"], one["bound_s"])
          + column("content", one["content_bytes"], one["content_bound_s"])
          + f"; each of its own: median {times(one['median_of_own_content'])}", flush=True)
    return well


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--link", default="cnr")
    parser.add_argument("--apis", default="soap,rest-json", type=lambda apis: apis.split(","))
    parser.add_argument("--exchanges", type=int, default=200, help="of each kind, at least")
    parser.add_argument("--json", help="file for the figures")
    options = parser.parse_args()
    binary = os.environ.get("LONGWIRE", "target/release/longwire")
    print(f"     {', '.join(options.apis)} at once over {options.link}, "
          f"at least {options.exchanges} exchanges of a kind", flush=True)
    folder, cases = tempfile.mkdtemp(prefix="longwire-small-"), []
    try:
        for api in options.apis:
            cases.append(Case(binary, api, options, folder))
        together([case.run for case in cases])
    finally:
        for case in cases:
            case.ground.stop()
        shutil.rmtree(folder, ignore_errors=True)
    facts = [case.facts() for case in cases]
    well = all([judge(one["api"], group) for one in facts for group in one["groups"]])
    for one in facts:
        print(f"     {one['api']:9} {lateness(one['emulation'])}", flush=True)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump({"link": options.link, "carrier": CARRIER, "cases": facts}, out, indent=1)
    sys.exit(0 if well else 1)


if __name__ == "__main__":
    main()
