#!/usr/bin/env python3
"""The pair over an emulated link, while links, processes, origins, disks and descriptors fail.

  interop/faults/run.py [--runs 1000] [--jobs 3] [--first 0] [--json FILE]
  interop/faults/run.py --seed N [--keep]      one run alone, with a new pair
  interop/faults/run.py --series K [--keep]    the runs of one series, over the same pair

LONGWIRE names the binary; root is needed (namespaces, small disks). What a run does follows from
its seed: outages of the link, `kill -9`, carriers broken between living processes, resets by the
origin, a full disk, descriptors used up. A series is 25 runs over one pair, in which what is killed
is started again; in every fourth both processes live through all of it, so that growth can be seen. Checked in each run:
a request that is not idempotent reached the origin at most once, and exactly once where a 2xx
answered it; nothing cut passed for whole; every client came to an end; the pair serves again
when the faults are over; its descriptors are back. Exit status 1 if any of that failed.
"""

import argparse
import concurrent.futures
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(HERE, "..", "conformance"))

from clients import MAX_END_S, Client
from origin import Origin
from pair import Pair

SERIES_RUNS = 25
RUN_S = 1.5
EXCHANGES = 14
SETTLE_TIMEOUT_S = 20.0
# Connections of the origin's pool and of the store that may stay open, and carriers that a break left
# behind: five at most, with two descriptors each, until peer_timeout.
SPARE_DESCRIPTORS = 8 + 10
# What may be learned and kept, beyond what the first half of a series took.
MAX_GROWTH_BYTES = 12 << 20
MIN_RUNS_FOR_GROWTH = 12
SERIES_TIMEOUT_S = 900


def plan_client(chance, key):
    """What one client does."""
    kind = chance.choices(["get", "post", "tunnel", "events"], [40, 35, 12, 13])[0]
    plan = {"kind": kind, "at": round(chance.uniform(0, RUN_S), 3), "key": key}
    if kind == "get":
        plan["size"] = chance.choice([0, 1, 500, 5_000, 40_000, 150_000])
        plan["way"] = chance.choice(["length", "chunked", "close"])
        plan["pause"] = chance.choice([0, 0, 0.05, 0.1])
    elif kind == "post":
        plan["size"] = chance.choice([0, 20, 2_000, 30_000, 150_000])
        plan["way"] = chance.choice(["length", "chunked"])
        plan["pause"] = chance.choice([0, 0, 0.05, 0.1])
    elif kind == "tunnel":
        plan["size"] = chance.choice([100, 10_000, 60_000])
        plan["pause"] = chance.choice([0, 0.05, 0.1])
    else:
        plan["count"], plan["pause"] = chance.choice([5, 10, 20]), chance.choice([0.03, 0.1])
    return plan


