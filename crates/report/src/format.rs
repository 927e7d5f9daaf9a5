//! Figures as people read them.

use record::demo::Time;

use crate::bound::LinkFigures;

/// Seconds with about three digits, without the unit.
pub(crate) fn seconds(seconds: f64) -> String {
    let decimals = match seconds {
        s if s < 0.9995 => 3,
        s if s < 9.995 => 2,
        s if s < 99.95 => 1,
        _ => 0,
    };
    format!("{seconds:.decimals$}")
}

/// A time without the unit: `2.83`, `> 41.0` for one that was cut off, `unknown` for one that never
/// began, `failed`.
pub(crate) fn time(time: Time) -> String {
    match time {
        Time::Seconds(exact) => seconds(exact),
        Time::MoreThan(0.0) => "unknown".to_string(),
        Time::MoreThan(least) => format!("> {}", seconds(least)),
        Time::Never => "failed".to_string(),
    }
}

/// Bytes in thousands with one decimal: `41.2 KB`.
pub(crate) fn kilobytes(bytes: f64) -> String {
    format!("{:.1} KB", bytes / 1000.0)
}

/// A factor with two or three digits.
pub(crate) fn factor(factor: f64) -> String {
    let decimals = match factor {
        f if f < 0.995 => 2,
        f if f < 99.5 => 1,
        _ => 0,
    };
    format!("{factor:.decimals$}")
}

/// A ratio near one, with three decimals where two would hide what is told: `0.98`, `1.004`.
pub(crate) fn ratio(ratio: f64) -> String {
    let [text] = ratios([ratio]);
    text
}

/// Ratios that belong together, all with as many decimals as one of them needs.
pub(crate) fn ratios<const COUNT: usize>(ratios: [f64; COUNT]) -> [String; COUNT] {
    let decimals = |ratio: f64| match (ratio - 1.0).abs() {
        _ if ratio >= 99.5 => 0,
        off if off < 0.0095 => 3,
        _ => 2,
    };
    let decimals = ratios.into_iter().map(decimals).max().unwrap_or(2);
    ratios.map(|ratio| format!("{ratio:.decimals$}"))
}

/// A service as people call it.
pub(crate) fn service_name(name: &str) -> &str {
    match name {
        "soap" => "SOAP",
        "rest-xml" => "REST XML",
        "rest-json" => "REST JSON",
        "url" => "URL",
        other => other,
    }
}

/// What a link is like, in words.
pub(crate) fn link(LinkFigures { rate_bps, delay_s, loss }: LinkFigures) -> String {
    let rate = rate_bps.map_or("no limit of rate".to_string(), link::units::format_rate);
    let delay_ms = (delay_s * 1e6).round() / 1e3;
    let loss = match loss {
        0.0 => "no loss".to_string(),
        loss => format!("{} loss", link::units::format_share(loss)),
    };
    format!("{rate}, {delay_ms} ms each way, {loss}")
}

/// A probability: `0.031`, `< 0.001`.
pub(crate) fn probability(p: f64) -> String {
    if p < 0.001 { "< 0.001".to_string() } else { format!("{p:.3}") }
}

/// `1 run`, `2 runs`.
pub(crate) fn count(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// A share of 0 to 1 in per cent.
pub(crate) fn per_cent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_about_three_digits() {
        let shown = [0.0123, 0.0996, 1.234, 9.996, 41.04, 123.4].map(seconds);
        assert_eq!(shown, ["0.012", "0.100", "1.23", "10.0", "41.0", "123"]);
        assert_eq!([0.5, 0.996, 2.04, 123.4].map(factor), ["0.50", "1.0", "2.0", "123"]);
        let times = [Time::MoreThan(41.04), Time::MoreThan(0.0), Time::Never, Time::Seconds(2.0)];
        assert_eq!(times.map(time), ["> 41.0", "unknown", "failed", "2.00"]);
        assert_eq!(
            [0.5, 0.996, 1.0041, 1.02, 123.4].map(ratio),
            ["0.50", "0.996", "1.004", "1.02", "123"]
        );
        assert_eq!(ratios([1.004, 1.02]), ["1.004", "1.020"]);
        assert_eq!([0.0004, 0.0312, 1.0].map(probability), ["< 0.001", "0.031", "1.000"]);
        assert_eq!([count(1, "run"), count(2, "run")], ["1 run", "2 runs"]);
        assert_eq!(kilobytes(41_249.0), "41.2 KB");
    }
}
