"""MQTT-SN over a socket: a client whose packets scapy builds and reads, and a relay that keeps every
datagram."""

import collections
import socket
import threading
import time

from scapy.contrib import mqttsn as sn
from scapy.contrib.mqttsn import MQTTSN
from scapy.packet import Padding, Raw

MAX_STEP_S = 20
MAX_DATAGRAM_BYTES = 65_507
# What is kept of a run, at most.
MAX_KEPT = 10_000
# One without a duration, which scapy reads and cannot write: it counts the duration.
DISCONNECT = bytes([2, sn.DISCONNECT])
QOS_BITS = {-1: sn.QOS_NEG1, 0: sn.QOS_0, 1: sn.QOS_1, 2: sn.QOS_2}
Came = collections.namedtuple("Came", "topic payload qos retain")


class Relay:
    """Between clients and a gateway; `kept` has (client's port, whether it is to the gateway, bytes)."""

    def __init__(self, gateway_port):
        self.gateway, self.kept, self.clients = ("127.0.0.1", gateway_port), [], {}
        self.front = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.front.bind(("127.0.0.1", 0))
        self.port = self.front.getsockname()[1]
        threading.Thread(target=self.forward, daemon=True).start()

    def forward(self):
        while True:
            data, client = self.front.recvfrom(MAX_DATAGRAM_BYTES)
            if client not in self.clients:
                back = self.clients[client] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                back.bind(("127.0.0.1", 0))
                threading.Thread(target=self.backward, args=(back, client), daemon=True).start()
            self.keep(client, True, data)
            self.clients[client].sendto(data, self.gateway)

    def backward(self, back, client):
        while True:
            data = back.recv(MAX_DATAGRAM_BYTES)
            self.keep(client, False, data)
            self.front.sendto(data, client)

    def keep(self, client, is_up, data):
        if len(self.kept) < MAX_KEPT:
            self.kept.append((client[1], is_up, data))


def doubts(data):
    """What scapy has against a datagram; None if nothing."""
    read = MQTTSN(data)
    if read.haslayer(Padding) or read.type not in sn.PACKET_TYPE:
        return f"scapy reads {read!r}"
    if read.haslayer(Raw) and read.type != sn.ENCAPS_MSG:
        return f"scapy does not read all: {read!r}"
    if data == DISCONNECT:
        return None
    read.len = None
    read.clear_cache()
    again = bytes(read)
    return None if again == data else f"scapy writes {again.hex()} for {data.hex()}"


class Sensor:
    """A client; what comes unasked is answered and kept."""

    def __init__(self, port, name="", clean=True, keep_alive=60):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.connect(("127.0.0.1", port))
        self.name, self.last = name, 0
        self.ids, self.names = {}, {}
        self.came, self.unreleased = collections.deque(), {}
        # Whether publications are answered.
        self.answers = True
        if name:
            self.send(sn.MQTTSNConnect(cleansess=clean, duration=keep_alive, client_id=name))
            self.code = self.until(sn.CONNACK).return_code

    def send(self, packet):
        self.socket.send(bytes(MQTTSN() / packet))

    def next_id(self):
        self.last += 1
        return self.last

    def step(self, seconds):
        """The next packet, which is answered; None if none comes."""
        self.socket.settimeout(max(seconds, 0.001))
        try:
            packet = MQTTSN(self.socket.recv(MAX_DATAGRAM_BYTES))
        except TimeoutError:
            return None
        self.answer(packet)
        return packet

    def until(self, kind, seconds=MAX_STEP_S):
        """The next packet of a kind; None if none comes."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            packet = self.step(left)
            if packet is not None and packet.type == kind:
                return packet
        return None

    def answer(self, packet):
        """What the gateway begins."""
        if packet.type == sn.REGISTER:
            self.know(packet.tid, packet.topic_name.decode())
            self.send(sn.MQTTSNRegack(tid=packet.tid, mid=packet.mid))
        elif packet.type == sn.PUBLISH:
            self.published(packet)
        elif packet.type == sn.PUBREL:
            if packet.mid in self.unreleased:
                self.came.append(self.unreleased.pop(packet.mid))
            self.send(sn.MQTTSNPubcomp(mid=packet.mid))

    def published(self, told):
        qos = {bits: qos for qos, bits in QOS_BITS.items()}[told.qos]
        topic = {
            sn.TID_NORMAL: lambda: self.names.get(told.tid),
            sn.TID_PREDEF: lambda: told.tid,
            sn.TID_SHORT: lambda: told.tid.to_bytes(2, "big").decode(),
        }[told.tid_type]()
        came = Came(topic, bytes(told.data), qos, bool(told.retain))
        if qos < 2 or not self.answers:
            self.came.append(came)
        if self.answers and qos == 1:
            self.send(sn.MQTTSNPuback(tid=told.tid, mid=told.mid))
        if self.answers and qos == 2:
            self.unreleased[told.mid] = came
            self.send(sn.MQTTSNPubrec(mid=told.mid))

    def know(self, topic_id, name):
        self.ids[name], self.names[topic_id] = topic_id, name

    def register(self, name):
        if name not in self.ids:
            self.send(sn.MQTTSNRegister(mid=self.next_id(), topic_name=name))
            self.know(self.until(sn.REGACK).tid, name)
        return self.ids[name]

    def publish(self, topic, payload, qos=0, retain=False):
        """`topic` is a name, of two characters a short one; a number is a predefined id. Returns the
        last answer."""
        kind, number = sn.TID_NORMAL, topic
        if isinstance(topic, int):
            kind = sn.TID_PREDEF
        elif len(topic) == 2:
            kind, number = sn.TID_SHORT, int.from_bytes(topic.encode(), "big")
        else:
            number = self.register(topic)
        own = self.next_id() if qos > 0 else 0
        self.send(sn.MQTTSNPublish(
            qos=QOS_BITS[qos], retain=retain, tid_type=kind, tid=number, mid=own, data=payload,
        ))
        if qos == 1:
            return self.until(sn.PUBACK)
        if qos == 2:
            self.until(sn.PUBREC)
            self.send(sn.MQTTSNPubrel(mid=own))
            return self.until(sn.PUBCOMP)
        return None

    def subscribe(self, topic, qos=0):
        """The answer."""
        said = {"topic_name": topic, "tid_type": sn.TID_NORMAL}
        if isinstance(topic, int):
            said = {"tid": topic, "tid_type": sn.TID_PREDEF}
        elif len(topic) == 2:
            said = {"short_topic": topic, "tid_type": sn.TID_SHORT}
        self.send(sn.MQTTSNSubscribe(qos=QOS_BITS[qos], mid=self.next_id(), **said))
        answer = self.until(sn.SUBACK)
        if answer.tid and isinstance(topic, str) and len(topic) != 2:
            self.know(answer.tid, topic)
        return answer

    def take(self, seconds=MAX_STEP_S):
        """The next publication; None if none comes."""
        end = time.monotonic() + seconds
        while not self.came and time.monotonic() < end:
            self.step(end - time.monotonic())
        return self.came.popleft() if self.came else None

    def sleep(self, seconds):
        self.send(sn.MQTTSNDisconnect(duration=seconds))
        return self.until(sn.DISCONNECT)

    def stop(self):
        self.socket.send(DISCONNECT)
        self.until(sn.DISCONNECT)
        self.socket.close()
