//! One HTML file that needs nothing else: no request, no script.

use record::demo::Demo;

use super::captions::{BYTES_CAPTION, CURVE_CAPTION, how, lateness_caption, times_caption};
use super::remarks::{conditions, remarks};
use super::rows::item_noun;
use super::summary::summary;
use super::tables::{cells, links, machine, overview, tail};
use super::{plot_bytes, plot_curve, plot_lateness, plot_times, urgent};
use crate::text::escaped;

const STYLE: &str = include_str!("style.css");

/// The report as a whole document. It is XML too.
///
/// # Errors
/// When the result cannot be written as JSON.
pub fn html(demo: &Demo) -> serde_json::Result<String> {
    let raw = serde_json::to_string(demo)?;
    let noun = item_noun(demo);
    let mut out = String::new();
    let mut put = |text: &str| out.push_str(text);
    put("<!DOCTYPE html>\n<html xmlns='http://www.w3.org/1999/xhtml' lang='en'>\n<head>\n");
    put("<meta charset='utf-8'/>\n<title>longwire demo</title>\n");
    put("<meta name='viewport' content='width=device-width, initial-scale=1'/>\n");
    put(&format!("<style>\n{STYLE}</style>\n</head>\n<body>\n"));
    put("<h1>The same web services over bad links, without and with longwire</h1>\n");
    put(&format!("<p class='lede'>{}</p>\n", escaped(&summary(demo))));
    for line in conditions(&demo.setting) {
        put(&format!("<p class='alarm'>{}</p>\n", escaped(&line)));
    }
    put(&remarks_list(demo));
    put(&overview(demo));
    put(&tail(demo));
    if let Some(curve) = &demo.curve {
        let name = escaped(&format!("{} over the link of {}", curve.service, curve.network));
        put(&format!("<h2>Time by loss: {name}</h2>\n<figure>{}", plot_curve::plot(demo, curve)));
        put(&format!("<figcaption>{CURVE_CAPTION}</figcaption></figure>\n"));
    }
    put(&urgent::section(demo));
    put(&format!("<h2>Time per {noun}</h2>\n<figure>{}", plot_times::plot(demo)));
    put(&format!("<figcaption>{}</figcaption></figure>\n", escaped(&times_caption(demo))));
    put(&format!("<h2>Bytes on the wire per {noun}</h2>\n<figure>{}", plot_bytes::plot(demo)));
    put(&format!("<figcaption>{BYTES_CAPTION}</figcaption></figure>\n"));
    put("<h2>How late the emulator was</h2>\n<figure>");
    put(&plot_lateness::plot(&demo.lateness));
    put(&format!("<figcaption>{}</figcaption></figure>\n", escaped(&lateness_caption(demo))));
    put(&format!("<h2>How it was measured</h2>\n<p>{}</p>\n", escaped(&how(demo))));
    put(&links(demo));
    put(&machine(&demo.setting));
    put(&cells(demo));
    put("<h2>Raw data</h2>\n<details><summary>Everything above as JSON, every fetch included");
    put(&format!("</summary>\n<pre>{}</pre></details>\n</body>\n</html>\n", escaped(&raw)));
    Ok(out)
}

fn remarks_list(demo: &Demo) -> String {
    let items = remarks(demo).into_iter();
    let items = items.map(|remark| format!("<li>{}</li>\n", escaped(&remark)));
    let items: String = items.collect();
    match items.as_str() {
        "" => String::new(),
        items => format!("<p class='alarm'>Not everything went well:</p>\n<ul>{items}</ul>\n"),
    }
}
