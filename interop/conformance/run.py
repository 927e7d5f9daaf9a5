#!/usr/bin/env python3
"""Requests and responses by clause of RFC 9110 and RFC 9112, through longwire and others.

  interop/conformance/run.py [--rows PART] [--proxies NAMES] [--jobs N] [--json FILE] [--verbose]
  interop/conformance/run.py --update docs/conformance.md     the table there, made anew
  interop/conformance/run.py --list                           the rows

LONGWIRE names the binary. Each row is tried with bare sockets and an origin of its own; one that
came out wrong is tried twice more, and what most attempts say counts. Exit status 1: longwire does
worse than two of the others (or than the only one that a row has a meaning for) in a row for which
`exceptions` has no reason.
"""

import argparse
import concurrent.futures
import datetime
import importlib
import json
import os
import re
import resource
import shutil
import socket
import subprocess
import sys
import textwrap
import time
import traceback

import proxies
from trial import MAY, MUST, ROWS, SHOULD, Trial
from wire import Ended

HERE = os.path.dirname(os.path.abspath(__file__))
BEGIN = "<!-- requests and responses: made by interop/conformance/run.py --update -->"
END = "<!-- requests and responses: end -->"
PARTS = ("targets", "framing", "fields", "ends", "tunnels")
ATTEMPTS = 3
# As many as have an address of a network each.
MAX_ROWS = 20_000
MAX_SEEN_CHARS = 60
OPEN_FILES = 8192


def load_rows():
    for name in PARTS:
        importlib.import_module(f"rows.{name}")
    if len(ROWS) > MAX_ROWS:
        raise SystemExit(f"conformance: {len(ROWS)} rows, at most {MAX_ROWS} have an address")


def listener():
    one = socket.socket()
    one.bind(("127.0.0.1", 0))
    one.listen(64)
    return one


def attempt(row, proxy, number, origin):
    """One attempt; whether it was right, and what was seen."""
    # What an earlier attempt left in the queue is not this one's.
    origin.settimeout(0)
    try:
        while True:
            origin.accept()[0].close()
    except OSError:
        pass
    address, process = proxy.address(number, origin.getsockname()[1])
    trial = Trial(proxy.kind, address, origin)
    trial.ours = proxy.ours
    try:
        right = bool(row.run(trial))
    except Ended as ended:
        trial.note({"fin": "closed", "rst": "reset", "timeout": "silent"}[ended.how])
        right = False
    except OSError as error:
        trial.note(f"{type(error).__name__}")
        right = False
    except Exception as error:
        trial.note(f"the row failed: {error!r} {traceback.format_exc()[-300:]}")
        right = False
    finally:
        trial.stop()
        if process:
            proxy.stop(process)
    return right, trial.seen()


def outcome(row, proxy, number, origin):
    """What most attempts say."""
    if row.only and row.only != proxy.kind:
        return {"right": None, "seen": "", "count": 0, "of": 0}
    good, of, seen = 0, 0, ""
    started = time.monotonic()
    for _ in range(ATTEMPTS):
        right, text = attempt(row, proxy, number, origin)
        good, of = good + right, of + 1
        if not right or not seen:
            seen = text
        if good == of == 1:
            break
        if of < ATTEMPTS:
            time.sleep(0.3)
    return {"right": good * 2 > of, "seen": seen, "count": good, "of": of,
            "seconds": round(time.monotonic() - started, 2)}


