use Test::More tests => 2;
pass 'before its end';
kill 'KILL', $$;
