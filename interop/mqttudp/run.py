"""MQTT/UDP with mqttudp2; see `check`.

LONGWIRE names the program, WORK a folder. Each line is a check, ok or FAIL with what came instead.
Exit status 1 where one failed.
"""

import contextlib
import queue
import sys
import threading

import mqttudp.engine as udp

from ours import FAILED, MAX_STEP_S, SILENCE_S, WORK, Broker, Headquarters, check, next_of

CONFIG = """
[broker]
mqtt = "127.0.0.1:0"
anonymous = true
[[mqtt_udp]]
listen = "0.0.0.0:1883"
entry = ["up/#"]
exit = ["down/#"]
targets = ["255.255.255.255:1883"]
"""


@contextlib.contextmanager
def headquarters(more=""):
    """A broker of ours, and a client of MQTT that has subscribed to all."""
    with Broker(CONFIG + more) as broker:
        there = Headquarters(broker.ports["mqtt"])
        yield there
        there.stop()


class Air:
    """What mqttudp2 hears: of us and of itself."""

    def __init__(self):
        self.came = queue.Queue()
        threading.Thread(target=udp.listen, args=(self.came.put,), daemon=True).start()
        # It is there once it hears itself.
        for _ in range(MAX_STEP_S):
            udp.send_publish("noise", "")
            if next_of(self.came, 1):
                return
        sys.exit("mqttudp2 does not hear itself: is there a broadcast route?")

    def take(self, kind, seconds=MAX_STEP_S):
        """The next of a kind; None if none comes."""
        while packet := next_of(self.came, seconds):
            if packet.ptype == kind and packet.topic != "noise":
                return packet
        return None


def of_publications(air, there):
    """Both directions."""
    udp.send_publish("up/one", "from afar")
    came = there.next()
    good = came and (came.topic, came.payload, came.qos, came.retain) == ("up/one", b"from afar", 0, False)
    check("send_publish arrives at a client of MQTT", good, came)
    air.take(udp.PacketType.Publish)
    again = air.take(udp.PacketType.Publish, SILENCE_S)
    check("and is not sent back", again is None, again and again.topic)
    udp.send_publish("up/long", "x" * 1000)
    came = there.next()
    check("one of 1,000 bytes arrives", came and came.payload == b"x" * 1000, came)
    air.take(udp.PacketType.Publish)
    udp.send_publish("elsewhere", "x")
    air.take(udp.PacketType.Publish)
    there.publish("down/one", "to all", 1)
    came = air.take(udp.PacketType.Publish)
    check("what MQTT publishes is heard", came and (came.topic, came.value) == ("down/one", "to all"), came)
    first = came.pkt_id
    check("under a number", first > 0, came.__dict__)
    there.publish("down/two", "ä", 2, retain=True)
    came = air.take(udp.PacketType.Publish)
    check("UTF-8 arrives", came and came.value == "ä", came)
    check("under the next number", came.pkt_id == first + 1, (first, came.pkt_id))
    there.publish("inside", "x", 1)
    came = air.take(udp.PacketType.Publish, SILENCE_S)
    check("what is not to leave does not", came is None, came and came.topic)
    came = there.next(0)
    check("what is not to enter does not", came is None, came and came.topic)


def of_questions(air):
    """PINGREQ and SUBSCRIBE."""
    udp.send_ping()
    check("a ping is answered", numbered(air, udp.PacketType.PingResp) is not None)
    udp.send_subscribe("down/two")
    came = numbered(air, udp.PacketType.Publish)
    check("SUBSCRIBE has the value sent again", came and (came.topic, came.value) == ("down/two", "ä"), came)
    udp.send_subscribe("down/one")
    came = numbered(air, udp.PacketType.Publish, SILENCE_S)
    check("what has no value has none", came is None, came and came.topic)


def numbered(air, kind, seconds=MAX_STEP_S):
    """The next of a kind with a number, as only we send them."""
    while packet := air.take(kind, seconds):
        if packet.pkt_id:
            return packet
    return None


def of_acknowledgements(air, there):
    """What its unfinished QoS 1 does."""
    packet = udp.Packet()
    packet.ptype, packet.topic, packet.value, packet.pkt_id = udp.PacketType.Publish, "up/acked", "x", 77
    packet.set_qos(1)
    with contextlib.redirect_stdout(None):
        packet.send()
        came = there.next()
        acked = air.take(udp.PacketType.PubAck)
        packet.send()
    good = came and (came.topic, came.payload, came.qos) == ("up/acked", b"x", 1)
    check("a publication that wants a PUBACK has level 1", good, came)
    told = came and getattr(came.properties, "UserProperty", [("", "")])[0][0]
    check("a sender's address is told where that is allowed", told == "source", told)
    check("it gets one for its number", acked and acked.reply_to == 77, acked and acked.__dict__)
    check("its copy is not published again", there.next(SILENCE_S) is None)
    packet.pkt_id, packet.value = 76, "older"
    packet.set_qos(0)
    with contextlib.redirect_stdout(None):
        packet.send()
    check("nor what is older", there.next(SILENCE_S) is None)
    while air.take(udp.PacketType.Publish, SILENCE_S):
        pass


def of_signatures(air, there):
    """A key that all have."""
    udp.set_signature("shared secret")
    udp.send_publish("up/signed", "mine")
    came = there.next()
    check("a signed publication is taken", came and came.payload == b"mine", came)
    there.publish("down/signed", "ours")
    came = air.take(udp.PacketType.Publish)
    while came and came.topic != "down/signed":
        came = air.take(udp.PacketType.Publish)
    check("ours is signed, as it checks", came and came.signed, came)
    udp.set_error_handler(lambda *_: None)
    udp.set_signature("another secret")
    udp.send_publish("up/signed", "eve's")
    udp.set_signature("shared secret")
    udp.send_publish("up/signed", "mine again")
    came = there.next()
    check("one by another key is not", came and came.payload == b"mine again", came and came.payload)


def of_silence(air, there):
    """A listener that never sends."""
    udp.send_publish("up/one", "heard")
    came = there.next()
    check("one way: what comes is taken", came and came.payload == b"heard", came)
    there.publish("down/one", "x", 1)
    udp.send_ping()
    udp.send_subscribe("down/two")
    ours = numbered(air, udp.PacketType.Publish, SILENCE_S)
    check("one way: nothing leaves", ours is None, ours and ours.__dict__)


def main():
    udp.set_throttle(0)
    # Otherwise it answers pings itself.
    udp.set_muted(True)
    air = Air()
    with headquarters() as there:
        of_publications(air, there)
        of_questions(air)
    with headquarters("acknowledges = true\ntells_source = true\n") as there:
        of_acknowledgements(air, there)
    with headquarters("one_way = true\n") as there:
        of_silence(air, there)
    (WORK / "udp.key").write_text("shared secret")
    (WORK / "udp.key").chmod(0o600)
    signed = f'key = "{WORK}/udp.key"\nverify = "none"\nsign = "md5"\n'
    with headquarters(signed) as there:
        of_signatures(air, there)
    sys.exit(bool(FAILED))


if __name__ == "__main__":
    main()
