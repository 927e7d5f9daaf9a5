#!/usr/bin/env python3
"""The checker itself: each lie that it is there to find is found, and what is right is not."""

import sys
import types

import run


def client(kind, **facts):
    """A client that asked `1-0` and was told what `facts` say."""
    known = {"key": "1-0", "plan": {"kind": kind}, "end": "whole", "status": 201, "lie": None,
             "seconds": 1.0, "early": False}
    return types.SimpleNamespace(**{**known, **facts})


def found(one, heads=1, wholes=1, tunnel=None, killed=()):
    """How many problems the checker sees."""
    origin = types.SimpleNamespace(heads={"1-0": heads}, wholes={"1-0": wholes},
                                   tunnels={"1-0": tunnel} if tunnel else {})
    plan = {"faults": [{"kind": "kill", "side": side} for side in killed]}
    return len(run.wrong_ends(plan, [one], origin))


CASES = [
    ("a POST that reached the origin once", found(client("post")), 0),
    ("a POST that was refused and never asked", found(client("post", end="refused"), 0, 0), 0),
    ("a POST that was cut, and reached it", found(client("post", end="cut")), 0),
    ("a POST that reached it twice", found(client("post", end="cut"), 2, 1), 1),
    ("a POST answered that never reached it", found(client("post"), 0, 0), 1),
    ("a POST answered that did not reach it whole", found(client("post"), 1, 0), 1),
    ("a GET asked twice", found(client("get"), 2, 2), 0),
    ("a body that is another", found(client("get", lie="5 of 10 bytes pass for whole")), 1),
    ("a client without an end", found(client("get", end=None)), 1),
    ("a client that waited too long", found(client("events", end="hang")), 1),
    ("a tunnel that ended in order", found(client("tunnel"), tunnel=(9, 9, "fin")), 0),
    ("a tunnel that was reset", found(client("tunnel", end="cut"), tunnel=(5, 9, "rst")), 0),
    ("a tunnel cut, an orderly end at the client", found(client("tunnel", early=True)), 1),
    ("the same when the edge was killed", found(client("tunnel", early=True), killed=["edge"]), 0),
    ("a tunnel cut, an orderly end at the origin",
     found(client("tunnel", end="cut"), tunnel=(5, 9, "fin")), 1),
    ("the same when the gateway was killed",
     found(client("tunnel", end="cut"), tunnel=(5, 9, "fin"), killed=["gateway"]), 0),
]

if __name__ == "__main__":
    wrong = [f"{what}: {got} problems, not {right}" for what, got, right in CASES if got != right]
    print("\n".join(wrong) or f"the checker tells {len(CASES)} cases apart")
    sys.exit(1 if wrong else 0)
