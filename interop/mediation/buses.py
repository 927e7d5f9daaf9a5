"""Ends of AMQP 1.0 (python-qpid-proton) and AMQP 0.9.1 (pika)."""

import re
import time

import pika
from proton import Link, Timeout, symbol
from proton import Message as Amqp
from proton.reactor import AtMostOnce, Container, LinkOption
from proton.utils import BlockingConnection

from message import Message, until
from ours import MAX_STEP_S


def plain(value):
    """Bytes that are as others have them."""
    return bytes(value) if isinstance(value, memoryview) else value


def content_type_of(came):
    """None where there is none, which proton has as a word."""
    return None if came.content_type in (None, "None") else came.content_type


class Second(LinkOption):
    """The receiver settles second: exactly once."""

    def apply(self, link):
        link.rcv_settle_mode = Link.RCV_SECOND


class Amqp10:
    """AMQP 1.0."""

    name, grades = "AMQP 1.0", (0, 1, 2)

    def __init__(self, port):
        self.port = port
        self.connection = self.connect()
        self.receiver = self.connection.create_receiver("m/#", credit=1000, options=Second())
        self.inbox = self.connection.create_receiver(None, dynamic=True, credit=10)
        self.senders = {}

    def connect(self):
        return BlockingConnection(
            f"127.0.0.1:{self.port}", timeout=MAX_STEP_S, heartbeat=None, container=Container()
        )

    def send(self, message):
        key = (message.topic, message.grade)
        if key not in self.senders:
            options = {0: AtMostOnce(), 1: None, 2: Second()}[message.grade]
            self.senders[key] = self.connection.create_sender(message.topic, options=options)
        said = Amqp(body=message.payload, inferred=True)
        if message.form == "value":
            said.inferred = False
        elif message.form == "string":
            said.body, said.inferred = message.payload.decode(), False
        said.content_type = message.content_type
        said.properties = dict(message.properties) or None
        said.reply_to, said.correlation_id = message.reply, message.correlation
        said.id = message.identifier
        if message.expiry is not None:
            said.ttl = message.expiry
        if message.priority is not None:
            said.priority = message.priority
        if message.created is not None:
            said.creation_time = float(message.created)
        if message.retain:
            said.annotations = {symbol("x-opt-retain"): True}
        sender = self.senders[key]
        delivery = sender.link.send(said)
        if message.grade > 0:
            # At grade 2 the sender settles once it has heard the outcome.
            self.connection.wait(lambda: delivery.remote_state or delivery.settled)
            delivery.settle()
        # Until it is written.
        self.connection.wait(lambda: not sender.link.queued and not self.connection.conn.transport.pending())

    def take(self, topic, seconds=MAX_STEP_S):
        return self.take_of(self.receiver, topic, seconds)

    def take_of(self, receiver, topic, seconds=MAX_STEP_S):
        def get(left):
            try:
                came = receiver.receive(timeout=left)
            except Timeout:
                return None
            grade = 0
            if receiver.fetcher.unsettled:
                delivery = receiver.fetcher.unsettled.popleft()
                delivery.update(delivery.ACCEPTED)
                self.connection.wait(lambda: delivery.settled or receiver.link.rcv_settle_mode == 0)
                grade = 2 if delivery.settled else 1
                delivery.settle()
            message = self.read(came, grade)
            return message if topic in (message.topic, None) else None
        return until(get, seconds)

    @staticmethod
    def read(came, grade):
        said = came.annotations or {}
        body, form = plain(came.body), ""
        if came.inferred and isinstance(body, bytes):
            form = "data"
        return Message(
            came.address or said.get(symbol("x-opt-lw-topic")), body, form,
            grade if came.durable == (grade > 0) else -9,
            said.get(symbol("x-opt-retain"), False), came.ttl or None, content_type_of(came),
            [(name, plain(value)) for name, value in (came.properties or {}).items()],
            said.get(symbol("x-opt-lw-properties")), came.reply_to, plain(came.correlation_id),
            came.priority if came.priority != 4 else None, came.id,
            int(came.creation_time) if came.creation_time else None,
        )

    def late(self, topic, seconds=MAX_STEP_S):
        receiver = self.connection.create_receiver(topic, credit=10)
        came = self.take_of(receiver, None, seconds)
        receiver.close()
        return came

    def address(self):
        return self.inbox.link.remote_source.address

    def answer(self, asked):
        sender = self.connection.create_sender(asked.reply)
        sender.send(Amqp(body=b"answer", inferred=True, correlation_id=asked.correlation))
        sender.close()

    def answered(self):
        return self.take_of(self.inbox, None)


