"""The clients, each a thread: what each asked, how it ended, and whether that end is a lie."""

import hashlib
import socket
import threading
import time

from origin import TUNNEL_PORT, blob
from pair import EDGE_PORT, ORIGIN_PORT, enter
from wire import Ended, Peer

# The longest that any client of a run has to wait for its end: the sum of the pair's time-outs and
# of what a slow link takes.
MAX_END_S = 25.0
# State of a connection (tcp_states.h) that was reset.
TCP_CLOSE = 7


def is_closed(connection):
    """Whether a connection that we have not ended was reset: the kernel tells that once, and where
    another thread sends it may be the one that hears it, so that reading looks like an end."""
    return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == TCP_CLOSE


class Client(threading.Thread):
    """One exchange. `end` is whole, refused, cut, unreachable or hang; `lie` is what was wrong."""

    def __init__(self, namespace, key, plan):
        super().__init__(daemon=True)
        self.namespace, self.key, self.plan = namespace, key, plan
        self.end, self.status, self.lie, self.seconds, self.sent_all = None, None, None, 0.0, False

    def run(self):
        try:
            enter(self.namespace)
            time.sleep(self.plan["at"])
            started = time.monotonic()
            try:
                connection = socket.create_connection(("127.0.0.1", EDGE_PORT), 5)
            except OSError:
                self.end = "unreachable"
                return
            peer = Peer(connection, MAX_END_S)
            try:
                getattr(self, self.plan["kind"])(peer)
            except Ended as ended:
                self.end = "hang" if ended.how == "timeout" else "cut"
            self.seconds = time.monotonic() - started
            peer.close()
            if self.seconds > MAX_END_S:
                self.end = "hang"
        except Exception as error:
            self.end, self.lie = "failed", f"the client itself failed: {error!r}"

    def head(self, method, path, *fields):
        host = f"127.0.0.1:{ORIGIN_PORT}"
        query = f"fault={self.plan['fault']}&" if self.plan.get("fault") else ""
        lines = [f"{method} http://{host}{path}&{query} HTTP/1.1".replace("?&", "?"),
                 f"Host: {host}", *fields]
        return "\r\n".join(lines).encode() + b"\r\n\r\n"

    def receive(self, peer):
        """The answer, whose end becomes ours."""
        answer = peer.answer()
        self.status = answer.status
        if answer.end == "timeout":
            self.end = "hang"
        elif not answer.whole:
            self.end = "cut"
        else:
            self.end = "whole" if answer.status < 400 else "refused"
        return answer

    def get(self, peer):
        plan = self.plan
        peer.send(self.head("GET", f"/get/{self.key}?size={plan['size']}&way={plan['way']}"
                                   f"&pause={plan['pause']}"))
        answer = self.receive(peer)
        if self.end == "whole" and answer.body != blob(self.key, plan["size"]):
            self.lie = f"{len(answer.body)} of {plan['size']} bytes pass for whole"

    def events(self, peer):
        plan = self.plan
        path = f"/events/{self.key}?count={plan['count']}&pause={plan['pause']}"
        peer.send(self.head("GET", path))
        answer = self.receive(peer)
        if self.status != 200:
            return
        wanted = "".join(f"id: {n}\ndata: {self.key}\n\n" for n in range(plan["count"])).encode()
        if self.end == "whole" and answer.body != wanted or not wanted.startswith(answer.body):
            self.lie = f"events: {answer.body[-60:]!r}, {self.end}"

    def post(self, peer):
        """A request that must not be repeated, with a length or in chunks."""
        body = blob(self.key, self.plan["size"])
        if self.plan["way"] == "chunked":
            peer.send(self.head("POST", f"/post/{self.key}?", "Transfer-Encoding: chunked"))
            step = max(len(body) // 5, 1)
            for at in range(0, len(body), step):
                piece = body[at:at + step]
                self.send(peer, b"%x\r\n%b\r\n" % (len(piece), piece))
                time.sleep(self.plan["pause"])
            self.send(peer, b"0\r\n\r\n")
        else:
            peer.send(self.head("POST", f"/post/{self.key}?", f"Content-Length: {len(body)}"))
            self.send(peer, body)
        answer = self.receive(peer)
        digest = hashlib.sha256(body).hexdigest()
        if self.end == "whole" and answer.body.decode("latin-1") != f"{self.key} {digest}":
            self.lie = f"the origin got another body: {answer.body[:80]!r}"

    def send(self, peer, data):
        """Sends as far as the other side takes it: an answer may be there all the same."""
        try:
            peer.send(data)
        except Ended as ended:
            if ended.how == "timeout":
                raise

    def tunnel(self, peer):
        plan = self.plan
        target = f"127.0.0.1:{TUNNEL_PORT}"
        peer.send(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
        answer = peer.answer("CONNECT")
        self.status = answer.status
        if answer.status != 200:
            self.end = "refused"
            return
        sender = threading.Thread(target=self.feed, args=(peer,), daemon=True)
        sender.start()
        data, how = peer.rest(MAX_END_S)
        if how == "fin" and not self.sent_all and is_closed(peer.socket):
            how = "rst"
        sender.join(MAX_END_S)
        wanted = blob(self.key, plan["size"])
        if how == "timeout":
            self.end = "hang"
        elif how == "rst":
            self.end = "cut"
        else:
            self.end = "whole"
            self.early = data != wanted
        if not wanted.startswith(data):
            self.lie = "the tunnel gave other bytes back"

    def feed(self, peer):
        body = blob(self.key, self.plan["size"])
        step = max(len(body) // 10, 1)
        try:
            peer.send(f"{self.key} {len(body)}\n".encode())
            for at in range(0, len(body), step):
                peer.send(body[at:at + step])
                time.sleep(self.plan["pause"])
        except Ended:
            return
        self.sent_all = True
        peer.fin()
