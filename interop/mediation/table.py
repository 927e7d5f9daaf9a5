"""The map: what of a message arrives, from which protocol to which. `run.py` looks at every line
with clients of others, and docs/mediation.md is written from here."""

NAMES = ("MQTT", "MQTT-SN", "AMQP 1.0", "AMQP 0.9.1", "WS-Notification", "MQTT/UDP")

# By the protocol that a message comes by: what of it arrives with the others.
MAP = {
    "MQTT": """
to | MQTT-SN | AMQP 1.0 | AMQP 0.9.1 | WS-Notification | MQTT/UDP
topic | as it is | as it is | as it is | as it is | as it is
grade 0, 1, 2 | 0, 1, 2 | 0, 1, 2 | 0, 1, 1 | 0, 1, 1 | 0, 0, 0
text | bytes | data, text/plain; charset=utf-8 | bytes | `lw:Text` | bytes
JSON | bytes | data, application/json | bytes, application/json | `lw:Text`, application/json | bytes
XML | bytes | data, application/xml | bytes, application/xml | element | bytes
binary | bytes | data, image/x | bytes, image/x | `lw:Binary`, image/x | bytes
2,000 bytes | lost | arrive | arrive | arrive | lost
lifetime left | is not told | is told | is told | is not told | is not told
content type | lost | arrives | arrives | arrives | lost
properties | lost | first of a name; all in `x-opt-lw-properties` | first of a name; all in `x-opt-lw-properties` | arrive | lost
retained | kept, marked | kept, marked | kept, marked, also when new | kept | kept
retained, then emptied | gone | gone | gone | gone | gone
what has expired | is not given | is not given | is not given | is not given | is not given
correlation | lost | an answer has it | an answer has it | lost | lost
""",
    "MQTT-SN": """
to | MQTT | AMQP 1.0 | AMQP 0.9.1 | WS-Notification | MQTT/UDP
topic | as it is | as it is | as it is | as it is | as it is
grade -1, 0, 1, 2 | 0, 0, 1, 2 | 0, 0, 1, 2 | 0, 0, 1, 1 | 0, 0, 1, 1 | 0, 0, 0, 0
text | bytes | data | bytes | `lw:Binary` | bytes
binary | bytes | data | bytes | `lw:Binary` | bytes
text, typed by a rule | bytes, text/plain | data, text/plain | bytes, text/plain | `lw:Text`, text/plain | bytes
2,000 bytes | arrive | arrive | arrive | arrive | lost
retained | kept, marked, also when new | kept, marked | kept, marked, also when new | kept | kept
retained, then emptied | gone | gone | gone | gone | gone
""",
    "AMQP 1.0": """
to | MQTT | MQTT-SN | AMQP 0.9.1 | WS-Notification | MQTT/UDP
topic | as it is | as it is | as it is | as it is | as it is
grade 0, 1, 2 | 0, 1, 2 | 0, 1, 2 | 0, 1, 1 | 0, 1, 1 | 0, 0, 0
JSON | bytes, application/json | bytes | bytes, application/json | `lw:Text`, application/json | bytes
XML | text, application/xml | bytes | bytes, application/xml | element | bytes
binary | bytes, image/x | bytes | bytes, image/x | `lw:Binary`, image/x | bytes
string value | text | bytes | bytes | `lw:Text` | bytes
other values | CBOR, bytes, application/cbor | CBOR, bytes | CBOR, bytes, application/cbor | CBOR, `lw:Binary`, application/cbor | CBOR, bytes
2,000 bytes | arrive | lost | arrive | arrive | lost
lifetime left | is told | is not told | is told | is not told | is not told
content type | arrives | lost | arrives | arrives | lost
properties | those with a simple value, as text | lost | arrive | those with a simple value, as text | lost
priority | lost | lost | arrives | lost | lost
message id | lost | lost | arrives | arrives | lost
time of making | lost | lost | arrives | lost | lost
retained | kept, marked, also when new | kept, marked | kept, marked, also when new | kept | kept
retained, then emptied | gone | gone | gone | gone | gone
what has expired | is not given | is not given | is not given | is not given | is not given
correlation | an answer has it | lost | an answer has it | lost | lost
correlation, uuid | an answer has it | lost | an answer has it | lost | lost
correlation, binary | an answer has it | lost | lost, but not the answer | lost | lost
""",
    "AMQP 0.9.1": """
to | MQTT | MQTT-SN | AMQP 1.0 | WS-Notification | MQTT/UDP
topic | as it is | as it is | as it is | as it is | as it is
grade 0, 1 | 0, 1 | 0, 1 | 0, 1 | 0, 1 | 0, 0
JSON | bytes, application/json | bytes | data, application/json | `lw:Text`, application/json | bytes
XML | bytes, application/xml | bytes | data, application/xml | element | bytes
binary | bytes, image/x | bytes | data, image/x | `lw:Binary`, image/x | bytes
2,000 bytes | arrive | lost | arrive | arrive | lost
lifetime left | is told | is not told | is told | is not told | is not told
content type | arrives | lost | arrives | arrives | lost
properties | those with a simple value, as text | lost | arrive | those with a simple value, as text | lost
priority | lost | lost | arrives | lost | lost
message id | lost | lost | arrives | arrives | lost
time of making | lost | lost | arrives | lost | lost
retained | kept, marked, also when new | kept, marked | kept, marked | kept | kept
retained, then emptied | gone | gone | gone | gone | gone
what has expired | is not given | is not given | is not given | is not given | is not given
correlation | an answer has it | lost | an answer has it | lost | lost
""",
    "WS-Notification": """
to | MQTT | MQTT-SN | AMQP 1.0 | AMQP 0.9.1 | MQTT/UDP
topic | as it is | as it is | as it is | as it is | as it is
grade 1 | 1 | 1 | 1 | 1 | 0
XML | text, application/xml | bytes | data, application/xml | bytes, application/xml | bytes
`lw:Text` | text, application/json | bytes | data, application/json | bytes, application/json | bytes
`lw:Binary` | bytes, image/x | bytes | data, image/x | bytes, image/x | bytes
`Content` | text | bytes | data, text/plain; charset=utf-8 | bytes | bytes
2,000 bytes | arrive | lost | arrive | arrive | lost
properties | arrive | lost | first of a name; all in `x-opt-lw-properties` | first of a name; all in `x-opt-lw-properties` | lost
message id | lost | lost | arrives | arrives | lost
retained | kept, marked, also when new | kept, marked | kept, marked | kept, marked, also when new | kept
several in one Notify | one message each | one message each | one message each | one message each | one message each
without Notify | at `wsn_default_topic` | at `wsn_default_topic` | at `wsn_default_topic` | at `wsn_default_topic` | at `wsn_default_topic`
""",
    "MQTT/UDP": """
to | MQTT | MQTT-SN | AMQP 1.0 | AMQP 0.9.1 | WS-Notification
topic | as it is | as it is | as it is | as it is | as it is
grade 0 | 0 | 0 | 0 | 0 | 0
text | bytes | bytes | data | bytes | `lw:Binary`
binary | bytes | bytes | data | bytes | `lw:Binary`
text, typed by a rule | bytes, text/plain | bytes | data, text/plain | bytes, text/plain | `lw:Text`, text/plain
2,000 bytes | arrive | lost | arrive | arrive | arrive
retained | kept, marked, also when new | kept, marked | kept, marked | kept, marked, also when new | kept
retained, then emptied | gone | gone | gone | gone | gone
""",
}

