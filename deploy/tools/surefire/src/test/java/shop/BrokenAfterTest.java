package shop;

import org.junit.*;

public class BrokenAfterTest {
    @AfterClass
    public static void close() {
        throw new RuntimeException("after all");
    }

    @Test
    public void passesBeforeIt() {}
}
