#!/usr/bin/env python3
"""How many messages a second two nodes of the messaging service pass on over loopback.

  interop/messaging/load.py [--rate 1000] [--seconds 30] [--connections 32] [--coap] [--json FILE]

LONGWIRE names the binary. Clients give messages to node a at a rate, whoever is slow; b tells of each
as it comes. Printed are how long a takes to accept a message (it is on the disk then), how long until
b tells of it (on b's disk too), and the memory of both.
"""

import argparse
import json
import os
import shutil
import socket
import sys
import tempfile
import threading
import time

from nodes import Node, quantile

DRAIN_S = 60


def free_port(kind):
    with socket.socket(socket.AF_INET, kind) as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Load:
    """What the threads share."""

    def __init__(self, options, port):
        self.options, self.port = options, port
        self.lock, self.next, self.begin = threading.Lock(), 0, 0.0
        self.total = int(options.rate * options.seconds)
        self.given, self.accepted, self.arrived, self.refused = {}, {}, {}, []

    def take(self):
        with self.lock:
            number, self.next = self.next, self.next + 1
            return number

    def client(self):
        """One connection that gives messages when it is their time."""
        stream = socket.create_connection(("127.0.0.1", self.port))
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        reader = stream.makefile("rb")
        while (number := self.take()) < self.total:
            due = self.begin + number / self.options.rate
            time.sleep(max(0, due - time.monotonic()))
            body = b'{"id":"a-%d","addressees":["b"],"text":"Contact north, 3 vehicles"}' % number
            # Late clients are no excuse: a message counts from when it was due.
            self.given[number] = due
            stream.sendall(b"POST /messages HTTP/1.1\r\nHost: x\r\n"
                           b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                           % (len(body), body))
            status = int(reader.readline().split()[1])
            length = 0
            while (line := reader.readline()) != b"\r\n":
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            content = reader.read(length)
            if status in (200, 201):
                self.accepted[number] = time.monotonic()
            else:
                self.refused.append(f"{status}: {content[:100]!r}")
        stream.close()

    def follow(self, port, ready):
        """Notes when b tells of messages."""
        stream = socket.create_connection(("127.0.0.1", port))
        stream.sendall(b"GET /events?after=0 HTTP/1.1\r\nHost: x\r\n\r\n")
        reader = stream.makefile("rb")
        while line := reader.readline():
            if line.startswith(b": subscribed"):
                ready.set()
            at = line.find(b'"id":"a-')
            if line.startswith(b"data: ") and at >= 0:
                digits = line[at + 8:line.index(b'"', at + 8)]
                self.arrived[int(digits)] = time.monotonic()


def main():
    parser = argparse.ArgumentParser(description="Messages a second over loopback.")
    parser.add_argument("--rate", type=float, default=1000, help="messages a second")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--coap", action="store_true")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    binary, folder = os.environ["LONGWIRE"], tempfile.mkdtemp(prefix="messaging-load-")
    kind, scheme, key = (socket.SOCK_DGRAM, "coap", "coap") if options.coap else \
        (socket.SOCK_STREAM, "http", "peers")
    peers = {name: free_port(kind) for name in "ab"}
    nodes = {name: Node(binary, name, folder, free_port(socket.SOCK_STREAM),
                        f'{key} = "127.0.0.1:{peers[name]}"\nwindow = 32\nform = "cbor"\n'
                        f'max_messages = 1000000\n[nodes]\n'
                        f'{other} = {{ url = "{scheme}://127.0.0.1:{peers[other]}" }}\n')
             for name, other in (("a", "b"), ("b", "a"))}
    try:
        for node in nodes.values():
            node.start()
        at_first = {name: node.wait() and node.resident() for name, node in nodes.items()}
        load, ready = Load(options, nodes["a"].port), threading.Event()
        threading.Thread(target=load.follow, args=(nodes["b"].port, ready), daemon=True).start()
        ready.wait(10)
        load.begin = began = time.monotonic() + 0.2
        clients = [threading.Thread(target=load.client) for _ in range(options.connections)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        given_in = time.monotonic() - began
        end = time.monotonic() + DRAIN_S
        while len(load.arrived) < len(load.accepted) and time.monotonic() < end:
            time.sleep(0.05)
        last = max(load.arrived.values(), default=began) - began
        facts = {
            "messages": load.total, "accepted": len(load.accepted), "refused": load.refused[:5],
            "delivered": len(load.arrived), "given_per_s": round(load.total / given_in, 1),
            "delivered_per_s": round(len(load.arrived) / last, 1) if last > 0 else 0,
            "resident_mib": {name: {"first": round(at_first[name] / 2**20, 1),
                                    "last": round(node.resident() / 2**20, 1)}
                             for name, node in nodes.items()},
        }
        for what, ends in (("accept", load.accepted), ("deliver", load.arrived)):
            times = [1000 * (at - load.given[number]) for number, at in ends.items()]
            for name, part in (("p50", 0.5), ("p99", 0.99), ("max", 1.0)):
                value = quantile(times, part)
                facts[f"{what}_{name}_ms"] = None if value is None else round(value, 1)
    finally:
        for node in nodes.values():
            node.kill()
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(facts))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(facts, file, indent=1)
    return 0 if facts["delivered"] == facts["messages"] else 1


if __name__ == "__main__":
    sys.exit(main())
