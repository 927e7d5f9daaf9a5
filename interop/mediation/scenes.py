"""What each end sends, and in which words that which comes of it at the others is told."""

import uuid

from message import Message
from ours import SILENCE_S
from soap import canonical

ELEMENT = b'<t:track xmlns:t="urn:t" id="7"><t:lat>59.9</t:lat></t:track>'
XML = b'<?xml version="1.0"?>\n' + ELEMENT
BINARY = bytes(range(256))
EXPIRY_S = 60
LEVELS = "a.b*c%/\u00fc x"
# Longer than a datagram that leaves.
LONG = b"y" * 2000
CREATED_S = 1_700_000_000


def topic(source, what):
    return f"m/{source.name.replace('/', '_')}/{what}"


def all_of(source, others):
    """((field, target's name), word) of everything."""
    for scene in (levels, grades, payloads, sizes, fields, kept, expired, answers, several):
        yield from scene(source, others)


def sent(source, others, message):
    """(target, what came) of one that is sent."""
    source.send(message)
    for target in others:
        yield target, target.take(message.topic)


def levels(source, others):
    """A topic with what means something elsewhere."""
    message = Message(topic(source, LEVELS), b"x", grade=max(source.grades))
    if source.name == "WS-Notification":
        message.payload = ELEMENT
    for target, came in sent(source, others, message):
        yield ("topic", target.name), "as it is" if came else "lost"


def grades(source, others):
    """How often each may arrive."""
    words = {target.name: [] for target in others}
    for grade in source.grades:
        message = Message(topic(source, f"grade{grade}"), payload_of(source), grade=grade)
        for target in others:
            if target.name == "WS-Notification":
                # A consumer that refuses the first is asked again only for what may come twice.
                target.refusing, target.tries = message.topic, 0
        for target, came in sent(source, [it for it in others if it.name != "WS-Notification"], message):
            # Of those that are not settled 1 and 2 look alike over a link that settles second.
            looks_alike = target.name == "AMQP 1.0" and came and came.grade == 2
            told = max(grade, 1) if looks_alike else came and came.grade
            words[target.name].append("lost" if told is None else str(told))
        for target in others:
            if target.name == "WS-Notification":
                words[target.name].append(grade_of_posts(source, target, message))
    sent_grades = ", ".join(str(grade) for grade in source.grades)
    for name, word in words.items():
        yield (f"grade {sent_grades}", name), ", ".join(word)


def grade_of_posts(source, target, message):
    """Whether the POST that was refused came again before the next message."""
    after = Message(message.topic + "-after", message.payload, grade=max(source.grades))
    source.send(after)
    first = target.take({message.topic, after.topic})
    if first.topic == message.topic:
        target.take(after.topic)
    target.refusing = None
    return "1" if first.topic == message.topic else "0"


def payload_of(source):
    return ELEMENT if source.name == "WS-Notification" else b"x"


def payloads(source, others):
    """Each form of payload that the source has."""
    for field, message in forms(source.name):
        message.topic = topic(source, field.replace(" ", "-").replace("`", ""))
        message.grade = max(source.grades)
        for target, came in sent(source, others, message):
            yield (field, target.name), form_word(message, came)


def forms(name):
    """The fields of the table, and what is sent."""
    text = "{\"m\":\"\u00e4\"}".encode()
    if name == "MQTT":
        yield "text", Message(payload=text, form="text")
    if name in ("MQTT", "AMQP 1.0", "AMQP 0.9.1"):
        yield "JSON", Message(payload=text, content_type="application/json")
        yield "XML", Message(payload=XML, content_type="application/xml")
        yield "binary", Message(payload=BINARY, content_type="image/x")
    if name == "AMQP 1.0":
        yield "string value", Message(payload=text, form="string")
        yield "other values", Message(payload={"n": 1}, form="value")
    if name in ("MQTT-SN", "MQTT/UDP"):
        yield "text", Message(payload=text)
        yield "binary", Message(payload=BINARY)
        yield "text, typed by a rule", Message(payload=text)
    if name == "WS-Notification":
        yield "XML", Message(payload=ELEMENT)
        yield "`lw:Text`", Message(payload=text, form="lw:Text", content_type="application/json")
        yield "`lw:Binary`", Message(payload=BINARY, form="lw:Binary", content_type="image/x")
        yield "`Content`", Message(payload=text, form="Content")


def form_word(message, came):
    """How a payload came."""
    if came is None:
        return "lost"
    what = {"": "bytes", "text": "text", "data": "data"}.get(came.form, f"`{came.form}`")
    if came.form == "element":
        good, what = came.payload == canonical(message.payload), "element"
    elif message.form == "value":
        good, what = came.payload == b"\xa1\x61n\x01", f"CBOR, {what}"
    elif message.payload.startswith((b"<t:", b"<?xml")) and message.form == "" and what != "data":
        good = came.payload == message.payload or canonical(came.payload) == canonical(message.payload)
    else:
        good = came.payload == message.payload
    if not good:
        return f"other {what}: {came.payload[:40]!r}"
    return f"{what}, {came.content_type}" if came.content_type else what


def sizes(source, others):
    """What is longer than a datagram."""
    message = Message(topic(source, "long"), LONG, grade=max(source.grades))
    if source.name == "WS-Notification":
        message.payload, message.form = LONG, "lw:Text"
    source.send(message)
    datagrams = ("MQTT-SN", "MQTT/UDP")
    # Those that have it first: then it has been given to all.
    for target in sorted(others, key=lambda it: it.name in datagrams):
        came = target.take(message.topic, SILENCE_S if target.name in datagrams else 10)
        yield ("2,000 bytes", target.name), "arrive" if came and came.payload == LONG else "lost"


