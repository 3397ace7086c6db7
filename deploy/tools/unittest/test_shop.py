"""All that unittest can say about a test."""

import sys
import unittest


class TestShop(unittest.TestCase):
    def test_passes(self):
        """A description that stands for the name in the terminal."""
        print("to stdout: <b>&amp;</b> ✓")
        print("to stderr: \x1b[31mred\x1b[0m", file=sys.stderr)

    def test_fails(self):
        self.assertEqual({"name": "Ann"}, {"name": "Bob"}, "names ≠ <&> ]]>")

    def test_raises(self):
        raise ValueError("first line\nsecond line")

    @unittest.skip('no <printer> & no "paper"')
    def test_is_skipped(self):
        pass

    def test_skips_itself(self):
        self.skipTest("")

    @unittest.expectedFailure
    def test_is_expected_to_fail(self):
        self.fail("bug")

    @unittest.expectedFailure
    def test_passes_unexpectedly(self):
        pass

    def test_has_subtests(self):
        for text in ["a", "<&>", "ünïcode ✓", "line\nbreak"]:
            with self.subTest("a message", text=text):
                self.assertNotIn(text, ["<&>", "line\nbreak"])

    def test_has_a_broken_subtest(self):
        with self.subTest(number=1):
            raise OSError("within a subtest")
        with self.subTest(number=2):
            self.skipTest("half of it")

    def test_cleans_up_badly(self):
        self.addCleanup(lambda: 1 / 0)


class TestTearDown(unittest.TestCase):
    def tearDown(self):
        raise RuntimeError("after each")

    def test_passes_but_breaks_later(self):
        pass

    def test_fails_and_breaks_later(self):
        self.fail("before it")


class TestBrokenClass(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        raise RuntimeError("before all")

    def test_is_never_run(self):
        pass


class TestSkippedClass(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        raise unittest.SkipTest("no shop")

    def test_is_never_run(self):
        pass


class TestBrokenEnd(unittest.TestCase):
    @classmethod
    def tearDownClass(cls):
        raise RuntimeError("after all")

    def test_passes(self):
        pass