HEAD = """\
# Mediation

What is published by one protocol is received by all. This page says what of a message arrives; it is written from the table that `interop/mediation` goes through with clients of others at both ends, and the run fails where either differs. A consumer of the
publisher's own protocol gets the message as it was.

Quality of service, settlement and acknowledgement are one grade: 0 at most once, 1 at least once, 2 exactly once. *Lost* means that the receiver's protocol, or its usual clients, have no place for it.

"""

TAIL = """\
## Topics

Topics are those of MQTT everywhere. MQTT-SN gives them numbers (registered, predefined by `[[topic_id]]`, or names of two characters). AMQP 1.0 takes them as addresses (also `topic://x`, `/topic/x`, `/exchanges/amq.topic/x`) and tells them in `properties.to`, or in
the annotation `x-opt-lw-topic` where a message of AMQP without `to` goes to a wildcard. AMQP 0.9.1 has them as routing keys of `amq.topic` with `.` for `/`, where `.`, `%` and `*` in a level are `%2E`, `%25`, `%2A`; what is over 255 bytes is not delivered there, and counted. WS-Notification
has them in the dialects Concrete, Full and Simple, with `_xHHHH_` for what no name may have; a publisher on demand is subscribed to with its topics as it spells them.

## Grades

AMQP 1.0: settled is 0, unsettled 1, and 2 where the receiver settles second. AMQP 0.9.1: 1 with confirms or `delivery_mode` 2. WS-Notification: a Notify is answered once the store has it, and a consumer is asked again until it answers with 2xx. MQTT/UDP: 0, or 1 where the
sender wants a PUBACK and the listener `acknowledges`; older numbers of a sender are dropped. MQTT-SN: −1 becomes 0; sleeping clients get what waits when they ask.

## Payloads

`wsnt:Message` holds one element: XML is that element, without its prolog; text (by its form or its type) stands in `lw:Text`, the rest in base64 in `lw:Binary`, both with `contentType`. These, and the `Content` of the mediator of IST-150, are unwrapped on the way back. Values of AMQP 1.0
that are neither text nor binary are deterministic CBOR. What has no type can be given one by topic (`[[rule]] content_type`). A payload may leave in another form than
it came in, JSON as CBOR and XML as EXI or CBOR and back, by topic and receiver ([`[[form]]`](broker.md#payload-forms)).

## Properties

To WS-Notification properties go in the header `lw:Properties`, if the subscription's policy asks for that, and the message id as `wsa:MessageID` where Subscribe used WS-Addressing. AMQP has one value for a name: where names are repeated it has the first, and all of them in order in
`x-opt-lw-properties`, from where they come back. What has a lifetime ends with it everywhere, whether or not a protocol can tell it.

## Retained messages

The value of a topic is what was retained last, whoever said so: the flag of MQTT and MQTT-SN, the annotation `x-opt-retain` of AMQP 1.0, the header `x-retain` of AMQP 0.9.1; for WS-Notification and MQTT/UDP a rule (`[[rule]] retain`). Who comes later gets it: by
subscribing, by attaching with credit, by a binding with the argument `x-retain`, by `GetCurrentMessage`, by SUBSCRIBE of MQTT/UDP.

## Requests and answers

Where answers go is a topic for all: a dynamic node of AMQP 1.0 is `$reply/CONTAINER/NUMBER`, a queue of AMQP 0.9.1 `$reply/queue/NAME`; a topic as the answers' address in AMQP 0.9.1 is the key `/topic/KEY` of the default exchange. The correlation of a request of AMQP 1.0
goes to MQTT in its AMQP encoding, unless it is binary, so that the answer brings the type back; to AMQP 0.9.1 it goes as text, a UUID as `urn:uuid:…`.

## What is nowhere

`subject`, the footer and annotations of AMQP 1.0, and `type`, `app_id` and headers that begin with `x-` of AMQP 0.9.1, are not there with other protocols; between these two they are as RabbitMQ has them: types are kept, headers and annotations with `x-` are each other, `type` is `x-basic-type`,
`app_id` is `group-id`; arrays, lists, tables and maps, and `subject`, are left out. Wills, sessions and subscriptions are a client's and the broker's: a will is published as any other message.
"""


def rows(source):
    """(field, {target: word}) of a protocol."""
    head, *lines = [
        [cell.strip() for cell in line.split("|")] for line in MAP[source].strip().splitlines()
    ]
    for field, *words in lines:
        yield field, dict(zip(head[1:], words, strict=True))


def keys():
    """(source, field, target) of all that is said."""
    return [
        (source, field, target) for source in MAP for field, words in rows(source) for target in words
    ]


def said(source, field, target):
    """The word for one; None if there is none."""
    return dict(rows(source)).get(field, {}).get(target) if source in MAP else None


def document():
    """The page."""
    parts = [HEAD]
    for source in NAMES:
        targets = [name for name in NAMES if name != source]
        parts.append(f"## From {source}\n\n")
        parts.append(f"| | {' | '.join(targets)} |\n")
        parts.append(f"| --- |{' --- |' * len(targets)}\n")
        for field, words in rows(source):
            parts.append(f"| {field} | {' | '.join(words[target] for target in targets)} |\n")
        parts.append("\n")
    return "".join(parts) + TAIL
