"""AMQP 0.9.1 with peers of others; see `check`.

LONGWIRE names the program, WORK a folder. Each line is a check, ok or FAIL with what came instead.
Exit status 1 where one failed.
"""

import contextlib
import json
import os
import pathlib
import queue
import re
import shutil
import socket
import subprocess
import sys
import time

import paho.mqtt.client as mqtt
import pika
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from pika import exceptions

WORK = pathlib.Path(os.environ["WORK"])
HERE = pathlib.Path(__file__).parent
# Of one step; of starting; of the tests of others.
MAX_STEP_S = 10
MAX_START_S = 10
MAX_TESTS_S = 300
GO_MODULE = "github.com/rabbitmq/amqp091-go"
GO_VERSION = "v1.16.0"
# Tests of the module that need a broker; others of it need an interface that only RabbitMQ has.
GO_TESTS = (
    "Integration|TestConfirm|TestExchange|TestQuick|TestPublish|TestRoundTrip|TestDeclare|"
    "TestDeadlock|TestRepeated|TestChannel|TestCorrupted|TestRabbitMQ|TestConsumer|TestConcurrent|"
    "TestShould|TestDelivery|TestAck"
)
FAILED = []


def check(name, good, came=""):
    """Prints one line."""
    print(f"{'ok  ' if good else 'FAIL'}  {name}" + ("" if good else f": {came!r:.300}"), flush=True)
    if not good:
        FAILED.append(name)


def free_port():
    """A port that nobody has."""
    with socket.socket() as stream:
        stream.bind(("127.0.0.1", 0))
        return stream.getsockname()[1]


@contextlib.contextmanager
def broker():
    """The ports of a broker: of AMQP 0.9.1 and of MQTT."""
    if "AMQP091_PORT" in os.environ:
        yield int(os.environ["AMQP091_PORT"]), int(os.environ["MQTT_PORT"])
        return
    ports = free_port(), free_port()
    addresses = [f"127.0.0.1:{port}" for port in ports]
    command = [os.environ["LONGWIRE"], "broker", "--amqp091", addresses[0], "--mqtt", addresses[1]]
    with open(WORK / "broker.log", "w") as log, subprocess.Popen(command, stderr=log) as process:
        try:
            wait_for(ports)
            yield ports
        finally:
            process.terminate()


def wait_for(ports):
    """Until somebody listens."""
    end = time.monotonic() + MAX_START_S
    for port in ports:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                if time.monotonic() > end:
                    sys.exit(f"nobody listens on port {port}; see {WORK}/broker.log")
                time.sleep(0.05)  # sleep: between two attempts


def connect(port):
    """A connection of pika."""
    user = pika.PlainCredentials("guest", "guest")
    return pika.BlockingConnection(
        pika.ConnectionParameters("127.0.0.1", port, credentials=user, blocked_connection_timeout=MAX_STEP_S)
    )


def get(channel, name):
    """The next message of a queue, which is waited for."""
    end = time.monotonic() + MAX_STEP_S
    while time.monotonic() < end:
        method, properties, body = channel.basic_get(name, auto_ack=True)
        if method:
            return method, properties, body
        channel.connection.process_data_events(0.02)
    return None, None, None


def refused(port, call):
    """The code that a call on a channel of its own is refused with."""
    connection = connect(port)
    try:
        channel = connection.channel()
        call(channel)
        channel.queue_declare("", exclusive=True)
        return None
    except (exceptions.ChannelClosedByBroker, exceptions.ConnectionClosedByBroker) as closed:
        return closed.reply_code
    finally:
        if connection.is_open:
            connection.close()


def messages(port):
    """Properties, confirms, returns."""
    connection = connect(port)
    channel = connection.channel()
    channel.confirm_delivery()
    name = channel.queue_declare("", exclusive=True).method.queue
    channel.queue_bind(name, "amq.topic", "a.*.c")
    properties = pika.BasicProperties(
        content_type="text/plain", content_encoding="x", delivery_mode=2, priority=3,
        headers={"i": 1, "t": {"a": [1, 2**40, None, True, b"b"]}}, correlation_id="c", reply_to="r",
        expiration="60000", message_id="m", timestamp=7, type="t", user_id="guest", app_id="a",
    )
    channel.basic_publish("amq.topic", "a.b.c", b"hello", properties, mandatory=True)
    method, came, body = get(channel, name)
    check("all properties come as they went", (came, body) == (properties, b"hello"), came)
    check("and the routing key", method and method.routing_key == "a.b.c", method)
    try:
        channel.basic_publish("amq.direct", "nobody", b"x", mandatory=True)
        code = None
    except exceptions.UnroutableError as error:
        code = error.messages[0].method.reply_code
    check("a mandatory message without a queue comes back", code == 312, code)
    body = os.urandom(1_000_000)
    channel.queue_bind(name, "amq.fanout")
    channel.basic_publish("amq.fanout", "", body)
    check("a million bytes", get(channel, name)[2] == body)
    connection.close()


