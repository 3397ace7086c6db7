//! Batch statements: each column of the rows is bound as one array, for `unnest`.

/// Returns one column of the rows.
pub fn column<'r, T, V>(rows: &'r [T], value: impl Fn(&'r T) -> V) -> Vec<V> {
    rows.iter().map(value).collect()
}
