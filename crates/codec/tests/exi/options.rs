//! Options of a stream as words, the same that `interop/exificient` takes.

use longwire_codec::exi::{Alignment, Options};

use crate::infoset::{Rules, Values};

/// The options that words say, with commas between them; a word is a name or `name=number`.
pub(crate) fn options(words: &str) -> Options {
    let mut options = Options::default();
    for word in words.split(',').filter(|word| !word.is_empty() && *word != "-") {
        let (name, value) = word.split_once('=').unwrap_or((word, "0"));
        let number: u32 = value.parse().unwrap_or_default();
        match name {
            "bit-packed" => options.alignment = Alignment::BitPacked,
            "byte-packed" => options.alignment = Alignment::BytePacked,
            "pre-compression" => options.alignment = Alignment::PreCompression,
            "compression" => options.alignment = Alignment::Compression,
            "strict" => options.strict = true,
            "fragment" => options.fragment = true,
            "comments" => options.preserve.comments = true,
            "pis" => options.preserve.pis = true,
            "dtd" => options.preserve.dtd = true,
            "prefixes" => options.preserve.prefixes = true,
            "lexical" => options.preserve.lexical = true,
            "self-contained" => options.self_contained = true,
            "alone" => options.self_contained_elements.push(expanded(value)),
            "utc-time" => options.utc_time = true,
            // The header has them in any case.
            "profile-values" => {}
            "string-for" => {
                let string = expanded("{http://www.w3.org/2009/exi}string");
                options.datatype_map.push((expanded(value), string));
            }
            "cookie" => options.cookie = true,
            "options" => options.options_in_header = true,
            "canonical" => options.canonical = true,
            "block-size" => options.block_size = number,
            "value-max-length" => options.value_max_length = Some(number),
            "value-partition-capacity" => options.value_partition_capacity = Some(number),
            "no-local-value-partitions" => options.profile.local_value_partitions = false,
            "built-in-grammars-max" => options.profile.built_in_grammars_max = Some(number),
            "built-in-productions-max" => options.profile.built_in_productions_max = Some(number),
            _ => panic!("no such option: {word}"),
        }
    }
    options
}

/// `{NAMESPACE}NAME` or `NAME`.
fn expanded(text: &str) -> [String; 2] {
    let parts = text.strip_prefix('{').and_then(|rest| rest.split_once('}'));
    let (uri, local) = parts.unwrap_or(("", text));
    [uri.to_string(), local.to_string()]
}

/// What a stream with these options keeps of its document.
pub(crate) fn kept(options: &Options, has_schema: bool) -> Rules {
    let typed = has_schema && !options.preserve.lexical;
    Rules {
        prefixes: options.preserve.prefixes,
        comments: options.preserve.comments,
        pis: options.preserve.pis,
        // A prefix that is kept in a value only stands for nothing (EXI §7, Table 7-2).
        resolved_types: !options.preserve.lexical || options.preserve.prefixes,
        values: if typed { Values::Canonical } else { Values::Exact },
        ..Rules::ELEMENTS
    }
}
