<?php

use PHPUnit\Framework\TestCase;

final class BrokenTearDownTest extends TestCase
{
    protected function tearDown(): void
    {
        throw new RuntimeException("after each");
    }

    public function testPassesButBreaksLater(): void
    {
        $this->assertTrue(true);
    }
}
