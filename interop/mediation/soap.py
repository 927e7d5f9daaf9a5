"""The end of WS-Notification: a consumer, a producer and a pull point in plain HTTP, with every
envelope against the schemas of the standards."""

import base64
import http.client
import http.server
import queue
import re
import threading
from xml.sax.saxutils import escape, quoteattr

from lxml import etree

from message import Message, until
from ours import MAX_STEP_S
from schemas import SOAP11

NAMES = {
    "n": "http://docs.oasis-open.org/wsn/b-2",
    "a": "http://www.w3.org/2005/08/addressing",
    "l": "urn:longwire:topics",
    "lw": "urn:longwire:wsn",
}
DIALECT = "http://docs.oasis-open.org/wsn/t-1/TopicExpression/"


def of_levels(topic):
    """A topic as a concrete expression."""
    def name(level):
        text = re.sub(r"_(?=x[0-9A-F]{4}_)", "_x005F_", level)
        text = re.sub(r"[^\w.-]", lambda found: f"_x{ord(found[0]):04X}_", text)
        return re.sub(r"^[\d.-]", lambda found: f"_x{ord(found[0]):04X}_", text)
    return "l:" + "/".join(name(level) for level in topic.split("/"))


def to_levels(expression):
    text = expression.split(":", 1)[-1]
    return re.sub("_x([0-9A-F]{4})_", lambda found: chr(int(found[1], 16)), text)


def canonical(element):
    """The element as text that does not depend on how it was written."""
    if isinstance(element, str | bytes):
        element = etree.fromstring(element)
    copy = etree.fromstring(etree.tostring(element, with_tail=False))
    etree.cleanup_namespaces(copy)
    return etree.tostring(copy, method="c14n")


class Wsn:
    """WS-Notification."""

    name, grades = "WS-Notification", (1,)

    def __init__(self, port, schemas):
        self.port, self.schemas, self.wrong, self.judged = port, schemas, [], 0
        self.came, self.refusing, self.tries = queue.Queue(), None, 0
        end = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(end.posted(body))
                self.send_header("Content-Length", "0")
                self.end_headers()

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/"
        header = "<a:MessageID>urn:subscribe</a:MessageID><a:Action>urn:subscribe</a:Action>"
        status, _ = self.ask(
            f"<n:Subscribe><n:ConsumerReference><a:Address>{address}</a:Address>"
            f"</n:ConsumerReference><n:Filter><n:TopicExpression Dialect='{DIALECT}Full'>l:m//."
            "</n:TopicExpression></n:Filter><n:SubscriptionPolicy><lw:Properties/>"
            "</n:SubscriptionPolicy></n:Subscribe>", header,
        )
        if status != 200:
            raise SystemExit(f"the subscription was answered with {status}")

    def ask(self, body, header=""):
        names = "".join(f" xmlns:{prefix}='{uri}'" for prefix, uri in NAMES.items())
        text = (
            f"<s:Envelope xmlns:s='{SOAP11}'{names}><s:Header>{header}</s:Header>"
            f"<s:Body>{body}</s:Body></s:Envelope>"
        )
        self.judge(text.encode())
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=MAX_STEP_S)
        connection.request("POST", "/", text.encode(), {"Content-Type": "text/xml; charset=utf-8"})
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        if content:
            self.judge(content)
        return answer.status, etree.fromstring(content) if content else None

    def judge(self, envelope):
        self.judged += 1
        self.wrong += self.schemas.faults_of(envelope)

    def posted(self, body):
        """The status for a Notify."""
        self.judge(body)
        root = etree.fromstring(body)
        messages = [self.read(root, each) for each in root.iterfind(".//n:NotificationMessage", NAMES)]
        if any(message.topic == self.refusing for message in messages):
            self.tries += 1
            if self.tries == 1:
                return 503
        for message in messages:
            self.came.put(message)
        return 202

    @staticmethod
    def read(root, notification):
        topic = notification.findtext("n:Topic", namespaces=NAMES)
        [content] = notification.find("n:Message", NAMES)
        message = Message(to_levels(topic), canonical(content), "element", 1)
        local = etree.QName(content)
        message.content_type = content.get("contentType")
        if local.namespace == NAMES["lw"]:
            text = content.text or ""
            is_text = local.localname == "Text"
            message.form = f"lw:{local.localname}"
            message.payload = text.encode() if is_text else base64.b64decode(text, validate=True)
        message.properties = [
            (each.get("name"), each.text or "") for each in root.iterfind(".//lw:Property", NAMES)
        ]
        message.identifier = root.findtext(".//a:MessageID", namespaces=NAMES)
        return message

    def content(self, message):
        kind = "" if message.content_type is None else f" contentType={quoteattr(message.content_type)}"
        if message.form == "lw:Text":
            return f"<lw:Text{kind}>{escape(message.payload.decode())}</lw:Text>"
        if message.form == "lw:Binary":
            return f"<lw:Binary{kind}>{base64.b64encode(message.payload).decode()}</lw:Binary>"
        if message.form == "Content":
            return f"<Content>{escape(message.payload.decode())}</Content>"
        return message.payload.decode()

    def send(self, message):
        self.send_all([message])

    def send_all(self, messages):
        """All of them in one Notify, with what the first says of itself."""
        message = messages[0]
        header = "".join(
            f"<lw:Property name={quoteattr(name)}>{escape(value)}</lw:Property>"
            for name, value in message.properties
        )
        header = header and f"<lw:Properties>{header}</lw:Properties>"
        if message.identifier:
            header += f"<a:MessageID>{message.identifier}</a:MessageID><a:Action>urn:notify</a:Action>"
        body = "".join(
            f"<n:NotificationMessage><n:Topic Dialect='{DIALECT}Concrete'>{of_levels(each.topic)}"
            f"</n:Topic><n:Message>{self.content(each)}</n:Message></n:NotificationMessage>"
            for each in messages
        )
        self.send_raw(f"<n:Notify>{body}</n:Notify>", header)

    def send_raw(self, body, header=""):
        """A body as it is."""
        status, _ = self.ask(body, header)
        if status != 202:
            raise SystemExit(f"a Notify was answered with {status}")

    def take(self, topic, seconds=MAX_STEP_S):
        def get(left):
            try:
                message = self.came.get(timeout=left)
            except queue.Empty:
                return None
            return message if message.topic in topic else None
        if isinstance(topic, str):
            topic = {topic}
        return until(get, seconds)

    def late(self, topic, seconds=MAX_STEP_S):
        """The current message, which has no Notify around it."""
        _, answer = self.ask(
            f"<n:GetCurrentMessage><n:Topic Dialect='{DIALECT}Concrete'>{of_levels(topic)}</n:Topic>"
            "</n:GetCurrentMessage>"
        )
        found = answer.find(".//n:GetCurrentMessageResponse", NAMES)
        if found is None:
            return None
        [content] = found
        local = etree.QName(content)
        if local.namespace != NAMES["lw"]:
            return Message(topic, canonical(content), "element")
        text = content.text or ""
        payload = text.encode() if local.localname == "Text" else base64.b64decode(text)
        return Message(topic, payload, f"lw:{local.localname}")