def queues(port):
    """Arguments of queues, and what consumers do."""
    connection = connect(port)
    channel = connection.channel()
    channel.confirm_delivery()
    dead = channel.queue_declare("", exclusive=True).method.queue
    arguments = {
        "x-message-ttl": 100, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead,
    }
    brief = channel.queue_declare("", exclusive=True, arguments=arguments).method.queue
    channel.basic_publish("", brief, b"soon gone")
    _, came, body = get(channel, dead)
    deaths = came and came.headers["x-death"]
    good = body == b"soon gone" and deaths[0]["reason"] == "expired" and deaths[0]["queue"] == brief
    check("what expires is a dead letter", good, came)
    arguments = {"x-max-length": 2, "x-overflow": "reject-publish"}
    two = channel.queue_declare("", exclusive=True, arguments=arguments).method.queue
    nacked = []
    for number in range(3):
        try:
            channel.basic_publish("", two, b"%d" % number)
        except exceptions.NackError:
            nacked.append(number)
    check("a full queue refuses", nacked == [2], nacked)
    channel.basic_qos(prefetch_count=1)
    came = []
    for method, _, body in channel.consume(two, inactivity_timeout=0.5):
        if method is None:
            break
        came.append((body, method.redelivered))
        if len(came) == 1:
            channel.basic_nack(method.delivery_tag, requeue=True)
        else:
            channel.basic_ack(method.delivery_tag)
    check("what is not wanted comes again", came == [(b"0", False), (b"0", True), (b"1", False)], came)
    channel.cancel()
    arguments = {"x-max-priority": 9}
    urgent = channel.queue_declare("", exclusive=True, arguments=arguments).method.queue
    for priority in (1, 9, 5):
        channel.basic_publish("", urgent, b"%d" % priority, pika.BasicProperties(priority=priority))
    came = [get(channel, urgent)[2] for _ in range(3)]
    check("the most urgent first", came == [b"9", b"5", b"1"], came)
    check("others may not use it", refused(port, lambda other: other.basic_get(two)) == 405)
    connection.close()


def refusals(port):
    """The codes of the standard."""
    for name, code, call in [
        ("an exchange that is not there", 404, lambda c: c.basic_publish("none", "k", b"")),
        ("a queue that is not there", 404, lambda c: c.queue_bind("none", "amq.topic", "k")),
        ("an exchange of the server's", 403, lambda c: c.exchange_declare("amq.mine", "direct")),
        ("a queue of the server's", 403, lambda c: c.queue_declare("amq.mine")),
        ("an exchange of another type", 406, lambda c: c.exchange_declare("amq.topic", "direct")),
        ("a type of exchange that is none", 503, lambda c: c.exchange_declare("x", "none")),
        ("a delivery tag that is none", 406, lambda c: c.basic_ack(99)),
        ("a consumer of no queue", 404, lambda c: c.basic_consume("none", lambda *_: None)),
    ]:
        came = refused(port, call)
        check(f"{name}: {code}", came == code, came)


