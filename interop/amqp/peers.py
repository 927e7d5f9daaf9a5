"""What the checks of AMQP share: a broker, and one line for each check."""

import contextlib
import os
import socket
import subprocess
import time

LONGWIRE = os.environ["LONGWIRE"]
WORK = os.environ["WORK"]
# Of one step: all of them together take much less than a minute.
MAX_STEP_S = 20
MAX_START_S = 10
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
    """A broker; the ports of AMQP 1.0 and of MQTT."""
    amqp, mqtt = free_port(), free_port()
    with open(os.path.join(WORK, "broker.log"), "ab") as log:
        process = subprocess.Popen(
            [
                LONGWIRE, "broker",
                "--amqp", f"127.0.0.1:{amqp}", "--mqtt", f"127.0.0.1:{mqtt}",
            ],
            stdout=log, stderr=log,
        )
    try:
        for port in (amqp, mqtt):
            await_port(port, process)
        yield amqp, mqtt
    finally:
        process.terminate()
        process.wait(MAX_STEP_S)


def await_port(port, process):
    """Until the broker takes connections."""
    end = time.monotonic() + MAX_START_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > end:
                raise
            # sleep: between looks for the broker's port
            time.sleep(0.05)
