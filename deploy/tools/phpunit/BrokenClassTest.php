<?php

use PHPUnit\Framework\TestCase;

final class BrokenClassTest extends TestCase
{
    public static function setUpBeforeClass(): void
    {
        throw new RuntimeException("before all");
    }

    public function testIsNeverRun(): void
    {
    }
}
