"""What the measurements beside this file share."""

import json
import statistics
import subprocess
import threading
import time

READY_TIMEOUT_S = 60
# Every lab of the machine is asked, and one of another measurement's may be busy.
LIST_TIMEOUT_S = 60
UNITS = {"bit/s": 1, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9, "ns": 1e-9, "µs": 1e-6,
         "us": 1e-6, "ms": 1e-3, "s": 1.0}


def together(works):
    """Does all at the same time, and raises the first error that one of them ended with."""
    errors = []

    def guarded(work):
        try:
            work()
        except Exception as error:  # It is raised below, in the main thread.
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def ready(ground, get_through=None):
    """Waits until a message has got through, and raises OSError where none does. `get_through`, in
    host a, sends one and says whether it did; without, it is a POST to the ground's own origin."""
    get_through = get_through or (lambda: ground.post("/", 1, READY_TIMEOUT_S))
    until = time.monotonic() + READY_TIMEOUT_S
    first = []

    def ask():
        if get_through():
            first.append(True)

    while not first:
        for side in ground.sides:
            if not side.alive():
                with open(side.log, encoding="utf-8", errors="replace") as log:
                    raise OSError(f"{side.name} ended: {log.read()[-500:].strip()}")
        if time.monotonic() > until:
            raise OSError(f"no message got through in {READY_TIMEOUT_S} s")
        ground.inside(ground.lab.a, ask).join()
        time.sleep(0.1)


def link_state(ground):
    """The lab's entry of `lab list --json`: settings and counters of both directions."""
    listed = subprocess.run([ground.lab.binary, "lab", "list", "--json"], check=True,
                            capture_output=True, timeout=LIST_TIMEOUT_S).stdout
    return next(lab for lab in json.loads(listed) if lab["name"] == ground.lab.name)


def emulation(state):
    """How true the emulation was, and what it dropped, in each direction."""
    return {way: {"late_p99_us": state[way]["lateness"]["p99_us"],
                  "late_most_us": state[way]["lateness"]["max_us"],
                  "dropped": state[way]["traffic"]["dropped"],
                  "queue_peak_bytes": state[way]["traffic"]["queue_peak_bytes"]}
            for way in ("ab", "ba")}


def lateness(emulated):
    """In words, of the direction that is worse: late packets are the machine's, not the link's."""
    worst, most = (max(emulated[way][key] for way in ("ab", "ba")) / 1e3
                   for key in ("late_p99_us", "late_most_us"))
    return f"ferry late p99 {worst:.1f} ms, most {most:.1f} ms"


def quantity(text):
    """A rate in bit/s or a time in s of a setting such as "9.6 kbit/s"."""
    number, unit = text.split()
    return float(number) * UNITS[unit]


def percentile(values, per_cent):
    """By nearest rank; none of nothing."""
    values = sorted(values)
    rank = -(-len(values) * per_cent // 100)
    return values[max(rank, 1) - 1] if values else None


def median(values):
    return statistics.median(values) if values else None


def as_seconds(value):
    return "none" if value is None else f"{value:.3f} s"
