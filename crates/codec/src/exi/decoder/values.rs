//! Values: read where they stand, or later from the channels of a block (EXI §7, §9).

use super::{Core, DatatypeId, Fault, Plan, Reader, Span, UNTYPED};
use crate::exi::{datatype, grammar::Coding, reading::Reading, text::is_plain};

impl Core {
    /// Reads the values of channel `at` of the block, from `next` on; `whole`: see [`Core::next`].
    pub(crate) fn channel(
        &mut self,
        at: usize,
        next: &mut usize,
        from: &mut Reader,
        whole: bool,
        queue_bytes: usize,
    ) -> Result<(), Fault> {
        let Some(plan) = &mut self.plan else { return Ok(()) };
        plan.values.resize(plan.datatypes.len(), Span::default());
        let channel = std::mem::take(&mut plan.channels[at]);
        let mut done = Ok(());
        while let Some(&value) = channel.values.get(*next) {
            done = self.channel_value(channel.name, value, from, whole);
            if done.is_ok() && next.is_multiple_of(64) {
                done = self.check_block(queue_bytes);
            }
            if done.is_err() {
                break;
            }
            *next += 1;
        }
        if let Some(plan) = &mut self.plan {
            plan.channels[at] = channel;
        }
        done
    }

    /// A value of the block, by its number.
    #[inline]
    pub(crate) fn block_value(&self, at: usize) -> Span {
        let values = self.plan.as_ref().map_or(&[][..], |plan| &plan.values);
        values.get(at).copied().unwrap_or_default()
    }

    /// Reads value `at` of a block, of the channel of `name`, to [`Plan::values`]; or says
    /// [`Fault::Short`], and nothing has changed.
    #[inline]
    fn channel_value(
        &mut self,
        name: u32,
        at: u32,
        from: &mut Reader,
        whole: bool,
    ) -> Result<(), Fault> {
        let at = at as usize;
        let datatype = self.plan.as_ref().map_or(UNTYPED, |plan| plan.datatypes[at]);
        let (mark, scratch, begin) = (self.tables.values.mark(), self.scratch.len(), *from);
        match self.value_now(name, datatype, from) {
            _ if from.over() => {}
            Err(Fault::Short) => {}
            Err(fault) => return Err(fault),
            Ok(()) => {
                if let Some(plan) = &mut self.plan {
                    plan.values[at] = self.value;
                }
                return Ok(());
            }
        }
        if !whole {
            self.tables.values.roll_back(mark);
            self.scratch.truncate(scratch);
            *from = begin;
        }
        Err(Fault::Short)
    }

    /// Memory that a block of channels has filled: tables, and what is held for its events.
    pub(crate) fn check_block(&self, queue_bytes: usize) -> Result<(), Fault> {
        let values = &self.tables.values;
        let block = self.plan.as_ref().map_or(0, Plan::bytes);
        if self.tables.bytes() > self.limits.table_bytes {
            return Err(Fault::Limit(&"table_bytes"));
        }
        let held = block + queue_bytes + self.scratch.len() + values.dead_bytes();
        if held > self.limits.message_bytes {
            return Err(Fault::Limit(&"message_bytes"));
        }
        Ok(())
    }

    /// Forgets a block whose values were handed out.
    pub(crate) fn end_block(&mut self) -> Result<(), Fault> {
        if let Some(plan) = &mut self.plan {
            plan.clear();
        }
        self.scratch.clear();
        self.tables.values.compact()?;
        self.check()
    }

    /// Reads a value, or leaves it to its channel.
    #[inline]
    pub(super) fn read_value(
        &mut self,
        name: u32,
        id: DatatypeId,
        from: &mut Reader,
    ) -> Result<(), Fault> {
        if self.plan.is_some() {
            self.value = Span::DEFERRED;
            return Ok(());
        }
        self.value_now(name, id, from)
    }

    #[inline]
    pub(super) fn defer(&mut self, name: u32, datatype: DatatypeId) {
        if let Some(plan) = &mut self.plan {
            plan.push(name, datatype);
        }
    }

    /// Reads a value.
    #[inline]
    fn value_now(&mut self, name: u32, id: DatatypeId, from: &mut Reader) -> Result<(), Fault> {
        let types = self.datatypes.as_ref().unwrap_or(&self.grammars.datatypes);
        let values = &mut self.tables.values;
        let coding = types.get(id as usize).map_or(&Coding::String, |datatype| &datatype.coding);
        match coding {
            Coding::String => {
                self.value = values.read(name, from, |count, from, to| from.chars(count, to))?;
            }
            Coding::Restricted(set) => {
                self.value = values.read(name, from, |count, from, to| {
                    datatype::read_restricted(set, count, from, to)
                })?;
            }
            coding => {
                let begin = self.scratch.len();
                let most = usize::try_from(self.limits.output_bytes).unwrap_or(usize::MAX);
                let reading = Reading { types, values, name, most };
                reading.read(coding, from, &mut self.scratch)?;
                let plain = match coding {
                    Coding::Enumeration { .. } | Coding::List(_) => {
                        is_plain(self.scratch.get(begin..).unwrap_or_default())
                    }
                    _ => true,
                };
                self.value = self.span(begin)?.plain(plain);
            }
        }
        Ok(())
    }
}
