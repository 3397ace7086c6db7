"""All that pytest can say about a test."""

import sys
import unittest
from pathlib import Path

import pytest


def test_passes(record_property):
    record_property("order", "1 < 2 & \"3\"")
    print("to stdout: <b>&amp;</b>")
    print("to stderr: ⚠ \x1b[31mred\x1b[0m \x01", file=sys.stderr)


def test_fails():
    """An explanation of pytest."""
    assert {"name": "Ann"} == {"name": "Bob"}, "names ≠"


def test_raises():
    raise ValueError("first line\nsecond line ]]> <&>")


@pytest.mark.parametrize("text", ["ünïcode ✓", "<&>\"'", "line\nbreak", "a[b]", "a::b", "a/b.c", "", "\x00\x1b"])
def test_takes_odd_text(text):
    assert text != "a::b"


@pytest.mark.parametrize("count", [pytest.param(2, id="two tens"), pytest.param(3, marks=pytest.mark.skip("three"))])
@pytest.mark.parametrize("price", [1.5, None])
def test_multiplies(count, price):
    assert count * (price or 0) < 6


@pytest.mark.skip(reason="no <printer> & no paper")
def test_is_skipped():
    pass


def test_skips_itself():
    pytest.skip("not today")


@pytest.mark.xfail(reason="bug #7")
def test_is_expected_to_fail():
    assert False


@pytest.mark.xfail(reason="bug #8")
def test_passes_unexpectedly():
    pass


@pytest.mark.xfail(reason="bug #9", strict=True)
def test_passes_strictly_unexpectedly():
    """Counts as failed."""


@pytest.mark.xfail(reason="not here", run=False)
def test_is_not_run():
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
    """Counts as passed and as an error."""


def test_fails_and_breaks_later(breaks_later):
    """Counts as failed and as an error."""
    assert False


@pytest.mark.flaky(reruns=2)
def test_is_flaky(tmp_path_factory):
    """Fails once without a marker file, and then passes."""
    marker = Path("marker")
    if not marker.exists():
        marker.touch()
        pytest.fail("first attempt")


@pytest.mark.flaky(reruns=2)
def test_stays_broken():
    print("an attempt")
    assert not "fixed"


@pytest.mark.timeout(0.2)
def test_hangs():
    import time

    time.sleep(5)


def test_has_subtests(subtests):
    for number in range(4):
        with subtests.test("number", number=number):
            assert number % 2 == 0
    with subtests.test(text="<&> ✓"):
        pytest.skip("half of it")


class TestCart:
    @classmethod
    def setup_class(cls):
        cls.items = 1

    def test_has_an_item(self):
        assert self.items == 1

    class TestNested:
        def test_is_nested(self):
            pass


class TestBrokenClass:
    @classmethod
    def setup_class(cls):
        raise RuntimeError("before all")

    def test_first(self):
        pass

    def test_second(self):
        pass


class TestUnitTest(unittest.TestCase):
    def test_subtests(self):
        for number in range(3):
            with self.subTest(number=number):
                self.assertNotEqual(number, 1)

    @unittest.expectedFailure
    def test_expected(self):
        self.fail()

    @unittest.skip("a reason of unittest")
    def test_skipped(self):
        pass

    @classmethod
    def tearDownClass(cls):
        raise RuntimeError("after all")
