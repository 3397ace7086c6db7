"""A worker of pytest-xdist dies, and another takes its place."""

import os

import pytest


@pytest.mark.parametrize("number", range(4))
def test_before(number):
    pass


def test_crashes():
    os.abort()


def test_after():
    pass
