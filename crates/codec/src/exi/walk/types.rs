//! Attributes that change the grammar of an element: `xsi:type` and `xsi:nil` (EXI §8.5.4.4).

use super::{Kind, Walk};
use crate::exi::{
    bits::{Fault, Writer},
    datatype,
    decoder::{XSI_NIL, XSI_TYPE},
    mapping,
};

impl Walk {
    /// `xsi:nil` where the grammar knows it, if its value is a boolean.
    pub(super) fn nil(&mut self, prefix: &str, text: &str) -> Result<bool, Fault> {
        let nil = match text.trim() {
            "true" | "1" => true,
            "false" | "0" => false,
            _ => return Ok(false),
        };
        let Some(path) = self.path(Kind::Nil, 0) else { return Ok(false) };
        self.code(&path);
        let name = self.names.initial(XSI_NIL);
        self.prefix(name, prefix);
        if self.options.preserve.lexical {
            self.values.write(name, text, &mut self.names, &mut self.to, |text, _, to| {
                datatype::write_restricted(&mapping::BOOLEAN, text, to);
            })?;
        } else {
            self.to.bits(u32::from(nil), 1);
        }
        self.rule = path.production.next;
        if let Some(found) = self.grammars.types.get(self.type_id as usize).filter(|_| nil) {
            self.rule = found.empty;
        }
        Ok(true)
    }

    /// `xsi:type`; `target` is what its value means in scope.
    pub(crate) fn type_attribute(
        &mut self,
        prefix: &str,
        target: u32,
        target_prefix: &str,
        text: &str,
    ) -> Result<(), Fault> {
        let name = self.names.initial(XSI_TYPE);
        self.touch(name);
        self.touch(target);
        self.at_start = false;
        if self.is_learned() {
            self.learned_type()?;
        } else {
            let path = self.path(Kind::Type, 0);
            let path = path.ok_or(Fault::Bad(&"the schema does not allow xsi:type here"))?;
            self.code(&path);
            self.rule = path.production.next;
        }
        self.prefix(name, prefix);
        if self.options.preserve.lexical {
            let chars = |text: &str, ascii, to: &mut Writer| to.chars(text, ascii);
            self.values.write(name, text, &mut self.names, &mut self.to, chars)?;
        } else {
            self.names.write_name(target, &mut self.to);
            self.prefix(target, target_prefix);
        }
        if self.options.preserve.lexical && !self.options.preserve.prefixes {
            // Who reads it cannot tell what the prefix stands for.
            return Ok(());
        }
        let named = self.names.qname(target);
        if let Some(&id) = named.and_then(|name| self.grammars.named_types.get(&name))
            && let Some(found) = self.grammars.types.get(id as usize)
        {
            (self.rule, self.type_id) = (found.first, id);
        }
        Ok(())
    }
}
