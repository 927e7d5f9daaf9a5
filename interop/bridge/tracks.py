#!/usr/bin/env python3
"""Tracks between two brokers over a slow link: bytes of each update, and how late it comes.

  WORK=DIR LONGWIRE=BINARY PYTHONPATH=interop interop/bridge/tracks.py [--link cnr] [--tracks 100]
                                [--every 10] [--minutes 10] [--cases LIST] [--json FILE]

Root is needed, for network namespaces; paho-mqtt and Mosquitto. Each case has the two ends of an
emulated link of its own, all at the same time; positions are published at one end, each track's at
its own second, and heard at the other. Bytes are those of the link's interface, IP included, in both
directions, with all that keeps the connections alive.

  mosquitto-0, mosquitto-1  Mosquitto's bridge to Mosquitto, QoS 0 or 1
  mqtt-sn                   MQTT-SN at QoS -1 with topic ids that both sides know: a datagram an update
  longwire-0, longwire-1    our bridge to our broker, QoS 0 or 1, compressed, what waits conflated
  plain-0, plain-1          the same without compression
  pair-0, pair-1            the same through an edge and a gateway at the ends of the link
"""

import argparse
import json
import math
import os
import pathlib
import socket
import struct
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[1:1] = [str(HERE.parent), str(HERE.parent / "faults")]

from ours import LONGWIRE, MAX_STEP_S, WORK, Client  # noqa: E402: helpers of other runs.
from pair import Lab, enter  # noqa: E402

MQTT, SN, EDGE, GATEWAY = 1883, 1885, 3128, 4300
ETHERNET_BYTES = 14
BATCH = "2 s"
CASES = ["mosquitto-0", "mosquitto-1", "mqtt-sn", "longwire-0", "longwire-1", "pair-0", "pair-1"]
# Until what is under way at the end has come, or is not counted.
PATIENCE_S = 30


def position(track, now):
    """A report as JSON, as services of maps send it."""
    angle = now / 900 + track
    return json.dumps({
        "unit": f"unit-{track:03}", "time": round(now, 3),
        "lat": round(59.9 + 0.05 * math.sin(angle), 5), "lon": round(10.7 + 0.1 * math.cos(angle), 5),
        "course": round(math.degrees(angle) % 360), "speed": round(8 + 4 * math.sin(3 * angle), 1),
    }, separators=(",", ":"))


