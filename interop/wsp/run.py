#!/usr/bin/env python3
"""WAP with others: our client through Kannel, our gateway against bytes written by hand.

LONGWIRE names the binary. The origin is Python's; it notes what comes. Kannel's own client,
fakewap, speaks WSP in sessions over WTP only, which our gateway does not serve. Exit status 1 where
one line says FAIL, 77 where Kannel's ports are taken.
"""

import http.client
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import wire
from kannel import WSP_PORT, Kannel, free_port, is_free

SOAP = (b'<?xml version="1.0"?><e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/">'
        b"<e:Body><getTrack><id>7</id></getTrack></e:Body></e:Envelope>")
TRACK = b"<track id='7'><lat>59.9</lat><lon>10.7</lon></track>"
MEDIA = "text/xml; charset=utf-8"
KANNEL_PATIENCE_S = 20

good = True


def tell(well, what):
    global good
    good &= bool(well)
    print(f"{'ok  ' if well else 'FAIL'} {what}", flush=True)


class Origin(http.server.BaseHTTPRequestHandler):
    """Answers a track, or the body that came, and notes requests."""

    protocol_version = "HTTP/1.1"
    seen = []

    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Type", self.headers.get("Content-Type") or MEDIA)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", '"track-7"')
        self.send_header("Last-Modified", "Fri, 02 Oct 2026 10:00:00 GMT")
        self.send_header("X-Track-Source", "radar 3")
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        Origin.seen.append((self.path, self.headers, b""))
        self.answer(b"x" * 70000 if self.path == "/large" else TRACK)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        Origin.seen.append((self.path, self.headers, body))
        self.answer(body)

    def log_message(self, *_):
        pass


def requests(path):
    return [seen for seen in Origin.seen if seen[0] == path]


def ask(binary, arguments, timeout=30):
    """Exit status and object of `longwire wsp`."""
    done = subprocess.run([binary, "wsp", *arguments, "--json"], capture_output=True, text=True,
                          timeout=timeout, check=False)
    return done.returncode, json.loads(done.stdout) if done.stdout else {}


def field(answer, name):
    return next((value for key, value in answer.get("fields", []) if key.lower() == name), None)


def through_kannel(binary, folder, url):
    """Our client, Kannel, the origin."""
    kannel = Kannel(folder)
    gateway = ["--gateway", f"127.0.0.1:{WSP_PORT}"]
    try:
        until = time.monotonic() + KANNEL_PATIENCE_S
        while not kannel.listens() and kannel.runs() and time.monotonic() < until:
            time.sleep(0.1)
        kannel.start_wapbox()
        status, answer = 1, {}
        while status != 0 and kannel.runs() and time.monotonic() < until:
            status, answer = ask(binary, ["get", f"{url}/kannel", *gateway, "--timeout", "2 s",
                                          "--header", "X-Unit: north 4",
                                          "--header", "Accept-Language: de"])
            time.sleep(0.1)
        well = status == 0 and answer.get("body", "").encode() == TRACK
        tell(well, f"GET through Kannel: status {answer.get('status')}, "
                   f"{answer.get('request_bytes')} and {answer.get('answer_bytes')} bytes")
        if not well:
            with open(kannel.log, encoding="utf-8", errors="replace") as log:
                print(log.read()[-2000:])
            return
        tell(field(answer, "x-track-source") == "radar 3"
             and field(answer, "etag") == '"track-7"'
             and field(answer, "last-modified") == "Fri, 02 Oct 2026 10:00:00 GMT",
             "headers of the answer arrive as they were")
        headers = requests("/kannel")[-1][1]
        tell(headers["X-Unit"] == "north 4" and headers["Accept-Language"] == "de",
             "headers of the request arrive as they were")
        path = os.path.join(folder, "call.xml")
        with open(path, "wb") as file:
            file.write(SOAP)
        status, answer = ask(binary, ["post", f"{url}/kannel-soap", *gateway, "--file", path,
                                      "--content-type", MEDIA, "--header", 'SOAPAction: "urn:t"'])
        seen = requests("/kannel-soap")
        tell(status == 0 and answer.get("body", "").encode() == SOAP and len(seen) == 1
             and seen[0][2] == SOAP and seen[0][1]["SOAPAction"] == '"urn:t"',
             f"POST of {len(SOAP)} bytes of SOAP through Kannel: status {answer.get('status')}, "
             f"carried out {len(seen)} times")
        status, answer = ask(binary, ["get", "http://127.0.0.1:1/", *gateway])
        tell(status == 1, f"an origin that is not there: status {answer.get('status')}, "
                          f"exit status {status}")
    finally:
        kannel.stop()


