//! Rows of feeders: each transaction takes one of each, which another try of it has again.

use super::Client;
use crate::feeder::RowSource;

impl Client {
    /// Takes a row of each feeder for a transaction; false when one of them has no more.
    #[inline]
    pub(super) fn take_rows(&mut self, feeds: &[RowSource]) -> bool {
        feeds.is_empty() || self.draw_rows(feeds)
    }

    fn draw_rows(&mut self, feeds: &[RowSource]) -> bool {
        self.rows.clear();
        let random = &mut self.random;
        self.rows.extend(feeds.iter().map_while(|feed| feed.draw(random)));
        let has_all = self.rows.len() == feeds.len();
        if !has_all {
            // What is due later is no backlog: there is nothing left to do it with.
            self.pace = None;
        }
        has_all
    }

    /// Gives the variables the values of the transaction's rows.
    #[inline]
    pub(super) fn set_rows(&mut self, feeds: &[RowSource]) {
        for (feed, row) in feeds.iter().zip(&self.rows) {
            feed.set(*row, &mut self.variables);
        }
    }
}
