"""Nodes of the messaging service as processes, and requests to them."""

import contextlib
import ctypes
import http.client
import json
import os
import resource
import signal
import subprocess
import time

CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)
START_TIMEOUT_S = 30
REQUEST_TIMEOUT_S = 20


def enter(namespace):
    """Moves this thread into a network namespace: sockets that it makes from now on are there."""
    with open(namespace, "rb") as file:
        if LIBC.setns(file.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"cannot enter {namespace}")


class Node:
    """A node's process, started anew with the same store when it was killed."""

    def __init__(self, binary, name, folder, port, text, namespace=None):
        self.name, self.port, self.namespace = name, port, namespace
        self.log = os.path.join(folder, f"{name}.log")
        config = os.path.join(folder, f"{name}.toml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f'node = "{name}"\nlisten = "127.0.0.1:{port}"\n'
                       f'store = "{os.path.join(folder, name)}.store"\n{text}')
        within = ["nsenter", f"--net={namespace}"] if namespace else []
        self.command = [*within, binary, "serve", "messaging", "--config", config]
        self.process, self.kills = None, 0

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log)

    def kill(self):
        """SIGKILL, at any moment."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.kills += 1
        if self.process:
            self.process.wait()

    def resident(self):
        """Bytes of resident memory."""
        with contextlib.suppress(OSError, IndexError), \
                open(f"/proc/{self.process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
        return 0

    def ask(self, method, path, document=None):
        """A request over a connection of its own; status and content. From the node's namespace."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=REQUEST_TIMEOUT_S)
        try:
            body = None if document is None else json.dumps(document)
            fields = {} if document is None else {"Content-Type": "application/json"}
            connection.request(method, path, body, fields)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def get(self, path):
        status, content = self.ask("GET", path)
        if status != 200:
            raise OSError(f"{self.name}: {path}: {status}: {content[:200]!r}")
        return json.loads(content)

    def all(self, box):
        """All of the inbox or the outbox."""
        after, entries = 0, []
        while True:
            part = self.get(f"/{box}?limit=1000&after={after}")
            entries += part["messages"]
            if not part["more"]:
                return entries
            after = entries[-1]["number"]

    def wait(self):
        """Waits until the node answers."""
        end = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                return self.get("/node")
            except OSError:
                if time.monotonic() > end:
                    raise
                # It says nothing to who waits for it.
                time.sleep(0.05)


def quantile(values, part):
    """A quantile of numbers; none of none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else None
