<?php

/** All that PHPUnit can say about a test. */

use PHPUnit\Framework\TestCase;

final class ShopTest extends TestCase
{
    public function testPasses(): void
    {
        echo "to stdout: <b>&amp;</b> ✓\n";
        fwrite(STDERR, "to stderr\n");
        $this->assertTrue(true);
    }

    public function testFails(): void
    {
        $this->assertSame(["name" => "Ann"], ["name" => "Bob"], "names ≠ <&> ]]>\x01");
    }

    public function testRaises(): void
    {
        throw new RuntimeException("outer", 7, new LogicException("inner"));
    }

    public function testIsSkipped(): void
    {
        $this->markTestSkipped('no <printer> & "paper"');
    }

    public function testIsIncomplete(): void
    {
        $this->markTestIncomplete("bug #7");
    }

    public function testHasNoAssertion(): void
    {
    }

    public function testWarns(): void
    {
        trigger_error("a warning", E_USER_WARNING);
    }

    public function testIsDeprecated(): void
    {
        trigger_error("old", E_USER_DEPRECATED);
    }

    /** @requires PHP 99 */
    public function testNeedsALaterVersion(): void
    {
    }

    /** @depends testFails */
    public function testDependsOnAFailure(): void
    {
    }

    public function texts(): array
    {
        return ["ünïcode ✓" => ["a"], "<&>\"'" => ["b"], "line\nbreak" => ["c"], ["a number"]];
    }

    /** @dataProvider texts */
    public function testTakesOddText(string $text): void
    {
        $this->assertNotSame("c", $text);
    }

    /** @dataProvider missing */
    public function testHasNoProvider(): void
    {
    }
}
