-- Each execution writes the rows of its test cases again, all of a page. With room for that on the page, instead of a
-- fifth of it, most of these updates write no entries of indexes.
alter table test_case set (fillfactor = 50);
