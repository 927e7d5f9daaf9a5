"""AMQP 1.0 with python-qpid-proton; see `check`.

LONGWIRE names the program, WORK a folder. Each line is a check, ok or FAIL with what came instead.
Exit status 1 where one failed.
"""

import sys
import time
import uuid

import paho.mqtt.client as mqtt
from proton import Described, Message, symbol, ulong
from proton.reactor import AtLeastOnce, AtMostOnce, Container, DurableSubscription, Filter
from proton.utils import BlockingConnection, LinkDetached

from peers import FAILED, MAX_STEP_S, broker, check

LARGE = "".join(chr(48 + i * 7 % 71) for i in range(1_000_000))


def connect(port, container=None, **more):
    """A connection of a container."""
    own = Container()
    if container:
        own.container_id = container
    return BlockingConnection(
        f"127.0.0.1:{port}", timeout=MAX_STEP_S, container=own, heartbeat=None, **more
    )


def received(receiver, seconds=MAX_STEP_S):
    """The next message, accepted where that is asked."""
    message = receiver.receive(timeout=seconds)
    if receiver.fetcher.unsettled:
        receiver.accept()
    return message


def empty(receiver, seconds=0.5):
    """Whether nothing comes."""
    try:
        receiver.receive(timeout=seconds)
    except Exception as error:  # Of several kinds, by version.
        return "imed out" in str(error) or type(error).__name__ == "Timeout"
    return False


def messages(port):
    """What is sent arrives as it was."""
    connection = connect(port)
    receiver = connection.create_receiver("a/+", credit=50)
    sender = connection.create_sender("a/b")
    sent = Message(
        body={"n": 1, "list": [1, "two", None]}, subject="s", correlation_id=uuid.UUID(int=7),
        id=9, reply_to="answers", content_type="application/x", priority=7, ttl=60.0,
        properties={"text": "ä", "number": ulong(2**63), "yes": True}, group_id="g",
    )
    delivery = sender.send(sent)
    check("a sender hears that its message was taken", delivery.remote_state == 36, delivery)
    came = received(receiver)
    for name in (
        "body", "subject", "correlation_id", "id", "reply_to", "content_type", "priority",
        "properties", "group_id",
    ):
        check(f"a consumer gets {name}", getattr(came, name) == getattr(sent, name),
              getattr(came, name))
    check("what is left of ttl arrives", 0 < came.ttl <= 60, came.ttl)
    check("a message that asks for an answer is durable", came.durable, came.durable)
    sender.send(Message(body=LARGE))
    came = received(receiver)
    check("a message of 1 MB arrives whole", came.body == LARGE, len(came.body))
    for body in ("text", ["a", 1], None, 5.5):
        sender.send(Message(body=body))
        came = received(receiver).body
        check(f"a body {body!r} arrives", came == body, came)
    sender.close()
    relay = connection.create_sender(None)
    relay.send(Message(address="a/c", body="by address"))
    came = received(receiver)
    check("a message says where it goes", came.body == "by address", came.body)
    relay.send(Message(address="topic://a/d", body="alias"))
    check("topic://a/d is a/d", received(receiver).body == "alias")
    relay.send(Message(address="/topic/a.e", body="alias"))
    check("/topic/a.e is a/e", received(receiver).body == "alias")
    connection.close()


def settling(port):
    """Settle modes, outcomes, credit."""
    connection = connect(port)
    receiver = connection.create_receiver("s/#", credit=1, options=AtMostOnce())
    sender = connection.create_sender("s/1", options=AtMostOnce())
    sender.send(Message(body="settled"))
    message = receiver.receive(timeout=MAX_STEP_S)
    check("what is sent settled arrives settled", message.body == "settled" and not message.durable)
    receiver.close()
    sender.close()
    receiver = connection.create_receiver("s/#", credit=5, options=AtLeastOnce())
    sender = connection.create_sender("s/1", options=AtLeastOnce())
    for number in range(3):
        sender.send(Message(body=number))
    first = receiver.receive(timeout=MAX_STEP_S)
    receiver.release(delivered=True)
    check("the first comes first", first.body == 0, first.body)
    rest = [receiver.receive(timeout=MAX_STEP_S)]
    while len(rest) < 3:
        receiver.accept()
        rest.append(receiver.receive(timeout=MAX_STEP_S))
    receiver.accept()
    again = [it.body for it in rest].count(0)
    check("what was given back comes again, once", again == 1, rest)
    sender.send(Message(body="refused"))
    receiver.receive(timeout=MAX_STEP_S)
    receiver.reject()
    check("what is rejected does not come again", empty(receiver))
    receiver.close()
    receiver = connection.create_receiver("s/#", credit=2)
    for number in range(10):
        sender.send(Message(body=number))
    bodies = [received(receiver).body for _ in range(10)]
    check("credit is kept and order too", bodies == list(range(10)), bodies)
    connection.close()


