"""One row through one proxy: an origin of its own, clients, and what both saw."""

import socket
import threading
import time

from wire import Answer, Ended, Peer

MUST, SHOULD, MAY = "MUST", "SHOULD", "MAY"
ROWS = []
OK = b"HTTP/1.1 200 OK\r\nDate: Tue, 01 Dec 2026 08:00:00 GMT\r\nContent-Length: 5\r\n\r\nhello"
MAX_CONNECTIONS = 64


class Row:
    """A clause, what is sent, what is right, and the function that tries it."""

    def __init__(self, name, clause, level, sent, right, only, run):
        self.name, self.clause, self.level = name, clause, level
        self.sent, self.right, self.only, self.run = sent, right, only, run


def row(clause, level, sent, right, only=None):
    """Makes a row of a function that gets a Trial and tells whether what it saw is right.

    `only` is "forward" or "reverse" where the row has no meaning for the other.
    """

    def add(function):
        name = function.__name__.replace("_", "-")
        if any(one.name == name for one in ROWS):
            raise ValueError(f"two rows are called {name}; rename one")
        ROWS.append(Row(name, clause, level, sent, right, only, function))
        return function

    return add


class Trial:
    """What a row has at hand. `requests` are those that the origin got, in the order of arrival."""

    def __init__(self, kind, proxy, listener):
        self.kind, self.proxy, self.listener = kind, proxy, listener
        self.origin_port = listener.getsockname()[1]
        origin = f"127.0.0.1:{self.origin_port}"
        self.host = origin if kind == "forward" else f"{proxy[0]}:{proxy[1]}"
        self.origin_host = origin
        self.absolute = f"http://{self.host}"
        self.prefix = self.absolute if kind == "forward" else ""
        self.requests, self.answers, self.notes = [], [], []
        self.connections, self.at_origin, self.at_client = 0, [], []
        self.script, self.stopped = None, False
        self.lock = threading.Lock()

    # The origin.

    def serve(self, script):
        """Runs `script(peer, number)` for each connection to the origin; a number counts from 1."""
        self.script = script
        thread = threading.Thread(target=self._accept, daemon=True)
        thread.start()

    def _accept(self):
        self.listener.settimeout(0.2)
        while not self.stopped and self.connections < MAX_CONNECTIONS:
            try:
                connection, _ = self.listener.accept()
            except socket.timeout:
                continue
            except OSError:
                return
            with self.lock:
                self.connections += 1
                number = self.connections
            peer = Peer(connection, 10)
            self.at_origin.append(peer)
            threading.Thread(target=self._run, args=(peer, number), daemon=True).start()

    def _run(self, peer, number):
        try:
            self.script(peer, number)
        except (Ended, OSError):
            pass
        finally:
            peer.close()

    def read_request(self, peer):
        """At the origin: one request with its body, kept in `requests`."""
        request = peer.request_head()
        request.end = "open"
        self.requests.append(request)
        peer.body(request, False)
        if not request.chunked and request.length is None:
            request.end = "none"
        return request

    def answering(self, *answers, close=False):
        """A script: each request gets the next answer, the last one again and again."""
        left = list(answers)

        def script(peer, _number):
            while True:
                self.read_request(peer)
                with self.lock:
                    answer = left.pop(0) if len(left) > 1 else left[0]
                peer.send(answer)
                if close:
                    return

        return script

    # The client.

    def client(self, timeout=None):
        peer = Peer(socket.create_connection(self.proxy, 5))
        if timeout:
            peer.timeout = timeout
        self.at_client.append(peer)
        return peer

    def fill(self, text):
        """Puts the addresses of this trial in: {u} before a path, {h} host, {a} an absolute URL."""
        if isinstance(text, str):
            text = text.encode("latin-1")
        for mark, value in ((b"{u}", self.prefix), (b"{h}", self.host), (b"{a}", self.absolute)):
            text = text.replace(mark, value.encode())
        return text

    def get(self, path="/", *fields, method="GET", version="1.1", body=b""):
        """A plain request."""
        lines = [f"{method} {self.prefix}{path} HTTP/{version}", f"Host: {self.host}", *fields]
        return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body

    def post(self, path="/", *fields, body=b"hello", method="POST"):
        return self.get(path, f"Content-Length: {len(body)}", *fields, method=method, body=body)

    def receive(self, peer, method="GET"):
        """The next answer at a client, or None where none came; what came instead is noted."""
        try:
            answer = peer.answer(method)
        except Ended as ended:
            self.note({"fin": "closed", "rst": "reset", "timeout": "silent"}[ended.how]
                      + (f" after {ended.data[:40]!r}" if ended.data else ""))
            return None
        self.answers.append(answer)
        return answer

    def ask(self, raw, answer=OK, method=None, close=False, timeout=None):
        """Sends `raw` on its own connection; gives the answer and the first request, or None."""
        if self.script is None:
            self.serve(answer if callable(answer) else self.answering(answer, close=close))
        raw = self.fill(raw)
        peer = self.client(timeout)
        method = method or raw.lstrip().split(b" ")[0].decode("latin-1")
        try:
            peer.send(raw)
        except Ended:
            self.note("closed amid the request")
        got = self.receive(peer, method)
        self.last = peer
        return got, self.requests[0] if self.requests else None

    # What was seen.

    def note(self, text):
        self.notes.append(text)

    def wait(self, condition, seconds=3.0):
        """Whether the condition comes true within the time."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.01)
        return True

    def seen(self):
        parts = []
        for answer in self.answers:
            text = str(answer.status) if answer.status >= 0 else repr(answer.first[:20])
            if answer.interim:
                text = " ".join(str(one.status) for one in answer.interim) + f" {text}"
            if not answer.whole:
                text += f" {answer.end}"
            parts.append(text)
        return ", ".join(parts + self.notes) or "nothing"

    def stop(self):
        """Ends everything that this attempt opened; the listener stays."""
        self.stopped = True
        # Whoever reads closes: a number of a descriptor that another thread still waits on must not
        # be given to a new connection.
        for peer in self.at_origin:
            try:
                peer.socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        for peer in self.at_client:
            try:
                peer.close()
            except OSError:
                pass


def is_refused(answer, *statuses):
    """Refused as the request's fault, with one of the statuses where some are given."""
    if answer is None:
        return False
    return answer.status in statuses if statuses else 400 <= answer.status < 500


def is_hello(answer):
    return isinstance(answer, Answer) and answer.status == 200 and answer.whole \
        and answer.body == b"hello"
