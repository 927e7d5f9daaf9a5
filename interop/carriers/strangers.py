"""Strangers by the thousand, each with an address of its own, that begin handshakes with a gateway
and never end them: over burst by a key that the gateway does not know, over QUIC by a ClientHello
that once was an edge's. Who is asked to show that it receives at its address (Retry) does so.

A program of its own, beside what is measured and behind it (nice): it reads one line of JSON
from its input, floods until that closes, and prints what came of it. Layout: `proto/sealed` and
the Noise Protocol Framework, revision 34, §5; RFC 9000 §17.2, RFC 9001 §5.
"""

import hashlib
import hmac
import json
import os
import selectors
import socket
import sys
import time

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

PRIME = 2**255 - 19
# Sealed datagrams: their types, and lengths of what is in them.
FIRST, FIRST_WITH_TOKEN, RETRY = b"\x04", b"\x05", 0x09
BEGINNING_BYTES, TOKEN_BYTES, TAG_BYTES = 8, 17, 16
NOISE, PROLOGUE = b"Noise_IK_25519_ChaChaPoly_BLAKE2s", b"longwire datagrams 1"
# RFC 9001 §5.2; RFC 9000 §14.1 and §17.2.
INITIAL_SALT = bytes.fromhex("38762cf7f55934b34d179ae6a4c80cadccbb7f0a")
VERSION, INITIAL_BYTES = b"\0\0\0\1", 1200
INITIAL, RETRY_TYPE, TYPE_BITS, LONG = 0xC0, 0xF0, 0xF0, 0x80
SAMPLE_AT, SAMPLE_BYTES, NUMBER_BYTES = 4, 16, 4
INTEGRITY_BYTES = 16
ROOM_BYTES = 2048
NICE = 10
FIRST_HOST = 0x7F400001  # 127.64.0.1: every address of the block is the host's own.


def montgomery(ed25519):
    """The form for X25519 of a public key of Ed25519 (RFC 7748 §4.1)."""
    y = int.from_bytes(ed25519, "little") & (2**255 - 1)
    return ((1 + y) * pow(1 - y, -1, PRIME) % PRIME).to_bytes(32, "little")


def key_of(line):
    """The key in a line of a peer file."""
    return bytes.fromhex(line.split("ed25519:", 1)[1].split()[0])


def blake(*parts):
    return hashlib.blake2s(b"".join(parts)).digest()


def mixed(chaining, material):
    """A new chaining key, and a key (Noise §4.3)."""
    def keyed(key, data):
        return hmac.new(key, data, hashlib.blake2s).digest()

    secret = keyed(chaining, material)
    first = keyed(secret, b"\1")
    return first, keyed(secret, first + b"\2")


class Burst:
    """First messages to the gateway with this line of a peer file."""

    def __init__(self, gateway):
        self.theirs = montgomery(key_of(gateway))
        remote = X25519PublicKey.from_public_bytes(self.theirs)
        ephemeral, own = X25519PrivateKey.generate(), X25519PrivateKey.generate()
        raw = (Encoding.Raw, PublicFormat.Raw)
        self.ephemeral, self.own = (key.public_key().public_bytes(*raw) for key in (ephemeral, own))
        # The same for all: what the gateway has to do is so for each anew.
        self.secrets = [key.exchange(remote) for key in (ephemeral, own)]
        self.at_us = time.time_ns() // 1000

    def message(self, token=b""):
        self.at_us += 1
        chaining = blake(NOISE)
        digest = blake(blake(blake(chaining, PROLOGUE + token), self.theirs), self.ephemeral)
        out = self.ephemeral
        said = b"\1" + self.at_us.to_bytes(8, "big")
        for secret, content in zip(self.secrets, (self.own, said)):
            chaining, key = mixed(chaining, secret)
            sealed = ChaCha20Poly1305(key).encrypt(bytes(12), content, digest)
            digest, out = blake(digest, sealed), out + sealed
        return out

    def first(self):
        """A datagram, and what is to be remembered of it."""
        message = self.message()
        return FIRST + message + bytes(3 + TAG_BYTES), message[:BEGINNING_BYTES]

    def again(self, came, beginning):
        """The answer to a Retry; none to anything else."""
        if came[0] != RETRY or came[1:1 + BEGINNING_BYTES] != beginning:
            return None
        token = came[1 + BEGINNING_BYTES:]
        return FIRST_WITH_TOKEN + token + self.message(token) + bytes(3 + TAG_BYTES)


def expanded(secret, label, length):
    """HKDF-Expand-Label (RFC 8446 §7.1)."""
    name = b"tls13 " + label
    info = length.to_bytes(2, "big") + bytes([len(name)]) + name + b"\0"
    return HKDFExpand(hashes.SHA256(), length, info).derive(secret)


