package shop;

import static org.junit.Assert.*;

import org.junit.Test;
import org.junit.runner.RunWith;
import org.junit.runners.Parameterized;

@RunWith(Parameterized.class)
public class TextsTest {
    @Parameterized.Parameters(name = "{index}: {0}")
    public static Object[] texts() {
        return new Object[] {"ünïcode ✓", "<&>\"'", "line\nbreak"};
    }

    @Parameterized.Parameter public String text;

    @Test
    public void takesOddText() {
        assertNotEquals("line\nbreak", text);
    }
}
