use Test::More tests => 1;
pass 'passes, but the program ends with 3';
END { $? = 3 }