class InitialKeys:
    """Of the client's Initial packets with this connection id (RFC 9001 §5.2)."""

    def __init__(self, connection):
        initial = hmac.new(INITIAL_SALT, connection, hashlib.sha256).digest()
        secret = expanded(initial, b"client in", 32)
        self.seal = AESGCM(expanded(secret, b"quic key", 16))
        self.iv = int.from_bytes(expanded(secret, b"quic iv", 12), "big")
        self.head = Cipher(algorithms.AES(expanded(secret, b"quic hp", 16)), modes.ECB())

    def nonce(self, number):
        return (self.iv ^ number).to_bytes(12, "big")

    def mask(self, sample):
        encryptor = self.head.encryptor()
        return encryptor.update(sample)[:5]


def number_at(data, at):
    """A number (RFC 9000 §16), and where what is behind it begins."""
    length = 1 << (data[at] >> 6)
    value = int.from_bytes(data[at:at + length], "big") & ((1 << (8 * length - 2)) - 1)
    return value, at + length


def number_of(value):
    return value.to_bytes(1, "big") if value < 64 else (value | 0x4000).to_bytes(2, "big")


def connections(packet):
    """The two connection ids of a long header, and where what is behind them begins."""
    at, ids = 5, []
    for _ in range(2):
        length = packet[at]
        ids.append(packet[at + 1:at + 1 + length])
        at += 1 + length
    return ids, at


class Quic:
    """Initial packets like one that an edge sent."""

    def __init__(self, initial):
        (connection, self.source), at = connections(initial)
        token, at = number_at(initial, at)
        length, at = number_at(initial, at + token)
        keys = InitialKeys(connection)
        sample = initial[at + SAMPLE_AT:at + SAMPLE_AT + SAMPLE_BYTES]
        mask = keys.mask(sample)
        first = initial[0] ^ mask[0] & 0x0F
        size = (first & 3) + 1
        number = bytes(a ^ b for a, b in zip(initial[at:at + size], mask[1:]))
        head = bytes([first]) + initial[1:at] + number
        sealed = initial[at + size:at + length]
        self.frames = keys.seal.decrypt(keys.nonce(int.from_bytes(number, "big")), sealed, head)

    def packet(self, connection, token):
        keys, number = InitialKeys(connection), bytes(NUMBER_BYTES)
        head = (bytes([INITIAL | NUMBER_BYTES - 1]) + VERSION + bytes([len(connection)])
                + connection + bytes([len(self.source)]) + self.source + number_of(len(token))
                + token)
        frames = self.frames.rstrip(b"\0")
        room = INITIAL_BYTES - len(head) - 2 - NUMBER_BYTES - TAG_BYTES
        frames += bytes(max(room - len(frames), 0))
        head += number_of(NUMBER_BYTES + len(frames) + TAG_BYTES)
        sealed = keys.seal.encrypt(keys.nonce(0), frames, head + number)
        mask = keys.mask(sealed[SAMPLE_AT - NUMBER_BYTES:][:SAMPLE_BYTES])
        masked = bytes(a ^ b for a, b in zip(number, mask[1:]))
        return bytes([head[0] ^ mask[0] & 0x0F]) + head[1:] + masked + sealed

    def first(self):
        return self.packet(os.urandom(8), b""), None

    def again(self, came, _):
        if came[0] & TYPE_BITS != RETRY_TYPE or came[1:5] != VERSION:
            return None
        (_, connection), at = connections(came)
        return self.packet(connection, came[at:-INTEGRITY_BYTES])


def flood(maker, gateway, addresses, rate):
    """Begins so many handshakes a second, from one address after another, until its input ends."""
    counts = {"begun": 0, "asked": 0, "shown": 0, "answered": 0, "unsent": 0}
    room, sockets = selectors.DefaultSelector(), []
    for at in range(addresses):
        own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        own.setblocking(False)
        own.bind((socket.inet_ntoa((FIRST_HOST + at).to_bytes(4, "big")), 0))
        own.connect(gateway)
        sockets.append([own, None])
        room.register(own, selectors.EVENT_READ, sockets[-1])
    room.register(sys.stdin, selectors.EVENT_READ)
    print("ready", flush=True)
    began = time.monotonic()
    while True:
        for _ in range(min(int((time.monotonic() - began) * rate) - counts["begun"], 64)):
            one = sockets[counts["begun"] % addresses]
            datagram, one[1] = maker.first()
            counts["begun"] += 1
            send(one[0], datagram, counts)
        for key, _ in room.select(0.001):
            if key.data is None:
                return counts, time.monotonic() - began
            try:
                came = key.fileobj.recv(ROOM_BYTES)
            except OSError:
                continue
            again = maker.again(came, key.data[1])
            counts["answered" if again is None else "asked"] += 1
            if again is not None:
                counts["shown"] += 1
                send(key.fileobj, again, counts)


def send(own, datagram, counts):
    try:
        own.send(datagram)
    except OSError:
        counts["unsent"] += 1


def main():
    os.nice(NICE)
    what = json.loads(sys.stdin.readline())
    initial = what.get("initial")
    maker = Quic(bytes.fromhex(initial)) if initial else Burst(what["gateway_key"])
    counts, took_s = flood(maker, tuple(what["gateway"]), what["addresses"], what["rate"])
    print(json.dumps({**counts, "took_s": took_s}), flush=True)


if __name__ == "__main__":
    main()
