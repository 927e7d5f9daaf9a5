"""HTTP/1 over bare sockets, as sent and as seen: nothing here repairs what it reads.

A Peer is one end of a connection. What it reads it takes apart as a tolerant reader would, keeps
the bytes of the head beside it, and tells how each message ended, so that a row can tell a whole
message from one that was cut.
"""

import re
import socket
import struct
import time

MAX_HEAD_BYTES = 1 << 22
MAX_BODY_BYTES = 1 << 26
READ_TIMEOUT_S = 6.0
WHOLE = ("length", "chunked", "none", "fin")


class Ended(Exception):
    """The connection ended, or kept silent, where more was due; `how`: fin, rst or timeout."""

    def __init__(self, how, data=b""):
        super().__init__(how)
        self.how, self.data = how, data


class Message:
    """A request or an answer: `end` tells how its body ended, `head` is as it came."""

    def __init__(self, head):
        self.head = head
        first, *lines = re.split(rb"\r?\n", head.rstrip(b"\r\n"))
        self.first = first.decode("latin-1")
        self.fields = []
        for line in lines:
            name, colon, value = line.decode("latin-1").partition(":")
            if colon:
                self.fields.append((name, value.strip(" \t")))
        self.body, self.trailers, self.end = b"", [], "none"

    def all(self, name):
        return [value for key, value in self.fields if key.strip().lower() == name.lower()]

    def get(self, name):
        """The values of a field as one list, or None."""
        values = self.all(name)
        return ", ".join(values) if values else None

    def has(self, name):
        return bool(self.all(name))

    @property
    def whole(self):
        return self.end in WHOLE

    @property
    def chunked(self):
        return "chunked" in (self.get("transfer-encoding") or "").lower()

    @property
    def length(self):
        value = (self.get("content-length") or "").split(",")[0].strip()
        return int(value) if re.fullmatch(r"\+?[0-9]{1,18}", value) else None


class Request(Message):
    def __init__(self, head):
        super().__init__(head)
        words = self.first.split(" ")
        self.method, self.version = words[0], words[-1]
        self.target = " ".join(words[1:-1])


class Answer(Message):
    def __init__(self, head):
        super().__init__(head)
        self.version, _, rest = self.first.partition(" ")
        code, _, self.reason = rest.partition(" ")
        self.status = int(code) if code.isdigit() else -1
        self.interim = []


class Peer:
    """One end of a TCP connection; what was read and not yet used is in `buffer`."""

    def __init__(self, connection, timeout=READ_TIMEOUT_S):
        self.socket, self.buffer, self.timeout = connection, b"", timeout
        connection.settimeout(timeout)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, data):
        """Sends all of it; an end on the way is `Ended`."""
        try:
            self.socket.sendall(data)
        except socket.timeout:
            raise Ended("timeout") from None
        except OSError:
            raise Ended("rst") from None

    def send_as_taken(self, data, piece=16384, pause=0.0):
        """Sends until all went or the other side took no more; tells how many bytes went."""
        sent = 0
        while sent < len(data):
            try:
                sent += self.socket.send(data[sent:sent + piece])
            except OSError:
                return sent
            if pause:
                time.sleep(pause)
        return sent

    def more(self, timeout=None):
        """Reads once into the buffer; `Ended` if nothing comes."""
        self.socket.settimeout(self.timeout if timeout is None else max(timeout, 0.001))
        try:
            piece = self.socket.recv(65536)
        except socket.timeout:
            raise Ended("timeout", self.buffer) from None
        except OSError:
            raise Ended("rst", self.buffer) from None
        if not piece:
            raise Ended("fin", self.buffer)
        self.buffer += piece

    def take(self, count):
        while len(self.buffer) < count:
            self.more()
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def line(self):
        while b"\n" not in self.buffer:
            if len(self.buffer) > MAX_HEAD_BYTES:
                raise Ended("timeout", self.buffer)
            self.more()
        line, self.buffer = self.buffer.split(b"\n", 1)
        return line.rstrip(b"\r")

    def head(self):
        while not (end := re.search(rb"\r?\n\r?\n", self.buffer)):
            if len(self.buffer) > MAX_HEAD_BYTES:
                raise Ended("timeout", self.buffer)
            self.more()
        return self.take(end.end())

    def rest(self, timeout=None):
        """All bytes until the end or until nothing comes; (bytes, how)."""
        deadline = time.monotonic() + (self.timeout if timeout is None else timeout)
        while True:
            try:
                self.more(deadline - time.monotonic())
            except Ended as ended:
                data, self.buffer = self.buffer, b""
                return data, ended.how
            if len(self.buffer) > MAX_BODY_BYTES:
                return self.buffer, "timeout"

    def closes(self, timeout=2.0):
        """Whether the other side ends within the time and sends nothing more."""
        data, how = self.rest(timeout)
        return not data and how in ("fin", "rst")

    def body(self, message, until_close):
        """Reads the body as the head frames it, into `message`."""
        try:
            if message.chunked:
                message.end = "cut"
                self.chunks(message)
            elif message.length is not None:
                message.end = "cut"
                while len(message.body) < message.length:
                    if not self.buffer:
                        self.more()
                    room = message.length - len(message.body)
                    message.body += self.buffer[:room]
                    self.buffer = self.buffer[room:]
                message.end = "length"
            elif until_close:
                message.body, message.end = self.rest()
        except Ended as ended:
            message.end = {"fin": "cut", "rst": "cut by reset"}.get(ended.how, "timeout")

    def chunks(self, message):
        while True:
            line = self.line()
            size = line.split(b";")[0].strip()
            if not re.fullmatch(rb"[0-9A-Fa-f]{1,8}", size):
                message.end = f"bad chunk {line[:20]!r}"
                return
            if int(size, 16) == 0:
                break
            message.body += self.take(int(size, 16))
            if self.line() != b"":
                message.end = "bad chunk end"
                return
        while line := self.line():
            name, _, value = line.decode("latin-1").partition(":")
            message.trailers.append((name.lower(), value.strip()))
        message.end = "chunked"

    def request_head(self):
        while self.buffer[:2] == b"\r\n":
            self.buffer = self.buffer[2:]
        return Request(self.head())

    def request(self):
        """One request with its body."""
        request = self.request_head()
        self.body(request, False)
        return request

    def answer(self, method="GET"):
        """One final answer with its body; those before it are in `interim`."""
        interim = []
        while True:
            answer = Answer(self.head())
            if 100 <= answer.status < 200 and answer.status != 101:
                interim.append(answer)
                continue
            break
        answer.interim = interim
        tunnel = answer.status == 101 or method == "CONNECT" and answer.status // 100 == 2
        if not tunnel and method != "HEAD" and answer.status not in (204, 304):
            self.body(answer, True)
        return answer

    def fin(self):
        """Ends this direction in order."""
        try:
            self.socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def reset(self):
        """Ends the connection by a reset."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def close(self):
        # A thread that reads would keep the connection open; shutdown wakes it.
        linger = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8) \
            if self.socket.fileno() >= 0 else b""
        if linger[:4] == b"\0\0\0\0":
            self.fin()
        self.socket.close()