def lasting(port):
    """Durable subscriptions."""
    def subscribe(connection):
        return connection.create_receiver(
            "d/+", name="sub", credit=100, options=DurableSubscription()
        )

    publisher = connect(port)
    sender = publisher.create_sender("d/1")
    connection = connect(port, "container")
    receiver = subscribe(connection)
    sender.send(Message(body="here"))
    came = received(receiver).body
    check("a durable subscriber gets what comes", came == "here", came)
    receiver.detach()
    sender.send(Message(body="away"))
    receiver = subscribe(connection)
    came = received(receiver).body
    check("and what came when its link was detached", came == "away", came)
    connection.close()
    sender.send(Message(body="gone"))
    connection = connect(port, "container")
    receiver = subscribe(connection)
    came = received(receiver).body
    check("and what came when its connection was closed", came == "gone", came)
    other = connect(port, "container")
    taken = subscribe(other)
    sender.send(Message(body="taken"))
    # What the first has not said it took comes again.
    came = [received(taken)]
    while came[-1].delivery_count > 0:
        came.append(received(taken))
    check("a second connection takes it over", came[-1].body == "taken", came)
    taken.close()
    sender.send(Message(body="lost"))
    receiver = subscribe(connect(port, "container"))
    check("closing its link ends it", empty(receiver))
    short = publisher.create_receiver("d/+", credit=10)
    sender.send(Message(body="old", ttl=0.2))
    received(short)
    keeper = connect(port, "keeper")
    subscribe(keeper)
    keeper.close()
    sender.send(Message(body="old", ttl=0.2))
    # sleep: the message expires
    time.sleep(0.4)
    sender.send(Message(body="new"))
    came = received(subscribe(connect(port, "keeper"))).body
    check("what has expired does not come", came == "new", came)


def refusals(port):
    """What is refused, and how."""
    connection = connect(port)

    def refused(name, condition, act):
        try:
            act()
            check(name, False, "nothing was refused")
        except LinkDetached as error:
            check(name, condition in str(error), str(error))

    refused("a wildcard cannot be published to", "amqp:invalid-field",
            lambda: connection.create_sender("a/+"))
    refused("topics of the broker cannot be published to", "amqp:unauthorized-access",
            lambda: connection.create_sender("$SYS/x"))
    refused("a filter that is none is refused", "amqp:invalid-field",
            lambda: connection.create_receiver("a/#/b"))
    refused("a filter that is not known is refused", "amqp:not-implemented",
            lambda: connection.create_receiver("a", options=Filter(
                {symbol("x"): Described(ulong(5), "y")})))
    connection.close()


def retained(port, mqtt_port):
    """With MQTT: both ways, retained messages, requests and answers."""
    came = []
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, protocol=mqtt.MQTTv5)
    client.on_message = lambda _client, _data, message: came.append(message)
    client.connect("127.0.0.1", mqtt_port)
    client.loop_start()
    subscribed = []
    client.on_subscribe = lambda *_: subscribed.append(True)
    client.subscribe("m/#", qos=2)
    wait(lambda: subscribed)
    connection = connect(port)
    sender = connection.create_sender("m/1")
    inbox = connection.create_receiver(None, dynamic=True, credit=10)
    answers = inbox.link.remote_source.address
    sender.send(Message(
        body="text", content_type="text/plain", properties={"k": "v", "n": 5},
        correlation_id=uuid.UUID(int=9), reply_to=answers, ttl=100.0,
        annotations={symbol("x-opt-retain"): True},
    ))
    wait(lambda: came)
    message = came[0]
    properties = message.properties
    check("MQTT gets the payload", message.payload == b"text", message.payload)
    check("MQTT gets the grade", message.qos == 1, message.qos)
    check("MQTT gets the content type", properties.ContentType == "text/plain")
    check("MQTT gets the properties", properties.UserProperty == [("k", "v"), ("n", "5")],
          properties.UserProperty)
    check("MQTT gets what is left of the lifetime", 90 < properties.MessageExpiryInterval <= 100)
    check("MQTT gets the reply topic", properties.ResponseTopic == answers)
    answer = mqtt.Properties(mqtt.PacketTypes.PUBLISH)
    answer.CorrelationData = properties.CorrelationData
    answer.ContentType = "text/answer"
    answer.UserProperty = [("a", "1"), ("a", "2")]
    client.publish(properties.ResponseTopic, b"answer", qos=1, properties=answer)
    got = received(inbox)
    check("an answer of MQTT has the correlation of the request",
          got.correlation_id == uuid.UUID(int=9), got.correlation_id)
    check("its content type", got.content_type == "text/answer", got.content_type)
    check("the first of repeated properties", got.properties == {"a": "1"}, got.properties)
    check("all of them in order",
          got.annotations.get(symbol("x-opt-lw-properties")) == ["a", "1", "a", "2"],
          got.annotations)
    check("its payload as data", bytes(got.body) == b"answer", got.body)
    late = connection.create_receiver("m/+", credit=10)
    got = received(late)
    check("who comes later gets what is retained", got.body == "text", got.body)
    check("and that it is", got.annotations.get(symbol("x-opt-retain")) is True, got.annotations)
    client.publish("m/2", b"live", qos=0, retain=True)
    got = received(late)
    check("what is new is not called retained",
          not (got.annotations or {}).get(symbol("x-opt-retain")), got.annotations)
    check("the topic is its address", got.address == "m/2", got.address)
    client.loop_stop()
    connection.close()


def wait(is_there):
    """Until something is there."""
    end = time.monotonic() + MAX_STEP_S
    while not is_there() and time.monotonic() < end:
        # sleep: between looks for what another thread gets
        time.sleep(0.01)


def main():
    with broker() as (amqp, mqtt_port):
        messages(amqp)
        settling(amqp)
        lasting(amqp)
        refusals(amqp)
        retained(amqp, mqtt_port)
    sys.exit(1 if FAILED else 0)


if __name__ == "__main__":
    main()
