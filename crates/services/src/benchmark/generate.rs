//! Answers by chance: tables with the row counts of TPC-H's answers at scale 1 and columns of the
//! same kinds, so that they are about as long and shrink about as much. What they say means
//! nothing.

use std::fmt::Write as _;

use super::{Form, RUN_QUERY};
use crate::random::Random;

/// What stands in a column.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// A number up to this.
    Number(u32),
    /// An amount up to this, with cents.
    Amount(f64),
    Ratio,
    Year,
    Day,
    /// One letter.
    Flag,
    /// A kind of thing and its number.
    Name(&'static str),
    Nation,
    Phone,
    Address,
    Remark,
    Brand,
    Priority,
}
use Kind::{
    Address, Amount, Brand, Day, Flag, Name, Nation, Number, Phone, Priority, Ratio, Remark, Year,
};

/// Rows and columns of a query's answer.
type Shape = (usize, &'static [(&'static str, Kind)]);

// flat table: the shapes of the 22 answers.
const SHAPES: [Shape; super::QUERY_COUNT] = [
    (
        4,
        &[
            ("returned", Flag),
            ("status", Flag),
            ("quantity", Amount(4e7)),
            ("price", Amount(6e10)),
            ("discounted", Amount(5e10)),
            ("charge", Amount(5e10)),
            ("mean_quantity", Amount(26.0)),
            ("mean_price", Amount(4e4)),
            ("mean_discount", Ratio),
            ("orders", Number(3_000_000)),
        ],
    ),
    (
        460,
        &[
            ("balance", Amount(1e4)),
            ("supplier", Name("Supplier")),
            ("nation", Nation),
            ("part", Number(200_000)),
            ("maker", Name("Manufacturer")),
            ("address", Address),
            ("phone", Phone),
            ("remark", Remark),
        ],
    ),
    (
        11_620,
        &[
            ("order", Number(6_000_000)),
            ("revenue", Amount(4e5)),
            ("ordered", Day),
            ("urgency", Number(1)),
        ],
    ),
    (5, &[("priority", Priority), ("orders", Number(12_000))]),
    (5, &[("nation", Nation), ("revenue", Amount(6e7))]),
    (1, &[("revenue", Amount(2e8))]),
    (4, &[("supplier", Nation), ("customer", Nation), ("year", Year), ("revenue", Amount(6e7))]),
    (2, &[("year", Year), ("share", Ratio)]),
    (175, &[("nation", Nation), ("year", Year), ("profit", Amount(6e7))]),
    (
        37_967,
        &[
            ("customer", Number(150_000)),
            ("name", Name("Customer")),
            ("revenue", Amount(8e5)),
            ("balance", Amount(1e4)),
            ("nation", Nation),
            ("address", Address),
            ("phone", Phone),
            ("remark", Remark),
        ],
    ),
    (1_048, &[("part", Number(200_000)), ("value", Amount(2e7))]),
    (2, &[("mode", Priority), ("urgent", Number(7_000)), ("others", Number(10_000))]),
    (42, &[("orders", Number(42)), ("customers", Number(50_000))]),
    (1, &[("share", Ratio)]),
    (
        1,
        &[
            ("supplier", Number(10_000)),
            ("name", Name("Supplier")),
            ("address", Address),
            ("phone", Phone),
            ("revenue", Amount(2e6)),
        ],
    ),
    (18_314, &[("brand", Brand), ("kind", Priority), ("size", Number(50)), ("count", Number(30))]),
    (1, &[("yearly", Amount(4e5))]),
    (
        57,
        &[
            ("name", Name("Customer")),
            ("customer", Number(150_000)),
            ("order", Number(6_000_000)),
            ("ordered", Day),
            ("price", Amount(6e5)),
            ("quantity", Amount(350.0)),
        ],
    ),
    (1, &[("revenue", Amount(4e6))]),
    (186, &[("name", Name("Supplier")), ("address", Address)]),
    (411, &[("name", Name("Supplier")), ("waits", Number(20))]),
    (7, &[("code", Number(34)), ("customers", Number(900)), ("balance", Amount(7e6))]),
];