class Case:
    """One way of one end to the other."""

    def __init__(self, name, options):
        self.name, self.options = name, options
        self.kind, _, qos = name.partition("-") if name != "mqtt-sn" else (name, "", "0")
        self.qos = int(qos or 0)
        self.sent, self.came, self.processes = 0, [], []
        self.folder = WORK / "tracks" / name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.lab = Lab(LONGWIRE, f"tracks{os.getpid()}{name}", options.link)

    def inside(self, namespace, work):
        """What `work` returns, done in a network namespace."""
        found = []

        def run():
            enter(namespace)
            found.append(work())

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        return found[0] if found else sys.exit(f"{self.name}: it does not work")

    def start(self, namespace, name, command, port=None):
        with open(self.folder / f"{name}.log", "ab") as log:
            self.processes.append(subprocess.Popen(
                ["nsenter", f"--net={namespace}", *command], stdin=subprocess.DEVNULL, stdout=log,
                stderr=log))
        if port:
            self.inside(namespace, lambda: self.await_port(port))

    @staticmethod
    def await_port(place):
        for _ in range(MAX_STEP_S * 10):
            try:
                socket.create_connection(place, 1).close()
                return True
            except OSError:
                time.sleep(0.1)
        return sys.exit(f"nobody listens at {place}")

    def file(self, name, text):
        (self.folder / name).write_text(text)
        return str(self.folder / name)

    def mosquitto(self):
        far = self.file("far.conf", f"user root\nallow_anonymous true\nlistener {MQTT} 0.0.0.0\n")
        near = self.file("near.conf", f"""user root
allow_anonymous true
listener {MQTT} 127.0.0.1
connection far
address {self.lab.gateway}:{MQTT}
topic unit/# out {self.qos}
notifications false
""")
        self.start(self.lab.b, "far", ["mosquitto", "-c", far], ("127.0.0.1", MQTT))
        self.start(self.lab.a, "near", ["mosquitto", "-c", near], ("127.0.0.1", MQTT))

    def longwire(self, through_pair):
        ids = "".join(f'[[topic_id]]\nid = {track + 1}\ntopic = "unit/{track}/track"\n'
                      for track in range(self.options.tracks))
        far = self.file("far.toml", f"""[broker]
mqtt = "0.0.0.0:{MQTT}"
anonymous = true
[[mqtt_sn]]
listen = "0.0.0.0:{SN}"
{ids}""")
        self.start(self.lab.b, "far", [LONGWIRE, "broker", "--config", far], ("127.0.0.1", MQTT))
        if self.kind == "mqtt-sn":
            return
        proxy = f'proxy = "http://127.0.0.1:{EDGE}"\n' if through_pair else ""
        near = self.file("near.toml", f"""[broker]
mqtt = "127.0.0.1:{MQTT}"
[[rule]]
filter = "unit/#"
conflate = true
[[bridge]]
name = "far"
url = "mqtt://{self.lab.gateway}:{MQTT}"
client_id = "near"
batch = "{BATCH}"
compress = {"false" if self.kind == "plain" else "true"}
{proxy}
[[bridge.route]]
filter = "unit/#"
comes = false
max_qos = {self.qos}
""")
        if through_pair:
            self.pair()
        self.start(self.lab.a, "near", [LONGWIRE, "broker", "--config", near], ("127.0.0.1", MQTT))

    def pair(self):
        keys = {side: self.folder / f"keys-{side}" for side in ("edge", "gateway")}
        for folder in keys.values():
            if not folder.exists():
                subprocess.run([LONGWIRE, "keygen", folder], check=True, capture_output=True)

        def key(own, other):
            return ["--key", str(keys[own] / "longwire.key"), "--peer",
                    str(keys[other] / "longwire.pub")]

        self.start(self.lab.b, "gateway", [
            LONGWIRE, "gateway", "--listen", f"{self.lab.gateway}:{GATEWAY}",
            "--allow", f"*://{self.lab.gateway}:{MQTT}", *key("gateway", "edge")])
        self.start(self.lab.a, "edge", [
            LONGWIRE, "edge", "--listen", f"127.0.0.1:{EDGE}",
            "--gateway", f"{self.lab.gateway}:{GATEWAY}", *key("edge", "gateway")],
            ("127.0.0.1", EDGE))

    def interface(self):
        """Bytes that have crossed, both ways, IP included."""
        with open("/proc/thread-self/net/dev", encoding="ascii") as file:
            lines = [line.split(":") for line in file.read().splitlines()[2:]]
        counters = [[int(number) for number in numbers.split()]
                    for name, numbers in lines if name.strip() != "lo"]
        return sum(line[0] + line[8] - ETHERNET_BYTES * (line[1] + line[9]) for line in counters)

    def heard(self, message):
        now = time.time()
        self.came.append((now - json.loads(message.payload)["time"], now))

    def client(self, namespace):
        return self.inside(namespace, lambda: Client(MQTT))

    def run(self):
        if self.kind == "mosquitto":
            self.mosquitto()
        else:
            self.longwire(self.kind == "pair")
        subscriber = self.client(self.lab.b)
        subscriber.client.on_message = lambda _c, _u, message: self.heard(message)
        subscriber.subscribe("unit/#", 1)
        if self.kind == "mqtt-sn":
            air = self.inside(self.lab.a, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))

            def publish(track, text):
                body = text.encode()
                head = struct.pack("!BBBHH", 7 + len(body), 0x0C, 0x61, track + 1, 0)
                air.sendto(head + body, (self.lab.gateway, SN))
        else:
            publisher = self.client(self.lab.a)

            def publish(track, text):
                publisher.client.publish(f"unit/{track}/track", text, self.qos)
        # It is there once something has come.
        while not self.came:
            publish(0, position(0, time.time()))
            time.sleep(2)
        time.sleep(PATIENCE_S)
        self.came.clear()
        before, began = self.inside(self.lab.a, self.interface), time.time()
        every, tracks = self.options.every, self.options.tracks
        total = int(self.options.minutes * 60 / every * tracks)
        for number in range(total):
            due = began + number * every / tracks
            time.sleep(max(0, due - time.time()))
            publish(number % tracks, position(number % tracks, time.time()))
            self.sent += 1
        end = time.time()
        self.bytes = self.inside(self.lab.a, self.interface) - before
        time.sleep(PATIENCE_S)
        self.counted = [delay for delay, at in self.came if at <= end + PATIENCE_S]

    def stop(self):
        for process in self.processes:
            process.kill()
        self.lab.down()

    def facts(self):
        delays = sorted(self.counted)

        def at(share):
            return round(delays[min(len(delays) - 1, int(len(delays) * share))], 2) if delays else None

        return {"case": self.name, "sent": self.sent, "came": len(delays),
                "bytes_per_update": round(self.bytes / self.sent, 1), "median_s": at(0.5),
                "p95_s": at(0.95), "longest_s": at(1.0)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--link", default="cnr")
    parser.add_argument("--tracks", type=int, default=100)
    parser.add_argument("--every", type=float, default=10)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--json")
    options = parser.parse_args()
    cases = []
    try:
        for name in options.cases.split(","):
            cases.append(Case(name, options))
        threads = [threading.Thread(target=case.run) for case in cases]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        for case in cases:
            case.stop()
    facts = [case.facts() for case in cases]
    print(f"{'case':12} {'sent':>6} {'came':>6} {'B/update':>9} {'median':>8} {'p95':>8} {'longest':>8}")
    for it in facts:
        times = [f"{it[key]} s" for key in ("median_s", "p95_s", "longest_s")]
        print(f"{it['case']:12} {it['sent']:6} {it['came']:6} {it['bytes_per_update']:9}", *(f"{one:>8}" for one in times))
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(facts, indent=2))


if __name__ == "__main__":
    main()
