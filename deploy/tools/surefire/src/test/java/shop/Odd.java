package shop;

import static org.junit.Assert.*;

import org.junit.Test;

/** Only run by its name: the report is not XML. */
public class Odd {
    @Test
    public void hasControlCharacters() {
        fail("\u0001 \u001b[31mred\u001b[0m");
    }
}
