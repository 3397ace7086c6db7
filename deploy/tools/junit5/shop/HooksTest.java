package shop;

import org.junit.jupiter.api.*;

/** Hooks that fail. */
class HooksTest {
    static void fail(String when) {
        throw new RuntimeException(when);
    }

    static class BrokenBeforeAllTest {
        @BeforeAll
        static void open() {
            fail("before all");
        }

        @Test
        void isNeverRun() {}

        @Test
        void isNeverRunEither() {}
    }

    static class BrokenBeforeEachTest {
        @BeforeEach
        void open() {
            fail("before each");
        }

        @Test
        void isNeverRun() {}
    }

    static class BrokenAfterEachTest {
        @AfterEach
        void close() {
            fail("after each");
        }

        @Test
        void passesButBreaksLater() {}

        @Test
        void failsAndBreaksLater() {
            fail("within it");
        }
    }

    static class BrokenAfterAllTest {
        @AfterAll
        static void close() {
            fail("after all");
        }

        @Test
        void passesBeforeIt() {}
    }

    static class BrokenConstructorTest {
        BrokenConstructorTest() {
            fail("constructor");
        }

        @Test
        void isNeverRun() {}
    }
}