def exceptions():
    """Lines `row proxy[,proxy] reason`; the reasons by row and proxy."""
    reasons = {}
    with open(os.path.join(HERE, "exceptions"), encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                row, names, reason = line.split(None, 2)
                for name in names.split(","):
                    reasons[row, name] = reason.strip()
    return reasons


def is_worse(row_result, name, columns):
    """Whether this proxy is wrong where two of the others are right, or the only one there is."""
    outcomes = row_result["outcomes"]
    if outcomes[name]["right"] is not False:
        return False
    others = [outcomes[one.name]["right"] for one in columns
              if not one.ours and outcomes[one.name]["right"] is not None]
    return bool(others) and sum(others) >= min(2, len(others))


def cell(result):
    if result["right"] is None:
        return "-"
    often = "" if result["of"] == 1 or result["count"] in (0, result["of"]) \
        else f" ({result['count']} of {result['of']})"
    if result["right"]:
        return f"yes{often}"
    seen = result["seen"].replace("|", "\\|").replace("\n", " ")
    seen = seen if len(seen) <= MAX_SEEN_CHARS else seen[:MAX_SEEN_CHARS - 3] + "..."
    return f"**no**: {seen}{often}" if seen else f"**no**{often}"


def markdown(facts, columns, reasons):
    """The table, its sums and the rows in which longwire does worse."""
    names = ", ".join(f"{name} {number}" for name, number in facts["versions"].items())
    rows = facts["rows"]
    out = [BEGIN, "",
           f"{len(rows)} rows tried on {facts['date']} with {names}: `interop/run conformance`.",
           "",
           "| right of all that apply | " + " | ".join(one.title for one in columns) + " |",
           "| --- |" + " --- |" * len(columns)]
    for level in (MUST, SHOULD, MAY):
        counts = []
        for one in columns:
            results = [r["outcomes"][one.name]["right"] for r in rows if r["level"] == level]
            results = [r for r in results if r is not None]
            counts.append(f"{sum(results)} of {len(results)}")
        out.append(f"| {level} | " + " | ".join(counts) + " |")
    out += ["", "Rows where longwire does worse than two of the others:"]
    out += worse_lines(facts, reasons)
    out += ["", "| clause | level | what is sent | what is right | "
            + " | ".join(one.title for one in columns) + " |",
            "| --- | --- | --- | --- |" + " --- |" * len(columns)]
    for r in rows:
        cells = [cell(r["outcomes"][one.name]) for one in columns]
        out.append("| " + " | ".join([r["clause"], r["level"], r["sent"].replace("|", "\\|"),
                                      r["right"].replace("|", "\\|"), *cells]) + " |")
    return "\n".join(out + ["", END])


def worse_lines(facts, reasons):
    """An item for each reason, or that there is none."""
    by_reason = {}
    for row, name in facts["worse"]:
        by_reason.setdefault((row, reasons.get((row, name), "not mended yet, and no reason")), []).append(name)
    if not by_reason:
        return ["none."]
    sent = {r["name"]: r["sent"] for r in facts["rows"]}
    return [""] + [item(f"- {sent[row]} ({', '.join(names)}): {reason}")
                   for (row, reason), names in by_reason.items()]


def item(text):
    """An item of a list in lines as long as those of other documents; what is code is not broken."""
    whole = re.sub("`[^`]*`", lambda code: code.group().replace(" ", "\0"), text)
    return textwrap.fill(whole, 110, subsequent_indent="  ", break_long_words=False,
                         break_on_hyphens=False).replace("\0", " ")


def update(path, text):
    with open(path, encoding="utf-8") as file:
        page = file.read()
    if BEGIN not in page or END not in page:
        raise SystemExit(f"conformance: {path} lacks the lines '{BEGIN}' and '{END}'; add them")
    before, rest = page.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    with open(path, "w", encoding="utf-8") as file:
        file.write(before + text + after)


def listener_flag(binary):
    """The name of the gateway's option for clients without an edge."""
    told = subprocess.run([binary, "gateway", "--help"], capture_output=True, text=True, timeout=60)
    return "--http-listen" if "--http-listen" in told.stdout else "--plain"


def try_all(rows, columns, binary, jobs, verbose):
    """All rows through all proxies; results by name of row and of proxy."""
    listeners = {one.name: {n: listener() for n in range(1, len(rows) + 1)} for one in columns}
    ports = {name: {n: one.getsockname()[1] for n, one in by_row.items()}
             for name, by_row in listeners.items()}
    run = proxies.Run(binary, listener_flag(binary), ports)
    results = {row.name: {} for row in rows}

    def one(proxy, number, row):
        done = outcome(row, proxy, number, listeners[proxy.name][number])
        results[row.name][proxy.name] = done
        if verbose or done["right"] is False and proxy.ours:
            word = {True: "right", False: "WRONG", None: "-"}[done["right"]]
            print(f"{word:5} {proxy.name:8} {row.name}: {done['seen']} "
                  f"({done['count']}/{done['of']}, {done.get('seconds', 0)} s)", flush=True)

    try:
        for proxy in columns:
            proxy.start(run)
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            futures = [pool.submit(one, proxy, number, row)
                       for number, row in enumerate(rows, 1) for proxy in columns]
            for future in futures:
                future.result()
        for proxy in columns:
            if any(p.poll() is not None for p in proxy.processes[:1]):
                print(f"{proxy.name} ended during the run: see its log", file=sys.stderr)
    finally:
        for proxy in columns:
            proxy.stop()
        if os.environ.get("CONFORMANCE_KEEP"):
            print(f"logs are in {run.dir}")
        else:
            run.remove()
    return results


def commit():
    done = subprocess.run(["git", "-C", HERE, "rev-parse", "--short", "HEAD"],
                          capture_output=True, text=True)
    return done.stdout.strip()


def main():
    parser = argparse.ArgumentParser(description="Conformance of longwire and of others.")
    parser.add_argument("--rows", help="only rows whose name has this part; several by commas")
    parser.add_argument("--proxies", help="only these, by commas")
    parser.add_argument("--jobs", type=int, default=24)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--markdown", metavar="FILE")
    parser.add_argument("--update", metavar="FILE")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--verbose", action="store_true", help="say what was right, too")
    given = parser.parse_args()
    load_rows()
    rows = [r for r in ROWS if not given.rows or any(p in r.name for p in given.rows.split(","))]
    if given.list:
        for row in rows:
            print(f"{row.name:34} {row.level:6} {row.clause}: {row.sent} -> {row.right}")
        return 0
    binary = os.environ.get("LONGWIRE") or sys.exit("conformance: set LONGWIRE to the binary")
    binary = shutil.which(binary) or os.path.abspath(binary)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    wanted = OPEN_FILES if most == resource.RLIM_INFINITY else min(OPEN_FILES, most)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
    named = given.proxies.split(",") if given.proxies else None
    columns = [proxy for proxy in proxies.table() if not named or proxy.name in named]
    started = time.monotonic()
    results = try_all(rows, columns, binary, given.jobs, given.verbose)
    facts = {"date": datetime.date.today().isoformat(), "commit": commit(),
             "versions": proxies.versions(binary), "rows": [
                 {"name": r.name, "clause": r.clause, "level": r.level, "sent": r.sent,
                  "right": r.right, "outcomes": results[r.name]} for r in rows]}
    facts["worse"] = [(r["name"], p.name) for r in facts["rows"] for p in columns
                      if p.ours and is_worse(r, p.name, columns)]
    reasons = exceptions()
    text = markdown(facts, columns, reasons)
    if given.json:
        with open(given.json, "w", encoding="utf-8") as file:
            json.dump(facts, file, indent=1)
    if given.markdown:
        with open(given.markdown, "w", encoding="utf-8") as file:
            file.write(text + "\n")
    if given.update:
        update(given.update, text)
    return conclude(facts, columns, reasons, given, time.monotonic() - started)


def conclude(facts, columns, reasons, given, seconds):
    """Prints the sums and gives the exit status."""
    for one in columns:
        results = [r["outcomes"][one.name] for r in facts["rows"]]
        wrong = sum(r["right"] is False for r in results)
        apply = sum(r["right"] is not None for r in results)
        print(f"{one.name:8} right {apply - wrong} of {apply}")
    unexplained = [pair for pair in facts["worse"] if tuple(pair) not in reasons]
    for row, name in unexplained:
        print(f"worse than two of the others, and no reason: {row} through {name}")
    whole = not given.rows and not given.proxies
    worse = {tuple(pair) for pair in facts["worse"]}
    stale = [pair for pair in reasons if pair not in worse] if whole else []
    for row, name in stale:
        print(f"exceptions has a line that is not needed: {row} {name}")
    print(f"{len(facts['rows'])} rows, {seconds:.0f} s")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
