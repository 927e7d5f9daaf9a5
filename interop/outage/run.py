#!/usr/bin/env python3
"""A link that is down for a while, and a gateway that is dead or hangs: what the next requests take.

  interop/outage/run.py [--link satcom] [--down 40] [--rounds 3] [--json FILE]

LONGWIRE names the binary; root is needed, for network namespaces. Edge and gateway have keys and
stand at the two ends of an emulated link. The cases:

  quiet   the link is down for --down seconds in which nobody asks; then one request
  asked   the same while a request is sent every 5 s
  dead    the gateway is killed, fallback = "direct": requests beside the same without the edge
  hung    the gateway is stopped (SIGSTOP), fallback = "direct"

Exit status 1 where the first request behind an outage takes over 5 s, a request from the second on
past a dead gateway takes over one round trip more than directly, or /health/ready is wrong.
"""

import argparse
import json
import os
import shutil
import signal
import statistics
import sys
import tempfile
import threading
import time

from world import World

MAX_BEHIND_OUTAGE_S = 5.0
ASK_EVERY_S = 5


def outage(world, down_s, asked):
    """Times of the first three requests behind an outage, and whether /health/ready told of it."""
    told = None
    world.lab.set(loss="100 %")
    until = time.monotonic() + down_s
    askers = []
    while time.monotonic() < until:
        if asked and until - time.monotonic() > ASK_EVERY_S:
            asker = threading.Thread(target=world.through)
            asker.start()
            askers.append(asker)
        time.sleep(min(ASK_EVERY_S, max(0.0, until - time.monotonic())))
    told = not world.ready() if asked else None
    world.lab.set(loss="0 %")
    behind = [world.through() for _ in range(3)]
    for asker in askers:
        asker.join()
    return behind, told


def row(name, well, text):
    print(("ok   " if well else "FAIL ") + f"{name:8} {text}", flush=True)
    return well


def seconds(times):
    return ", ".join(f"{took:.2f} s" + ("" if status == 200 else f" ({status})")
                     for status, took in times)


def measure(binary, options, facts):
    """All cases; whether all is well."""
    well = True
    folder = tempfile.mkdtemp(prefix="longwire-outage-")
    try:
        world = World(binary, folder, options.link, "none")
        try:
            world.until_ready()
            usual = [world.through() for _ in range(5)]
            facts["usual"] = usual
            row("usual", True, seconds(usual))
            for asked in [False, True] * options.rounds:
                name = "asked" if asked else "quiet"
                behind, told = outage(world, options.down, asked)
                facts.setdefault(name, []).append({"behind": behind, "told": told})
                status, first = behind[0]
                right = status == 200 and first <= MAX_BEHIND_OUTAGE_S and told is not False
                said = {None: "", True: "; not ready meanwhile", False: "; ready meanwhile"}[told]
                well &= row(name, right, f"behind {options.down} s: {seconds(behind)}{said}")
        finally:
            world.stop()
        shutil.rmtree(folder)
        os.makedirs(folder)
        world = World(binary, folder, options.link, "direct")
        try:
            world.until_ready()
            world.through()
            direct = [world.direct() for _ in range(5)]
            usual = statistics.median(took for _, took in direct)
            # A connection and a request: two round trips and what the answer takes.
            round_trip = usual / 2
            facts["direct"] = direct
            row("direct", True, seconds(direct))
            for name in ("dead", "hung"):
                if name == "dead":
                    world.gateway.kill()
                else:
                    world.gateway.start()
                    world.until_ready()
                    world.through()
                    world.gateway.process.send_signal(signal.SIGSTOP)
                times = [world.through() for _ in range(6)]
                facts[name] = times
                most = usual + round_trip
                # One that hangs is known once it has not answered.
                right = all(status == 200 for status, _ in times)
                right &= all(took <= most for _, took in times[1:])
                well &= row(name, right, f"{seconds(times)}; from the second on at most {most:.2f}")
        finally:
            world.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return well


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--link", default="satcom", help="preset of the laboratory")
    parser.add_argument("--down", type=float, default=40, help="seconds of an outage")
    parser.add_argument("--rounds", type=int, default=3, help="outages of each sort")
    parser.add_argument("--json", help="file for the figures")
    options = parser.parse_args()
    facts = {"link": options.link, "down_s": options.down}
    well = measure(os.environ.get("LONGWIRE", "target/release/longwire"), options, facts)
    if options.json:
        with open(options.json, "w", encoding="ascii") as file:
            json.dump(facts, file, indent=2)
    sys.exit(0 if well else 1)


if __name__ == "__main__":
    main()
