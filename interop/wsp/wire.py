"""Connectionless WSP by hand (WAP-230 section 8), and datagrams on their way, as a capture."""

import socket
import struct
import subprocess
import threading

GET, POST, REPLY = 0x40, 0x60, 0x04


def uintvar(number):
    octets = [number & 0x7F]
    while number := number >> 7:
        octets.append(number & 0x7F | 0x80)
    return bytes(reversed(octets))


def get(tid, uri, headers=b""):
    return bytes([tid, GET]) + uintvar(len(uri)) + uri.encode() + headers


def post(tid, uri, headers, body):
    lengths = uintvar(len(uri)) + uintvar(len(headers))
    return bytes([tid, POST]) + lengths + uri.encode() + headers + body


def read_reply(datagram):
    """Transaction id, status, headers and body; the length of headers in one octet or two."""
    assert datagram[1] == REPLY, datagram[:8]
    at, length = 3, 0
    while True:
        octet, at = datagram[at], at + 1
        length = length << 7 | octet & 0x7F
        if octet < 0x80:
            break
    return datagram[0], datagram[2], datagram[at:at + length], datagram[at + length:]


class Client:
    """A socket towards a server."""

    def __init__(self, port):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.settimeout(5)
        self.socket.connect(("127.0.0.1", port))

    def ask(self, datagram):
        self.socket.send(datagram)
        return read_reply(self.socket.recv(65536))


class Tap:
    """Passes datagrams of one client to a port and back, keeps them, and may lose some."""

    def __init__(self, port):
        self.inner = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.inner.connect(("127.0.0.1", port))
        self.outer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.outer.bind(("127.0.0.1", 0))
        self.port = self.outer.getsockname()[1]
        self.client, self.seen, self.lose = None, [], 0
        threading.Thread(target=self.there, daemon=True).start()
        threading.Thread(target=self.back, daemon=True).start()

    def there(self):
        while True:
            datagram, self.client = self.outer.recvfrom(65536)
            self.seen.append((True, datagram))
            self.inner.send(datagram)

    def back(self):
        while True:
            try:
                datagram = self.inner.recv(65536)
            except ConnectionRefusedError:
                continue
            self.seen.append((False, datagram))
            if self.lose > 0:
                self.lose -= 1
                continue
            self.outer.sendto(datagram, self.client)

    def capture(self, path):
        """Writes what passed as packets of IPv4 (link type 101) at the port of WSP, 9200."""
        with open(path, "wb") as file:
            file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101))
            for at, (there, datagram) in enumerate(self.seen):
                ports = (40000, 9200) if there else (9200, 40000)
                udp = struct.pack(">HHHH", *ports, 8 + len(datagram), 0) + datagram
                ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), at, 0, 64, 17, 0,
                                 bytes([127, 0, 0, 1]), bytes([127, 0, 0, 1]))
                packet = ip + udp
                file.write(struct.pack("<IIII", at, 0, len(packet), len(packet)) + packet)


def decoded(path):
    """What tshark says of a capture, in full."""
    done = subprocess.run(["tshark", "-r", path, "-V"], capture_output=True, text=True,
                          timeout=60, check=False)
    return done.stdout
