"""Parameters and generators, which only nose2 has."""

import unittest

from nose2.tools import params


@params(("a", 1), ("<&>\"'", 2), ("ünïcode ✓", 3), ("line\nbreak", 4))
def test_takes_odd_text(text, number):
    assert number != 4, text


def check(number):
    assert number % 2 == 0


def test_generates():
    for number in range(3):
        yield check, number


class TestParams(unittest.TestCase):
    @params(1, 2)
    def test_is_one(self, number):
        self.assertEqual(number, 1)
