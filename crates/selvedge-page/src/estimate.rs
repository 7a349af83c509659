//! Estimates in words.

use selvedge_core::trust::Estimate;

/// The part of a search that is done.
pub fn done(part: f64) -> String {
    format!("about {:.1}% is done", 100.0 * part)
}

/// The number of executions, with `left` as the time that is left.
pub fn estimated(estimate: &Estimate, left: &str) -> String {
    let Estimate {
        executions,
        low,
        high,
        ..
    } = *estimate;
    let (executions, low, high) = (grouped(executions), grouped(low), grouped(high));
    format!("{executions} (95% confidence: {low} to {high}), about {left} left")
}

/// A number with a comma before every three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
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
    fn large_numbers_have_commas() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_000), "1,000");
        assert_eq!(grouped(12_345_678), "12,345,678");
    }
}
