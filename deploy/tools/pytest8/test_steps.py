"""Subtests as a plugin and TAP, which later versions of pytest do not have."""

import unittest

import pytest


def test_passes():
    print("ok 1 - not a line of TAP")


def test_has_subtests(subtests):
    for number in range(4):
        with subtests.test("number", number=number):
            assert number % 2 == 0
    with subtests.test(text="<&> ✓ # SKIP"):
        pytest.skip("half of it")


def test_fails_after_a_subtest(subtests):
    with subtests.test():
        pass
    assert False, "after it\nnot ok 7 - nor this"


@pytest.mark.parametrize("text", ["ünïcode ✓", "a # TODO b", "# SKIP", "back\\slash", "<&>\"'"])
def test_takes_odd_text(text):
    pass


@pytest.mark.skip(reason="no # printer")
def test_is_skipped():
    pass


@pytest.mark.skip
def test_is_skipped_without_a_reason():
    pass


@pytest.mark.xfail(reason="bug #7")
def test_is_expected_to_fail():
    assert False


@pytest.mark.xfail(reason="bug #8")
def test_passes_unexpectedly():
    pass


@pytest.mark.xfail(reason="bug #9", strict=True)
def test_passes_strictly_unexpectedly():
    pass


@pytest.fixture
def broken():
    raise OSError("no shop")


@pytest.fixture
def breaks_later():
    yield
    raise OSError("shop does not close")


def test_has_a_broken_fixture(broken):
    pass


def test_passes_but_breaks_later(breaks_later):
    pass


class TestUnitTest(unittest.TestCase):
    def test_subtests(self):
        for number in range(3):
            with self.subTest(number=number):
                self.assertNotEqual(number, 1)
