"""What the runs of several peers share: lines of checks, a broker of ours, clients of MQTT.

LONGWIRE names the program, WORK a folder.
"""

import contextlib
import os
import pathlib
import queue
import re
import signal
import socket
import subprocess
import threading

import paho.mqtt.client as paho
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

LONGWIRE, WORK = os.environ["LONGWIRE"], pathlib.Path(os.environ["WORK"])
MAX_START_S, MAX_STEP_S = 10, 20
# How long it is waited for what is not to come.
SILENCE_S = 1
# Names of the checks that failed.
FAILED = []


def check(name, good, came=""):
    """Prints one line: ok, or FAIL with what came instead."""
    print(f"{'ok  ' if good else 'FAIL'}  {name}" + ("" if good else f": {came!r:.300}"), flush=True)
    if not good:
        FAILED.append(name)


def free_port():
    with socket.socket() as stream:
        stream.bind(("127.0.0.1", 0))
        return stream.getsockname()[1]


def next_of(came, seconds=MAX_STEP_S):
    """The next of a queue; None if none comes."""
    with contextlib.suppress(queue.Empty):
        return came.get(timeout=seconds)
    return None


class Broker:
    """A broker of ours with a file's text and options; `ports` by the names of its listeners."""

    def __init__(self, config="", *options, name="broker"):
        self.name, self.options = name, options
        self.listeners = len(re.findall(r'(?m)^(?:mqtts?|wss?|amqps?(?:091)?|wsns?|listen) = "', config))
        self.listeners += sum(option in ("--mqtt", "--mqtts", "--ws", "--wss") for option in options)
        self.path = WORK / f"{name}.toml"
        self.path.write_text(config)

    def __enter__(self):
        with open(WORK / f"{self.name}.log", "ab") as log:
            self.process = subprocess.Popen(
                [LONGWIRE, "broker", "--config", str(self.path), *self.options],
                stdout=subprocess.PIPE, stderr=log, text=True,
            )
        timer = threading.Timer(MAX_START_S, self.process.kill)
        timer.start()
        self.ports = {}
        while len(self.ports) < self.listeners:
            line = self.process.stdout.readline()
            found = re.fullmatch(r"listening on .*:(\d+) \(([\w-]+)\)\n", line)
            if not found:
                raise SystemExit(f"the broker said {line!r}: see {WORK}/{self.name}.log")
            self.ports[found[2]] = int(found[1])
        timer.cancel()
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.terminate()
            status = self.process.wait(MAX_STEP_S)
            check(f"the {self.name} ends with status 0", status == 0, status)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(MAX_STEP_S)


class Client:
    """A client of paho-mqtt: what came is in `came`."""

    def __init__(self, port, name="", version=paho.MQTTv5, expiry=None, clean=True, **options):
        self.came, self.acked, self.up = queue.Queue(), queue.Queue(), queue.Queue()
        more = {} if version == paho.MQTTv5 else {"clean_session": clean}
        self.client = paho.Client(
            paho.CallbackAPIVersion.VERSION2, name, protocol=version,
            transport=options.pop("transport", "tcp"), **more,
        )
        if "tls" in options:
            self.client.tls_set(**options.pop("tls"))
        if "user" in options:
            self.client.username_pw_set(*options.pop("user"))
        self.client.on_message = lambda _c, _u, message: self.came.put(message)
        self.client.on_subscribe = lambda _c, _u, _m, reasons, _p: self.acked.put(reasons)
        self.client.on_publish = lambda _c, _u, _m, reason, _p: self.acked.put(reason)
        self.client.on_connect = lambda _c, _u, flags, reason, _p: self.up.put((flags, reason))
        more = {}
        if version == paho.MQTTv5:
            more["clean_start"] = clean
            if expiry is not None:
                more["properties"] = Properties(PacketTypes.CONNECT)
                more["properties"].SessionExpiryInterval = expiry
        self.client.connect("127.0.0.1", port, **more)
        self.client.loop_start()
        self.flags, self.reason = self.up.get(timeout=MAX_STEP_S)

    def subscribe(self, *args, **more):
        self.client.subscribe(*args, **more)
        return self.acked.get(timeout=MAX_STEP_S)

    def publish(self, *args, **more):
        self.client.publish(*args, **more).wait_for_publish(MAX_STEP_S)

    def take(self, count):
        """The payloads of so many messages."""
        return [self.came.get(timeout=MAX_STEP_S).payload for _ in range(count)]

    def next(self, seconds=MAX_STEP_S):
        """The next message; None if none comes."""
        return next_of(self.came, seconds)

    def stop(self):
        self.client.disconnect()
        self.client.loop_stop()


class Headquarters(Client):
    """A client of MQTT 5 that has subscribed to all but what it publishes itself."""

    def __init__(self, port):
        super().__init__(port)
        self.subscribe("#", options=paho.SubscribeOptions(2, noLocal=True, retainAsPublished=True))
