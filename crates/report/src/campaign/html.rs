//! One HTML file that needs nothing else: no request, no script.

use record::campaign::Campaign;

use super::cells::link_to;
use super::summary::{conditions, losses, remarks, summary};
use super::view::View;
use super::{advice, carriers, cells, figures, flights, gains, networks, references, setting};
use crate::analysis::Analysis;
use crate::text::escaped;

const SHARED_STYLE: &str = include_str!("../demo/style.css");
const STYLE: &str = include_str!("style.css");

/// Chapters: anchor and name.
const CHAPTERS: [(&str, &str); 10] = [
    ("study", "Policies"),
    ("carriers", "Carriers"),
    ("gains", "Direct and longwire"),
    ("advice", "Recommendations"),
    ("figures", "Figures"),
    ("references", "The paper's cells"),
    ("networks", "Networks"),
    ("flights", "Time of flight"),
    ("setting", "How it was measured"),
    ("cells", "Cells"),
];

/// The report of a campaign as a whole document. It is XML too.
#[must_use]
pub fn html(campaign: &Campaign, analysis: &Analysis) -> String {
    let view = View::new(campaign, analysis);
    let title = match campaign.setting.title.as_str() {
        "" => "A campaign of longwire's laboratory".to_string(),
        title => escaped(title),
    };
    let mut out = String::new();
    let mut put = |text: &str| out.push_str(text);
    put("<!DOCTYPE html>\n<html xmlns='http://www.w3.org/1999/xhtml' lang='en'>\n<head>\n");
    put(&format!("<meta charset='utf-8'/>\n<title>{title}</title>\n"));
    put("<meta name='viewport' content='width=device-width, initial-scale=1'/>\n");
    put(&format!("<style>\n{SHARED_STYLE}{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"));
    if !campaign.setting.about.is_empty() {
        put(&format!("<p>{}</p>\n", escaped(&campaign.setting.about)));
    }
    put(&format!("<p class='lede'>{}</p>\n", escaped(&summary(&view).join(" "))));
    for line in conditions(&campaign.setting) {
        put(&format!("<p class='alarm'>{}</p>\n", escaped(&line)));
    }
    put(&wrong(&view));
    let parts = [
        crate::study::chapter(campaign),
        carriers::carriers(&view),
        gains::gains(&view),
        advice::recommendations(analysis),
        figures::figures(&view),
        references::references(&view),
        networks::networks(&view),
        flights::flights(&view),
        setting::setting(campaign),
        cells::cells(&view),
    ];
    put(&navigation(&parts));
    for part in &parts {
        put(part);
    }
    put("</body>\n</html>\n");
    out
}

/// Links to the chapters that there are.
fn navigation(parts: &[String]) -> String {
    let there = CHAPTERS.iter().zip(parts).filter(|(_, part)| !part.is_empty());
    let links =
        there.map(|((anchor, name), _)| format!("<a href='#{anchor}'>{}</a>", escaped(name)));
    format!("<nav>{}</nav>\n", links.collect::<String>())
}

/// What was flagged, failed or cut off.
fn wrong(view: &View<'_>) -> String {
    let (remarks, more) = remarks(view);
    let losses = escaped(&losses(view.analysis));
    if remarks.is_empty() {
        return format!("<p class='note'>{losses}</p>\n");
    }
    let items = remarks.iter().map(|(index, text)| {
        let name = link_to(*index, &view.cell(*index).name);
        format!("<li>{name}: {}</li>\n", escaped(text))
    });
    let mut items: String = items.collect();
    if more > 0 {
        items += &format!("<li>and {more} more cells: see the tables of their networks</li>\n");
    }
    format!("<details><summary>{losses}</summary>\n<ul class='note'>{items}</ul></details>\n")
}
