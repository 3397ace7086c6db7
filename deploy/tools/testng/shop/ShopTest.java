package shop;

import static org.testng.Assert.*;

import org.testng.*;
import org.testng.annotations.*;

/** All that TestNG can say about a test. */
public class ShopTest {
    /** Retries a test twice. */
    public static class Twice implements IRetryAnalyzer {
        private int retries;

        public boolean retry(ITestResult result) {
            return retries++ < 2;
        }
    }

    @Test(description = "A description ✓", groups = "smoke")
    public void passes() {
        Reporter.log("a line of <b>the report</b>");
        System.out.println("to stdout");
    }

    @Test
    public void fails() {
        assertEquals("Ann", "Bob", "names ≠ <&> ]]>");
    }

    @Test
    public void raises() {
        throw new IllegalStateException("outer\nsecond line", new RuntimeException("inner"));
    }

    @Test
    public void skipsItself() {
        throw new SkipException("no <printer>");
    }

    @Test(enabled = false)
    public void isDisabled() {}

    @Test(dependsOnMethods = "fails")
    public void dependsOnAFailure() {}

    @Test(timeOut = 100)
    public void hangs() throws InterruptedException {
        Thread.sleep(5000);
    }

    @Test(expectedExceptions = IllegalStateException.class)
    public void doesNotThrow() {}

    @DataProvider(name = "texts")
    public Object[][] texts() {
        return new Object[][] {{"ünïcode ✓"}, {"<&>\"'"}, {"line\nbreak"}, {null}};
    }

    @Test(dataProvider = "texts")
    public void takesOddText(String text) {
        assertNotNull(text);
    }

    @Test(invocationCount = 3, successPercentage = 50)
    public void isRepeated() {
        assertTrue(count++ != 1, "fails in the second invocation");
    }

    private static int count;
    private static int attempts;

    @Test(retryAnalyzer = Twice.class)
    public void isFlaky() {
        assertTrue(attempts++ > 0, "first attempt");
    }

    @Test(retryAnalyzer = Twice.class)
    public void staysBroken() {
        fail("an attempt");
    }
}
