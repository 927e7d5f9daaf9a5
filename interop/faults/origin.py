"""The origin: serves what a request's target asks for, and remembers all that reached it."""

import hashlib
import socket
import threading
import time
import urllib.parse

from pair import ORIGIN_PORT, enter
from wire import Ended, Peer

TUNNEL_PORT = ORIGIN_PORT + 1
IDLE_TIMEOUT_S = 30


def blob(key, size):
    """Bytes that follow from a key: noise for some, text with repetitions for others."""
    noise = hashlib.shake_128(key.encode()).digest(min(size, 4096))
    if noise[:1] < b"\x80":
        return hashlib.shake_128(key.encode()).digest(size)
    lines = (f"<track n='{n}'><id>{key}-{n * noise[n % len(noise)] % 97}</id></track>\n"
             for n in range(size // 20 + 1))
    return "".join(lines).encode()[:size]


class Origin:
    """In host b. `heads` and `wholes` count by id; `tunnels` tells how each ended."""

    def __init__(self, namespace):
        self.heads, self.wholes, self.tunnels = {}, {}, {}
        self.lock, self.peers = threading.Lock(), set()
        ready = threading.Barrier(3)
        for port, serve in ((ORIGIN_PORT, self.serve), (TUNNEL_PORT, self.tunnel)):
            threading.Thread(target=self.listen, args=(namespace, port, serve, ready),
                             daemon=True).start()
        ready.wait(10)

    def listen(self, namespace, port, serve, ready):
        enter(namespace)
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(128)
        ready.wait(10)
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=self.run, args=(connection, serve), daemon=True).start()

    def run(self, connection, serve):
        peer = Peer(connection, IDLE_TIMEOUT_S)
        with self.lock:
            self.peers.add(peer)
        try:
            serve(peer)
        except (Ended, OSError):
            pass
        finally:
            with self.lock:
                self.peers.discard(peer)
            peer.close()

    def close_all(self):
        """Ends what is still open; whoever reads closes."""
        with self.lock:
            peers = list(self.peers)
        for peer in peers:
            try:
                peer.socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def count(self, table, key):
        with self.lock:
            table[key] = table.get(key, 0) + 1

    def serve(self, peer):
        while True:
            request = peer.request_head()
            target = urllib.parse.urlsplit(request.target)
            _, kind, key = target.path.split("/", 2)
            given = dict(urllib.parse.parse_qsl(target.query))
            self.count(self.heads, key)
            if given.get("fault") == "reset-head":
                peer.reset()
                return
            peer.body(request, False)
            if not request.whole:
                return
            self.count(self.wholes, key)
            if given.get("fault") == "reset-body":
                peer.reset()
                return
            if kind == "events":
                self.events(peer, key, given)
            elif kind == "get":
                self.get(peer, key, given)
            else:
                digest = hashlib.sha256(request.body).hexdigest()
                self.answer(peer, "201 Created", f"{key} {digest}".encode(), given)
            if given.get("way") == "close":
                return

    def answer(self, peer, status, body, given):
        """An answer with a length, or broken off."""
        head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        if given.get("fault") == "reset-answer":
            peer.send(head + body[:len(body) // 2])
            time.sleep(0.05)
            peer.reset()
            raise Ended("rst")
        peer.send(head + body)

    def get(self, peer, key, given):
        """A body by length, in chunks or ended by close, perhaps slowly."""
        body, way, pause = blob(key, int(given["size"])), given["way"], float(given["pause"])
        framing = {"length": f"Content-Length: {len(body)}", "close": "Connection: close",
                   "chunked": "Transfer-Encoding: chunked"}[way]
        peer.send(f"HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\n{framing}\r\n\r\n".encode())
        step = max(len(body) // 10, 1)
        for at in range(0, len(body), step):
            piece = body[at:at + step]
            if given.get("fault") == "reset-answer" and at * 2 >= len(body):
                time.sleep(0.05)
                peer.reset()
                raise Ended("rst")
            peer.send(b"%x\r\n%b\r\n" % (len(piece), piece) if way == "chunked" else piece)
            time.sleep(pause)
        if way == "chunked":
            peer.send(b"0\r\n\r\n")

    def events(self, peer, key, given):
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                  b"Transfer-Encoding: chunked\r\n\r\n")
        for number in range(int(given["count"])):
            event = f"id: {number}\ndata: {key}\n\n".encode()
            peer.send(b"%x\r\n%b\r\n" % (len(event), event))
            time.sleep(float(given["pause"]))
        peer.send(b"0\r\n\r\n")

    def tunnel(self, peer):
        """Reads `KEY SIZE`, sends back what follows, and ends when the client does."""
        key, size = peer.line().decode().split()
        count, how = 0, None
        echoed = peer.buffer
        peer.buffer = b""
        while how is None:
            try:
                peer.send(echoed)
                count += len(echoed)
                peer.more()
            except Ended as ended:
                how = ended.how
            echoed, peer.buffer = peer.buffer, b""
        with self.lock:
            self.tunnels[key] = (count, int(size), how)
