"""`longwire pub` and `longwire sub` by AMQP 1.0: with python-qpid-proton beside them at our broker,
and with a server of proton's at the other end; see `check`.

LONGWIRE names the program, WORK a folder. Each line is a check, ok or FAIL with what came instead.
Exit status 1 where one failed.
"""

import json
import subprocess
import sys
import threading
import uuid

from proton import Message
from proton.handlers import MessagingHandler
from proton.reactor import Container
from proton.utils import BlockingConnection

from peers import FAILED, LONGWIRE, MAX_STEP_S, broker, check, free_port

PROPERTIES = ["--content-type", "text/x", "--response-topic", "answers", "-D", "k=v", "-D", "n=5"]


def longwire(*args):
    """What a command did: its status, stdout, stderr."""
    done = subprocess.run(
        [LONGWIRE, *args], capture_output=True, text=True, timeout=MAX_STEP_S, check=False
    )
    return done.returncode, done.stdout, done.stderr


def at_our_broker(port):
    """Messages between `longwire` and proton over our broker."""
    url = f"amqp://127.0.0.1:{port}"
    connection = BlockingConnection(f"127.0.0.1:{port}", timeout=MAX_STEP_S, heartbeat=None)
    receiver = connection.create_receiver("a/+", credit=10)
    status, _, error = longwire(
        "pub", url, "-t", "a/b", "-m", "h\u00e9llo", "-q", "1", "--expiry", "60 s",
        "--correlation-data", "c1", *PROPERTIES,
    )
    check("longwire pub: it ends well", status == 0, error)
    came = receiver.receive()
    receiver.accept()
    for name, value in (
        ("address", "a/b"), ("content_type", "text/x"), ("reply_to", "answers"),
        ("correlation_id", "c1"), ("properties", {"k": "v", "n": "5"}), ("durable", True),
    ):
        check(f"proton gets {name}", getattr(came, name) == value, getattr(came, name))
    check("proton gets the payload", bytes(came.body) == "h\u00e9llo".encode(), came.body)
    check("proton gets the lifetime", 50 < came.ttl <= 60, came.ttl)
    sender = connection.create_sender("r/1")
    sent = Message(
        body="text", content_type="text/plain", reply_to="answers", correlation_id=uuid.UUID(int=7),
        properties={"k": "v", "n": 5}, ttl=60.0, durable=True,
        annotations={"x-opt-retain": True},
    )
    sender.send(sent)
    status, out, error = longwire(
        "sub", url, "-t", "r/#", "-q", "1", "-C", "1", "-W", f"{MAX_STEP_S} s", "--json"
    )
    check("longwire sub: it ends well", status == 0, error)
    facts = json.loads(out or "{}")
    for name, value in (
        ("topic", "r/1"), ("payload", "text"), ("content_type", "text/plain"), ("qos", 1),
        ("reply_to", "answers"), ("properties", [["k", "v"], ["n", "5"]]), ("retain", True),
    ):
        check(f"longwire sub gets {name}", facts.get(name) == value, facts.get(name))
    connection.close()


class Server(MessagingHandler):
    """A server of proton's: takes, refuses or gives back by what a message says, and sends three."""

    def __init__(self, port):
        super().__init__(auto_accept=False, prefetch=10)
        self.port, self.came, self.ready = port, [], threading.Event()
        self.settled, self.sent = [], 0

    def on_start(self, event):
        self.acceptor = event.container.listen(f"127.0.0.1:{self.port}")
        self.ready.set()

    def on_message(self, event):
        self.came.append((event.message, event.delivery.settled, event.link.target.address))
        body = bytes(event.message.body)
        if body == b"no":
            self.reject(event.delivery)
        elif body == b"later":
            self.release(event.delivery, delivered=False)
        else:
            self.accept(event.delivery)

    def on_link_opening(self, event):
        if event.link.is_sender:
            event.link.source.address = event.link.remote_source.address
            self.sent = 0
        else:
            event.link.target.address = event.link.remote_target.address

    def on_sendable(self, event):
        while event.link.credit and self.sent < 3:
            self.sent += 1
            event.link.send(Message(body=f"message {self.sent}", properties={"n": self.sent}))

    def on_accepted(self, event):
        self.settled.append(event.delivery.tag)


def at_a_server_of_proton():
    """`longwire` against a server that is not ours."""
    server = Server(free_port())
    container = Container(server)
    thread = threading.Thread(target=container.run, daemon=True)
    thread.start()
    server.ready.wait(MAX_STEP_S)
    url = f"amqp://127.0.0.1:{server.port}"
    for quality in ("0", "1"):
        status, _, error = longwire("pub", url, "-t", "queue", "-m", "yes", "-q", quality)
        check(f"server of proton: it takes QoS {quality}", status == 0, error)
        message, settled, address = server.came[-1]
        check("at the address of the topic", address == "queue", address)
        check("settled where nobody asks", settled == (quality == "0"), settled)
        check("the payload", bytes(message.body) == b"yes", message.body)
    for body, what in (("no", "rejects"), ("later", "released")):
        status, _, error = longwire("pub", url, "-t", "queue", "-m", body, "-q", "1")
        check(f"server of proton: {what} is a failure", status == 1 and what in error, error)
    status, _, error = longwire("pub", url, "-t", "queue", "-m", "x" * 100_000, "-q", "1")
    check("server of proton: a long message", status == 0, error)
    status, out, error = longwire(
        "sub", url, "-t", "queue", "-q", "1", "-C", "3", "-W", f"{MAX_STEP_S} s"
    )
    lines = "message 1\nmessage 2\nmessage 3\n"
    check("server of proton: what it sends", (status, out) == (0, lines), (out, error))
    check("server of proton: each was accepted", len(server.settled) == 3, server.settled)
    container.stop()
    thread.join(MAX_STEP_S)


def main():
    with broker() as (amqp, _):
        at_our_broker(amqp)
    at_a_server_of_proton()
    sys.exit(1 if FAILED else 0)


if __name__ == "__main__":
    main()
