"""Requests to a group (RFC 7252 section 8), as a table like that of the plugtests.

  interop/coap/groups.py        (by `check`, with its environment)

Rows with a server are asked by datagrams of our own: of longwire's gateways, and beside them of
libcoap's and aiocoap's server, which show what others make of the same. Rows with a client have
three of our gateways in the group, which longwire, libcoap and aiocoap ask. A cell is ok, FAIL, or
"-" where a peer does something else than the row says; only ours fail. Exit status 1 where one did.
"""

import asyncio
import concurrent.futures
import contextlib
import json
import os
import socket
import struct
import subprocess
import sys
import time

import aiocoap

from plugtests import ACCEPT, CON, NON, Packet
from run import CLIENT, GROUP, LONGWIRE, SERVER, free_port, process, wait_for

# Answers are spread over this (RFC 7252 section 8.2).
LEISURE_S = 5
MEMBERS = 3
GET, PUT, CONTENT = 1, 3, 69
URI_HOST, PATH, QUERY, PROXY_URI, NO_RESPONSE = 3, 11, 15, 35, 258
LINKS = [(PATH, b".well-known"), (PATH, b"core")]


def encode(kind, code, mid, options):
    """A message with a token of its own."""
    data, before = bytes([0x40 | kind << 4 | 2, code]) + struct.pack("!HH", mid, mid), 0
    for number, value in sorted(options, key=lambda one: one[0]):
        head, more = [], b""
        for part in (number - before, len(value)):
            if part < 13:
                head.append(part)
            elif part < 269:
                head.append(13)
                more += bytes([part - 13])
            else:
                head.append(14)
                more += struct.pack("!H", part - 269)
        data += bytes([head[0] << 4 | head[1]]) + more + value
        before = number
    return data


class Asked:
    """A request to the group, and what comes within Leisure and a second: when, and from whom."""

    def __init__(self, port, kind=NON, code=GET, options=None, within=LEISURE_S + 1):
        self.mid = int.from_bytes(os.urandom(2), "big")
        self.came = []
        with socket.socket(type=socket.SOCK_DGRAM) as peer:
            peer.bind(("127.0.0.1", 0))
            peer.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
            began = time.monotonic()
            request = encode(kind, code, self.mid, LINKS if options is None else options)
            peer.sendto(request, (GROUP, port))
            while (left := began + within - time.monotonic()) > 0:
                peer.settimeout(left)
                with contextlib.suppress(TimeoutError):
                    data, source = peer.recvfrom(65535)
                    at = time.monotonic() - began
                    self.came.append((at, source, Packet(at, False, data)))

    def is_silent(self):
        return not self.came

    def is_answered(self):
        """Once by each, from its own address, not as an acknowledgement (section 8.1, 8.2)."""
        sources = {source for _, source, _ in self.came}
        token = struct.pack("!H", self.mid)
        good = all(one.code == CONTENT and one.kind in (CON, NON) and one.token == token
                   and source[0] == "127.0.0.1" for _, source, one in self.came)
        return bool(self.came) and len(sources) == len(self.came) and good

    def __repr__(self):
        return repr(self.came)


def server_rows():
    """Name, what a group is asked, what is to come of it, and what that is in words."""
    href = [*LINKS, (QUERY, b"href=/.well-known/core")]
    return [
        ("LINKS", {}, Asked.is_answered, "GET /.well-known/core is answered from a member's address"),
        ("HREF", {"options": href}, Asked.is_answered, "and so is a filter that meets"),
        ("FILTER", {"options": [*LINKS, (QUERY, b"rt=of-nobody")]}, Asked.is_silent,
         "a filter that meets nothing is not answered (RFC 6690 section 4.1)"),
        ("ERROR", {"options": [(PATH, b"nowhere")]}, Asked.is_silent, "nor is an error"),
        ("ACCEPT", {"options": [*LINKS, (ACCEPT, b"\x32")]}, Asked.is_silent, "nor a format"),
        ("METHOD", {"code": PUT}, Asked.is_silent, "nor a method that there is not"),
        ("CRITICAL", {"options": [*LINKS, (9991, b"x")]}, Asked.is_silent,
         "nor a critical option that is unknown"),
        ("CON", {"kind": CON}, Asked.is_silent, "nor what is confirmable, with a reset neither"),
        ("PROXY", {"options": [(PROXY_URI, b"http://127.0.0.1:9/")]}, Asked.is_silent,
         "nor anything for a proxy"),
        ("NO_RESP", {"options": [*LINKS, (NO_RESPONSE, b"\x02")]}, Asked.is_silent,
         "nor what wants no 2.xx (RFC 7967)"),
    ]


def by_longwire(port):
    args = ["coap", "discover", f"coap://{GROUP}:{port}", "--interface", "127.0.0.1", "--gather", "7 s"]
    done = subprocess.run([LONGWIRE, *args], capture_output=True, timeout=20, check=False)
    return len(set(done.stdout.splitlines())), done


def by_libcoap(port):
    url = f"coap://{GROUP}:{port}/.well-known/core"
    args = [CLIENT, "-N", "-B", "7", "-a", "127.0.0.1", "-m", "get", url]
    done = subprocess.run(args, capture_output=True, timeout=20, check=False)
    return done.stdout.count(b"</.well-known/core>"), done


