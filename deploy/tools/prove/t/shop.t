# All that Test::More can say about a test.

use strict;
use warnings;
use utf8;
use Test::More;

binmode Test::More->builder->$_, ':utf8' for qw(output failure_output todo_output);

pass 'passes';
is 'one', 'two', 'fails <&> ]]>';
ok 1;
is_deeply { name => 'Ann' }, { name => 'Bob' }, 'takes odd text: ünïcode ✓ "quoted"';
pass 'has # TODO and # SKIP and \\ in its name';
pass "has a\nline break";
diag 'to the error output';
note 'to the output';
print "only output\n";

SKIP: {
    skip 'no <printer>', 2;
    pass 'never';
}
TODO: {
    local $TODO = 'bug #7';
    fail 'fails as expected';
    pass 'passes unexpectedly';
    todo_skip 'never runs', 1;
}
subtest 'nested' => sub {
    plan tests => 2;
    pass 'within';
    subtest 'deeper' => sub {
        fail 'too deep';
        done_testing;
    };
};
subtest 'skipped subtest' => sub { plan skip_all => 'closed' };
done_testing;
