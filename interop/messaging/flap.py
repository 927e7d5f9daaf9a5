#!/usr/bin/env python3
"""Nodes of the messaging service on two sides of a link that flaps, killed at random.

  interop/messaging/flap.py [--messages 10000] [--rate 20] [--seed 1] [--coap] [--json FILE] [--keep]

LONGWIRE names the binary; root is needed (namespaces). a1 and a2 are on one side, b1 and b2 on the
other, and a2 and b2 reach the other side by a1 and b1, so that a message takes three hops at most.
Clients give messages at a rate, each again with the same id until it is answered. The link is up and
down in turn and loses 2 % while it is up; every few seconds a node is killed with SIGKILL and started
again. In the end the link is up: each message must be exactly once in the inbox of each addressee,
in no other, and each originator must know of it. Exit status 1 if not. With --coap the sides speak
CoAP over UDP, otherwise HTTP.
"""

import argparse
import calendar
import json
import os
import queue
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, os.path.join(HERE, "..", "faults"))

from pair import Lab  # noqa: E402

from nodes import Node, enter, quantile  # noqa: E402

NAMES = ["a1", "a2", "b1", "b2"]
FORMS = {"a1": "cbor", "a2": "json", "b1": "exi", "b2": "xml"}
WORKERS = 12
LOSS = "2 %"
SETTLE_S = 600
PATIENCE_S = 0.2


def config(name, addresses, ports, coap):
    """The text of a node's file."""
    side = name[0]
    text = f'form = "{FORMS[name]}"\nretry_first = "200 ms"\nretry_longest = "5 s"\n' \
           f'attempt_timeout = "5 s"\nresend = "60 s"\n'
    key = "coap" if coap else "peers"
    text += f'{key} = "{addresses[side]}:{ports[name]}"\n'
    scheme = "coap" if coap else "http"
    text += '[groups]\nall = ["a1", "a2", "b1", "b2"]\n[nodes]\n'
    for other in NAMES:
        if other == name:
            continue
        # The second of a side reaches the other side, and is reached from there, by the first.
        if other[0] != side and name[1] == "2":
            text += f'{other} = {{ via = "{side}1" }}\n'
        elif other[0] != side and other[1] == "2":
            text += f'{other} = {{ via = "{other[0]}1" }}\n'
        else:
            text += f'{other} = {{ url = "{scheme}://{addresses[other[0]]}:{ports[other]}" }}\n'
    return text


def plan(seed, count):
    """All messages: who writes them, to whom, how."""
    chance = random.Random(seed)
    messages = []
    for number in range(count):
        node = chance.choice(NAMES)
        others = [name for name in NAMES if name != node]
        to = ["all"] if chance.random() < 0.2 else chance.sample(others, chance.choice([1, 1, 2]))
        recipients = others if to == ["all"] else to
        text = "x" * chance.choice([20, 20, 20, 200, 200, 2000])
        messages.append({
            "node": node, "recipients": set(recipients),
            "document": {"id": f"{node}-{number}", "addressees": to, "text": text,
                         "precedence": chance.choice(["flash", "immediate", "priority", "routine"]),
                         "receipt": chance.choice(["delivered", "delivered", "read"])}})
    return messages


