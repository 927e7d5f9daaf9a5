//! WBXML as a row of the table.

use super::whole::Whole;
use crate::codec::{Fidelity, Flow, Needs, Properties};
use crate::{Settings, media, wbxml};

pub(crate) static WBXML: Whole = Whole {
    properties: &Properties {
        name: "wbxml",
        number: 6,
        fidelity: Fidelity::Infoset,
        flow: Flow::Whole,
        needs: Needs::TokenTableOptional,
        levels: None,
        media: media::XML,
        form: "WBXML 1.3 (WAP-192); the standard drops comments",
    },
    check: |_| Ok(()),
    encode: |message, settings| wbxml::encode(message, &tokens(settings), &settings.limits),
    decode: |coded, settings| wbxml::decode(coded, &tokens(settings), &settings.limits),
};

fn tokens(settings: &Settings) -> wbxml::Settings<'_> {
    wbxml::Settings { table: settings.token_table.as_deref(), ..wbxml::Settings::default() }
}