def by_aiocoap(port):
    """It hands out the answer that comes first."""
    async def ask():
        context = await aiocoap.Context.create_client_context()
        url = f"coap://{GROUP}:{port}/.well-known/core"
        request = aiocoap.Message(code=aiocoap.GET, uri=url, mtype=aiocoap.NON)
        answer = await asyncio.wait_for(context.request(request).response, LEISURE_S + 1)
        await context.shutdown()
        return answer

    try:
        answer = asyncio.run(ask())
        return answer.payload.count(b"</.well-known/core>"), answer
    except Exception as error:  # Whatever it is, it is what the cell says.
        return 0, error


AIOCOAP_SERVER = f"""
import asyncio, sys, aiocoap
from aiocoap import resource

async def main(port):
    site = resource.Site()
    core = resource.WKCResource(site.get_resources_as_linkheader)
    site.add_resource([".well-known", "core"], core)
    await aiocoap.Context.create_server_context(
        site, bind=("0.0.0.0", port), transports=["udp6"], multicast=[("{GROUP}", "lo")])
    print("ready", flush=True)
    await asyncio.Event().wait()

asyncio.run(main(int(sys.argv[1])))
"""


def gateway_in_group(port, address):
    at = ("gateway", "--listen", "127.0.0.1:0", "--allow", "http://127.0.0.1:9")
    return process(LONGWIRE, *at, "--coap", f"{address}:{port}", "--coap-multicast", f"{GROUP}%lo")


def main():
    failed, table = 0, {}
    with contextlib.ExitStack() as stack:
        ports = {name: free_port() for name in ("longwire", "libcoap", "aiocoap")}
        stack.enter_context(gateway_in_group(ports["longwire"], "127.0.0.1"))
        libcoap = (SERVER, "-p", str(ports["libcoap"]), "-g", GROUP, "-G", "lo")
        stack.enter_context(process(*libcoap))
        command = (sys.executable, "-c", AIOCOAP_SERVER, str(ports["aiocoap"]))
        stack.enter_context(process(*command, ready=b"ready"))
        for name in ("longwire", "libcoap"):
            wait_for(f"coap://127.0.0.1:{ports[name]}")
        # Silence takes its time: all of it at once.
        pool = stack.enter_context(concurrent.futures.ThreadPoolExecutor(max_workers=64))
        asked = {(name, row[0]): pool.submit(Asked, port, **row[1])
                 for name, port in ports.items() for row in server_rows()}
        for name in ports:
            for row, _, judge, _ in server_rows():
                came = asked[name, row].result()
                good = judge(came)
                table.setdefault(row, {})[name] = "ok" if good else "FAIL" if name == "longwire" else "-"
                if not good and name == "longwire":
                    failed += 1
                    print(f"  {row}: {came}", file=sys.stderr)
    columns = ("longwire", "libcoap", "aiocoap")
    print(f"{'server':10}" + "".join(f"{one:>10}" for one in columns))
    for row, _, _, words in server_rows():
        print(f"{row:10}" + "".join(f"{table[row][one]:>10}" for one in columns) + f"  {words}")

    with contextlib.ExitStack() as stack:
        port = free_port()
        for number in range(1, MEMBERS + 1):
            stack.enter_context(gateway_in_group(port, f"127.0.0.{number}"))
            wait_for(f"coap://127.0.0.{number}:{port}")
        # Who answers is told apart by the address.
        pool = stack.enter_context(concurrent.futures.ThreadPoolExecutor(max_workers=3))
        many = list(pool.map(Asked, [port] * 3))
        sources = [{source[0] for _, source, _ in one.came} for one in many]
        times = sorted(at for one in many for at, _, _ in one.came)
        spread = bool(times) and times[-1] - times[0] > 1 and times[-1] < LEISURE_S + 0.5
        all_once = all(len(one.came) == len(found) == MEMBERS for one, found in zip(many, sources))
        print(f"{'client':10}" + "".join(f"{one:>10}" for one in columns))
        cells = {}
        for name, ask, wanted in (("longwire", by_longwire, MEMBERS), ("libcoap", by_libcoap, 1),
                                  ("aiocoap", by_aiocoap, 1)):
            count, said = ask(port)
            good = count >= wanted
            # What does not ask over the loopback interface hears nobody there.
            cells[name] = "ok" if good else "FAIL" if name == "longwire" else "-"
            if not good and name == "longwire":
                failed += 1
                print(f"  MANY: {said}", file=sys.stderr)
        print(f"{'MANY':10}" + "".join(f"{cells[one]:>10}" for one in columns)
              + f"  {MEMBERS} members answer a client that waits for all")
        good = all_once and spread
        failed += not good
        print(f"{'SPREAD':10}{'ok' if good else 'FAIL':>10}" + " " * 20
              + f"  each of {MEMBERS} once, spread over {LEISURE_S} s")
        if not good:
            print(f"  SPREAD: {many}", file=sys.stderr)
    print(json.dumps({"failed": failed}))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
