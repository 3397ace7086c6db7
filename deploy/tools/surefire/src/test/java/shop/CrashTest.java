package shop;

import org.junit.Test;

public class CrashTest {
    @Test
    public void exits() {
        // Only if asked to: it ends the whole process of the tests.
        if (Boolean.getBoolean("crash")) Runtime.getRuntime().halt(3);
    }
}
