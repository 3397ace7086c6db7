//! The meaning of a word. It lacks the parts that differ between machines and runs.

/// Meaning of a word.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Word<'t> {
    /// The path of an address, without its query: `/orders/17` of `http://shop.test/orders/17?page=2`.
    Url(&'t str),
    /// A date, a time or both.
    Time,
    /// An address of a host, of which the port remains with a colon: `:5432` of `127.0.0.1:5432`.
    Ip(&'t str),
    /// The name of a file with an absolute path: `cart.py` of `/home/ci/cart.py:7:3`.
    File(&'t str),
    /// A relative path, without its position: `shop/cart.py` of `shop/cart.py:7:3`.
    Relative(&'t str),
    /// The path of an address without its host, such as `/orders/17`.
    Route(&'t str),
    /// Anything else.
    Plain,
}
