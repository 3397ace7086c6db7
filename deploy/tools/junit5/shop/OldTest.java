package shop;

import static org.junit.Assert.*;

import org.junit.*;

/** With the vintage engine. */
public class OldTest {
    @Test
    public void passes() {}

    @Test
    public void fails() {
        assertEquals("Ann", "Bob");
    }

    @Test
    @Ignore("no <printer>")
    public void isIgnored() {}

    @Test
    public void isAborted() {
        Assume.assumeTrue("no paper", false);
    }

    @Test(expected = IllegalStateException.class)
    public void doesNotThrow() {}
}
