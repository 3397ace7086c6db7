/* All that Criterion can say about a test. */

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

Test(shop, passes, .description = "a description ✓") { printf("to stdout\n"); }
Test(shop, fails) { cr_expect_str_eq("one", "names <&> ]]>", "names ≠"); cr_assert(0, "at last"); }
Test(shop, crashes) { raise(SIGSEGV); }
Test(shop, crashes_as_expected, .signal = SIGABRT) { abort(); }
Test(shop, exits_as_expected, .exit_code = 3) { exit(3); }
Test(shop, exits) { exit(3); }
Test(shop, hangs, .timeout = 1) { sleep(20); }
Test(shop, is_disabled, .disabled = true) {}
Test(shop, skips_itself) { cr_skip_test("no <printer>"); }

static void broken(void) { cr_assert(0, "before it"); }
Test(shop, has_a_broken_fixture, .init = broken) {}
static void broken_later(void) { cr_assert(0, "after it"); }
Test(shop, passes_but_breaks_later, .fini = broken_later) {}

ParameterizedTestParameters(shop, takes_numbers) {
  static int numbers[] = {1, 2, 3};
  return cr_make_param_array(int, numbers, 3);
}
ParameterizedTest(int *number, shop, takes_numbers) { cr_assert_neq(*number, 2); }
