package shop;

import static org.junit.jupiter.api.Assertions.*;
import static org.junit.jupiter.api.DynamicContainer.dynamicContainer;
import static org.junit.jupiter.api.DynamicTest.dynamicTest;

import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.*;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** All that JUnit Jupiter can say about a test. */
@DisplayName("A shop <&> \"quoted\" ✓")
class ShopTest {
    @Test
    @Tag("smoke")
    void passes(TestReporter reporter) {
        reporter.publishEntry("order", "1 < 2");
        System.out.println("to stdout: <b>&amp;</b> ✓");
        System.err.println("to stderr: \u001b[31mred\u001b[0m");
    }

    @Test
    void fails() {
        assertEquals("Ann", "Bob", "names ≠ ]]>");
    }

    @Test
    void failsTwice() {
        assertAll(() -> assertTrue(false, "first"), () -> assertTrue(false, "second\nline"));
    }

    @Test
    void raises() {
        throw new IllegalStateException("outer", new RuntimeException("inner"));
    }

    @Test
    @Disabled("no <printer>")
    void isDisabled() {}

    @Test
    void isAborted() {
        Assumptions.assumeTrue(false, "no paper");
    }

    @Test
    @Timeout(value = 100, unit = TimeUnit.MILLISECONDS)
    void hangs() throws InterruptedException {
        Thread.sleep(5000);
    }

    @ParameterizedTest(name = "{index}: {0}")
    @ValueSource(strings = {"ünïcode ✓", "<&>\"'", "line\nbreak", "\u0001"})
    void takesOddText(String text) {
        assertNotEquals("line\nbreak", text);
    }

    @ParameterizedTest
    @CsvSource({"1, 2", "3, 3"})
    void compares(int one, int two) {
        assertNotEquals(one, two);
    }

    @RepeatedTest(3)
    void repeats(RepetitionInfo info) {
        assertNotEquals(2, info.getCurrentRepetition());
    }

    @TestFactory
    Stream<DynamicNode> makes() {
        return Stream.of(
            dynamicTest("passes", () -> {}),
            dynamicContainer("nested", List.of(dynamicTest("fails", () -> fail("dynamic")))));
    }

    @Nested
    class Inner {
        @Test
        void passes() {}

        @Test
        @DisplayName("with a name ✓")
        void named() {}
    }

    @Nested
    @Disabled("closed")
    class Closed {
        @Test
        void isDisabledWithIt() {}
    }
}
