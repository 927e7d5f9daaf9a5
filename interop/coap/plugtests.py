"""The test descriptions of the ETSI CoAP plugtests, as a table: longwire, libcoap, aiocoap.

  interop/coap/plugtests.py        (by `check`, with its environment)

Rows are TD_COAP_CORE, LINK, BLOCK and OBS. Columns: the clients of longwire, libcoap and aiocoap,
each at a server of aiocoap with the resources of the descriptions, and each at longwire's gateway
in front of an HTTP origin that has them. Every datagram passes a tap that may lose some; what a row
asks for is judged by what was seen there. A cell is ok, FAIL, or a letter that is explained below
the table. Where tshark is there, it reads all that longwire has sent. Exit status 1 where a cell of
longwire, as client or as gateway, failed.
"""

import asyncio
import http.server
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

import aiocoap

import plugserver
from run import CLIENT, LONGWIRE, gateway, free_port, process, wait_for

MAX_STEP_S = 12
MAX_LAST_S = 1
CON, NON, ACK, RST = range(4)
IF_MATCH, URI_HOST, ETAG, IF_NONE, OBSERVE, LOC_PATH, URI_PATH, FORMAT = 1, 3, 4, 5, 6, 8, 11, 12
MAX_AGE, QUERY, ACCEPT, LOC_QUERY, BLOCK2, BLOCK1 = 14, 15, 17, 20, 23, 27
UPLOAD = bytes(97 + i % 26 for i in range(1500))
WHY = {
    "o": "the gateway's origin speaks HTTP: what is observed are its server-sent events",
    "h": "HTTP has no such thing",
}


class Packet:
    """What a datagram says (RFC 7252 section 3)."""

    def __init__(self, at, up, data):
        self.at, self.up, self.data = at, up, data
        self.kind, length = data[0] >> 4 & 3, data[0] & 15
        self.code, self.mid = data[1], struct.unpack("!H", data[2:4])[0]
        self.token, rest, number = data[4 : 4 + length], data[4 + length :], 0
        self.options = []
        while rest and rest[0] != 0xFF:
            delta, size, rest = rest[0] >> 4, rest[0] & 15, rest[1:]
            sizes = []
            for value in (delta, size):
                more = max(0, value - 12)
                extra = int.from_bytes(rest[:more], "big")
                sizes.append((value if value < 13 else 13 if value == 13 else 269) + extra)
                rest = rest[more:]
            number += sizes[0]
            self.options.append((number, rest[: sizes[1]]))
            rest = rest[sizes[1] :]
        self.payload = rest[1:]

    def all(self, number):
        return [value for one, value in self.options if one == number]

    def uint(self, number):
        values = self.all(number)
        return int.from_bytes(values[0], "big") if values else None

    def __repr__(self):
        return (f"{'>' if self.up else '<'}{'CNAR'[self.kind]} {self.code >> 5}.{self.code & 31:02}"
                f" {self.mid} {self.token.hex()} {self.options} {self.payload[:20]}")


