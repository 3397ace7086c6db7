//! Figures of all rounds, and the tables that show them.

use std::{collections::BTreeMap, fmt::Write as _};

use crate::{progress::progress, shape::Shape};

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Section {
    Throughput,
    Latency,
    Batches,
    Processor,
    Memory,
}

impl Section {
    const ALL: [Self; 5] =
        [Self::Throughput, Self::Latency, Self::Batches, Self::Processor, Self::Memory];

    fn title(self) -> &'static str {
        match self {
            Self::Throughput => "Requests a second, 32 connections",
            Self::Latency => "Latency",
            Self::Batches => "Whole operations",
            Self::Processor => "Processor time of a request, with the work that follows from it",
            Self::Memory => "Resident memory",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    PerSecond,
    Megabytes,
    Millis,
    Seconds,
    Micros,
    Mebibytes,
    Bytes,
}

impl Unit {
    fn symbol(self) -> &'static str {
        match self {
            Self::PerSecond => "/s",
            Self::Megabytes => " MB/s",
            Self::Millis => " ms",
            Self::Seconds => " s",
            Self::Micros => " µs",
            Self::Mebibytes => " MiB",
            Self::Bytes => " B",
        }
    }
}

/// A line of a table.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    section: Section,
    name: String,
    unit: Unit,
    goal: &'static str,
}

impl Figure {
    pub(crate) fn new(section: Section, name: &str, unit: Unit) -> Self {
        Self { section, name: name.to_owned(), unit, goal: "" }
    }

    /// Sets the goal, as shown; a stretch goal is in brackets.
    #[must_use]
    pub(crate) fn with_goal(self, goal: &'static str) -> Self {
        Self { goal, ..self }
    }
}

/// Values by round.
type Rounds = BTreeMap<usize, f64>;

/// All figures, in the order in which they were first measured.
#[derive(Default)]
pub(crate) struct Report {
    lines: Vec<(Figure, BTreeMap<Shape, Rounds>)>,
}

impl Report {
    /// Adds a value. Of several values of one round, for instance of replicas, the largest counts.
    pub(crate) fn add(&mut self, figure: Figure, shape: Shape, round: usize, value: f64) {
        progress(format_args!("  {}: {}{}", figure.name, number(value), figure.unit.symbol()));
        let is_same = |line: &Figure| line.section == figure.section && line.name == figure.name;
        let at = self.lines.iter().position(|(line, _)| is_same(line)).unwrap_or_else(|| {
            self.lines.push((figure, BTreeMap::new()));
            self.lines.len() - 1
        });
        let rounds = self.lines[at].1.entry(shape).or_default();
        let largest = rounds.get(&round).map_or(value, |known| value.max(*known));
        rounds.insert(round, largest);
    }

    /// Returns the tables as Markdown.
    pub(crate) fn tables(&self) -> String {
        let shapes: Vec<Shape> =
            [Shape::Baseline, Shape::Line, Shape::One, Shape::Five, Shape::Replicas]
                .into_iter()
                .filter(|shape| self.lines.iter().any(|(_, values)| values.contains_key(shape)))
                .collect();
        let tables = Section::ALL.map(|section| self.table(section, &shapes));
        tables.into_iter().flatten().collect::<Vec<_>>().join("\n")
    }

    fn table(&self, section: Section, shapes: &[Shape]) -> Option<String> {
        let lines = || self.lines.iter().filter(|(figure, _)| figure.section == section);
        lines().next()?;
        let mut table = format!("| {} |", section.title());
        for shape in shapes {
            let _ = write!(table, " {} |", shape.title());
        }
        table += " goal |\n|---|";
        table += &"---:|".repeat(shapes.len());
        table += "---|\n";
        for (figure, values) in lines() {
            let _ = write!(table, "| {} |", figure.name);
            for shape in shapes {
                let _ = write!(table, " {} |", cell(figure.unit, values, *shape));
            }
            let _ = writeln!(table, " {} |", figure.goal);
        }
        Some(table)
    }
}

/// Returns the median of a figure, its ratio to the baseline and the spread: of the ratio, if there
/// is one, which is taken within each round.
fn cell(unit: Unit, values: &BTreeMap<Shape, Rounds>, shape: Shape) -> String {
    let Some(rounds) = values.get(&shape) else { return "–".to_owned() };
    let all: Vec<f64> = rounds.values().copied().collect();
    let shown = format!("{}{}", number(median(&all)), unit.symbol());
    let baseline = values.get(&Shape::Baseline).filter(|_| shape != Shape::Baseline);
    let ratio = |(round, value): (&usize, &f64)| Some(value / baseline?.get(round)?);
    let ratios: Vec<f64> = rounds.iter().filter_map(ratio).collect();
    match (ratios.is_empty(), rounds.len()) {
        (true, 1) => shown,
        (true, _) => format!("{shown} ({})", spread(&all)),
        (false, 1) => format!("{shown} · **{:.2}**", median(&ratios)),
        (false, _) => format!("{shown} · **{:.2}** ({})", median(&ratios), spread(&ratios)),
    }
}

fn spread(values: &[f64]) -> String {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!("{}–{}", number(least), number(most))
}

/// Returns a percentile.
pub(crate) fn percentile(values: &[f64], percent: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(at).copied().unwrap_or(f64::NAN)
}

/// Returns the median, the mean of the middle two of an even number of values.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

/// Formats a number with three significant digits, and with separators from 1,000.
fn number(value: f64) -> String {
    if value < 10.0 {
        return format!("{value:.2}");
    }
    if value < 100.0 {
        return format!("{value:.1}");
    }
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_shows_medians_and_the_ratio_within_each_round() {
        let mut report = Report::default();
        for (round, (baseline, one)) in
            [(1000.0, 500.0), (2000.0, 1500.0), (900.0, 90.0)].into_iter().enumerate()
        {
            let figure =
                || Figure::new(Section::Throughput, "read", Unit::PerSecond).with_goal("1.0");
            report.add(figure(), Shape::Baseline, round, baseline);
            report.add(figure(), Shape::One, round, one);
        }
        let expected = "| Requests a second, 32 connections | baseline | one process | goal |\n\
                        |---|---:|---:|---|\n\
                        | read | 1,000/s (900–2,000) | 500/s · **0.50** (0.10–0.75) | 1.0 |\n";
        assert_eq!(report.tables(), expected);
    }

    #[test]
    fn numbers_have_three_significant_digits() {
        let numbers = [0.123, 9.994, 12.34, 123.4, 1234.5, 1_234_567.0].map(number);
        assert_eq!(numbers, ["0.12", "9.99", "12.3", "123", "1,234", "1,234,567"]);
    }
}
