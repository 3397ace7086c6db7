#!/usr/bin/env python3
"""Generates durations of tests whose slowdowns are known, and records what Apache Otava finds in them.

    python3 -m venv /tmp/otava && /tmp/otava/bin/pip install apache-otava==0.8.0
    /tmp/otava/bin/python slowdowns.py >slowdowns.json

Each line of `slowdowns.json` is a series: its kind, the index of the first slow run if the test is slower at the end, what
Otava says about the end (the index of the last change if that is an increase of at least a quarter), and the durations
in seconds, the earliest first.
"""
import json
import random

from otava.series import AnalysisOptions, Metric, Series

KINDS = {
    # Nothing happens.
    "steady": lambda run, first, end, size: 1.0,
    # The test takes longer from a run on.
    "slower": lambda run, first, end, size: size if run >= first else 1.0,
    # It becomes fast again.
    "repaired": lambda run, first, end, size: size if first <= run < end else 1.0,
    # It becomes faster.
    "faster": lambda run, first, end, size: 1.0 / size if run >= first else 1.0,
}


def durations(kind, chance):
    """Returns the durations of a test, and the index of its first slow run if it is slower at the end."""
    runs, noise = chance.choice([30, 50, 80]), chance.choice([0.03, 0.1, 0.2])
    size, scale = chance.choice([1.5, 2.0, 3.0]), chance.choice([0.4, 3.0, 60.0])
    first = chance.randrange(runs // 3, runs - 7)
    end = chance.randrange(first + 1, runs - 5)
    values = []
    for run in range(runs):
        value = KINDS[kind](run, first, end, size) * scale * chance.lognormvariate(0, noise)
        # Now and then, a machine is busy.
        values.append(round(value * (5 if chance.random() < 0.02 else 1), 3))
    return values, first if kind == "slower" else None


def last_increase(values):
    """Returns the index of the last change that Otava finds, if it is an increase of at least a quarter."""
    times = list(range(len(values)))
    series = Series("test", None, times, {"s": Metric(-1, 1.0)}, {"s": values}, {})
    changes = series.analyze(AnalysisOptions()).change_points["s"]
    if not changes or changes[-1].forward_change_percent() < 25:
        return None
    return int(changes[-1].index)


chance = random.Random(1)
for number in range(200):
    kind = list(KINDS)[number % len(KINDS)]
    values, slower = durations(kind, chance)
    print(json.dumps({"kind": kind, "slower": slower, "otava": last_increase(values), "durations": values}))