class Amqp091:
    """AMQP 0.9.1."""

    name, grades = "AMQP 0.9.1", (0, 1)

    def __init__(self, port):
        self.connection = pika.BlockingConnection(pika.ConnectionParameters(
            "127.0.0.1", port, heartbeat=0, blocked_connection_timeout=MAX_STEP_S
        ))
        self.channel, self.confirmed = self.connection.channel(), self.connection.channel()
        self.confirmed.confirm_delivery()
        self.queue = self.new_queue("m.#")
        self.inbox = self.new_queue()

    def new_queue(self, key=None, arguments=None):
        name = self.channel.queue_declare("", exclusive=True).method.queue
        if key:
            self.channel.queue_bind(name, "amq.topic", key, arguments)
        return name

    @staticmethod
    def key_of(topic):
        escaped = re.sub(r"[.%*]", lambda found: f"%{ord(found[0]):02X}", topic)
        return escaped.replace("/", ".")

    @staticmethod
    def topic_of(key):
        return re.sub("%(2E|25|2A)", lambda found: chr(int(found[1], 16)), key.replace(".", "/"))

    def send(self, message, exchange="amq.topic", key=None):
        headers = dict(message.properties)
        if message.retain:
            headers["x-retain"] = True
        said = pika.BasicProperties(
            content_type=message.content_type, headers=headers or None,
            delivery_mode=2 if message.grade else 1, priority=message.priority,
            correlation_id=message.correlation, reply_to=message.reply,
            expiration=None if message.expiry is None else str(int(message.expiry * 1000)),
            message_id=message.identifier, timestamp=message.created,
        )
        channel = self.confirmed if message.grade else self.channel
        channel.basic_publish(exchange, key or self.key_of(message.topic), message.payload, said)

    def take(self, topic, seconds=MAX_STEP_S):
        return self.take_of(self.queue, topic, seconds)

    def take_of(self, name, topic, seconds=MAX_STEP_S):
        def get(_left):
            method, said, body = self.channel.basic_get(name)
            if method is None:
                # sleep: between two looks into a queue
                time.sleep(0.02)
                return None
            self.channel.basic_ack(method.delivery_tag)
            message = self.read(method, said, body)
            return message if topic in (message.topic, None) else None
        return until(get, seconds)

    def read(self, method, said, body):
        headers = said.headers or {}
        properties = [(name, value) for name, value in headers.items() if not name.startswith("x-")]
        return Message(
            self.topic_of(method.routing_key), body, "", said.delivery_mode - 1,
            headers.get("x-retain", False), said.expiration and int(said.expiration) / 1000,
            said.content_type, properties, headers.get("x-opt-lw-properties"), said.reply_to,
            said.correlation_id, said.priority, said.message_id, said.timestamp,
        )

    def late(self, topic, seconds=MAX_STEP_S):
        name = self.new_queue(self.key_of(topic), {"x-retain": True})
        came = self.take_of(name, None, seconds)
        self.channel.queue_delete(name)
        return came

    def address(self):
        return self.inbox

    def answer(self, asked):
        said = pika.BasicProperties(correlation_id=asked.correlation)
        self.channel.basic_publish("", asked.reply, b"answer", said)

    def answered(self):
        return self.take_of(self.inbox, None)
