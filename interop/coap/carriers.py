#!/usr/bin/env python3
"""Time of an exchange by carrier and network: one answer of 2 or of 20 KB after another.

  interop/coap/carriers.py [--exchanges 30] [--networks los,wifi1,wifi2,cnr,gprs]
                           [--sizes 2000,20000] [--at-once 10] [--case-budget 300]
                           [--ways http,http-new,coap,coap+tcp,wsp,stream,quic,burst,auto]
                           [--json FILE]

LONGWIRE names the binary; root is needed, for network namespaces. For each network and way a link
of its own is laid. A client asks for bodies that do not compress, one at a time:

  http, http-new                 straight to the service over the link, one connection for all, or
                                 one for each
  coap, coap+tcp, stream, quic,
  burst, auto                    through the pair with that carrier, with keys; auto is the choice
                                 that the pair makes by itself. Beside coap, coap+tcp and quic the
                                 pair keeps a stream, which has what is expected sooner by it
  wsp                            through the edge over `gateway --wsp`, without keys: an answer is
                                 one datagram, which the link gets in fragments

A case that is not through after --case-budget seconds has fewer exchanges, and says so. Exit
status 1 where an exchange failed other than by wsp, or a case has none.
"""

import argparse
import contextlib
import http.client
import json
import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[1:1] = [os.path.join(HERE, "..", "carriers"), os.path.join(HERE, "..", "faults")]

from ground import Ground
from measuring import emulation, lateness, link_state, median, percentile, ready
from pair import EDGE_PORT, ORIGIN_PORT, Side

NETWORKS = ("los", "wifi1", "wifi2", "cnr", "gprs")
DIRECT, PAIR = ("http", "http-new"), ("coap", "coap+tcp", "stream", "quic", "burst", "auto")
WAYS = (*DIRECT, *PAIR[:2], "wsp", *PAIR[2:])
SIZES = (2000, 20000)
WSP_PORT, TIMEOUT_S, WARM_EXCHANGES = 9200, 120, 2


class WapGround(Ground):
    """The edge over the gateway's WSP, in place of a pair."""

    def start(self, binary, folder, carrier, lines):
        os.makedirs(folder, exist_ok=True)
        files = {
            "gateway": f'[gateway]\nlisten = "127.0.0.1:0"\nallow = ["{self.origin}"]\n'
                       f'wsp = "{self.lab.gateway}:{WSP_PORT}"\nwsp_anywhere = true\n',
            "edge": f'[edge]\nlisten = "127.0.0.1:{EDGE_PORT}"\ninsecure_plain = true\n'
                    f'gateway = "wsp://{self.lab.gateway}:{WSP_PORT}"\nwsp_repeat = true\n',
        }
        for own, namespace in (("gateway", self.lab.b), ("edge", self.lab.a)):
            file = os.path.join(folder, f"{own}.toml")
            with open(file, "w", encoding="utf-8") as out:
                out.write(files[own])
            self.sides.append(Side(own, namespace, [binary, own, "--config", file], folder, folder))
            self.sides[-1].start()


class Client:
    """Asks through the edge, or the service itself. In host a."""

    def __init__(self, ground, way):
        self.ground, self.keeps = ground, way != "http-new"
        self.direct = way in DIRECT
        self.connection = None

    def ask(self, size, until):
        """Seconds that an answer took; raises where none came."""
        began = time.perf_counter()
        if self.connection is None:
            host, port = "127.0.0.1", EDGE_PORT
            if self.direct:
                host, port = self.ground.lab.gateway, ORIGIN_PORT
            self.connection = http.client.HTTPConnection(host, port, timeout=until)
        try:
            self.connection.request("GET", f"{'' if self.direct else self.ground.origin}/{size}")
            answer = self.connection.getresponse()
            body = answer.read()
        except (OSError, http.client.HTTPException):
            self.close()
            raise
        if not self.keeps:
            self.close()
        if answer.status != 200 or len(body) != size:
            raise http.client.HTTPException(f"status {answer.status}, {len(body)} bytes")
        return time.perf_counter() - began

    def close(self):
        if self.connection is not None:
            self.connection.close()
            self.connection = None


