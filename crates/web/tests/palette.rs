//! Any two colours of the charts stay apart in the four kinds of vision, and from the ground.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

type Colour = [f64; 3];
type Matrix = [[f64; 3]; 3];

/// Least difference of two series, as CIE76 has it: 2.3 is just noticeable.
const MIN_DIFFERENCE: f64 = 25.0;
/// Least contrast with the ground (WCAG 2.2 §1.4.11).
const MIN_CONTRAST: f64 = 3.0;

/// Vision without one kind of cone, on linear values (Machado, Oliveira and Fernandes 2009, at full
/// strength).
const VISIONS: [(&str, Matrix); 4] = [
    ("usual", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
    (
        "protan",
        [
            [0.152_286, 1.052_583, -0.204_868],
            [0.114_503, 0.786_281, 0.099_216],
            [-0.003_882, -0.048_116, 1.051_998],
        ],
    ),
    (
        "deutan",
        [
            [0.367_322, 0.860_646, -0.227_968],
            [0.280_085, 0.672_501, 0.047_413],
            [-0.011_820, 0.042_940, 0.968_881],
        ],
    ),
    (
        "tritan",
        [
            [1.255_528, -0.076_749, -0.178_779],
            [-0.078_411, 0.930_809, 0.147_602],
            [0.004_733, 0.691_367, 0.303_900],
        ],
    ),
];

/// The six colours of a scheme and its ground.
fn scheme(style: &str) -> (Vec<Colour>, Colour) {
    let value = |name: &str| {
        let at = style.find(name).unwrap_or_else(|| panic!("no {name}"));
        let rest = &style[at + name.len()..];
        linear(&rest[rest.find('#').unwrap() + 1..][..6])
    };
    ((0..6).map(|place| value(&format!("--s{place}"))).collect(), value("--ground"))
}

/// Linear values of a colour in hexadecimal (IEC 61966-2-1).
fn linear(text: &str) -> Colour {
    [0, 2, 4].map(|at| {
        let value = f64::from(u8::from_str_radix(&text[at..at + 2], 16).unwrap()) / 255.0;
        if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    })
}

fn seen(colour: Colour, matrix: &Matrix) -> Colour {
    matrix.map(|row| {
        row.iter().zip(colour).map(|(share, value)| share * value).sum::<f64>().clamp(0.0, 1.0)
    })
}

/// CIE L*a*b* for the white point D65.
fn lab(colour: Colour) -> Colour {
    const XYZ: Matrix = [
        [0.412_456_4, 0.357_576_1, 0.180_437_5],
        [0.212_672_9, 0.715_152_2, 0.072_175_0],
        [0.019_333_9, 0.119_192_0, 0.950_304_1],
    ];
    const WHITE: Colour = [0.950_47, 1.0, 1.088_83];
    let root = |value: f64| {
        if value > 0.008_856 { value.cbrt() } else { 7.787 * value + 16.0 / 116.0 }
    };
    let sum =
        |row: &[f64; 3]| row.iter().zip(colour).map(|(share, value)| share * value).sum::<f64>();
    let [x, y, z] = [0, 1, 2].map(|place| root(sum(&XYZ[place]) / WHITE[place]));
    [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
}

fn difference(one: Colour, other: Colour) -> f64 {
    lab(one).iter().zip(lab(other)).map(|(one, other)| (one - other).powi(2)).sum::<f64>().sqrt()
}

fn contrast(one: Colour, other: Colour) -> f64 {
    let light = |[red, green, blue]: Colour| 0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05;
    let (one, other) = (light(one), light(other));
    one.max(other) / one.min(other)
}

#[test]
fn series_differ_for_everybody_in_both_schemes() {
    let style = include_str!("../assets/style.css");
    let (light, dark) = style.split_once("prefers-color-scheme: dark").unwrap();
    for (name, part) in [("light", light), ("dark", dark)] {
        let (colours, ground) = scheme(part);
        for (vision, matrix) in &VISIONS {
            for (place, one) in colours.iter().enumerate() {
                for (number, other) in colours.iter().enumerate().take(place) {
                    let apart = difference(seen(*one, matrix), seen(*other, matrix));
                    assert!(apart >= MIN_DIFFERENCE, "{name}, {vision}: {number} {place} {apart}");
                }
            }
        }
        for (place, colour) in colours.iter().enumerate() {
            let found = contrast(*colour, ground);
            assert!(found >= MIN_CONTRAST, "{name}: {place} {found}");
        }
    }
}

#[test]
fn two_colours_that_fall_together_are_found() {
    let deutan = &VISIONS[2].1;
    let (red, green) = (linear("ff7b9c"), linear("2fc99b"));
    assert!(difference(red, green) > 50.0);
    assert!(difference(seen(red, deutan), seen(green, deutan)) < 10.0);
}