class Run:
    """Nodes, a link and what is done to both."""

    def __init__(self, binary, options):
        self.options, self.chance = options, random.Random(options.seed + 1)
        self.folder = tempfile.mkdtemp(prefix="messaging-flap-")
        self.lab = Lab(binary, f"flap{os.getpid()}", seed=options.seed)
        hosts = self.addresses()
        ports = {name: 8100 + at for at, name in enumerate(NAMES)}
        spaces = {"a": self.lab.a, "b": self.lab.b}
        self.nodes = {name: Node(binary, name, self.folder, 8090 + at,
                                 config(name, hosts, ports, options.coap), spaces[name[0]])
                      for at, name in enumerate(NAMES)}
        self.spaces, self.queues = spaces, {"a": queue.Queue(), "b": queue.Queue()}
        self.is_over, self.flaps, self.errors = threading.Event(), 0, []

    def addresses(self):
        """Of both sides on the link between them."""
        found = {}
        for side, space in (("a", self.lab.a), ("b", self.lab.b)):
            shown = subprocess.run(["nsenter", f"--net={space}", "ip", "-j", "-4", "address"],
                                   check=True, capture_output=True, timeout=20)
            for link in json.loads(shown.stdout):
                for address in link.get("addr_info", []):
                    if address["scope"] == "global":
                        found[side] = address["local"]
        return found

    def thread(self, work, *given):
        def guarded():
            try:
                work(*given)
            except Exception as error:  # What went wrong in a thread ends the run.
                self.errors.append(repr(error))
        thread = threading.Thread(target=guarded, daemon=True)
        thread.start()
        return thread

    def flap(self):
        while not self.is_over.wait(self.chance.uniform(2, 12)):
            self.lab.set(loss="100 %")
            self.flaps += 1
            self.is_over.wait(self.chance.uniform(1, 8))
            self.lab.set(loss=LOSS)

    def killer(self):
        while not self.is_over.wait(self.chance.expovariate(1 / 5)):
            node = self.nodes[self.chance.choice(NAMES)]
            node.kill()
            self.is_over.wait(self.chance.uniform(0, 3))
            node.start()

    def worker(self, side):
        """Gives messages, each until it is answered."""
        enter(self.spaces[side])
        while True:
            message = self.queues[side].get()
            if message is None:
                return
            node = self.nodes[message["node"]]
            message["given"] = time.time()
            while True:
                try:
                    status, content = node.ask("POST", "/messages", message["document"])
                except OSError:
                    # Nobody says when a node that was killed is there again.
                    time.sleep(PATIENCE_S)
                    continue
                if status in (200, 201):
                    break
                if status != 503:
                    raise OSError(f"{message['document']['id']}: {status}: {content!r}")
                time.sleep(PATIENCE_S)

    def send(self, messages):
        begin = time.monotonic()
        for number, message in enumerate(messages):
            time.sleep(max(0, begin + number / self.options.rate - time.monotonic()))
            self.queues[message["node"][0]].put(message)
            if self.errors:
                return

    def within(self, name, work):
        """Does something in a node's namespace."""
        result = []

        def inside():
            enter(self.nodes[name].namespace)
            result.append(work(self.nodes[name]))
        self.thread(inside).join()
        return result[0] if result else None

    def settle(self):
        """Waits until nothing waits anywhere and every originator knows."""
        end = time.monotonic() + SETTLE_S
        while time.monotonic() < end and not self.errors:
            def is_quiet(node):
                sizes = node.wait()
                open_stages = {"waiting", "forwarded"}
                return sizes["waiting"] == 0 and sizes["receipts"] == 0 and not any(
                    of["stage"] in open_stages
                    for entry in node.all("outbox") for of in entry["recipients"].values())
            if all(self.within(name, is_quiet) for name in NAMES):
                return True
            time.sleep(1)
        return False

    def run(self):
        for node in self.nodes.values():
            node.start()
        for name in NAMES:
            self.within(name, Node.wait)
        self.lab.set(loss=LOSS)
        messages = plan(self.options.seed, self.options.messages)
        workers = [self.thread(self.worker, side) for side in "ab" for _ in range(WORKERS)]
        faults = [self.thread(self.flap), self.thread(self.killer)]
        began = time.monotonic()
        self.send(messages)
        for side in "ab":
            for _ in range(WORKERS):
                self.queues[side].put(None)
        self.is_over.set()
        for thread in faults:
            thread.join()
        self.lab.set(loss="0 %")
        for thread in workers:
            thread.join(SETTLE_S)
        is_settled = self.settle()
        seconds = time.monotonic() - began
        inboxes = {name: self.within(name, lambda node: node.all("inbox")) for name in NAMES}
        outboxes = {name: self.within(name, lambda node: node.all("outbox")) for name in NAMES}
        return self.judge(messages, inboxes, outboxes, is_settled, seconds)

    def judge(self, messages, inboxes, outboxes, is_settled, seconds):
        problems = list(self.errors)
        if not is_settled:
            problems.append(f"something waits {SETTLE_S} s after the last fault")
        times, delays = {}, []
        for name, entries in inboxes.items():
            for entry in entries or []:
                key = (entry["message"]["id"], name)
                times[key] = times.get(key, 0) + 1
        wanted = {(message["document"]["id"], name)
                  for message in messages for name in message["recipients"]}
        missing = [key for key in wanted if key not in times]
        doubled = [key for key, count in times.items() if count > 1]
        strays = [key for key in times if key not in wanted]
        for what, keys in (("missing", missing), ("twice", doubled), ("astray", strays)):
            problems += [f"{what}: {identity} at {name}" for identity, name in keys[:10]]
        bad = [(entry["id"], name, of["stage"]) for entries in outboxes.values()
               for entry in entries or [] for name, of in entry["recipients"].items()
               if of["stage"] not in ("delivered", "read")]
        problems += [f"{identity} to {name} is {stage}" for identity, name, stage in bad[:10]]
        given = {message["document"]["id"]: message.get("given") for message in messages}
        for entries in inboxes.values():
            for entry in entries or []:
                begin = given.get(entry["message"]["id"])
                if begin:
                    delays.append(moment(entry["arrived"]) - begin)
        return {"messages": len(messages), "deliveries": len(wanted), "missing": len(missing),
                "twice": len(doubled), "astray": len(strays), "not_known": len(bad),
                "kills": sum(node.kills for node in self.nodes.values()), "flaps": self.flaps,
                "delay_p50_s": quantile(delays, 0.5), "delay_p99_s": quantile(delays, 0.99),
                "seconds": round(seconds, 1), "problems": problems}

    def stop(self):
        for node in self.nodes.values():
            node.kill()
        self.lab.down()
        if self.options.keep:
            print(f"logs and stores are in {self.folder}", file=sys.stderr)
        else:
            shutil.rmtree(self.folder, ignore_errors=True)


def moment(text):
    """A time of a document, in seconds since 1970."""
    whole, _, fraction = text.rstrip("Z").partition(".")
    return calendar.timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) + float(f"0.{fraction or 0}")


def main():
    parser = argparse.ArgumentParser(description="Messages over a link that flaps, with kills.")
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--rate", type=float, default=20, help="messages a second")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--coap", action="store_true")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    run = Run(os.environ["LONGWIRE"], options)
    try:
        facts = run.run()
    finally:
        run.stop()
    print(json.dumps(facts))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(facts, file, indent=1)
    return 1 if facts["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
