//! Samples become a table of medians and ratios.

use std::fmt::Write;

/// Samples by row and program.
pub(super) struct Table {
    programs: Vec<String>,
    rows: Vec<(String, Vec<Vec<f64>>)>,
    counts: bool,
}

impl Table {
    /// An empty table with these columns, ours first.
    pub(super) fn new(programs: Vec<String>) -> Self {
        Self { programs, rows: Vec::new(), counts: true }
    }

    /// Whether samples count from here on; those of a first run do not.
    pub(super) fn counts(&mut self, counts: bool) {
        self.counts = counts;
    }

    /// Adds a sample.
    pub(super) fn add(&mut self, row: &str, program: usize, value: f64) {
        if !self.counts {
            return;
        }
        let index = self.rows.iter().position(|(name, _)| name == row).unwrap_or_else(|| {
            self.rows.push((row.to_owned(), vec![Vec::new(); self.programs.len()]));
            self.rows.len() - 1
        });
        self.rows[index].1[program].push(value);
    }

    /// Medians, and for each other program how many times ours it takes.
    pub(super) fn render(&self) -> String {
        let mut text = String::from("| row |");
        for (index, name) in self.programs.iter().enumerate() {
            let _ = write!(text, " {name} |");
            if index > 0 {
                text.push_str(" times ours |");
            }
        }
        let columns = 2 * self.programs.len();
        let _ = writeln!(text, "\n{}|", "|---".repeat(columns));
        for (name, samples) in &self.rows {
            let medians: Vec<Option<f64>> = samples
                .iter()
                .map(|samples| (!samples.is_empty()).then(|| median(&mut samples.clone())))
                .collect();
            let ours = medians.first().copied().flatten();
            let _ = write!(text, "| {name} |");
            for (index, median) in medians.iter().enumerate() {
                let _ = write!(text, " {} |", median.map_or_else(|| "–".into(), number));
                if index > 0 {
                    let ratio = median
                        .zip(ours)
                        .filter(|(_, ours)| *ours > 0.0)
                        .map(|(other, ours)| other / ours);
                    let _ = write!(text, " {} |", ratio.map_or_else(|| "–".into(), number));
                }
            }
            text.push('\n');
        }
        text
    }
}

/// The middle of some samples; not a number if there are none.
pub(super) fn median(samples: &mut [f64]) -> f64 {
    samples.sort_by(f64::total_cmp);
    match samples.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => samples[n / 2],
        n => f64::midpoint(samples[n / 2 - 1], samples[n / 2]),
    }
}

/// Three digits that matter, or all before the point.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_ratios_are_shown_and_first_runs_are_not() {
        let mut table = Table::new(vec!["ours".into(), "other".into()]);
        table.counts(false);
        table.add("speed", 0, 99.0);
        table.counts(true);
        for value in [3.0, 1.0, 2.0] {
            table.add("speed", 0, value);
        }
        table.add("speed", 1, 30.0);
        table.add("mass", 0, 1234.5);
        assert_eq!(
            table.render(),
            "| row | ours | other | times ours |\n|---|---|---|---|\n| speed | 2.00 | 30.0 | 15.0 |\n| mass | 1234 | – | – |\n"
        );
    }
}
