//! Instructions of parts of a program, counted by callgrind: the same on a busy machine.
//!
//! The program starts itself under valgrind, sets up what it measures, and calls [`Counter::count`] around each part.
//! Only these parts are counted, whatever setting them up takes.

mod callgrind;
mod goals;

pub use callgrind::{Counter, count};
pub use goals::Goals;

/// What was counted.
#[derive(Debug, Default)]
pub struct Counts(Vec<Count>);

#[derive(Debug)]
struct Count {
    what: String,
    size: usize,
    instructions: f64,
}

impl Counts {
    /// The instructions of `what` at `size`.
    ///
    /// # Panics
    /// When that was not counted.
    pub fn of(&self, what: &str, size: usize) -> f64 {
        let found = self.0.iter().find(|count| count.what == what && count.size == size);
        found.unwrap_or_else(|| panic!("{what} at {size} was not counted")).instructions
    }

    /// The slope of the instructions of `what` over its sizes where both are drawn as logarithms: 0 where the size does
    /// not matter, 1 where twice the size costs twice as much. Fitted by least squares.
    ///
    /// # Panics
    /// When fewer than two sizes were counted.
    pub fn slope(&self, what: &str) -> f64 {
        let points: Vec<_> = self
            .0
            .iter()
            .filter(|count| count.what == what)
            .map(|count| ((count.size as f64).ln(), count.instructions.ln()))
            .collect();
        assert!(points.len() > 1, "{what} was counted at fewer than two sizes");
        let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / points.len() as f64;
        let (x, y) = (mean(|point| point.0), mean(|point| point.1));
        let covariance: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
        covariance / points.iter().map(|point| (point.0 - x).powi(2)).sum::<f64>()
    }

    /// Writes one line per part, its sizes side by side.
    pub fn print(&self) {
        let mut printed: Vec<&str> = Vec::new();
        for Count { what, .. } in &self.0 {
            if printed.contains(&what.as_str()) {
                continue;
            }
            printed.push(what);
            let sizes = self.0.iter().filter(|count| count.what == *what);
            let cells: Vec<_> = sizes.map(|count| format!("{}: {:.0}", count.size, count.instructions)).collect();
            println!("{what:<58} {}", cells.join("   "));
        }
        println!();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slope_is_the_exponent_of_the_size() {
        for exponent in [0.0, 0.5, 1.0, 2.0] {
            let count =
                |size: usize| Count { what: "x".into(), size, instructions: 7.0 * (size as f64).powf(exponent) };
            let counts = Counts([10, 100, 1_000].map(count).into());
            assert!((counts.slope("x") - exponent).abs() < 1e-9);
        }
    }
}
