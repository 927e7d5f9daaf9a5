//! Values, to the stream at once or to their channels.

use super::{NOT_ALLOWED, Walk};
use crate::exi::{
    Alignment,
    bits::{Fault, Writer},
    channels, datatype,
    grammar::{Coding, DatatypeId},
    lexical::{self, Typed},
};

impl Walk {
    /// A value, to the stream or to its channel.
    #[inline(always)]
    pub(super) fn value(
        &mut self,
        name: u32,
        datatype: DatatypeId,
        text: &str,
        value: Typed<'_>,
    ) -> Result<(), Fault> {
        if self.block.is_some() {
            return self.keep(name, datatype, text);
        }
        match value {
            Typed::Text(text) => self.write_text(name, datatype, text),
            Typed::List(..) => self.write(name, datatype, value),
            _ => {
                datatype::write(&value, &mut self.to);
                Ok(())
            }
        }
    }

    /// A value for its channel.
    fn keep(&mut self, name: u32, datatype: DatatypeId, text: &str) -> Result<(), Fault> {
        if let Some(block) = &mut self.block {
            block.plan.push(name, datatype);
            block.text.push_str(text);
            block.ends.push(block.text.len());
            if block.plan.is_full() {
                self.end_block()?;
            }
        }
        self.check()
    }

    fn write_text(&mut self, name: u32, id: DatatypeId, text: &str) -> Result<(), Fault> {
        let types = self.datatypes.as_ref().unwrap_or(&self.grammars.datatypes);
        let coding = types.get(id as usize).map(|datatype| &datatype.coding);
        let chars = |text: &str, ascii, to: &mut Writer| match coding {
            Some(Coding::Restricted(set)) => datatype::write_restricted(set, text, to),
            _ => to.chars(text, ascii),
        };
        let more = self.values.write(name, text, &mut self.names, &mut self.to, chars)?;
        if more { self.check() } else { Ok(()) }
    }

    fn write(&mut self, name: u32, id: DatatypeId, value: Typed<'_>) -> Result<(), Fault> {
        match value {
            Typed::Text(text) => self.write_text(name, id, text),
            Typed::List(text, item) => {
                self.to.unsigned(lexical::items(text).count() as u64);
                for one in lexical::items(text) {
                    let types = self.datatypes.as_ref().unwrap_or(&self.grammars.datatypes);
                    let value = lexical::value(types, item, one, self.form);
                    let value = value.ok_or(NOT_ALLOWED)?;
                    self.write(name, item, value)?;
                }
                Ok(())
            }
            other => {
                datatype::write(&other, &mut self.to);
                Ok(())
            }
        }
    }

    /// Writes a block (EXI §9): the structure is in `to`, the values follow by channel.
    pub(super) fn end_block(&mut self) -> Result<(), Fault> {
        let Some(mut block) = self.block.take() else { return Ok(()) };
        let compress = self.options.alignment == Alignment::Compression;
        let (order, few) = block.plan.order();
        let single = block.plan.datatypes.len() <= channels::SMALL;
        for (at, &channel) in order.iter().enumerate() {
            if compress && !single && (at == 0 || at >= few) {
                self.part()?;
            }
            let channel = &block.plan.channels[channel];
            for &value in &channel.values {
                let value = value as usize;
                let begin = value.checked_sub(1).map_or(0, |before| block.ends[before]);
                let text = &block.text[begin..block.ends[value]];
                let datatype = block.plan.datatypes[value];
                let types = self.datatypes.as_ref().unwrap_or(&self.grammars.datatypes);
                let typed = lexical::value(types, datatype, text, self.form);
                let typed = typed.unwrap_or(Typed::Text(text));
                self.write(channel.name, datatype, typed)?;
            }
        }
        if compress {
            self.part()?;
        } else {
            self.done.append(&mut self.to.out);
        }
        block.plan.clear();
        block.text.clear();
        block.ends.clear();
        self.block = Some(block);
        Ok(())
    }

    /// Deflates what was written since the last part.
    fn part(&mut self) -> Result<(), Fault> {
        channels::deflate(&self.to.out, &mut self.done)?;
        self.to.out.clear();
        Ok(())
    }
}