def plan_run(seed):
    """All that a run does, from its seed."""
    chance = random.Random(seed)
    may_kill = {0: [], 1: ["gateway"], 2: ["edge"], 3: ["edge", "gateway"]}[seed // SERIES_RUNS % 4]
    plan = {
        "link": {"delay": f"{chance.choice([1, 5, 20, 50])} ms",
                 "rate": f"{chance.choice([1, 2, 8])} Mbit/s",
                 "loss": f"{chance.choice([0, 0, 0.5, 2])} %"},
        "clients": [plan_client(chance, f"{seed}-{n}") for n in range(EXCHANGES)],
        "faults": [],
    }

    def at():
        return round(chance.uniform(0.1, RUN_S), 3)

    def add(kind, side=None, low=0.1, high=0.8):
        plan["faults"].append({"kind": kind, "side": side, "at": at(),
                               "for": round(chance.uniform(low, high), 3)})

    if chance.random() < 0.35:
        add("outage", low=0.2, high=1.5)
    elif chance.random() < 0.08:
        # Longer than the pair waits for its other side.
        add("outage", low=3, high=6)
    for side in may_kill:
        if chance.random() < 0.5:
            add("kill", side)
    if chance.random() < 0.3:
        add("carrier", chance.choice(["edge", "gateway"]))
    if chance.random() < 0.2:
        add("disk", chance.choice(["edge", "gateway"]), 0.3, 1.2)
    if chance.random() < 0.2:
        add("descriptors", chance.choice(["edge", "gateway"]), 0.2, 0.8)
    if chance.random() < 0.4:
        for client in plan["clients"]:
            if client["kind"] in ("get", "post") and chance.random() < 0.3:
                client["fault"] = chance.choice(["reset-head", "reset-body", "reset-answer"])
    return plan


class Fault(threading.Thread):
    """Does one thing to the pair, and undoes it."""

    def __init__(self, pair, plan, link):
        super().__init__(daemon=True)
        self.pair, self.plan, self.link, self.error = pair, plan, link, None

    def run(self):
        try:
            time.sleep(self.plan["at"])
            side = self.pair.sides.get(self.plan["side"])
            getattr(self, self.plan["kind"])(side)
        except Exception as error:
            self.error = repr(error)

    def pause(self):
        time.sleep(self.plan["for"])

    def outage(self, _side):
        self.pair.lab.set(loss="100 %")
        self.pause()
        self.pair.lab.set(loss=self.link["loss"])

    def kill(self, side):
        side.kill()
        self.pause()
        side.start()

    def carrier(self, side):
        self.pair.break_carrier(side)

    def disk(self, side):
        side.fill_disk()
        self.pause()
        side.empty_disk()

    def descriptors(self, side):
        if not side.alive():
            return
        pid = side.process.pid
        side.limit_descriptors(2)
        self.pause()
        if side.alive() and side.process.pid == pid:
            side.limit_descriptors(None)


def probe(pair, key):
    """Whether the pair serves a plain request now."""
    plan = {"kind": "get", "at": 0, "size": 500, "way": "length", "pause": 0}
    client = Client(pair.lab.a, key, plan)
    client.start()
    client.join(MAX_END_S + 5)
    return client.end == "whole" and client.status == 200


def settle(pair, key):
    """Restarts what is down and waits until the pair serves; the seconds, or None."""
    started, attempt = time.monotonic(), 0
    while time.monotonic() - started < SETTLE_TIMEOUT_S:
        for side in pair.sides.values():
            if not side.alive():
                side.start()
        attempt += 1
        if probe(pair, f"{key}-{attempt}"):
            return time.monotonic() - started
        time.sleep(0.1)
    return None


def wrong_ends(plan, clients, origin):
    """What the ends of clients and the origin's book contradict."""
    found = []
    killed = {fault["side"] for fault in plan["faults"] if fault["kind"] == "kill"}
    for client in clients:
        what = f"{client.plan['kind']} {client.key}: "
        if client.end in (None, "hang"):
            found.append(what + f"no end after {client.seconds:.1f} s")
        if client.lie:
            found.append(what + client.lie)
        if client.plan["kind"] == "post":
            heads, wholes = (table.get(client.key, 0) for table in (origin.heads, origin.wholes))
            if heads > 1:
                found.append(what + f"reached the origin {heads} times")
            if client.end == "whole" and wholes != 1:
                found.append(what + f"answered {client.status}, reached the origin {wholes} times")
        if client.plan["kind"] == "tunnel":
            # What a process leaves open when it is killed, the kernel ends in order.
            if client.end == "whole" and client.early and "edge" not in killed:
                found.append(what + "cut, but its client saw an orderly end")
            count, size, how = origin.tunnels.get(client.key, (0, 0, "none"))
            if how == "fin" and count < size and "gateway" not in killed:
                found.append(what + f"{count} of {size} bytes, but the origin saw an orderly end")
    return found


class Series:
    """Runs over one pair."""

    def __init__(self, binary, name, keep=False):
        self.folder, self.keep = tempfile.mkdtemp(prefix=f"faults-{name}-"), keep
        os.chmod(self.folder, 0o700)
        self.pair = Pair(binary, self.folder, name)
        self.origin = Origin(self.pair.lab.b)
        self.base, self.sizes = {}, {}
        for side in self.pair.sides.values():
            side.start()
        if settle(self.pair, "first") is None:
            raise OSError(f"the pair did not start; see {self.folder}")

    def run(self, seed):
        """One run; gives its facts."""
        plan = plan_run(seed)
        self.pair.lab.set(**plan["link"])
        clients = [Client(self.pair.lab.a, client["key"], client) for client in plan["clients"]]
        faults = [Fault(self.pair, fault, plan["link"]) for fault in plan["faults"]]
        started = time.monotonic()
        for thread in clients + faults:
            thread.start()
        for thread in clients + faults:
            thread.join(max(0.1, started + RUN_S + MAX_END_S + 10 - time.monotonic()))
        problems = [f"{fault.plan['kind']}: {fault.error}" for fault in faults if fault.error]
        recovered = settle(self.pair, f"{seed}-after")
        if recovered is None:
            problems.append(f"did not serve within {SETTLE_TIMEOUT_S:.0f} s after the faults")
        problems += wrong_ends(plan, clients, self.origin)
        self.origin.close_all()
        problems += self.descriptors_back()
        ends = {}
        for client in clients:
            ends[client.end] = ends.get(client.end, 0) + 1
        return {"seed": seed, "problems": problems, "ends": ends,
                "faults": [fault["kind"] + (f" {fault['side']}" if fault["side"] else "")
                           for fault in plan["faults"]],
                "resets": sum("fault" in client.plan for client in clients),
                "recovered_s": round(recovered or 0, 2),
                "seconds": round(time.monotonic() - started, 2)}

    def descriptors_back(self):
        """Waits until the processes hold no more descriptors than at their first quiet moment."""
        problems = []
        for name, side in self.pair.sides.items():
            pid = side.process.pid
            base = self.base.setdefault(pid, side.descriptors() + SPARE_DESCRIPTORS)
            deadline = time.monotonic() + 8
            while side.descriptors() > base and time.monotonic() < deadline:
                time.sleep(0.1)
            if side.descriptors() > base:
                problems.append(f"{name} holds {side.descriptors()} descriptors, at first {base}")
            self.sizes.setdefault((name, pid), []).append(side.resident())
        return problems

    def growth(self):
        """Processes that lived long, and grew beyond what may be learned."""
        problems, seen = [], []
        for (name, pid), sizes in self.sizes.items():
            if len(sizes) >= MIN_RUNS_FOR_GROWTH:
                half = max(sizes[:len(sizes) // 2])
                seen.append((name, half, sizes[-1]))
                if sizes[-1] > half + MAX_GROWTH_BYTES:
                    problems.append(f"{name} (process {pid}) grew from {half >> 20} MiB in its "
                                    f"first {len(sizes) // 2} runs to {sizes[-1] >> 20} MiB")
        return problems, seen

    def stop(self):
        self.pair.stop()
        if self.keep:
            print(f"logs are in {self.folder}", file=sys.stderr)
        else:
            shutil.rmtree(self.folder, ignore_errors=True)


def run_series(binary, seeds, name, keep):
    """Runs these seeds over one pair and prints a line of JSON for each."""
    series = Series(binary, name, keep)
    failed = False
    try:
        for seed in seeds:
            facts = series.run(seed)
            failed = failed or bool(facts["problems"])
            print(json.dumps(facts), flush=True)
            if any("did not serve" in problem for problem in facts["problems"]):
                break
        problems, seen = series.growth()
        print(json.dumps({"series": name, "problems": problems, "resident": seen}), flush=True)
        failed = failed or bool(problems)
    finally:
        series.stop()
    return 1 if failed else 0


def run_all(first, runs, jobs, path):
    """All series, some at once, each a process of its own."""
    numbers = range(first // SERIES_RUNS, (first + runs + SERIES_RUNS - 1) // SERIES_RUNS)
    facts, started = [], time.monotonic()

    def one(number):
        command = [sys.executable, os.path.join(HERE, "run.py"), "--series", str(number)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SERIES_TIMEOUT_S)
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        if not any("series" in line for line in lines):
            lines.append({"series": f"faults{number}",
                          "problems": [f"the series itself failed: {done.stderr[-500:]}"]})
        return number, lines

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for number, lines in pool.map(one, numbers):
            facts += lines
            for line in lines:
                again = f"--seed {line['seed']}" if "seed" in line else f"--series {number}"
                for problem in line["problems"]:
                    print(f"{again} (series {number}): {problem}", flush=True)
    if path:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(facts, file, indent=1)
    return conclude(facts, time.monotonic() - started)


def conclude(facts, seconds):
    """Prints the sums; the exit status."""
    runs = [line for line in facts if "seed" in line]
    ends, faults = {}, {}
    for line in runs:
        for end, count in line["ends"].items():
            ends[end] = ends.get(end, 0) + count
        for fault in line["faults"]:
            faults[fault] = faults.get(fault, 0) + 1
    bad = [line for line in facts if line["problems"]]
    recovered = sorted(line["recovered_s"] for line in runs) or [0]
    print(f"{len(runs)} runs in {seconds:.0f} s, {sum(ends.values())} exchanges: "
          + ", ".join(f"{count} {end}" for end, count in sorted(ends.items(), key=str)))
    print("faults: " + ", ".join(f"{count} {fault}" for fault, count in sorted(faults.items()))
          + f", {sum(line['resets'] for line in runs)} resets by the origin")
    print(f"served again within {recovered[-1]} s, half of the times within "
          f"{recovered[len(recovered) // 2]} s")
    for line in facts:
        for name, half, last in line.get("resident", []):
            if last - half > MAX_GROWTH_BYTES // 3:
                print(f"{line['series']}: {name} went from {half >> 20} to {last >> 20} MiB")
    print(f"{len(bad)} of them with problems" if bad
          else "nothing lost, doubled, cut unseen or grown")
    return 1 if bad or not runs else 0


def main():
    parser = argparse.ArgumentParser(description="The pair while things fail.")
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=3)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--series", type=int)
    parser.add_argument("--keep", action="store_true", help="keep the logs")
    given = parser.parse_args()
    binary = os.environ.get("LONGWIRE") or sys.exit("faults: set LONGWIRE to the binary")
    binary = shutil.which(binary) or os.path.abspath(binary)
    if os.geteuid() != 0:
        sys.exit("faults: root is needed, for namespaces and small disks")
    if given.seed is not None:
        print(json.dumps(plan_run(given.seed), indent=1))
        return run_series(binary, [given.seed], f"seed{given.seed}", given.keep)
    if given.series is not None:
        first = given.series * SERIES_RUNS
        return run_series(binary, range(first, first + SERIES_RUNS), f"faults{given.series}",
                          given.keep)
    return run_all(given.first, given.runs, given.jobs, given.json)


if __name__ == "__main__":
    sys.exit(main())
