//! Messages with what each encoding makes of them, from a table that was measured.

use std::fmt::Write;

/// A message in one encoding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coded {
    /// Encoded bytes.
    pub bytes: f64,
    /// Processor seconds to encode, on the processor that measured.
    pub encode_s: f64,
    /// Processor seconds to decode.
    pub decode_s: f64,
}

/// A message.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Its name in the table.
    pub name: String,
    /// Bytes.
    pub bytes: f64,
    /// What a fast coder leaves of its head.
    pub head_share: f64,
    /// By arm, in the order of [`Workload::arms`]; the first is the message itself.
    pub coded: Vec<Coded>,
}

/// Messages and arms.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Workload {
    /// Names of the encodings; the first leaves bytes alone.
    pub arms: Vec<String>,
    /// Messages.
    pub messages: Vec<Message>,
}

impl Workload {
    /// Reads a table: lines of `message bytes head_share encoding coded_bytes encode_s decode_s`
    /// separated by tabs, behind a line that names the columns.
    ///
    /// # Errors
    /// The line that is not one.
    pub fn read(table: &str) -> Result<Self, String> {
        let mut all = Self { arms: vec!["identity".to_owned()], messages: Vec::new() };
        for (at, line) in table.lines().enumerate().skip(1) {
            all.line(line).ok_or_else(|| format!("line {}: {line}", at + 1))?;
        }
        let arms = all.arms.len();
        match all.messages.iter().find(|message| message.coded.len() != arms) {
            Some(message) => Err(format!("{} lacks an encoding", message.name)),
            None => Ok(all),
        }
    }

    /// The table that [`Workload::read`] reads.
    #[must_use]
    pub fn write(&self) -> String {
        let mut table = "message\tbytes\thead\tencoding\tcoded\tencode_s\tdecode_s\n".to_owned();
        for Message { name, bytes, head_share, coded } in &self.messages {
            for (arm, coded) in self.arms.iter().zip(coded).skip(1) {
                let Coded { bytes: left, encode_s, decode_s } = coded;
                // Writing to a string cannot fail.
                let _ = writeln!(
                    table,
                    "{name}\t{bytes}\t{head_share:.4}\t{arm}\t{left}\t\
                     {encode_s:.3e}\t{decode_s:.3e}"
                );
            }
        }
        table
    }

    /// The messages of each class: those whose names are alike up to the first dot.
    #[must_use]
    pub fn classes(&self) -> Vec<(String, Self)> {
        let mut classes: Vec<(String, Self)> = Vec::new();
        for message in &self.messages {
            let name = message.name.split('.').next().unwrap_or_default();
            let at = classes.iter().position(|(class, _)| class == name).unwrap_or_else(|| {
                let arms = self.arms.clone();
                classes.push((name.to_owned(), Self { arms, messages: Vec::new() }));
                classes.len() - 1
            });
            classes[at].1.messages.push(message.clone());
        }
        classes
    }

    fn line(&mut self, line: &str) -> Option<()> {
        let mut words = line.split('\t');
        let (name, mut numbers) = (words.next()?, Vec::new());
        let bytes: f64 = words.next()?.parse().ok()?;
        let head_share = words.next()?.parse().ok()?;
        let arm = words.next()?;
        for word in words {
            numbers.push(word.parse().ok()?);
        }
        let &[coded_bytes, encode_s, decode_s] = numbers.as_slice() else { return None };
        if self.messages.last().is_none_or(|message| message.name != name) {
            let plain = Coded { bytes, encode_s: 0.0, decode_s: 0.0 };
            let name = name.to_owned();
            self.messages.push(Message { name, bytes, head_share, coded: vec![plain] });
        }
        let message = self.messages.last_mut()?;
        let place = message.coded.len();
        if self.arms.len() == place {
            self.arms.push(arm.to_owned());
        }
        (self.arms.get(place)? == arm).then_some(())?;
        message.coded.push(Coded { bytes: coded_bytes, encode_s, decode_s });
        Some(())
    }
}
