use Test::More tests => 2;
pass 'first';
BAIL_OUT 'no shop';
