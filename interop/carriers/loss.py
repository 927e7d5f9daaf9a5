#!/usr/bin/env python3
"""Time by loss and size, by carrier: what an answer takes over a link that loses packets.

  interop/carriers/loss.py [--exchanges 1000] [--others 100] [--censor 200] [--budget 2400]
                           [--sizes 2000,20000,200000] [--losses 0,1,5,10,20,30]
                           [--carriers burst,stream,quic,kcp,quinn] [--at-once 32]
                           [--json FILE]

LONGWIRE names the binary; root is needed, for network namespaces. Edge and gateway have keys and
stand at the two ends of an emulated link (wifi2: 2 Mbit/s, 100 ms each way) that loses so many per
cent of the packets in either direction. One client asks for bodies that do not compress, one after
another over a kept connection: --exchanges times where the carrier is burst, --others times else.
Where these may take long they are split over several pairs with links of their own, which lose
other packets. --at-once pairs run at the same time, those that take longest first: with many more
the times are those of two cores. An exchange that takes longer than --censor seconds counts as so
long, and its connection is closed. --budget bounds the whole run: what is not over by then is left
out, and how many that cut short is told.

  burst, stream, quic   the pair
  kcp, quinn            forwarders in its place, built by interop/carriers/build; only where 5 or
                        20 % get lost

Bytes are those that the gateway's host sent, with all headers but Ethernet's, by those of bodies
that came to the client. Exit status 1 where burst misses a target where 20 % get lost.
"""

import argparse
import contextlib
import http.client
import json
import math
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(HERE, "..", "faults"))

from ground import Ground
from pair import EDGE_PORT, GATEWAY_PORT, ORIGIN_PORT, Side, enter

LINK, DEVICE = "wifi2", "lw0"
PEERS = {"kcp": "kcp-bulk", "quinn": "quic-bulk"}
PEER_LOSSES = (5, 20)
# The targets, of burst where so much gets lost: times by those of the same size without loss.
TARGET_LOSS = 20
MAX_MEDIAN_RATIO, MAX_P95_RATIO = 1.3, 1.6
MAX_BYTES_RATIO, BYTES_RATIO_SIZES = 2.5, (20_000, 200_000)
# Where others than burst may take as long as --censor, most exchanges one after another.
SLOW_LOSS, SLOW_BYTES, MAX_SLOW_EXCHANGES = 10, 20_000, 10
WARM_EXCHANGES, WARM_S = 3, 30
# In front of the first measured exchange and after the last, for what is still sent for others.
QUIET_S = 1
# Of the budget, for taking everything down.
DOWN_S = 30
# More would disturb each other's times by Python's lock.
MAX_PARTS_OF_PROCESS = 8
# What one per cent of loss adds to the time of an exchange other than by burst, roughly.
LENGTHENING = 1.5
RATE_BYTES_PER_S, ROUND_TRIP_S = 250_000, 0.2
PROGRESS_S = 60
# Where processors were busier the times are also theirs.
MAX_BUSY = 0.8
BUILD_TIMEOUT_S = 900
ETHERNET_BYTES, MAX_FRAME_BYTES = 14, 1514
PIECE_BYTES = 65536


