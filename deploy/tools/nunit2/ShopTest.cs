// All that NUnit 2 can say about a test.

using System;
using System.Threading;
using NUnit.Framework;

namespace Shop
{
    [TestFixture, Description("A shop <&>"), Category("smoke")]
    public class ShopTest
    {
        [Test, Property("order", 1)]
        public void Passes() { Console.WriteLine("to stdout: <b>&amp;</b> ✓"); Console.Error.WriteLine("to stderr"); }

        [Test]
        public void Fails() { Assert.AreEqual("Ann", "Bob\nsecond line", "names ≠ ]]>"); }

        [Test]
        public void Raises() { throw new InvalidOperationException("outer", new Exception("inner")); }

        [Test, Ignore("no <printer> & \"paper\"")]
        public void IsIgnored() { }

        [Test]
        public void IgnoresItself() { Assert.Ignore("not today"); }

        [Test]
        public void IsInconclusive() { Assert.Inconclusive("who knows"); }

        [Test]
        public void SucceedsEarly() { Assert.Pass("early"); }

        [Test, Explicit("only by hand")]
        public void IsExplicit() { }

        [Test, ExpectedException(typeof(ArgumentException))]
        public void DoesNotThrow() { }

        [Test, Platform("Win")]
        public void NeedsWindows() { }

        [Test]
        public static int IsNotRunnable() { return 1; }

        [TestCase("ünïcode ✓"), TestCase("<&>\"'"), TestCase("line\nbreak"), TestCase(null), TestCase("\u0001")]
        public void TakesOddText(string text) { Assert.AreNotEqual("line\nbreak", text); }

        [TestCase(1, 2, Result = 3, TestName = "adds <one> & two")]
        public int Adds(int one, int two) { return one + two; }

        [Test]
        public void Combines([Values(1, 2)] int one, [Values("a")] string two) { Assert.AreEqual(1, one); }
    }

    [TestFixture(1), TestFixture(2)]
    public class Numbers
    {
        private readonly int number;
        public Numbers(int number) { this.number = number; }

        [Test]
        public void IsOne() { Assert.AreEqual(1, number); }
    }

    [TestFixture]
    public class BrokenFixture
    {
        [TestFixtureSetUp]
        public void Open() { throw new Exception("before all"); }

        [Test]
        public void IsNeverRun() { }
    }

    [TestFixture]
    public class BrokenTearDown
    {
        [TearDown]
        public void Close() { throw new Exception("after each"); }

        [TestFixtureTearDown]
        public void End() { throw new Exception("after all"); }

        [Test]
        public void PassesButBreaksLater() { }
    }

    [TestFixture, Ignore("closed")]
    public class Closed
    {
        [Test]
        public void IsIgnoredWithIt() { }
    }

    public class Outer
    {
        [TestFixture]
        public class Inner
        {
            [Test]
            public void Passes() { }
        }
    }
}
