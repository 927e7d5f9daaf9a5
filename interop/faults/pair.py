"""A pair over an emulated link of the laboratory, and what can be done to it."""

import ctypes
import json
import os
import resource
import signal
import subprocess
import time

EDGE_PORT, GATEWAY_PORT, ORIGIN_PORT = 3128, 4300, 8080
START_TIMEOUT_S = 20
STORE_BYTES = 4 << 20
# Shorter than by default, so that an end comes within a run's time.
CONNECT_TIMEOUT_S, EDGE_TIMEOUT_S, GATEWAY_TIMEOUT_S = 4, 10, 8
CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)


def enter(namespace):
    """Moves this thread into a network namespace: sockets that it makes from now on are there."""
    with open(namespace, "rb") as file:
        if LIBC.setns(file.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"cannot enter {namespace}")


class Lab:
    """Hosts a (client and edge) and b (gateway and origin) of `longwire lab up`."""

    def __init__(self, binary, name, link="los", seed=1):
        self.binary, self.name = binary, name
        self.process = subprocess.Popen(
            [binary, "lab", "up", name, "--link", link, "--seed", str(seed), "--json"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        line = self.process.stdout.readline()
        if not line:
            raise OSError(f"lab up {name}: {self.process.stderr.read().decode()}")
        hosts = json.loads(line)["hosts"]
        self.a, self.b = ("/run/netns/" + host["netns"] for host in hosts)
        self.gateway = hosts[1]["address"]

    def set(self, **settings):
        words = [f"{name}={value}" for name, value in settings.items()]
        subprocess.run([self.binary, "lab", "set", self.name, *words], check=True,
                       capture_output=True, timeout=20)

    def down(self):
        subprocess.run([self.binary, "lab", "down", self.name], capture_output=True, timeout=20)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()


class Side:
    """One process of the pair, started anew when it was killed."""

    def __init__(self, name, namespace, command, folder, store):
        self.name, self.namespace, self.command = name, namespace, command
        self.log, self.store = os.path.join(folder, f"{name}.log"), store
        self.process, self.kills, self.born = None, 0, 0.0

    def start(self):
        """Starts the process; whether it stays up is seen by `alive`."""
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                ["nsenter", f"--net={self.namespace}", *self.command],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.born = time.monotonic()

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        if self.alive():
            self.process.send_signal(signal.SIGKILL)
            self.kills += 1
        self.process.wait()

    def descriptors(self):
        try:
            return len(os.listdir(f"/proc/{self.process.pid}/fd"))
        except OSError:
            return 0

    def resident(self):
        """Bytes of resident memory."""
        try:
            with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as file:
                return int(file.read().split()[1]) * resource.getpagesize()
        except (OSError, IndexError):
            return 0

    def limit_descriptors(self, more):
        """Lets the process open only so many descriptors more; None takes the limit off again."""
        hard = resource.prlimit(self.process.pid, resource.RLIMIT_NOFILE)[1]
        if more is None:
            soft = self.soft
        else:
            self.soft = resource.prlimit(self.process.pid, resource.RLIMIT_NOFILE)[0]
            soft = self.descriptors() + more
        resource.prlimit(self.process.pid, resource.RLIMIT_NOFILE, (min(soft, hard), hard))

    def fill_disk(self):
        """Uses up the file system of the store."""
        try:
            with open(os.path.join(self.store, "filler"), "ab", buffering=0) as file:
                while True:
                    file.write(b"\0" * 65536)
        except OSError:
            pass

    def empty_disk(self):
        try:
            os.remove(os.path.join(self.store, "filler"))
        except OSError:
            pass


class Pair:
    """Edge and gateway with keys and stores, over a Lab."""

    def __init__(self, binary, folder, name):
        self.lab = Lab(binary, name)
        self.mounts = []
        keys = os.path.join(folder, "keys")
        for side in ("edge", "gateway"):
            subprocess.run([binary, "keygen", os.path.join(keys, side)], check=True,
                           capture_output=True, timeout=20)

        def key(side):
            own, other = os.path.join(keys, side), {"edge": "gateway", "gateway": "edge"}[side]
            return ["--key", os.path.join(own, "longwire.key"),
                    "--peer", os.path.join(keys, other, "longwire.pub")]

        common = ["--log", "debug", "--connect-timeout", f"{CONNECT_TIMEOUT_S} s"]
        self.edge = Side("edge", self.lab.a, [
            binary, "edge", "--listen", f"127.0.0.1:{EDGE_PORT}",
            "--gateway", f"{self.lab.gateway}:{GATEWAY_PORT}", "--store", self.disk(folder, "edge"),
            "--response-timeout", f"{EDGE_TIMEOUT_S} s", *key("edge"), *common],
            folder, os.path.join(folder, "disk-edge"))
        self.gateway = Side("gateway", self.lab.b, [
            binary, "gateway", "--listen", f"{self.lab.gateway}:{GATEWAY_PORT}",
            "--allow", "*://127.0.0.1:*", "--store", self.disk(folder, "gateway"),
            "--response-timeout", f"{GATEWAY_TIMEOUT_S} s", *key("gateway"), *common],
            folder, os.path.join(folder, "disk-gateway"))
        self.sides = {"edge": self.edge, "gateway": self.gateway}

    def disk(self, folder, side):
        """A small file system of its own for a store."""
        path = os.path.join(folder, f"disk-{side}")
        os.makedirs(path, exist_ok=True)
        options = f"size={STORE_BYTES},mode=700"
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", path], check=True,
                       timeout=20)
        self.mounts.append(path)
        return path

    def break_carrier(self, side):
        """Resets the connection between the two at one side, where the kernel lets `ss` do it."""
        which = "dport" if side is self.edge else "sport"
        subprocess.run(["nsenter", f"--net={side.namespace}", "ss", "-K", which, "=",
                        f":{GATEWAY_PORT}"], capture_output=True, timeout=20, check=False)

    def stop(self):
        for side in self.sides.values():
            if side.process:
                side.kill()
        for path in self.mounts:
            subprocess.run(["umount", "-l", path], timeout=20, check=False)
        self.lab.down()
