package shop;

import org.junit.*;

public class BrokenBeforeTest {
    @BeforeClass
    public static void open() {
        throw new RuntimeException("before all");
    }

    @Test
    public void isNeverRun() {}
}
