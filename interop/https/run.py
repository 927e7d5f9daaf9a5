#!/usr/bin/env python3
"""Ten fetches by curl over https through the pair: no failure counted, bytes as the interface's.

LONGWIRE names the binary; root is needed, for network namespaces. curl ends its connections with a
reset where the server's tickets were not read, which is no failure. What the edge counts as packets
on the wire is compared with the counters of its host's interface, less the 14 bytes that Ethernet
adds to each packet and what is not of the carrier. Exit status 1 where a fetch or a count is wrong.
"""

import http.client
import http.server
import os
import shutil
import ssl
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(HERE, "..", "outage"))

from world import ADMIN_PORT, EDGE_PORT, ORIGIN_PORT, World, inside

FETCHES = 10
BODY = b"<track>" + b"0123456789abcdef" * 1800 + b"</track>"
MAX_OFF = 0.01
ETHERNET_BYTES = 14


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)

    def log_message(self, *_):
        pass


def serve(world, folder):
    """An origin with TLS beside the gateway; its port."""
    key, certificate = os.path.join(folder, "tls.key"), os.path.join(folder, "tls.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                    "-subj", "/CN=origin", "-keyout", key, "-out", certificate],
                   check=True, capture_output=True, timeout=60)
    server = inside(world.lab.b, lambda: http.server.ThreadingHTTPServer(
        (world.lab.gateway, ORIGIN_PORT + 1), Handler))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return ORIGIN_PORT + 1


def metrics():
    """The page of metrics by name and labels."""
    connection = http.client.HTTPConnection("127.0.0.1", ADMIN_PORT, timeout=10)
    connection.request("GET", "/metrics")
    lines = connection.getresponse().read().decode().splitlines()
    connection.close()
    values = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {name: float(value) for name, value in values}


def interface():
    """Bytes and packets of the host's interface, by direction."""
    out = {}
    with open("/proc/thread-self/net/dev", encoding="ascii") as file:
        for line in file.read().splitlines()[2:]:
            name, counters = line.split(":")
            if name.strip() != "lo":
                numbers = [int(number) for number in counters.split()]
                out["received"], out["sent"] = tuple(numbers[:2]), tuple(numbers[8:10])
    return out


def main():
    binary = os.environ.get("LONGWIRE", "target/release/longwire")
    folder, well = tempfile.mkdtemp(prefix="longwire-https-"), True
    try:
        world = World(binary, folder, "los", "none")
        try:
            port = serve(world, folder)
            world.until_ready()
            before, there = inside(world.lab.a, metrics), inside(world.lab.a, interface)
            for _ in range(FETCHES):
                fetched = subprocess.run(
                    ["nsenter", f"--net={world.lab.a}", "curl", "-sk", "-x",
                     f"http://127.0.0.1:{EDGE_PORT}", f"https://{world.lab.gateway}:{port}/"],
                    capture_output=True, timeout=60, check=False)
                well &= fetched.returncode == 0 and fetched.stdout == BODY
            after, here = inside(world.lab.a, metrics), inside(world.lab.a, interface)
        finally:
            world.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)

    def grown(name):
        return sum(value - before.get(key, 0) for key, value in after.items() if key.startswith(name))

    failed = grown("longwire_exchanges_failed_total")
    print(f"{'ok  ' if well else 'FAIL'} {FETCHES} fetches of {len(BODY)} bytes")
    print(f"{'ok  ' if failed == 0 else 'FAIL'} {failed:.0f} counted as failed")
    well &= failed == 0
    for direction in ("sent", "received"):
        counted = grown(f'longwire_wire_packet_bytes_total{{direction="{direction}"}}')
        bytes_, packets = (now - then for now, then in zip(here[direction], there[direction]))
        crossed = bytes_ - ETHERNET_BYTES * packets
        off = counted / crossed - 1
        right = abs(off) <= MAX_OFF
        well &= right
        print(f"{'ok  ' if right else 'FAIL'} {direction}: {counted:.0f} bytes counted, {crossed} "
              f"crossed the interface ({off:+.2%})")
    sys.exit(0 if well else 1)


if __name__ == "__main__":
    main()
