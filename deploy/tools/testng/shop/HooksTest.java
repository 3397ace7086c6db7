package shop;

import org.testng.annotations.*;

/** Configuration methods that fail. */
public class HooksTest {
    public static class BrokenBeforeClass {
        @BeforeClass
        public void open() {
            throw new RuntimeException("before all");
        }

        @Test
        public void isSkipped() {}

        @Test
        public void isSkippedToo() {}
    }

    public static class BrokenAfterMethod {
        @AfterMethod
        public void close() {
            throw new RuntimeException("after each");
        }

        @Test
        public void passesButBreaksLater() {}

        @Test
        public void isSkippedAfterIt() {}
    }

    public static class BrokenAfterClass {
        @AfterClass
        public void close() {
            throw new RuntimeException("after all");
        }

        @Test
        public void passesBeforeIt() {}
    }

    public static class BrokenDataProvider {
        @DataProvider
        public Object[][] broken() {
            throw new RuntimeException("no data");
        }

        @Test(dataProvider = "broken")
        public void hasNoData(String text) {}
    }
}