def mediation(port, mqtt_port):
    """Messages and their properties between AMQP 0.9.1 and MQTT 5."""
    connection = connect(port)
    channel = connection.channel()
    channel.confirm_delivery()
    name = channel.queue_declare("", exclusive=True).method.queue
    channel.queue_bind(name, "amq.topic", "unit.#")
    came, ready = queue.Queue(), queue.Queue()
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, protocol=mqtt.MQTTv5)
    client.on_message = lambda _client, _data, message: came.put(message)
    client.on_subscribe = lambda *_: ready.put(None)
    client.connect("127.0.0.1", mqtt_port)
    client.loop_start()
    client.subscribe([("unit/#", 1), ("answers/mine", 1)])
    ready.get(timeout=MAX_STEP_S)
    sent = Properties(PacketTypes.PUBLISH)
    sent.ContentType, sent.ResponseTopic, sent.CorrelationData = "text/plain", "answers/mine", b"c1"
    sent.UserProperty = [("k", "1"), ("k", "2"), ("z", "\u00fc")]
    sent.MessageExpiryInterval = 60
    client.publish("unit/7.5/track", b"from mqtt", qos=2, properties=sent).wait_for_publish(MAX_STEP_S)
    method, properties, body = get(channel, name)
    check("a topic as a key", method and method.routing_key == "unit.7%2E5.track", method)
    fields = properties and (
        body, properties.content_type, properties.correlation_id, properties.delivery_mode,
        properties.headers["k"], properties.headers["z"], 0 < int(properties.expiration) <= 60_000,
    )
    check("with its fields", fields == (b"from mqtt", "text/plain", "c1", 2, "1", "\u00fc", True), fields)
    came.get(timeout=MAX_STEP_S)
    correlation = pika.BasicProperties(correlation_id=properties.correlation_id)
    channel.basic_publish("", properties.reply_to, b"answer", correlation)
    answer = came.get(timeout=MAX_STEP_S)
    good = (answer.topic, answer.payload) == ("answers/mine", b"answer")
    check("an answer to a topic", good and answer.properties.CorrelationData == b"c1", answer.topic)
    ask = pika.BasicProperties(
        content_type="application/json", delivery_mode=2, expiration="30000", reply_to=name,
        correlation_id="q1", headers={"n": 5, "t": True, "s": "\u00fc", "x-any": "stays"},
    )
    channel.basic_publish("amq.topic", "unit.8.x%2Ey", b"from amqp", ask, mandatory=True)
    message = came.get(timeout=MAX_STEP_S)
    got = message.properties
    check("a key as a topic", message.topic == "unit/8/x.y", message.topic)
    fields = (
        message.payload, message.qos, got.ContentType, got.CorrelationData, got.UserProperty,
        0 < got.MessageExpiryInterval <= 30,
    )
    user = [("n", "5"), ("t", "true"), ("s", "\u00fc")]
    wanted = (b"from amqp", 1, "application/json", b"q1", user, True)
    check("with its properties", fields == wanted, fields)
    check("and once to our own", get(channel, name)[1] == ask)
    client.publish(got.ResponseTopic, b"reply", qos=1).wait_for_publish(MAX_STEP_S)
    check("an answer to a queue", get(channel, name)[2] == b"reply")
    client.disconnect()
    client.loop_stop()
    connection.close()


