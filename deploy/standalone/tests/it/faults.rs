//! What holds when NATS does not, and when what it carries comes twice, in another order, or is
//! nothing that can be applied.

mod away;
mod history;
mod line;
mod load;
mod order;
mod poison;
mod watcher;