class Tap:
    """Between clients and one server."""

    def __init__(self, server, lose=None):
        self.server, self.packets, self.lose = server, [], lose
        self.socket = socket.socket(type=socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.peers, self.lock = {}, threading.Lock()
        threading.Thread(target=self.up, daemon=True).start()

    def note(self, up, data):
        packet = Packet(time.monotonic(), up, data)
        with self.lock:
            self.packets.append(packet)
            lost = self.lose is not None and self.lose(packet)
            if lost:
                self.lose = None
        return not lost

    def up(self):
        while True:
            data, peer = self.socket.recvfrom(65535)
            if peer not in self.peers:
                self.peers[peer] = socket.socket(type=socket.SOCK_DGRAM)
                self.peers[peer].connect(("127.0.0.1", self.server))
                threading.Thread(target=self.down, args=(peer,), daemon=True).start()
            if self.note(True, data):
                self.peers[peer].send(data)

    def down(self, peer):
        while True:
            try:
                data = self.peers[peer].recv(65535)
            except OSError:
                continue
            if self.note(False, data):
                self.socket.sendto(data, peer)

    def seen(self):
        with self.lock:
            return list(self.packets)

    def shows(self, judge):
        """Whether it is there within a moment: a process may end before its last datagram."""
        until = time.monotonic() + MAX_LAST_S
        while not (good := judge(self.seen())) and time.monotonic() < until:
            time.sleep(0.02)
        return good


def run(args, timeout=MAX_STEP_S):
    try:
        done = subprocess.run(args, capture_output=True, timeout=timeout, check=False)
        return done.stdout + done.stderr
    except subprocess.TimeoutExpired:
        return b"no end"


def by_longwire(url, method="get", payload=None, format=None, accept=None, non=False, block=None,
                etag=None, if_match=None, if_none=False, observe=None):
    args = [LONGWIRE, "coap", "observe" if observe else method, url, "--timeout", "8 s"]
    if observe:
        args += ["--count", str(observe)]
    if payload is not None:
        args += ["--payload", payload.decode()]
    for flag, value in (("--content-format", format), ("--accept", accept),
                        ("--block-size", block)):
        if value is not None:
            args += [flag, str(value)]
    for flag, value in (("--etag", etag), ("--if-match", if_match)):
        if value is not None:
            args += [flag, value.hex()]
    args += ["--non"] * non + ["--if-none-match"] * if_none
    return run(args)


def by_libcoap(url, method="get", payload=None, format=None, accept=None, non=False, block=None,
               etag=None, if_match=None, if_none=False, observe=None):
    args = [CLIENT, "-B", "8", "-m", method]
    with tempfile.NamedTemporaryFile() as file:
        if payload is not None:
            file.write(payload)
            file.flush()
            args += ["-f", file.name]
        for flag, value in (("-t", format), ("-A", accept), ("-b", block)):
            if value is not None:
                args += [flag, str(value)]
        for number, value in ((ETAG, etag), (IF_MATCH, if_match)):
            if value is not None:
                args += ["-O", f"{number},0x{value.hex()}"]
        args += ["-N"] * non + ["-O", f"{IF_NONE},"] * if_none
        args += ["-s", "2"] if observe else []
        return run([*args, url])


def by_aiocoap(url, method="get", payload=None, format=None, accept=None, non=False, block=None,
               etag=None, if_match=None, if_none=False, observe=None):
    async def ask():
        context = await aiocoap.Context.create_client_context()
        code = getattr(aiocoap, method.upper())
        request = aiocoap.Message(code=code, uri=url, payload=payload or b"")
        request.opt.content_format, request.opt.accept = format, accept
        request.opt.etags = [etag] if etag else []
        request.opt.if_match = [if_match] if if_match else []
        request.opt.if_none_match = if_none
        if non:
            request.mtype = aiocoap.NON
        if block:
            request.opt.block2 = (0, False, block.bit_length() - 5)
        if observe:
            request.opt.observe = 0
        one = context.request(request)
        await asyncio.wait_for(one.response, MAX_STEP_S)
        if observe:
            seen = 1
            async for _ in one.observation:
                seen += 1
                if seen >= observe:
                    one.observation.cancel()
                    break
        await asyncio.sleep(0.2)
        await context.shutdown()

    try:
        asyncio.run(asyncio.wait_for(ask(), MAX_STEP_S))
    except Exception as error:  # noqa: BLE001
        return repr(error).encode()
    return b""


CLIENTS = {"longwire": by_longwire, "libcoap": by_libcoap, "aiocoap": by_aiocoap}


# What a row wants of the packets.

def requests(seen, code=None):
    return [one for one in seen if one.up and 0 < one.code < 32 and code in (None, one.code)]


def answers(seen):
    return [one for one in seen if not one.up and one.code >= 64]


def exchange(code, kind, wanted, sent=None):
    """One request of a code and kind, and an answer of a code; sent of the request."""
    def judge(seen):
        asked, came = requests(seen, code), answers(seen)
        good = asked and asked[0].kind == kind and came and came[-1].code == wanted
        return bool(good and came[-1].token == asked[-1].token
                    and (sent is None or sent(asked[0], came[-1])))
    return judge


def separate(kind):
    def judge(seen):
        asked, came = requests(seen, 1), answers(seen)
        acks = [one for one in seen if one.kind == ACK and one.code == 0]
        if not asked or not came or came[-1].token != asked[0].token:
            return False
        if kind == NON:
            return came[-1].kind in (NON, CON)
        return (any(not one.up and one.mid == asked[0].mid for one in acks)
                and came[-1].kind == CON and any(one.up and one.mid == came[-1].mid for one in acks))
    return judge


def repeated(judge):
    """The same message went twice."""
    def twice(seen):
        mids = [one.mid for one in seen if one.up and one.code == 1]
        return len(mids) > len(set(mids)) and judge(seen)
    return twice


def blocks(number, up, size=None, whole=None):
    """A body in blocks, in order, none of them missing."""
    def judge(seen):
        parts, last = {}, None
        for one in seen:
            value = one.uint(number)
            if one.up == up and value is not None and (one.payload or not up):
                parts[value >> 4] = (one.payload, value)
                last = value
        if last is None or last & 8:
            return False
        body = b"".join(parts[at][0] for at in sorted(parts))
        good = sorted(parts) == list(range(len(parts))) and len(parts) > 1
        good = good and all(size is None or len(part) <= size for part, _ in parts.values())
        return good and (whole is None or body == whole)
    return judge


def first_block(size):
    """The client named its size from the first request on."""
    def judge(seen):
        asked = requests(seen, 1)
        return bool(asked) and asked[0].uint(BLOCK2) is not None and 16 << (
            asked[0].uint(BLOCK2) & 7) == size
    return judge


def both(one, other):
    return lambda seen: one(seen) and other(seen)


def observed(seen):
    asked = [one for one in requests(seen, 1) if one.uint(OBSERVE) == 0]
    came = [one for one in answers(seen) if one.uint(OBSERVE) is not None]
    same = asked and all(one.token == asked[0].token for one in came)
    order = [one.uint(OBSERVE) for one in came]
    return bool(same and len(came) >= 3 and order == sorted(order))


def deregistered(seen):
    """It says that it wants no more: by GET with Observe 1, or by a reset."""
    came = [one for one in answers(seen) if one.uint(OBSERVE) is not None]
    ends = [one for one in seen if one.up and one.code == 1 and one.uint(OBSERVE) == 1]
    resets = [one for one in seen if one.up and one.kind == RST]
    return bool(came and (ends or resets))


def ages(seen):
    return observed(seen) and all(one.uint(MAX_AGE) == 5 for one in answers(seen)
                                  if one.code == 69)


def links(*named):
    def judge(seen):
        body = b"".join(one.payload for one in answers(seen))
        good = any(one.uint(FORMAT) == 40 for one in answers(seen))
        return good and all(name in body for name in named)
    return judge


def lose_first(up):
    return lambda packet: packet.up == up and packet.code != 0


GET, POST, PUT, DELETE = 1, 2, 3, 4
C201, C202, C203, C204, C205, C412 = 65, 66, 67, 68, 69, 140
TEXT = {"payload": b"TD", "format": 0}


def paths(*wanted):
    return lambda asked, _: asked.all(URI_PATH) == list(wanted)


def fields(number, *wanted):
    return lambda _, came: came.all(number) == list(wanted)


def core():
    """Row: name, path, what is asked, how it is judged, what is lost, cells that are explained."""
    for first, kind in ((1, CON), (5, NON)):
        non = {"non": kind == NON}
        yield f"CORE_{first:02}", "/test", non, exchange(GET, kind, C205), None, {}
        more = {**non, "method": "delete"}
        yield f"CORE_{first + 1:02}", "/test", more, exchange(DELETE, kind, C202), None, {}
        more = {**non, **TEXT, "method": "put"}
        yield f"CORE_{first + 2:02}", "/test", more, exchange(PUT, kind, C204), None, {}
        more = {**non, **TEXT, "method": "post"}
        yield f"CORE_{first + 3:02}", "/test", more, exchange(POST, kind, C201), None, {}
    yield "CORE_09", "/separate", {}, separate(CON), None, {}
    yield "CORE_10", "/test", {}, exchange(GET, CON, C205, lambda one, _: one.token), None, {}
    yield "CORE_11", "/separate", {}, separate(CON), None, {}
    yield ("CORE_13", "/seg1/seg2/seg3", {},
           exchange(GET, CON, C205, paths(b"seg1", b"seg2", b"seg3")), None, {})
    query = exchange(GET, CON, C205,
                     lambda one, _: one.all(QUERY) == [b"first=1", b"second=2", b"third=3"])
    yield "CORE_14", "/query?first=1&second=2&third=3", {}, query, None, {}
    yield ("CORE_15", "/test", {}, repeated(exchange(GET, CON, C205)), lose_first(True), {})
    yield ("CORE_15b", "/test", {}, repeated(exchange(GET, CON, C205)), lose_first(False), {})
    yield "CORE_16", "/separate", {}, repeated(separate(CON)), lose_first(True), {}
    yield "CORE_17", "/separate", {"non": True}, separate(NON), None, {}
    located = exchange(POST, CON, C201, fields(LOC_PATH, b"location1", b"location2", b"location3"))
    yield "CORE_18", "/test", {**TEXT, "method": "post"}, located, None, {}
    located = exchange(POST, CON, C201, fields(LOC_QUERY, b"first=1", b"second=2"))
    yield "CORE_19", "/location-query", {**TEXT, "method": "post"}, located, None, {}
    yield ("CORE_20", "/multi-format", {"accept": 41},
           exchange(GET, CON, C205, fields(FORMAT, b"\x29")), None, {})
    yield ("CORE_20b", "/multi-format", {"accept": 0},
           exchange(GET, CON, C205, fields(FORMAT, b"")), None, {})
    yield ("CORE_21", "/validate", {"etag": b"?"}, exchange(GET, CON, C203), None, {})
    yield ("CORE_22", "/validate", {"method": "put", "payload": b"version 1", "format": 0,
                                    "if_match": b"?"}, exchange(PUT, CON, C204), None, {})
    yield ("CORE_22b", "/validate", {"method": "put", "payload": b"version 1", "format": 0,
                                     "if_match": b"\x09\x09"}, exchange(PUT, CON, C412), None, {})
    yield ("CORE_23", "/create1", {"method": "put", "payload": b"x", "format": 0, "if_none": True},
           lambda seen: exchange(PUT, CON, C201)(seen) or exchange(PUT, CON, C412)(seen), None, {})
    yield ("CORE_23b", "/create1", {"method": "put", "payload": b"x", "format": 0, "if_none": True},
           exchange(PUT, CON, C412), None, {})


def rows():
    yield from core()
    no = {"gateway": "h"}
    yield "LINK_01", "/.well-known/core", {}, links(b"</test>", b"</obs>"), None, no
    yield "LINK_02", "/.well-known/core?rt=Type1", {}, links(b"</test>"), None, no
    large = plugserver.LARGE
    yield ("BLOCK_01", "/large", {"block": 64},
           both(first_block(64), blocks(BLOCK2, False, 64, large)), None, {})
    yield "BLOCK_02", "/large", {}, blocks(BLOCK2, False, 1024, large), None, {}
    up = {"method": "put", "payload": UPLOAD, "format": 0}
    yield "BLOCK_03", "/large-update", up, blocks(BLOCK1, True, 1024, UPLOAD), None, {}
    up = {**up, "method": "post"}
    yield "BLOCK_04", "/large-create", up, blocks(BLOCK1, True, 1024, UPLOAD), None, {}
    yield ("BLOCK_05", "/large-post", up,
           both(blocks(BLOCK1, True, 1024, UPLOAD), blocks(BLOCK2, False, 1024, UPLOAD)), None, {})
    yield ("BLOCK_06", "/large", {"block": 16},
           both(first_block(16), blocks(BLOCK2, False, 16, large)), None, {})
    o = {"gateway": "o"}
    yield "OBS_01", "/obs", {"observe": 3}, observed, None, o
    yield "OBS_03", "/obs", {"observe": 3}, deregistered, None, o
    yield "OBS_04", "/obs", {"observe": 3}, ages, None, o


class Origin(http.server.BaseHTTPRequestHandler):
    """The same resources by HTTP, behind the gateway."""

    protocol_version = "HTTP/1.1"
    content, made = b"version 1", set()

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", **more):
        self.send_response(status)
        for name, value in more.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    @classmethod
    def tag(cls):
        return f'"{cls.content.hex()}"'

    def do_GET(self):
        path, tag, text = self.path.split("?")[0], Origin.tag(), "text/plain"
        if path == "/separate":
            time.sleep(3)
        if path == "/multi-format":
            accept = self.headers.get("Accept", text)
            body = b"<test/>" if "xml" in accept else b"test"
            return self.answer(200, body, Content_Type="application/xml" if "xml" in accept else text)
        if path == "/validate":
            if tag in self.headers.get("If-None-Match", ""):
                return self.answer(304, ETag=tag)
            return self.answer(200, Origin.content, ETag=tag, Content_Type=text)
        if path == "/large":
            return self.answer(200, plugserver.LARGE, Content_Type=text)
        return self.answer(200, b"test", Content_Type=text)

    def take(self):
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def do_PUT(self):
        body, tag = self.take(), Origin.tag()
        if self.headers.get("If-Match") not in (None, tag):
            return self.answer(412)
        if self.headers.get("If-None-Match") == "*" and self.path in Origin.made:
            return self.answer(412)
        if self.path == "/create1" and self.path not in Origin.made:
            Origin.made.add(self.path)
            return self.answer(201)
        if self.path == "/validate":
            Origin.content = body
        return self.answer(204)

    def do_POST(self):
        body = self.take()
        if self.path == "/large-post":
            return self.answer(200, body, Content_Type="text/plain")
        at = "/location1/location2/location3" if self.path == "/test" else "?first=1&second=2"
        return self.answer(201, Location=at)

    def do_DELETE(self):
        self.answer(204)


def cell(port, name, row):
    """Runs one: what is to be printed, and the datagrams."""
    td, path, asked, judge, lose, explained = row
    why = explained.get(name, explained.get("gateway") if name.startswith("gateway") else None)
    if why is not None:
        return why, []
    client, asked = CLIENTS[name.split()[-1]], dict(asked)
    for key in ("etag", "if_match"):
        if asked.get(key) == b"?":
            tap = Tap(port)
            client(f"coap://127.0.0.1:{tap.port}{path}")
            tags = [one.all(ETAG)[0] for one in answers(tap.seen()) if one.all(ETAG)]
            if not tags:
                return "FAIL", tap.seen()
            asked[key] = tags[-1]
    tap = Tap(port, lose)
    said = client(f"coap://127.0.0.1:{tap.port}{path}", **asked)
    if tap.shows(judge):
        return "ok", tap.seen()
    print(f"  {td} {name}: {said[:200]!r} {tap.seen()[:12]}", file=sys.stderr)
    return "FAIL", tap.seen()


def malformed(packets):
    """What tshark takes for malformed of these; None without tshark."""
    tshark, text2pcap = shutil.which("tshark"), shutil.which("text2pcap")
    if not tshark or not text2pcap:
        return None
    with tempfile.TemporaryDirectory() as folder:
        text, pcap = os.path.join(folder, "hex"), os.path.join(folder, "pcap")
        with open(text, "w", encoding="ascii") as file:
            for one in packets:
                for at in range(0, len(one.data), 16):
                    part = one.data[at : at + 16].hex(" ")
                    file.write(f"{at:06x} {part}\n")
                file.write("\n")
        subprocess.run([text2pcap, "-q", "-u", "40000,5683", text, pcap], check=True,
                       capture_output=True)
        fields = ("-T", "fields", "-e", "coap.version", "-e", "_ws.expert.message")
        done = subprocess.run([tshark, "-r", pcap, *fields], check=True, capture_output=True)
        lines = done.stdout.decode().splitlines()
        # Request-Tag and Echo are younger (RFC 9175) than what some versions know, and what is
        # repeated is named, too.
        known = ("Invalid Option Number 292", "Invalid Option Number 252", "Retransmitted")
        bad = [line for line in lines if line[:2] != "1\t"
               or line[2:] and not any(one in line for one in known)]
        for at, line in enumerate(lines):
            if line in bad:
                print(f"  malformed: {packets[at]}: {line}", file=sys.stderr)
        return len(packets) - len(lines) + len(bad)


def main():
    table = {}
    ours = []
    server_port, gateway_port = free_port(), free_port()
    origin = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Origin)
    threading.Thread(target=origin.serve_forever, daemon=True).start()
    http_url = f"http://127.0.0.1:{origin.server_address[1]}"
    coap = ("--coap", f"127.0.0.1:{gateway_port}", "--coap-upstream", http_url)
    server = process(sys.executable, "plugserver.py", str(server_port), ready=b"ready")
    with server, gateway(http_url, gateway_port, *coap):
        wait_for(f"coap://127.0.0.1:{gateway_port}")
        for prefix, port in (("", server_port), ("gateway ", gateway_port)):
            for client in CLIENTS:
                name = prefix + client
                for row in rows():
                    table.setdefault(row[0], {})[name], seen = cell(port, name, row)
                    if name == "longwire" or prefix:
                        ours += [one for one in seen if one.up == (name == "longwire")]
    columns = [*CLIENTS, *(f"gateway {one}" for one in CLIENTS)]
    print(f"{'TD_COAP_':10}" + "".join(f"{one:>18}" for one in columns))
    failed = 0
    for td, cells in table.items():
        print(f"{td:10}" + "".join(f"{cells[one]:>18}" for one in columns))
        failed += sum(cells[one] == "FAIL" for one in columns if one == "longwire" or " " in one)
    for letter in sorted({one for cells in table.values() for one in cells.values()} & set(WHY)):
        print(f"  {letter}: {WHY[letter]}")
    wrong = malformed(ours)
    print("tshark is not there" if wrong is None else
          f"tshark: {wrong} of {len(ours)} datagrams of ours malformed")
    print(json.dumps({"failed": failed, "malformed": wrong}))
    sys.exit(1 if failed or wrong else 0)


if __name__ == "__main__":
    main()
