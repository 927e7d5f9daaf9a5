#!/usr/bin/env python3
"""What a SOAP call costs its client in processor time: the client for devices beside gSOAP and zeep.

  LONGWIRE=target/release/longwire WORK=target/interop/pocket \\
      target/interop/zeep/venv/bin/python interop/pocket/cost.py [--rounds 7] [--json]

The service is that of the WAP study (`longwire serve benchmark`); gSOAP and zeep know it by its WSDL
and keep a connection of HTTP, the client for devices goes through a gateway of WSP and CoAP. Clients
are asked in turn in each round; what is told are medians, with the lowest and highest of the rounds.
A measurement, not a check: `check` does not run it. It wants gsoap, libgsoap-dev, a C compiler and
zeep (`interop/run zeep` installs it).
"""

import argparse
import itertools
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
COST = os.path.join(HERE, "cost")
INCLUDE = os.path.join(HERE, "..", "..", "crates", "pocket-c", "include")
LONGWIRE, WORK = os.path.abspath(os.environ["LONGWIRE"]), os.path.abspath(os.environ["WORK"])
SPACE = "urn:longwire:benchmark:1"
ITEMS = 100
# A gateway remembers 16,384 requests of all hosts and 1,024 of one, for as long as copies may come.
WARM, CALLS, SLOW_CALLS = 50, 400, 200
TIMEOUT_S = 120
PIN = ("taskset", "-c", "1")


def ran(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
                          **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def free_port(kind):
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def listening(*command):
    process = subprocess.Popen([LONGWIRE, *command], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True)
    line = process.stdout.readline()
    if not line.startswith("listening on "):
        sys.exit(f"longwire {' '.join(command)} said {line!r}")
    return process, line.removeprefix("listening on ").split()[0]


def set_items(url):
    """The answers to getIntArray have so many numbers."""
    body = ('<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>'
            f'<setIntArray xmlns="{SPACE}"><size>{ITEMS}</size></setIntArray></s:Body></s:Envelope>')
    request = urllib.request.Request(url, body.encode(), {
        "Content-Type": "text/xml", "SOAPAction": f'"{SPACE}#setIntArray"'})
    urllib.request.urlopen(request, timeout=TIMEOUT_S).read()


def build_gsoap(wsdl):
    folder = os.path.join(WORK, "gsoap")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "service.wsdl")
    with open(path, "wb") as out:
        out.write(urllib.request.urlopen(wsdl, timeout=TIMEOUT_S).read())
    ran("wsdl2h", "-c", "-o", "service.h", path, cwd=folder)
    ran("soapcpp2", "-c", "-C", "-L", "-x", "service.h", cwd=folder)
    program = os.path.join(folder, "gsoap")
    ran("cc", "-O2", "-I", folder, "-o", program, os.path.join(COST, "gsoap.c"), "soapC.c",
        "soapClient.c", "-lgsoap", cwd=folder)
    return program


def build_pocket():
    library = os.environ.get("LIBRARY")
    if not library:
        told = ran("cargo", "xtask", "pocket", "--library", cwd=os.path.join(HERE, "..", ".."))
        library = next(line.split()[-1] for line in told.splitlines() if line.startswith("library"))
        library = os.path.join(HERE, "..", "..", library)
    program = os.path.join(WORK, "cost")
    ran("cc", "-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-I", INCLUDE, "-o", program,
        os.path.join(COST, "pocket.c"), library)
    return program


def measured(clients, rounds):
    """For each method and client, microseconds a call in each round."""
    found, sources = {}, itertools.count(1)
    for at in range(rounds):
        for method, items in (("nop", 0), ("getIntArray", ITEMS)):
            for name, calls, command in clients:
                number = next(sources)
                source = f"127.1.{number // 200}.{number % 200 + 1}"
                told = ran(*PIN, *command(source, method), str(items), str(WARM), str(calls))
                found.setdefault(method, {}).setdefault(name, []).append(float(told))
        print(f"round {at + 1} of {rounds}", file=sys.stderr)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true", help="the figures of each round")
    options = parser.parse_args()
    for program, package in (("wsdl2h", "gsoap"), ("soapcpp2", "gsoap"), ("cc", "gcc")):
        if shutil.which(program) is None:
            sys.exit(f"no {program}; apt install {package}")
    os.makedirs(WORK, exist_ok=True)
    pocket = build_pocket()
    service, address = listening("serve", "benchmark", "--listen", "127.0.0.1:0")
    url = f"http://{address}/methods"
    wsp, coap = free_port(socket.SOCK_DGRAM), free_port(socket.SOCK_DGRAM)
    gateway, _ = listening("gateway", "--listen", "127.0.0.1:0", "--insecure-plain", "--log", "error",
                           "--allow", f"http://{address}", "--wsp", f"127.0.0.1:{wsp}",
                           "--coap", f"127.0.0.1:{coap}")

    def ours(protocol, form, port):
        return lambda source, method: (pocket, protocol, form, source, str(port), url, method)

    try:
        set_items(url)
        gsoap = build_gsoap(url + "?wsdl")
        zeep = os.path.join(COST, "zeep_calls.py")
        clients = [
            ("WSP, WBXML", CALLS, ours("wsp", "wbxml", wsp)),
            ("WSP, XML", CALLS, ours("wsp", "xml", wsp)),
            ("CoAP, CBOR", CALLS, ours("coap", "cbor", coap)),
            ("gSOAP, HTTP", CALLS, lambda _, method: (gsoap, url, method)),
            ("zeep, HTTP", SLOW_CALLS,
             lambda _, method: (sys.executable, zeep, url + "?wsdl", method)),
        ]
        found = measured(clients, options.rounds)
    finally:
        for process in (gateway, service):
            process.terminate()
            process.wait()
    if options.json:
        print(json.dumps(found))
        return
    print("| microseconds a call | median | lowest to highest |\n| --- | ---: | --- |")
    for method, clients in found.items():
        for name, times in clients.items():
            print(f"| {method}, {name} | {statistics.median(times):.1f} | "
                  f"{min(times):.1f} to {max(times):.1f} |")


main()