class Part:
    """The exchanges of one case, or some of them, over one pair."""

    def __init__(self, at, carrier, size, loss, exchanges):
        self.at, self.carrier, self.size, self.loss = at, carrier, size, loss
        self.exchanges = exchanges
        self.name = f"loss{os.getpid()}x{at}"
        self.took, self.failures = [], []
        self.failed = self.censored = self.cut = self.received = 0
        self.sent = (0, 0)
        self.ground = self.connection = None
        self.over = False

    def expected_s(self):
        """Roughly how long it takes."""
        one = ROUND_TRIP_S + self.size / RATE_BYTES_PER_S
        return self.exchanges * one * (1 if self.carrier == "burst" else
                                       1 + LENGTHENING * self.loss)

    def lay(self, options, folder):
        """Brings up the link and what stands at its ends."""
        own = os.path.join(folder, str(self.at))
        os.makedirs(own)
        self.censor_s, self.until = options.censor, options.until
        self.file = os.path.join(folder, f"{self.at}.json")
        self.ground = Ground(options.binary, self.name, LINK, own, self.carrier,
                             settings={"loss": f"{self.loss} %"}, seed=self.at + 1,
                             pair=self.carrier not in PEERS)
        if self.carrier in PEERS:
            program = os.path.join(options.peers, PEERS[self.carrier])
            lab = self.ground.lab
            gateway = f"{lab.gateway}:{GATEWAY_PORT}"
            for role, namespace, ends in (
                    ("server", lab.b, [gateway, f"{lab.gateway}:{ORIGIN_PORT}"]),
                    ("client", lab.a, [f"127.0.0.1:{EDGE_PORT}", gateway])):
                self.ground.sides.append(Side(role, namespace, [program, role, *ends], own, own))
                self.ground.sides[-1].start()

    def run(self):
        """Asks, tells in a file what came of it, and takes the link down."""
        try:
            self.ground.await_first()
            Ground.inside(self.ground.lab.a, self.ask_all).join()
        finally:
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                self.ground.stop()
            # Renamed, so that nobody reads half of it.
            with open(self.file + ".new", "w", encoding="utf-8") as out:
                json.dump({name: getattr(self, name) for name in (
                    "took", "failures", "failed", "censored", "cut", "received", "sent")}, out)
            os.rename(self.file + ".new", self.file)
            self.over = True

    def ask_all(self):
        try:
            warm_until = time.monotonic() + WARM_S
            for _ in range(WARM_EXCHANGES):
                self.ask(min(warm_until, self.until))
            time.sleep(QUIET_S)
            before, self.received = self.counters(), 0
            while self.exchanges > len(self.took) + self.failed and time.monotonic() < self.until:
                self.measure()
            time.sleep(QUIET_S)
            after = self.counters()
            self.sent = tuple(now - then for now, then in zip(after, before))
        except OSError:
            # Of a run that is ended there is no link any more.
            if not self.ground.stopped.is_set():
                raise
        finally:
            self.close()

    def measure(self):
        began = time.perf_counter()
        censored_at = time.monotonic() + self.censor_s
        answer = self.ask(min(censored_at, self.until))
        if answer == "answered":
            self.took.append(time.perf_counter() - began)
        elif answer == "failed":
            self.failed += 1
        elif time.monotonic() >= censored_at:
            self.took.append(self.censor_s)
            self.censored += 1
        else:
            self.cut += 1

    def ask(self, until):
        """One exchange: whether it was "answered", "failed", or is "late"."""
        try:
            left = until - time.monotonic()
            if left <= 0:
                return "late"
            if self.connection is None:
                self.connection = http.client.HTTPConnection("127.0.0.1", EDGE_PORT, timeout=left)
                self.connection.connect()
            socket = self.connection.sock
            socket.settimeout(left)
            origin = "" if self.carrier in PEERS else self.ground.origin
            self.connection.request("GET", f"{origin}/{self.size}",
                                    headers={"Host": f"{self.ground.lab.gateway}:{ORIGIN_PORT}"})
            response = self.connection.getresponse()
            got, expected = 0, response.length
            while expected is None or got < expected:
                left = until - time.monotonic()
                if left <= 0:
                    raise TimeoutError
                socket.settimeout(left)
                piece = response.read1(PIECE_BYTES)
                if not piece:
                    break
                got += len(piece)
                self.received += len(piece)
            response.close()
            if response.status != 200 or got != self.size:
                raise http.client.HTTPException(f"status {response.status}, {got} bytes")
            return "answered"
        except TimeoutError:
            self.close()
            return "late"
        except (OSError, http.client.HTTPException) as error:
            self.failures.append(repr(error))
            self.close()
            return "failed"

    def close(self):
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def counters(self):
        """Bytes, without Ethernet's, and packets that host b has sent; this thread is in host a."""
        try:
            enter(self.ground.lab.b)
            # Not of /sys, which shows the namespace that it was mounted in.
            with open("/proc/thread-self/net/dev", encoding="ascii") as file:
                lines = dict(line.split(":", 1) for line in file if ":" in line)
            row = {name.strip(): words.split() for name, words in lines.items()}[DEVICE]
        finally:
            enter(self.ground.lab.a)
        count, packets = int(row[8]), int(row[9])
        return count - ETHERNET_BYTES * packets, packets


