//! A library with a test within it.

#[test]
fn passes() {}

mod cart {
    #[test]
    fn is_nested() {}
}
