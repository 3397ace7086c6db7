//! The numbers of test points.

/// The numbers that the test points of a level have.
#[derive(Clone, Copy, Default)]
pub(super) struct Numbers {
    count: usize,
    /// Sums of the numbers and of their squares.
    sum: u128,
    squares: u128,
}

impl Numbers {
    /// Adds the number of a point.
    pub(super) fn add(&mut self, number: usize) {
        let number = number as u128;
        self.count += 1;
        self.sum = self.sum.wrapping_add(number);
        self.squares = self.squares.wrapping_add(number * number);
    }

    /// Takes out the number of a point.
    pub(super) fn remove(&mut self, number: usize) {
        let number = number as u128;
        self.count = self.count.saturating_sub(1);
        self.sum = self.sum.wrapping_sub(number);
        self.squares = self.squares.wrapping_sub(number * number);
    }

    /// Whether these are the numbers from 1 to the number of planned tests, each once and in any order: other numbers
    /// have other sums. If some of the tests are not known here, their numbers may be.
    pub(super) fn are_of_plan(self, plan: usize) -> bool {
        let last = plan as u128;
        let sum = last * (last + 1) / 2;
        let squares = sum * (2 * last + 1) / 3;
        self.count != plan || (self.sum, self.squares) == (sum, squares)
    }
}
