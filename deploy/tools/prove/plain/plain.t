use Test::More tests => 2;
pass 'first';
TODO: { local $TODO = 'later'; fail 'second' }