def work(parts, turn, runners, options, folder):
    """What one of the processes does: several threads of it take one part after another."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    over, taken = threading.Event(), []

    def run():
        while not over.is_set() and time.monotonic() < options.until:
            with turn.get_lock():
                at, turn.value = turn.value, turn.value + 1
            if at >= len(parts):
                return
            part = parts[at]
            taken.append(part)
            try:
                part.lay(options, folder)
                part.run()
            except Exception:
                # The others go on: the case has fewer exchanges than asked for.
                traceback.print_exc()
                if part.ground:
                    part.ground.stop()

    threads = [threading.Thread(target=run, daemon=True) for _ in range(runners)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        over.set()
        for part in taken:
            if part.ground and not part.over:
                part.ground.stop()


def plan(options):
    """The parts of all cases, in the order of the table."""
    parts = []
    for carrier in options.carriers:
        for size in options.sizes:
            for loss in options.losses:
                if carrier in PEERS and loss not in PEER_LOSSES:
                    continue
                left = options.exchanges if carrier == "burst" else options.others
                slow = carrier != "burst" and loss >= SLOW_LOSS and size >= SLOW_BYTES
                count = math.ceil(left / MAX_SLOW_EXCHANGES) if slow else 1
                for at in range(count):
                    mine = left // count + (at < left % count)
                    parts.append(Part(len(parts), carrier, size, loss, mine))
    return parts


def run_all(parts, options, folder):
    """Runs the parts in processes, and takes down what a process left behind."""
    fork = multiprocessing.get_context("fork")
    turn, order = fork.Value("i", 0), sorted(parts, key=lambda part: -part.expected_s())
    at_once = min(options.at_once, len(parts))
    count = math.ceil(at_once / MAX_PARTS_OF_PROCESS)
    processes = []
    for at in range(count):
        runners = at_once // count + (at < at_once % count)
        processes.append(fork.Process(target=work, args=(order, turn, runners, options, folder)))
    told, then = time.monotonic(), busy()
    try:
        for process in processes:
            process.start()
        while any(process.is_alive() for process in processes):
            if time.monotonic() > options.until + DOWN_S:
                break
            time.sleep(0.2)
            if time.monotonic() > told + PROGRESS_S:
                through = sum(os.path.exists(file_of(part, folder)) for part in parts)
                print(f"     {through} of {len(parts)} pairs are through, "
                      f"processors {busy_share(then):.0%} busy", flush=True)
                told, then = time.monotonic(), busy()
    finally:
        for process in processes:
            if process.is_alive():
                process.terminate()
        for process in processes:
            if process.pid is not None:
                process.join(DOWN_S)
                if process.is_alive():
                    process.kill()
        for part in parts:
            if os.path.exists(f"/run/netns/lw-{part.name}-a"):
                subprocess.run([options.binary, "lab", "down", part.name], timeout=20,
                               capture_output=True, check=False)


def file_of(part, folder):
    return os.path.join(folder, f"{part.at}.json")


def facts_of(parts, folder):
    """What came of each case, by carrier, size and loss."""
    cases = {}
    for part in parts:
        case = cases.setdefault((part.carrier, part.size, part.loss), {
            "carrier": part.carrier, "size": part.size, "loss_percent": part.loss, "pairs": 0,
            "asked": 0, "failed": 0, "censored": 0, "cut": 0, "received": 0, "sent": 0,
            "packets": 0, "failures": [], "took_s": []})
        case["asked"] += part.exchanges
        case["pairs"] += 1
        with contextlib.suppress(FileNotFoundError), open(file_of(part, folder), "rb") as file:
            one = json.load(file)
            for name in ("failed", "censored", "cut", "received"):
                case[name] += one[name]
            case["sent"] += one["sent"][0]
            case["packets"] += one["sent"][1]
            case["took_s"] += [round(took, 4) for took in one["took"]]
            case["failures"] = (case["failures"] + one["failures"])[:5]
    for case in cases.values():
        took = sorted(case["took_s"])

        def at(share):
            return took[min(len(took) - 1, int(len(took) * share))] if took else None

        case |= {"n": len(took), "median_s": at(0.5), "p95_s": at(0.95), "p99_s": at(0.99),
                 "longest_s": at(1.0)}
        if case["packets"] and case["received"]:
            case["bytes_ratio"] = case["sent"] / case["received"]
            if case["sent"] / case["packets"] > MAX_FRAME_BYTES - ETHERNET_BYTES:
                raise SystemExit(f"loss: {DEVICE} joins packets: headers are not counted")
    for (carrier, size, _), case in cases.items():
        clean = cases.get((carrier, size, 0))
        if carrier == "burst" and clean and clean["n"] and case["n"]:
            for name in ("median", "p95"):
                case[f"{name}_ratio"] = case[f"{name}_s"] / clean["median_s"]
    return list(cases.values())


def show(cases):
    print("carrier    size  loss     n  failed censored  cut   median      p95      p99  longest"
          "  bytes   by median without loss")
    for case in cases:
        times = " ".join(f"{case[name]:8.3f}" if case["n"] else "       –"
                         for name in ("median_s", "p95_s", "p99_s", "longest_s"))
        share = f"{case['bytes_ratio']:6.2f}" if "bytes_ratio" in case else "     –"
        ratios = (f"   median {case['median_ratio']:.2f}, p95 {case['p95_ratio']:.2f}"
                  if "median_ratio" in case else "")
        print(f"{case['carrier']:7} {case['size']:7} {case['loss_percent']:3} % {case['n']:5} "
              f"{case['failed']:7} {case['censored']:8} {case['cut']:4} {times} {share}{ratios}")
        for failure in case["failures"]:
            print(f"        {failure}")


def judge(cases):
    """Prints each target and whether it is met; whether all are."""
    well = True

    def target(met, text):
        nonlocal well
        well = well and met
        print(("ok   " if met else "FAIL ") + text)

    for case in cases:
        if case["carrier"] != "burst" or case["loss_percent"] != TARGET_LOSS:
            continue
        what = f"burst, {case['size']} bytes, {TARGET_LOSS} %:"
        failed = case["failed"] + case["censored"]
        target(failed == 0 and case["n"] > 0,
               f"{what} {failed} of {case['n'] + case['failed']} failed")
        for name, most in (("median", MAX_MEDIAN_RATIO), ("p95", MAX_P95_RATIO)):
            if f"{name}_ratio" in case:
                ratio = case[f"{name}_ratio"]
                target(ratio <= most, f"{what} {name} {ratio:.2f} of the median without loss, "
                                      f"at most {most}")
        if case["size"] in BYTES_RATIO_SIZES and "bytes_ratio" in case:
            target(case["bytes_ratio"] <= MAX_BYTES_RATIO,
                   f"{what} {case['bytes_ratio']:.2f} bytes a byte, at most {MAX_BYTES_RATIO}")
    return well


def busy():
    """Seconds that processors were busy, and all seconds, of all of them."""
    with open("/proc/stat", encoding="ascii") as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)


def busy_share(then):
    """What share of the time since then processors were busy."""
    now = busy()
    return (now[0] - then[0]) / max(1, now[1] - then[1])


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    numbers = lambda text: [int(word) for word in text.split(",")]
    parser.add_argument("--exchanges", type=int, default=1000)
    parser.add_argument("--others", type=int, default=100)
    parser.add_argument("--censor", type=float, default=200)
    parser.add_argument("--budget", type=float, default=2400)
    parser.add_argument("--sizes", type=numbers, default=[2_000, 20_000, 200_000])
    parser.add_argument("--losses", type=numbers, default=[0, 1, 5, 10, 20, 30])
    parser.add_argument("--carriers", type=lambda text: text.split(","),
                        default=["burst", "stream", "quic", *PEERS])
    parser.add_argument("--at-once", type=int, default=32)
    parser.add_argument("--json")
    options = parser.parse_args()
    unknown = set(options.carriers) - {"burst", "stream", "quic", *PEERS}
    if unknown:
        parser.error(f"unknown carriers: {', '.join(sorted(unknown))}")
    options.binary = os.path.abspath(os.environ.get("LONGWIRE", "target/release/longwire"))
    return options


def build():
    """Builds the peers; the folder that they are in."""
    target = os.environ.get("CARGO_TARGET_DIR", os.path.join(HERE, "..", "..", "target"))
    out = os.environ.get("WORK", os.path.join(os.path.abspath(target), "interop", "carriers"))
    subprocess.run([os.path.join(HERE, "build")], env={**os.environ, "WORK": out}, check=True,
                   timeout=BUILD_TIMEOUT_S)
    return os.path.join(out, "peers")


def main():
    options = read_options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    parts = plan(options)
    if any(part.carrier in PEERS for part in parts):
        options.peers = build()
    print(f"     {len(parts)} pairs, {min(len(parts), options.at_once)} at once, "
          f"{options.budget / 60:.0f} min at most", flush=True)
    folder = tempfile.mkdtemp(prefix="longwire-loss")
    began, then = time.monotonic(), busy()
    options.until = began + options.budget - DOWN_S
    try:
        run_all(parts, options, folder)
        cases = facts_of(parts, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    share = busy_share(then)
    show(cases)
    well = judge(cases)
    doubt = ", so that the times are also theirs" if share > MAX_BUSY else ""
    print(f"     {time.monotonic() - began:.0f} s, processors {share:.0%} busy{doubt}", flush=True)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            rows = ",\n".join(json.dumps(case) for case in cases)
            out.write(f'{{"link": "{LINK}", "busy_share": {share:.3f}, "cases": [\n{rows}\n]}}\n')
    sys.exit(0 if well else 1)


if __name__ == "__main__":
    main()