def by_hand(port, url, admin):
    """Bytes written by hand against our gateway."""
    client = wire.Client(port)
    # Accept: */*, User-Agent, X-Unit by its name.
    headers = b"\x80\x80" + b"\xa9phone/1\0" + b"X-Unit\0north 4\0"
    first = client.ask(wire.get(0x21, f"{url}/hand", headers))
    again = client.ask(wire.get(0x21, f"{url}/hand", headers))
    seen = requests("/hand")
    tell(first == again and first[:2] == (0x21, 0x20) and first[3] == TRACK,
         "a Get by hand and its copy get the same answer, status 0x20")
    tell(len(seen) == 1, f"both were carried out {len(seen)} times")
    tell(seen[0][1]["User-Agent"] == "phone/1" and seen[0][1]["X-Unit"] == "north 4",
         "the origin has the headers")
    body = wire.post(0x22, f"{url}/hand-post", b"\xa8", SOAP)
    first, again = client.ask(body), client.ask(body)
    seen = requests("/hand-post")
    tell(first == again and first[3] == SOAP and len(seen) == 1,
         f"a Post by hand and its copy: one answer, carried out {len(seen)} times")
    tell(client.ask(wire.get(0x23, f"{url}/large"))[1] == 0x4D,
         "an answer of 70000 bytes is 0x4D (413)")
    tell(client.ask(wire.get(0x24, "http://127.0.0.2:80/"))[1] == 0x43,
         "an origin that is not allowed is 0x43 (403)")
    # Accept with the numbers of text/xml and of WBXML.
    _, status, _, body = client.ask(wire.get(0x25, f"{url}/wbxml", b"\x80\xa8"))
    tell(status == 0x20 and body == TRACK, "who names text/xml gets XML")
    accept = b"\x80\xa9"
    _, status, _, body = client.ask(wire.get(0x26, f"{url}/wbxml", accept))
    tell(status == 0x20 and body[:1] in (b"\x01", b"\x02", b"\x03") and body != TRACK,
         f"who takes WBXML alone gets it: {len(body)} bytes for {len(TRACK)}")
    connection = http.client.HTTPConnection("127.0.0.1", admin, timeout=10)
    connection.request("GET", "/metrics")
    metrics = connection.getresponse().read().decode()
    connection.close()
    repeated = re.search(r"longwire_wsp_repeated_replies_total (\d+)", metrics)
    tell(repeated and int(repeated[1]) == 2, "two copies are counted in /metrics")


def with_loss(binary, port, url, folder):
    """Our client and our gateway, with an answer that gets lost; what passed, by tshark."""
    tap = wire.Tap(port)
    tap.lose = 1
    gateway = ["--gateway", f"127.0.0.1:{tap.port}"]
    status, answer = ask(binary, ["post", f"{url}/lost", *gateway, "--payload", "<a/>",
                                  "--repeat"])
    seen = requests("/lost")
    tell(status == 0 and answer["copies"] == 2 and len(seen) == 1,
         f"an answer that is lost: {answer.get('copies')} copies, carried out {len(seen)} times")
    for kind in ("get", "post"):
        payload = ["--payload", SOAP.decode()] if kind == "post" else []
        status, answer = ask(binary, [kind, f"{url}/tap", *gateway, *payload,
                                      "--header", "Accept: text/xml, application/*;q=0.5",
                                      "--header", "Accept-Charset: utf-8",
                                      "--header", "Cache-Control: max-age=60",
                                      "--header", "X-Unit: north 4"])
        tell(status == 0, f"{kind} to our gateway: {answer.get('request_bytes')} and "
                          f"{answer.get('answer_bytes')} bytes")
    path = os.path.join(folder, "wsp.pcap")
    tap.capture(path)
    text = wire.decoded(path)
    count = text.count("Wireless Session Protocol")
    tell(count >= len(tap.seen) and "Malformed" not in text,
         f"tshark reads all {len(tap.seen)} datagrams as WSP, none malformed")
    if "Malformed" in text:
        print(text)


def main():
    binary = os.environ.get("LONGWIRE", "target/release/longwire")
    folder = tempfile.mkdtemp(prefix="longwire-wsp-")
    if not is_free():
        print("wsp: left out: another process has one of Kannel's ports, UDP 9200 to 9203")
        sys.exit(77)
    origin = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Origin)
    threading.Thread(target=origin.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{origin.server_address[1]}"
    admin, port = free_port(), free_port()
    log_path = os.path.join(folder, "gateway.log")
    with open(log_path, "w", encoding="utf-8") as log:
        gateway = subprocess.Popen(
            [binary, "gateway", "--listen", "127.0.0.1:0", "--allow", url, "--wsp",
             f"127.0.0.1:{port}", "--admin", f"127.0.0.1:{admin}"],
            stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        gateway.stdout.readline()
        by_hand(port, url, admin)
        with_loss(binary, port, url, folder)
        through_kannel(binary, folder, url)
        with open(log_path, encoding="utf-8") as log:
            lines = [line for line in log.read().splitlines() if "127.0.0.2" in line]
        tell(len(lines) == 1, "a refusal is one line in the log")
    finally:
        gateway.terminate()
        gateway.wait(timeout=40)
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
