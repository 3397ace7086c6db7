//! Rows on their way into one statement: each column of them is one array, for `unnest`.

/// One value of each row.
pub(crate) fn column<'r, T, V>(rows: &'r [T], value: impl Fn(&'r T) -> V) -> Vec<V> {
    rows.iter().map(value).collect()
}
