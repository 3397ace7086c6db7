<?php

use PHPUnit\Framework\TestCase;

final class BrokenEndTest extends TestCase
{
    public static function tearDownAfterClass(): void
    {
        throw new RuntimeException("after all");
    }

    public function testPassesBeforeIt(): void
    {
        $this->assertTrue(true);
    }
}