const NATIONS: [&str; 12] = [
    "ALBANIA", "BRAZIL", "CHILE", "DENMARK", "ESTONIA", "FRANCE", "GHANA", "HUNGARY", "INDIA",
    "JAPAN", "KENYA", "LATVIA",
];
const PRIORITIES: [&str; 5] = ["1-AT ONCE", "2-SOON", "3-USUAL", "4-LATER", "5-WHENEVER"];
const WORDS: [&str; 24] = [
    "after", "among", "boxes", "careful", "deliver", "even", "final", "goods", "hold", "idle",
    "just", "keep", "late", "message", "near", "orders", "packages", "quick", "regular", "slow",
    "toward", "under", "waits", "with",
];
const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// The answer of query `number`; an empty table for a number that is none.
pub(super) fn generate(seed: u64, form: Form, number: usize) -> String {
    let (rows, columns): Shape =
        number.checked_sub(1).and_then(|at| SHAPES.get(at)).copied().unwrap_or((0, &[]));
    // The same values in each form.
    let mut random = Random::new(seed, number as u64);
    let mut out = String::new();
    open(form, number, &mut out);
    for _ in 0..rows {
        out.push_str(match form {
            Form::Compact => "<row>",
            Form::Pretty => "<row>\n",
            Form::Soap => "   <row>\n",
        });
        for (name, kind) in columns {
            let value = value(*kind, &mut random);
            // Writing to a string cannot fail.
            let _ = match form {
                Form::Compact => write!(out, "<{name}>{value}</{name}>"),
                Form::Pretty => writeln!(out, "  <{name}>{value}</{name}>"),
                Form::Soap => {
                    let of = schema_type(*kind);
                    writeln!(out, "    <{name} xsi:type=\"xsd:{of}\">{value}</{name}>")
                }
            };
        }
        out.push_str(match form {
            Form::Compact => "</row>",
            Form::Pretty => "</row>\n\n",
            Form::Soap => "   </row>\n",
        });
    }
    close(form, number, &mut out);
    out
}

fn open(form: Form, number: usize, out: &mut String) {
    const DECLARATION: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>";
    const SCHEMA: &str = "http://www.w3.org/2001/XMLSchema";
    let namespace = RUN_QUERY.namespace;
    // Writing to a string cannot fail.
    let _ = match form {
        Form::Compact => write!(out, "{DECLARATION}<result query=\"{number}\">"),
        Form::Pretty => write!(out, "<table xmlns:xsi=\"{SCHEMA}-instance\">\n\n"),
        Form::Soap => write!(
            out,
            "{DECLARATION}\n<soapenv:Envelope \
             xmlns:soapenv=\"http://schemas.xmlsoap.org/soap/envelope/\" xmlns:xsd=\"{SCHEMA}\" \
             xmlns:xsi=\"{SCHEMA}-instance\">\n <soapenv:Body>\n  <q{number}Response \
             xmlns=\"{namespace}\">\n"
        ),
    };
}

fn close(form: Form, number: usize, out: &mut String) {
    let end = match form {
        Form::Compact => "</result>".to_owned(),
        Form::Pretty => "</table>\n".to_owned(),
        Form::Soap => {
            format!("  </q{number}Response>\n </soapenv:Body>\n</soapenv:Envelope>\n")
        }
    };
    out.push_str(&end);
}

/// The type of XML Schema that a value has.
fn schema_type(kind: Kind) -> &'static str {
    match kind {
        Number(_) | Year => "int",
        Amount(_) => "decimal",
        Ratio => "double",
        Day => "date",
        Flag | Name(_) | Nation | Phone | Address | Remark | Brand | Priority => "string",
    }
}

fn value(kind: Kind, random: &mut Random) -> String {
    match kind {
        Number(most) => random.below(most.saturating_add(1)).to_string(),
        Amount(most) => format!("{:.2}", random.between(0.0, most)),
        Ratio => format!("{}", random.between(0.0, 0.2)),
        Year => (1992 + random.below(7)).to_string(),
        Day => {
            let (year, month) = (1992 + random.below(7), 1 + random.below(12));
            format!("{year}-{month:02}-{:02}", 1 + random.below(28))
        }
        Flag => random.pick(&["A", "N", "R"]).unwrap_or_default().to_owned(),
        Name(of) => format!("{of}#{:09}", random.below(150_000)),
        Nation => random.pick(&NATIONS).unwrap_or_default().to_owned(),
        Phone => {
            let [area, first, second] = [100, 900, 900].map(|bound| 100 + random.below(bound));
            format!("{}-{area}-{first}-{second}7", 10 + random.below(25))
        }
        Address => letters(10, 40, random),
        Remark => words(4, 18, random),
        Brand => format!("Brand#{}{}", 1 + random.below(5), 1 + random.below(5)),
        Priority => random.pick(&PRIORITIES).unwrap_or_default().to_owned(),
    }
}

fn letters(least: u32, most: u32, random: &mut Random) -> String {
    let count = least + random.below(most - least + 1);
    (0..count).map(|_| char::from(random.pick(LETTERS).unwrap_or_default())).collect()
}

fn words(least: u32, most: u32, random: &mut Random) -> String {
    let count = least + random.below(most - least + 1);
    let words: Vec<&str> = (0..count).filter_map(|_| random.pick(&WORDS)).collect();
    words.join(" ")
}
