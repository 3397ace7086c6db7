<?php

use PHPUnit\Framework\TestCase;

final class BrokenSetUpTest extends TestCase
{
    protected function setUp(): void
    {
        throw new RuntimeException("before each");
    }

    public function testIsNeverRun(): void
    {
    }
}