def full(source):
    """Everything that a source can say of a message."""
    name, message = source.name, Message(topic(source, "full"), b"all", grade=max(source.grades))
    if name in ("MQTT", "AMQP 1.0", "AMQP 0.9.1"):
        message.expiry, message.content_type = EXPIRY_S, "text/plain"
        message.properties = [("unit", "7"), ("k", "1")]
    if name == "MQTT":
        message.properties.append(("k", "2"))
    if name in ("AMQP 1.0", "AMQP 0.9.1"):
        message.properties += [("number", 5), ("is", True), ("raw", b"\0")]
        message.priority, message.identifier, message.created = 7, "id-1", CREATED_S
    if name == "WS-Notification":
        message.payload, message.identifier = ELEMENT, "urn:id:1"
        message.properties = [("unit", "7"), ("k", "1"), ("k", "2")]
    return message


def fields(source, others):
    """What is said of a message besides."""
    message = full(source)
    if source.name in ("MQTT-SN", "MQTT/UDP"):
        return
    for target, came in sent(source, others, message):
        came = came or Message()
        if message.expiry:
            left = came.expiry and EXPIRY_S - 10 < came.expiry <= EXPIRY_S
            word = "is told" if left else "is not told" if came.expiry is None else str(came.expiry)
            yield ("lifetime left", target.name), word
        if message.content_type:
            word = {message.content_type: "arrives", None: "lost"}
            yield ("content type", target.name), word.get(came.content_type, came.content_type)
        yield ("properties", target.name), properties_word(message, came)
        for field, attribute in [
            ("priority", "priority"), ("message id", "identifier"), ("time of making", "created"),
        ]:
            value, got = getattr(message, attribute), getattr(came, attribute)
            if value is not None:
                yield (field, target.name), {value: "arrives", None: "lost"}.get(got, str(got))


def properties_word(message, came):
    if not came.properties:
        return "lost"
    if came.properties == message.properties:
        return "arrive"
    plain = [
        (name, str(value).lower()) for name, value in message.properties
        if not isinstance(value, bytes)
    ]
    if came.properties == plain:
        return "those with a simple value, as text"
    first = list({name: value for name, value in reversed(message.properties)}.items())
    flat = [text for pair in message.properties for text in pair]
    if sorted(came.properties) == sorted(first) and came.pairs == flat:
        return "first of a name; all in `x-opt-lw-properties`"
    return f"{came.properties} {came.pairs}"


def kept(source, others):
    """What is retained, for those who come later."""
    message = Message(topic(source, "kept"), payload_of(source), grade=max(source.grades), retain=True)
    live = {target.name: came for target, came in sent(source, others, message)}
    for target in others:
        came = target.late(message.topic)
        word = "kept" if came else "lost"
        if came and target.name in ("MQTT", "MQTT-SN", "AMQP 1.0", "AMQP 0.9.1"):
            word += ", marked" if came.retain else ", not marked"
        if live[target.name] and live[target.name].retain:
            word += ", also when new"
        yield ("retained", target.name), word
    if source.name == "WS-Notification":
        # It has no message that is empty.
        return
    message.payload = b""
    live = dict((target.name, came) for target, came in sent(source, others, message))
    for target in others:
        came = target.late(message.topic, SILENCE_S) or not live[target.name]
        yield ("retained, then emptied", target.name), "still kept" if came else "gone"


def expired(source, others):
    """What is of no use any more is given to nobody, whether or not its time is told."""
    if source.name not in ("MQTT", "AMQP 1.0", "AMQP 0.9.1"):
        return
    message = Message(topic(source, "brief"), b"x", grade=1, retain=True, expiry=1)
    first = {target.name: came for target, came in sent(source, others, message)}
    clock = next(it for it in others if it.name == "WS-Notification")
    # Until nobody is told of it any more.
    for _ in range(100):
        if clock.late(message.topic) is None:
            break
        others[0].take("none", 0.1)
    for target in others:
        came = target.late(message.topic, SILENCE_S)
        word = "lost" if first[target.name] is None else "given" if came else "is not given"
        yield ("what has expired", target.name), word


def answers(source, others):
    """A request and its answer."""
    if not hasattr(source, "answer"):
        return
    correlations = {
        "MQTT": [("correlation", b"c1")],
        "AMQP 0.9.1": [("correlation", "c1")],
        "AMQP 1.0": [
            ("correlation", "c1"), ("correlation, uuid", uuid.UUID(int=7)),
            ("correlation, binary", b"\x00\xff"),
        ],
    }[source.name]
    for field, correlation in correlations:
        message = Message(
            topic(source, field.replace(", ", "-")), b"ask", grade=1, reply=source.address(),
            correlation=correlation,
        )
        for target, came in sent(source, others, message):
            if came is None or came.reply is None:
                said = came and (came.reply, came.correlation) == (None, None)
                yield (field, target.name), "lost" if said else f"{came}"
                continue
            target.answer(came)
            back = source.answered()
            good = back and back.payload == b"answer" and back.correlation == correlation
            word = "an answer has it" if good else f"an answer has {back and back.correlation!r}"
            if back and came.correlation is None and back.correlation is None:
                word = "lost, but not the answer"
            yield (field, target.name), word


def several(source, others):
    """What only WS-Notification can say: several messages at once, and one without a topic."""
    if source.name != "WS-Notification":
        return
    messages = [Message(topic(source, f"several{number}"), ELEMENT) for number in range(2)]
    source.send_all(messages)
    for target in others:
        came = [target.take(message.topic) for message in messages]
        word = "one message each" if all(came) else f"{came}"
        yield ("several in one Notify", target.name), word
    source.send_raw(ELEMENT.decode())
    for target in others:
        came = target.take(topic(source, "raw"))
        word = "at `wsn_default_topic`" if came else "lost"
        yield ("without Notify", target.name), word
