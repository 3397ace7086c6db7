package shop;

import static org.junit.Assert.*;

import java.io.File;
import org.junit.*;

/** All that JUnit 4 can say to Surefire. */
public class ShopTest {
    @Test
    public void passes() {
        System.out.println("to stdout: <b>&amp;</b> ✓");
        System.err.println("to stderr: \u001b[31mred\u001b[0m");
    }

    @Test
    public void fails() {
        assertEquals("names ≠ <&> ]]>", "Ann", "Bob");
    }

    @Test
    public void raises() {
        throw new IllegalStateException("outer\nsecond line", new RuntimeException("inner"));
    }

    @Test
    @Ignore("no <printer>")
    public void isIgnored() {}

    @Test
    public void isAborted() {
        Assume.assumeTrue("no paper", false);
    }

    @Test(timeout = 100)
    public void hangs() throws InterruptedException {
        Thread.sleep(5000);
    }

    /** Fails once without a marker file, and then passes. */
    @Test
    public void isFlaky() throws Exception {
        assertFalse("first attempt", new File("marker").createNewFile());
    }
}
