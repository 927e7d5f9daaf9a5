"""Ends of MQTT 5 (paho-mqtt), MQTT-SN (packets of scapy) and MQTT/UDP (mqttudp2)."""

import queue
import socket
import struct
import sys
import threading

import mqttudp.engine as udp
import paho.mqtt.client as paho
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from scapy.contrib import mqttsn as sn

from message import Message, until
from ours import MAX_STEP_S, SILENCE_S
from wire import Sensor

UDP_PORT = 1883
MAX_DATAGRAM_BYTES = 65_507


class Mqtt:
    """MQTT 5."""

    name, grades = "MQTT", (0, 1, 2)

    def __init__(self, port, filters=("m/#", "answers/mqtt")):
        self.port, self.came, ready = port, queue.Queue(), queue.Queue()
        self.client = paho.Client(paho.CallbackAPIVersion.VERSION2, protocol=paho.MQTTv5)
        self.client.on_message = lambda _c, _u, message: self.came.put(self.read(message))
        self.client.on_subscribe = lambda *_: ready.put(None)
        self.client.connect("127.0.0.1", port)
        self.client.loop_start()
        options = paho.SubscribeOptions(qos=2, retainAsPublished=True)
        for topic in filters:
            self.client.subscribe(topic, options=options)
            ready.get(timeout=MAX_STEP_S)

    @staticmethod
    def read(message):
        said = message.properties
        known = {
            name: getattr(said, attribute, None)
            for name, attribute in [
                ("expiry", "MessageExpiryInterval"), ("content_type", "ContentType"),
                ("reply", "ResponseTopic"), ("correlation", "CorrelationData"),
            ]
        }
        form = "text" if getattr(said, "PayloadFormatIndicator", 0) else ""
        properties = list(getattr(said, "UserProperty", []))
        return Message(message.topic, message.payload, form, message.qos, message.retain,
                       properties=properties, **known)

    def send(self, message):
        said = Properties(PacketTypes.PUBLISH)
        for attribute, value in [
            ("MessageExpiryInterval", message.expiry), ("ContentType", message.content_type),
            ("ResponseTopic", message.reply), ("CorrelationData", message.correlation),
        ]:
            if value is not None:
                setattr(said, attribute, value)
        if message.form == "text":
            said.PayloadFormatIndicator = 1
        for pair in message.properties:
            said.UserProperty = pair
        info = self.client.publish(
            message.topic, message.payload, message.grade, message.retain, properties=said
        )
        info.wait_for_publish(MAX_STEP_S)

    def take(self, topic, seconds=MAX_STEP_S):
        def get(left):
            try:
                message = self.came.get(timeout=left)
            except queue.Empty:
                return None
            return message if message.topic == topic else None
        return until(get, seconds)

    def late(self, topic, seconds=MAX_STEP_S):
        """What who comes later gets."""
        other = Mqtt(self.port, [topic])
        came = other.take(topic, seconds)
        other.client.disconnect()
        other.client.loop_stop()
        return came

    def address(self):
        """Where answers reach it."""
        return "answers/mqtt"

    def answer(self, asked):
        self.send(Message(asked.reply, b"answer", grade=1, correlation=asked.correlation))

    def answered(self):
        return self.take("answers/mqtt")


class MqttSn:
    """MQTT-SN."""

    name, grades = "MQTT-SN", (-1, 0, 1, 2)

    def __init__(self, port):
        self.port, self.sensor = port, Sensor(port, "mediation")
        self.sensor.subscribe("m/#", 2)

    def send(self, message):
        topic = message.topic
        if message.grade < 0:
            # Without a connection nothing is registered: the id is known to both.
            topic = {"m/MQTT-SN/grade-1": 7}[topic]
        self.sensor.publish(topic, message.payload, message.grade, message.retain)

    def take(self, topic, seconds=MAX_STEP_S):
        def get(left):
            came = self.sensor.take(left)
            if came is None or self.name_of(came.topic) != topic:
                return None
            return Message(topic, came.payload, "", came.qos, came.retain)
        return until(get, seconds)

    @staticmethod
    def name_of(topic):
        return "m/MQTT-SN/grade-1" if topic == 7 else topic

    def late(self, topic, seconds=MAX_STEP_S):
        other = MqttSn.__new__(MqttSn)
        other.sensor = Sensor(self.port, "late")
        other.sensor.subscribe(topic, 2)
        came = other.take(topic, seconds)
        other.sensor.stop()
        return came

    def ping(self):
        """So that it is not taken for dead while others are looked at."""
        self.sensor.send(sn.MQTTSNPingReq())
        self.sensor.until(sn.PINGRESP)


class MqttUdp:
    """MQTT/UDP: mqttudp2 sends; it hears on a socket of its own making, and what it cannot read
    (lengths over 127, bytes that are no UTF-8) is read here."""

    name, grades = "MQTT/UDP", (0,)

    def __init__(self):
        udp.set_throttle(0)
        self.came = queue.Queue()
        self.socket = udp.make_recv_socket()
        threading.Thread(target=self.listen, daemon=True).start()
        for _ in range(MAX_STEP_S):
            udp.send_publish("noise", "")
            if self.take("noise", 1):
                return
        sys.exit("mqttudp2 does not hear itself: is there a broadcast route?")

    def listen(self):
        while True:
            data = self.socket.recv(MAX_DATAGRAM_BYTES)
            if data[0] & 0xF0 == 0x30:
                self.came.put(self.read(data))

    @staticmethod
    def read(data):
        """With whether it has a number, as ours have."""
        length, at, shift = 0, 1, 0
        while True:
            length |= (data[at] & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if data[at - 1] < 0x80:
                break
        size, = struct.unpack_from("!H", data, at)
        topic = data[at + 2:at + 2 + size].decode()
        message = Message(topic, data[at + 2 + size:at + length], grade=data[0] >> 1 & 3)
        try:
            theirs = udp.parse_packet(data) if length < 128 else None
        except UnicodeDecodeError:
            theirs = None
        if theirs and (theirs.topic, theirs.value.encode()) != (message.topic, message.payload):
            message.form = f"mqttudp2 reads {theirs.topic}: {theirs.value}"
        return message, data[at + length:at + length + 1] == b"n"

    def send(self, message):
        udp.send_publish(message.topic, message.payload)

    def take(self, topic, seconds=MAX_STEP_S):
        def get(left):
            try:
                message, is_ours = self.came.get(timeout=left)
            except queue.Empty:
                return None
            is_it = message.topic == topic and (is_ours or topic == "noise")
            return message if is_it else None
        return until(get, seconds)

    def late(self, topic, seconds=MAX_STEP_S):
        udp.send_subscribe(topic)
        return self.take(topic, seconds)
