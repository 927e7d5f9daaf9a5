"""Kannel 1.4.5 as a WAP gateway on loopback: its configuration, start and end."""

import os
import socket
import subprocess

# Kannel's ports of WSP are those of WAP-259, which nobody can set: connectionless, and two more.
WSP_PORT = 9200
ALL_PORTS = (9200, 9201, 9202, 9203)

CONFIGURATION = """group = core
admin-port = {admin}
admin-password = longwire
wapbox-port = {wapbox}
box-allow-ip = "127.0.0.1"
wdp-interface-name = "127.0.0.1"

group = wapbox
bearerbox-host = 127.0.0.1
"""


def is_free():
    """Whether nobody has the ports."""
    for port in ALL_PORTS:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                return False
    return True


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Kannel:
    """Both boxes, until they are stopped."""

    def __init__(self, folder):
        self.log = os.path.join(folder, "kannel.log")
        path = os.path.join(folder, "kannel.conf")
        self.wapbox_port = free_port()
        with open(path, "w", encoding="ascii") as file:
            file.write(CONFIGURATION.format(admin=free_port(), wapbox=self.wapbox_port))
        self.boxes = []
        self.start("bearerbox", path)
        self.path = path

    def start(self, box, path):
        with open(self.log, "a", encoding="ascii") as log:
            self.boxes.append(subprocess.Popen([box, "-v", "1", path], stdout=log, stderr=log))

    def start_wapbox(self):
        """Starts the second box, once the first one listens for it."""
        self.start("wapbox", self.path)

    def listens(self):
        """Whether the first box takes the second one."""
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.wapbox_port)) == 0

    def runs(self):
        return all(box.poll() is None for box in self.boxes)

    def stop(self):
        for box in reversed(self.boxes):
            box.terminate()
        for box in reversed(self.boxes):
            try:
                box.wait(timeout=5)
            except subprocess.TimeoutExpired:
                box.kill()
                box.wait()
