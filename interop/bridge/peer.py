"""What a bridge is put up with: Mosquitto, a pair of proxies, a connection that breaks."""

import contextlib
import os
import socket
import subprocess
import threading
import time

from ours import LONGWIRE, MAX_START_S, MAX_STEP_S, WORK, free_port

READ_BYTES = 4096


class Mosquitto:
    """Mosquitto with a file's text, at `port`."""

    def __init__(self, config="", port=None):
        self.port, self.process = port or free_port(), None
        self.path = WORK / "mosquitto.conf"
        if "listener" not in config:
            config = f"allow_anonymous true\nlistener {self.port} 127.0.0.1\n{config}"
        # By default it drops what is over 1,000 messages.
        self.text = f"user root\nmax_queued_messages 0\n{config}"

    def __enter__(self):
        self.start()
        return self

    def start(self):
        self.path.write_text(self.text)
        with open(WORK / "mosquitto.log", "ab") as log:
            self.process = subprocess.Popen(
                ["mosquitto", "-v", "-c", str(self.path)], stdout=log, stderr=log
            )
        end = time.monotonic() + MAX_START_S
        while time.monotonic() < end:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            time.sleep(0.05)
        raise SystemExit(f"Mosquitto did not start: see {WORK}/mosquitto.log")

    def stop(self):
        """Ends it with SIGTERM: it writes its store."""
        self.process.terminate()
        self.process.wait(MAX_STEP_S)

    def __exit__(self, *_):
        self.stop()


class Pair:
    """Edge and gateway on this machine; the gateway lets through to `allow`."""

    def __init__(self, allow):
        self.edge_port, self.gateway_port = free_port(), free_port()
        keys = {side: WORK / f"keys-{side}" for side in ("edge", "gateway")}
        for folder in keys.values():
            if not folder.exists():
                subprocess.run([LONGWIRE, "keygen", folder], check=True, capture_output=True)

        def key(own, other):
            return ["--key", keys[own] / "longwire.key", "--peer", keys[other] / "longwire.pub"]

        self.commands = {
            "gateway": [LONGWIRE, "gateway", "--listen", f"127.0.0.1:{self.gateway_port}",
                        "--allow", allow, *key("gateway", "edge")],
            "edge": [LONGWIRE, "edge", "--listen", f"127.0.0.1:{self.edge_port}",
                     "--gateway", f"127.0.0.1:{self.gateway_port}", *key("edge", "gateway")],
        }
        self.processes = {}

    def start(self, side):
        with open(WORK / f"{side}.log", "ab") as log:
            process = subprocess.Popen(
                self.commands[side], stdout=subprocess.PIPE, stderr=log, text=True
            )
        self.processes[side] = process
        timer = threading.Timer(MAX_START_S, process.kill)
        timer.start()
        line = process.stdout.readline()
        timer.cancel()
        if not line.startswith("listening on "):
            raise SystemExit(f"the {side} said {line!r}: see {WORK}/{side}.log")

    def kill(self, side):
        self.processes[side].kill()
        self.processes[side].wait(MAX_STEP_S)

    def __enter__(self):
        for side in ("gateway", "edge"):
            self.start(side)
        return self

    def __exit__(self, *_):
        for process in self.processes.values():
            process.terminate()
            process.wait(MAX_STEP_S)


class Relay:
    """Passes bytes on from `port` to another port; `cut` ends all connections. While it `is_closed`
    there are none."""

    def __init__(self, port):
        self.server, self.to, self.open = socket.create_server(("127.0.0.1", 0)), port, []
        self.is_closed = False
        self.lock, self.port, self.cuts = threading.Lock(), self.server.getsockname()[1], 0
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            near, _ = self.server.accept()
            if self.is_closed:
                near.close()
                continue
            try:
                far = socket.create_connection(("127.0.0.1", self.to), MAX_STEP_S)
            except OSError:
                near.close()
                continue
            with self.lock:
                self.open += [near, far]
            for source, target in ((near, far), (far, near)):
                threading.Thread(target=self.carry, args=(source, target), daemon=True).start()

    @staticmethod
    def carry(source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(READ_BYTES):
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def cut(self):
        with self.lock:
            ends, self.open = self.open, []
        self.cuts += bool(ends)
        for end in ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
