#!/usr/bin/env python3
"""Servers of CoAP on one processor each, asked in turn: longwire, libcoap, aiocoap.

  LONGWIRE=target/release/longwire BENCH=target/release/coap WORK=target/interop/coap \\
      target/interop/coap/venv/bin/python interop/coap/speed.py

BENCH is the program of `bench/src/bin/coap.rs`. Each server has a resource of about 26 bytes:
longwire its list of links, libcoap what was put there, aiocoap one of its own. A measurement, not a
check: `check` does not run it. COAP_SERVER and COAP_CLIENT are found as by `check`.
"""

import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
for role in ("SERVER", "CLIENT"):
    names = [f"coap-{role.lower()}{build}" for build in ("", "-notls", "-openssl", "-gnutls")]
    found = next((name for name in names if shutil.which(name)), None)
    if found is None:
        sys.exit("no coap-server or coap-client; apt install libcoap3-bin")
    os.environ.setdefault(f"COAP_{role}", found)
os.chdir(HERE)

from run import LONGWIRE, SERVER, coap, free_port, process, wait_for

BODY = "</.well-known/core>;ct=40\n"
PIN = ("taskset", "-c", "1")


def main():
    ports = {name: free_port() for name in ("longwire", "libcoap", "aiocoap")}
    gateway = (LONGWIRE, "gateway", "--listen", "127.0.0.1:0", "--log", "error", "--allow",
               "http://127.0.0.1:9", "--coap", f"127.0.0.1:{ports['longwire']}")
    libcoap = (SERVER, "-A", "127.0.0.1", "-p", str(ports["libcoap"]), "-d", "10")
    aiocoap = (sys.executable, "server.py", str(ports["aiocoap"]))
    with (process(*PIN, *gateway, ready=b"listening on ") as one,
          process(*PIN, *libcoap) as two,
          process(*PIN, *aiocoap, ready=b"ready") as three):
        for port in ports.values():
            wait_for(f"coap://127.0.0.1:{port}")
        for name in ("libcoap", "aiocoap"):
            path = "x" if name == "libcoap" else "stored"
            status, _, why = coap("put", f"coap://127.0.0.1:{ports[name]}/{path}", "--payload", BODY)
            if status != 0:
                sys.exit(f"{name}: {why}")
        servers = []
        for name, child, path in (("longwire", one, "/.well-known/core"), ("libcoap", two, "/x"),
                                  ("aiocoap", three, "/stored")):
            servers += ["--server", f"{name},127.0.0.1:{ports[name]},{child.pid},{path}"]
        bench = os.environ["BENCH"]
        done = subprocess.run(["taskset", "-c", "0", bench, *servers, *sys.argv[1:]],
                              stdout=subprocess.PIPE, check=True)
        result = json.loads(done.stdout)
    first = result["servers"][0]["per_s"]
    for row in result["servers"]:
        print(f"{row['server']:10}{row['per_s']:10.0f} a second ({first / row['per_s']:.2f} times), "
              f"{row['processor_us']:.1f} us each, {row['resident_bytes'] / 1e6:.1f} MB, "
              f"{row['resident_bytes_with_peers'] / 1e6:.1f} MB with {result['peers']} peers")
    print(f"a message: written in {result['write_ns']:.0f} ns, read in {result['read_ns']:.0f} ns")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
