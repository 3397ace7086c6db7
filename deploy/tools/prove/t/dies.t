use Test::More;
pass 'before it dies';
die "no shop\n";
