#!/usr/bin/env python3
"""Urgent messages beside bulk that fills a slow link: what each takes there and back.

  interop/urgency/run.py [--link cnr] [--messages 300] [--cases LIST] [--json FILE]

LONGWIRE names the binary; root is needed, for network namespaces. Edge and gateway have keys and
stand at the two ends of an emulated link, once for each case, all at the same time. Three clients
send 20 KB that do not compress, again and again; a minute later another begins to send 200 bytes
every 2 to 4 s, as urgent as "flash", and is answered with 204.

  stream      by TCP
  stream-own  by TCP, and both sides know that the link is theirs, and what it carries
  quic, quic-own
              the same by QUIC
  burst       by datagrams
  auto        by whichever carrier the pair takes
  unordered   by datagrams, and the messages are no more urgent than the bulk

Exit status 1 where a message failed, or the median of burst or auto is over 1.5 s or the 99th
percentile over 2.6 s.
"""

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(HERE, "..", "carriers"))

from ground import Ground

MAX_MEDIAN_S, MAX_P99_S = 1.5, 2.6
BULK_BYTES, FLASH_BYTES, BULK_CLIENTS = 20_000, 200, 3
WARM_S = 60
PAUSE_S = (2.0, 4.0)
CLIENT_TIMEOUT_S = 600
CASES = {"stream": ("stream", "flash"), "stream-own": ("stream", "flash"),
         "quic": ("quic", "flash"), "quic-own": ("quic", "flash"), "burst": ("burst", "flash"),
         "auto": ("auto", "flash"), "unordered": ("burst", "routine")}
OWN_RATE = "9600 bit/s"


class Case:
    """A pair at the ends of a link of its own, with the clients of one case."""

    def __init__(self, name, options, binary, folder):
        carrier, urgency = CASES[name]
        self.name, self.messages = name, options.messages
        self.took, self.failed, self.bulk = [], 0, 0
        self.lock, self.over = threading.Lock(), threading.Event()
        service = f'[[service]]\nmatch = "{{origin}}/flash"\nurgency = "{urgency}"\n'
        common, own = 'encoding = "identity"\n', ""
        if name.endswith("-own"):
            common, own = common + f'rate_cap = "{OWN_RATE}"\n', "[link]\nown = true\n"
        self.ground = Ground(binary, f"urgency{os.getpid()}{name}", options.link,
                             os.path.join(folder, name), carrier, edge=own + service,
                             gateway=own, common=common)

    def inside(self, work):
        return Ground.inside(self.ground.lab.a, work)

    def post(self, path, size):
        return self.ground.post(path, size, CLIENT_TIMEOUT_S)

    def fill(self):
        while not self.over.is_set():
            done = self.post("/bulk", BULK_BYTES)
            with self.lock:
                self.bulk += BULK_BYTES if done else 0
            if not done:
                self.over.wait(1)

    def flash(self):
        began = time.perf_counter()
        done = self.post("/flash", FLASH_BYTES)
        with self.lock:
            if done:
                self.took.append(time.perf_counter() - began)
            else:
                self.failed += 1

    def run(self):
        self.ground.await_first()
        for _ in range(BULK_CLIENTS):
            self.inside(self.fill)
        time.sleep(WARM_S)
        began, before = time.monotonic(), self.bulk
        chance, askers = random.Random(1), []
        for at in range(self.messages):
            askers.append(self.inside(self.flash))
            if at % 20 == 19:
                print(f"     {self.name}: {at + 1} of {self.messages} sent", flush=True)
            time.sleep(chance.uniform(*PAUSE_S))
        for asker in askers:
            asker.join()
        self.rate = (self.bulk - before) * 8 / (time.monotonic() - began)
        self.over.set()

    def facts(self):
        took = sorted(self.took)

        def at(share):
            return took[min(len(took) - 1, int(len(took) * share))] if took else None

        return {"case": self.name, "messages": self.messages, "failed": self.failed,
                "median_s": at(0.5), "p95_s": at(0.95), "p99_s": at(0.99),
                "longest_s": at(1.0), "bulk_bit_per_s": self.rate}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--link", default="cnr")
    parser.add_argument("--messages", type=int, default=300)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--json")
    options = parser.parse_args()
    names = options.cases.split(",")
    unknown = [name for name in names if name not in CASES]
    if unknown:
        parser.error(f"no case {unknown[0]!r}: one of {', '.join(CASES)}")
    binary = os.environ.get("LONGWIRE", "target/release/longwire")
    minutes = (WARM_S + options.messages * sum(PAUSE_S) / 2) / 60
    print(f"     {len(names)} cases at once, about {minutes:.0f} min", flush=True)
    folder = tempfile.mkdtemp(prefix="longwire-urgency")
    cases = []
    try:
        for name in names:
            cases.append(Case(name, options, binary, folder))
        runs = [threading.Thread(target=case.run) for case in cases]
        for run in runs:
            run.start()
        for run in runs:
            run.join()
    finally:
        for case in cases:
            case.ground.stop()
        shutil.rmtree(folder, ignore_errors=True)
    well, facts = True, [case.facts() for case in cases]
    for one in facts:
        passes = one["failed"] == 0
        if one["case"] in ("burst", "auto"):
            passes = passes and one["median_s"] <= MAX_MEDIAN_S and one["p99_s"] <= MAX_P99_S
        well = well and passes
        times = ", ".join(f"{name} {one[key]:.3f} s" for name, key in
                          (("median", "median_s"), ("p95", "p95_s"), ("p99", "p99_s"),
                           ("longest", "longest_s"))) if one["median_s"] is not None else "none answered"
        print(("ok   " if passes else "FAIL ") + f"{one['case']:10} {times}, "
              f"{one['failed']} of {one['messages']} failed, "
              f"bulk {one['bulk_bit_per_s']:.0f} bit/s", flush=True)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump({"link": options.link, "cases": facts}, out, indent=1)
    sys.exit(0 if well else 1)


if __name__ == "__main__":
    main()