def longwire(*args):
    """What a command did: its status, stdout, stderr."""
    done = subprocess.run(
        [os.environ["LONGWIRE"], *args], capture_output=True, text=True, timeout=MAX_STEP_S,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def our_clients(port):
    """`longwire pub` and `longwire sub` with pika beside them."""
    url = f"amqp091://guest@127.0.0.1:{port}"
    password = WORK / "password"
    password.write_text("guest\n")
    by = ("--password-file", str(password))
    connection = connect(port)
    channel = connection.channel()
    channel.confirm_delivery()
    name = channel.queue_declare("", exclusive=True).method.queue
    channel.queue_bind(name, "amq.topic", "ours.#")
    status, _, error = longwire(
        "pub", url, *by, "-t", "ours/7.5", "-m", "h\u00e9llo", "-q", "1", "--content-type", "text/x",
        "--correlation-data", "c1", "--response-topic", f"$reply/queue/{name}", "--expiry", "60 s",
        "-D", "k=v",
    )
    check("longwire pub: it ends well", status == 0, error)
    method, properties, body = get(channel, name)
    check("longwire pub: a topic as a key", method and method.routing_key == "ours.7%2E5", method)
    fields = properties and (
        body.decode(), properties.content_type, properties.correlation_id, properties.delivery_mode,
        properties.reply_to, properties.headers["k"], 0 < int(properties.expiration) <= 60_000,
    )
    wanted = ("h\u00e9llo", "text/x", "c1", 2, name, "v", True)
    check("longwire pub: with its fields", fields == wanted, fields)
    channel.exchange_declare("ours", "fanout", auto_delete=False)
    nobody = ("pub", url, *by, "--exchange", "ours", "-t", "x", "-m", "y", "-q", "1")
    status, _, error = longwire(*nobody)
    check("longwire pub: what has no queue comes back", status == 1 and "312" in error, error)
    channel.queue_bind(name, "ours", "")
    status, _, error = longwire(*nobody)
    check("longwire pub: an exchange by name", status == 0 and get(channel, name)[2] == b"y", error)
    queue_name = "ours-work"
    subscribe = ("sub", url, *by, "--queue", queue_name, "-q", "1", "-W", f"{MAX_STEP_S} s")
    status, _, error = longwire(*subscribe, "-t", "ours/+", "-E")
    check("longwire sub: a queue is made", status == 0, error)
    for number in range(3):
        sent = pika.BasicProperties(
            content_type="text/plain", headers={"n": number}, delivery_mode=2, reply_to=name
        )
        channel.basic_publish("amq.topic", "ours.1", f"{number}".encode(), sent, mandatory=True)
    status, out, error = longwire(*subscribe, "-C", "3", "--json")
    check("longwire sub: it ends well", status == 0, error)
    facts = [json.loads(line) for line in out.splitlines()]
    check("longwire sub: in order", [one["payload"] for one in facts] == ["0", "1", "2"], out)
    last = facts[-1] if facts else {}
    for key, value in (
        ("topic", "ours/1"), ("content_type", "text/plain"), ("qos", 1), ("properties", [["n", "2"]]),
        ("reply_to", f"$reply/queue/{name}"),
    ):
        check(f"longwire sub gets {key}", last.get(key) == value, last.get(key))
    left = channel.queue_declare(queue_name, passive=True).method.message_count
    check("longwire sub: each was acknowledged", left == 0, left)
    channel.queue_delete(queue_name)
    channel.exchange_delete("ours")
    connection.close()


def go_tests(port):
    """The integration tests of amqp091-go."""
    if not shutil.which("go"):
        print("amqp091: no go, so not with amqp091-go; apt install golang")
        return
    folder = WORK / "go"
    folder.mkdir(exist_ok=True)
    environment = os.environ | {"AMQP_URL": f"amqp://guest:guest@127.0.0.1:{port}/"}

    def go(*args):
        return subprocess.run(
            ["go", *args], cwd=folder, env=environment, capture_output=True, text=True,
            timeout=MAX_TESTS_S, check=False,
        )

    if not (folder / "go.mod").exists():
        go("mod", "init", "judged")
    got = go("get", "-t", f"{GO_MODULE}@{GO_VERSION}")
    if got.returncode:
        print("amqp091: cannot get amqp091-go; is there a network?")
        return
    done = go("test", "-tags", "integration", "-count", "1", "-v", "-run", GO_TESTS, GO_MODULE)
    (WORK / "go.log").write_text(done.stdout + done.stderr)
    passed, failed = (len(re.findall(f"^--- {word}", done.stdout, re.M)) for word in ("PASS", "FAIL"))
    good = passed >= 80 and failed == 0 and "panic:" not in done.stdout
    check(f"amqp091-go: {passed} tests pass", good, (failed, f"{WORK}/go.log"))


def java_client(port):
    """The Java client."""
    if not shutil.which("mvn") or not shutil.which("javac"):
        print("amqp091: no mvn or javac, so not with the Java client; apt install maven")
        return
    jars = WORK / "jars"
    got = subprocess.run(
        ["mvn", "-q", "-B", "-f", HERE / "pom.xml", "dependency:copy-dependencies",
         f"-DoutputDirectory={jars}", f"-DbuildDirectory={WORK}/target"],
        capture_output=True, timeout=MAX_TESTS_S, check=False,
    )
    if got.returncode:
        print("amqp091: cannot get the Java client; is there a network?")
        return
    path = f"{jars}/*"
    subprocess.run(["javac", "-cp", path, "-d", WORK, HERE / "Client.java"], check=True)
    done = subprocess.run(
        ["java", "-cp", f"{path}:{WORK}", "Client", str(port)],
        capture_output=True, text=True, timeout=MAX_TESTS_S, check=False,
    )
    for line in done.stdout.splitlines():
        name, _, good = line.partition("\t")
        check(f"Java: {name}", good == "true", line)
    check("Java: it ends well", done.returncode == 0, done.stderr)


def main():
    """All checks, in one broker."""
    with broker() as (port, mqtt_port):
        messages(port)
        queues(port)
        refusals(port)
        mediation(port, mqtt_port)
        our_clients(port)
        go_tests(port)
        java_client(port)
    sys.exit(1 if FAILED else 0)


main()