def measure(case, options, folder):
    """Lays the link, asks, and tells what came of it."""
    at, network, way = case
    kind = WapGround if way == "wsp" else Ground
    ground = kind(options.binary, f"ca{os.getpid()}x{at}", network,
                  os.path.join(folder, str(at)), way, seed=at + 1, pair=way not in DIRECT)
    rows = []
    try:
        client = Client(ground, way)
        ready(ground, lambda: answered(client))
        for size in options.sizes:
            row = {"network": network, "way": way, "size": size, "took_s": [], "failures": []}
            rows.append(row)
            ground.inside(ground.lab.a, lambda row=row: ask_all(client, row, options)).join()
        emulated = emulation(link_state(ground))
        for row in rows:
            row["lateness"] = emulated
    except OSError as error:
        rows.append({"network": network, "way": way, "size": 0, "took_s": [],
                     "failures": [repr(error)]})
    finally:
        ground.stop()
    for row in rows:
        took = row["took_s"]
        row |= {"n": len(took), "median_s": median(took), "p95_s": percentile(took, 95)}
    print(f"     {network} by {way}: " + ", ".join(
        f"{row['size']} B {row['n']}" for row in rows) + " exchanges", flush=True)
    return rows


def answered(client):
    with contextlib.suppress(OSError, http.client.HTTPException):
        return client.ask(1, TIMEOUT_S) > 0
    return False


def ask_all(client, row, options):
    until = time.monotonic() + options.case_budget
    for at in range(WARM_EXCHANGES + options.exchanges):
        left = until - time.monotonic()
        if left <= 0:
            break
        try:
            took = client.ask(row["size"], min(left, TIMEOUT_S))
            if at >= WARM_EXCHANGES:
                row["took_s"].append(round(took, 4))
        except (OSError, http.client.HTTPException) as error:
            if isinstance(error, TimeoutError) and left < TIMEOUT_S:
                break  # The case's time is over, not the exchange's.
            row["failures"].append(repr(error))
            # What is refused is refused again.
            if len(row["failures"]) >= 3 and not row["took_s"]:
                break
    client.close()


def show(rows, options):
    """A table for each size: median, 95th percentile and count by network and way; what the choice
    of the pair takes by the best way."""
    for size in options.sizes:
        print(f"\n{size} bytes: median (95th percentile) in s, of {options.exchanges}")
        print("network  " + "".join(f"{way:>24}" for way in options.ways) + "   auto by the best")
        for network in options.networks:
            cells = {row["way"]: row for row in rows
                     if row["network"] == network and row["size"] == size}
            line = ""
            for way in options.ways:
                row = cells.get(way)
                if not row or not row["n"]:
                    line += f"{'–':>24}"
                    continue
                few = "" if row["n"] == options.exchanges else f" n={row['n']}"
                line += f"{row['median_s']:.3f} ({row['p95_s']:.3f}){few}".rjust(24)
            best = min((row["median_s"] for row in cells.values() if row["n"]), default=None)
            auto = cells.get("auto")
            share = f"{auto['median_s'] / best:.2f}" if best and auto and auto["n"] else "–"
            print(f"{network:9}{line}   {share}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--exchanges", type=int, default=30)
    parser.add_argument("--at-once", type=int, default=10)
    parser.add_argument("--case-budget", type=float, default=300, help="seconds, of a size")
    for name, known in (("networks", NETWORKS), ("ways", WAYS), ("sizes", SIZES)):
        parser.add_argument(f"--{name}", default=",".join(map(str, known)))
    parser.add_argument("--json")
    options = parser.parse_args()
    options.networks, options.ways = options.networks.split(","), options.ways.split(",")
    options.sizes = [int(size) for size in options.sizes.split(",")]
    options.binary = os.environ["LONGWIRE"]
    unknown = [way for way in options.ways if way not in WAYS]
    if unknown:
        parser.error(f"no way {unknown[0]!r}; there are {', '.join(WAYS)}")

    # Those of the slowest networks first, since the others are through before them.
    cases = [(at, network, way) for at, (network, way) in enumerate(
        (network, way) for network in reversed(options.networks) for way in options.ways)]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.at_once) as pool:
        began = time.monotonic()
        rows = [row for some in pool.map(lambda case: measure(case, options, folder), cases)
                for row in some]
    show(rows, options)
    wrong = False
    for row in rows:
        if row["failures"]:
            print(f"{row['network']} by {row['way']}, {row['size']} bytes: "
                  f"{len(row['failures'])} failed: {row['failures'][0]}")
        wrong |= row["way"] != "wsp" and (bool(row["failures"]) or not row["n"])
    late = [row for row in rows if "lateness" in row]
    if late:
        worst = max(late, key=lambda row: max(
            way["late_p99_us"] for way in row["lateness"].values()))
        print(f"\nworst emulation, {worst['network']} by {worst['way']}: "
              f"{lateness(worst['lateness'])}; {time.monotonic() - began:.0f} s in all")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump(rows, out)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
