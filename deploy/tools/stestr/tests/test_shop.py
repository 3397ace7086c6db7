"""All that a stream of subunit can say about a test."""

import unittest


class TestShop(unittest.TestCase):
    def test_passes(self):
        print("to stdout ✓")

    def test_fails(self):
        self.assertEqual("Ann", "Bob", "names ≠ <&> ]]>")

    def test_raises(self):
        raise ValueError("first line\nsecond line")

    def test_skips_itself(self):
        self.skipTest('no <printer> & "paper"')

    @unittest.expectedFailure
    def test_is_expected_to_fail(self):
        self.fail("bug")

    @unittest.expectedFailure
    def test_passes_unexpectedly(self):
        pass


class TestBrokenClass(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        raise RuntimeError("before all")

    def test_is_never_run(self):
        pass
