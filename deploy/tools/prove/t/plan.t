# Does not reach its plan.
use Test::More tests => 4;
pass 'first';
pass 'second';
