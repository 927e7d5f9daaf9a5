#!/usr/bin/env python3
"""Bytes of one short military message by HTTP, CoAP and WSP, beside those of the IST-150 paper.

  LONGWIRE=… WORK=target/interop/coap target/interop/coap/venv/bin/python interop/coap/bytes.py

Needs curl and, as root, tshark. First column: the request as a message of HTTP, CoAP or WSP with its
headers, as the paper's Table I counts. Second column: all IP packets of the exchange, both ways, with
what opens and closes a connection. A measurement, not a check.
"""

import http.server
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
os.environ.setdefault("COAP_SERVER", "coap-server")
os.environ.setdefault("COAP_CLIENT", "coap-client")
os.chdir(HERE)

from run import LONGWIRE, free_port, gateway

# A free text with what the operational message of CoNSIS has to have.
MESSAGE = {"id": 4711, "prec": "flash", "from": "A1", "to": ["B1"], "time": 1795730400,
           "valid": 600, "text": "Contact, grid 32U 1234 5678."}
XML = ("<message><id>4711</id><prec>flash</prec><from>A1</from><to>B1</to><time>1795730400</time>"
       "<valid>600</valid><text>Contact, grid 32U 1234 5678.</text></message>")
PAPER = {"HTTP, JSON": 418, "HTTP, CBOR": 369, "CoAP over UDP, JSON": 153,
         "CoAP over UDP, CBOR": 105, "CoAP over TCP, CBOR": 104}
MAX_CAPTURE_S = 10


def head(major, value):
    """The head of a data item (RFC 8949 section 3)."""
    for extra, size in ((24, 1), (25, 2), (26, 4)):
        if value < 24:
            return bytes([major << 5 | value])
        if value < 1 << 8 * size:
            return bytes([major << 5 | extra]) + value.to_bytes(size, "big")
    raise ValueError(value)


def cbor(value):
    if isinstance(value, int):
        return head(0, value)
    if isinstance(value, str):
        return head(3, len(value)) + value.encode()
    if isinstance(value, list):
        return head(4, len(value)) + b"".join(map(cbor, value))
    return head(5, len(value)) + b"".join(cbor(k) + cbor(v) for k, v in value.items())


class Origin(http.server.BaseHTTPRequestHandler):
    """Takes messages."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response_only(204)
        self.end_headers()


def captured(port, act):
    """The packets of an exchange on a port: whether to it, IP bytes, payload bytes."""
    fields = ("ip.len", "udp.dstport", "tcp.dstport", "udp.length", "tcp.len")
    args = ["tshark", "-i", "lo", "-l", "-n", "-f", f"port {port}", "-T", "fields"]
    for field in fields:
        args += ["-e", field]
    child = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for line in child.stderr:
        if "Capturing on" in line:
            break
    # The line comes before the capture is open.
    time.sleep(1)
    act()
    time.sleep(1)
    child.send_signal(signal.SIGINT)
    out, _ = child.communicate(timeout=MAX_CAPTURE_S)
    packets = []
    for line in out.splitlines():
        ip, udp_to, tcp_to, udp, tcp = (line.split("\t") + [""] * 5)[:5]
        if ip:
            payload = int(udp) - 8 if udp else int(tcp or 0)
            packets.append(((udp_to or tcp_to) == str(port), int(ip), payload))
    return packets


def main():
    if not shutil.which("tshark") or not shutil.which("curl") or os.geteuid() != 0:
        sys.exit("needs root, curl and tshark; apt install tshark curl")
    origin = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Origin)
    threading.Thread(target=origin.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{origin.server_address[1]}"
    coap, wsp = free_port(), free_port()
    compact = json.dumps(MESSAGE, separators=(",", ":")).encode()
    folder = tempfile.TemporaryDirectory()

    def file(name, body):
        path = os.path.join(folder.name, name)
        with open(path, "wb") as out:
            out.write(body)
        return path

    bodies = {"JSON": (file("json", compact), "application/json"),
              "CBOR": (file("cbor", cbor(MESSAGE)), "application/cbor"),
              "XML": (file("xml", XML.encode()), "text/xml")}

    def by_curl(kind):
        path, media = bodies[kind]
        return lambda: subprocess.run(
            ["curl", "-s", "-H", f"Content-Type: {media}", "--data-binary", f"@{path}",
             f"{url}/messages"], check=True)

    def by_coap(scheme, kind):
        path, media = bodies[kind]
        return lambda: subprocess.run(
            [LONGWIRE, "coap", "post", f"{scheme}://127.0.0.1:{coap}/messages", "--file", path,
             "--content-format", media], check=True)

    def by_wsp(kind):
        path, media = bodies[kind]
        return lambda: subprocess.run(
            [LONGWIRE, "wsp", "post", f"{url}/messages", "--gateway", f"127.0.0.1:{wsp}", "--file",
             path, "--content-type", media], check=True)

    rows = {}
    more = ("--coap", f"127.0.0.1:{coap}", "--coap-upstream", url, "--wsp", f"127.0.0.1:{wsp}")
    with gateway(url, coap, *more):
        plan = {"HTTP, XML": (origin.server_address[1], by_curl("XML"), 0),
                "HTTP, JSON": (origin.server_address[1], by_curl("JSON"), 0),
                "HTTP, CBOR": (origin.server_address[1], by_curl("CBOR"), 0),
                "WSP, XML": (wsp, by_wsp("XML"), 0),
                "WSP, CBOR": (wsp, by_wsp("CBOR"), 0),
                "CoAP over UDP, JSON": (coap, by_coap("coap", "JSON"), 0),
                "CoAP over UDP, CBOR": (coap, by_coap("coap", "CBOR"), 0),
                "CoAP over TCP, CBOR": (coap, by_coap("coap+tcp", "CBOR"), 1)}
        for name, (port, act, skipped) in plan.items():
            packets = captured(port, act)
            # Of CoAP over TCP the first is the CSM, which is no part of the message.
            sent = [payload for to, _, payload in packets if to and payload][skipped:]
            body = os.path.getsize(bodies[name.split(", ")[1]][0])
            rows[name] = {"message": sum(sent), "headers": sum(sent) - body, "body": body,
                          "ip": sum(ip for _, ip, _ in packets), "packets": len(packets),
                          "paper": PAPER.get(name)}
    print(f"{'':22}{'message':>8}{'headers':>9}{'body':>6}{'IP':>7}{'packets':>9}{'paper':>7}")
    for name, row in rows.items():
        print(f"{name:22}{row['message']:8}{row['headers']:9}{row['body']:6}{row['ip']:7}"
              f"{row['packets']:9}{row['paper'] or '':>7}")
    share = rows["WSP, XML"]["headers"] / rows["HTTP, XML"]["headers"]
    print(f"headers of WSP: {share:.2f} times those of HTTP")
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
