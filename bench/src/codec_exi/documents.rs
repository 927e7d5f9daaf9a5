//! What is coded: documents of our own making, and those of others where they are.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// A document with its schema, as files that both sides read.
#[derive(Clone, Debug)]
pub(super) struct Document {
    /// For the table.
    pub(super) name: String,
    /// UTF-8.
    pub(super) xml: PathBuf,
    /// The schema, and whether the document is strictly what it says.
    pub(super) schema: Option<(PathBuf, bool)>,
}

/// Name, document, schema and whether strictly; below the folder of data. `rows.xsd` is ours.
type Other = (&'static str, &'static str, Option<(&'static str, bool)>);

const OTHERS: [Other; 7] = [
    ("TPC-H Q2, compact", "tpch/out/q02.compact.xml", Some(("rows.xsd", true))),
    (
        "TPC-H Q2, SOAP",
        "tpch/out/q02.soap.xml",
        Some(("soap/jtlm_soap/schemas/soap_1_1.xsd", true)),
    ),
    (
        "NLM catalogue",
        "exi/openexi_nagasena/NLM/catplussamp2006.xml",
        Some(("exi/openexi_nagasena/NLM/nlmcatalogrecord_060101.xsd", true)),
    ),
    (
        "JTLM targets, SOAP",
        "soap/jtlm_soap/publish100.xml",
        Some(("soap/jtlm_soap/schemas/TLMComposite.xsd", false)),
    ),
    ("C-CDA", "soap/cda/Agastha__195414.xml", None),
    ("OGC WaterML", "soap/ogc_owslib/cuahsi_example_get_values.xml", None),
    ("CoT marker", "friendly_force/cot_atak_civ/examples/Marker - 2525.cot", None),
];

/// Rows of a made document.
const ROWS: usize = 16_000;

/// The documents that there are, with those of ours written to `folder`.
///
/// # Errors
/// When the folder cannot be written.
pub(super) fn documents(folder: &Path, data: &Path) -> Result<Vec<Document>> {
    let write = |name: &str, text: &str| -> Result<PathBuf> {
        let path = folder.join(name);
        fs::write(&path, text).with_context(|| path.display().to_string())?;
        Ok(path)
    };
    let schema = write("rows.xsd", SCHEMA)?;
    let mut documents = vec![Document {
        name: "made rows".to_string(),
        xml: write("rows.xml", &rows())?,
        schema: Some((schema.clone(), true)),
    }];
    for (name, xml, with) in OTHERS {
        let xml = data.join(xml);
        if xml.exists() {
            let with = with.map(|(path, strict)| match path {
                "rows.xsd" => (schema.clone(), strict),
                path => (data.join(path), strict),
            });
            documents.push(Document { name: name.to_string(), xml, schema: with });
        }
    }
    Ok(documents)
}

/// Rows as the results of a query are: numbers, prices, names and words.
fn rows() -> String {
    let words = ["furiously", "quick", "deposits", "sleep", "above", "the", "ironic", "packages"];
    let mut seed = 0x2545_f491_u64;
    let mut random = move |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) % below
    };
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?><result query=\"2\">");
    for _ in 0..ROWS {
        let mut comment = String::new();
        for word in 0..=random(6) {
            let space = if word > 0 { " " } else { "" };
            comment += space;
            comment += words[usize::try_from(random(8)).unwrap_or_default()];
        }
        // Writing to a string cannot fail.
        let _ = write!(
            xml,
            "<row><s_acctbal>{}.{:02}</s_acctbal><s_name>Supplier#{:09}</s_name>\
             <n_name>NATION {}</n_name><p_partkey>{}</p_partkey><p_mfgr>Manufacturer#{}</p_mfgr>\
             <s_comment>{comment}</s_comment></row>",
            random(10_000),
            random(100),
            random(10_000),
            random(25),
            random(200_000),
            1 + random(5),
        );
    }
    xml + "</result>"
}

/// Of our rows, and of the query's results that they are like.
const SCHEMA: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">
  <xs:element name="result">
    <xs:complexType>
      <xs:sequence>
        <xs:element name="row" minOccurs="0" maxOccurs="unbounded">
          <xs:complexType>
            <xs:sequence>
              <xs:element name="s_acctbal" type="xs:decimal"/>
              <xs:element name="s_name" type="xs:string"/>
              <xs:element name="n_name" type="xs:string"/>
              <xs:element name="p_partkey" type="xs:int"/>
              <xs:element name="p_mfgr" type="xs:string"/>
              <xs:element name="s_address" type="xs:string" minOccurs="0"/>
              <xs:element name="s_phone" type="xs:string" minOccurs="0"/>
              <xs:element name="s_comment" type="xs:string"/>
            </xs:sequence>
          </xs:complexType>
        </xs:element>
      </xs:sequence>
      <xs:attribute name="query" type="xs:int"/>
    </xs:complexType>
  </xs:element>
</xs:schema>
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_rows_are_the_same_each_time_and_large() {
        let text = rows();
        assert!(text.len() > 2_000_000 && text == rows());
        assert_eq!(text.matches("<row>").count(), ROWS);
    }
}
