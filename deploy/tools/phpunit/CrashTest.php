<?php

use PHPUnit\Framework\TestCase;

/** In processes of their own, so that one of them may end. */
final class CrashTest extends TestCase
{
    /** @runInSeparateProcess */
    public function testPasses(): void
    {
        $this->assertTrue(true);
    }

    /** @runInSeparateProcess */
    public function testExits(): void
    {
        exit(3);
    }

    /** @runInSeparateProcess */
    public function testHasAFatalError(): void
    {
        no_such_function();
    }
}
