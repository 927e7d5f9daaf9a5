//! What a byte means where it stands, guessed for XML, JSON and text alike; any bytes are fine.

/// Open elements that are remembered.
const DEPTH: usize = 32;

const MULTIPLIER: u32 = 0x9e37_79b1;

pub(super) fn mix(hash: u32, value: u32) -> u32 {
    let hash = (hash ^ value).wrapping_mul(MULTIPLIER);
    hash ^ hash >> 15
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MarkupPosition {
    Text,
    /// Behind `<`, in the name of an element.
    Name,
    /// Behind `</`.
    End,
    /// In a start tag, behind the name.
    Tag,
    /// In a quoted value.
    Quoted(u8),
    /// In `<!` or `<?`.
    Other,
}

/// State behind the bytes seen so far.
#[derive(Clone, Debug)]
pub(super) struct Syntax {
    place: MarkupPosition,
    /// Where the names of open elements stand, the innermost last; deeper ones wrap around.
    open: [(usize, u32); DEPTH],
    depth: usize,
    name_at: usize,
    name: u32,
    slash: bool,
    /// Hash of the word that is being read, and of those before.
    pub(super) word: u32,
    pub(super) last_word: u32,
    /// Hash of the name that the value being read belongs to, and of the value so far.
    pub(super) field: u32,
    pub(super) value: u32,
    /// Hash of the element before, on this level.
    pub(super) sibling: u32,
    /// Bytes since the last line feed, and blanks the line before began with.
    pub(super) column: u32,
    blank: bool,
    indent: u32,
    pub(super) last_indent: u32,
    /// Next byte of the name of the innermost element, while an end tag repeats it.
    pub(super) expected: Option<usize>,
    /// Bytes of it that were right.
    pub(super) expected_len: u32,
}

impl Syntax {
    pub(super) fn new() -> Self {
        Self {
            place: MarkupPosition::Text,
            open: [(0, 0); DEPTH],
            depth: 0,
            name_at: 0,
            name: 0,
            slash: false,
            word: 0,
            last_word: 0,
            field: 0,
            value: 0,
            sibling: 0,
            column: 0,
            blank: true,
            indent: 0,
            last_indent: 0,
            expected: None,
            expected_len: 0,
        }
    }

    /// A small number for the place, below 8.
    pub(super) fn place(&self) -> usize {
        match self.place {
            MarkupPosition::Text => usize::from(self.word != 0),
            MarkupPosition::Name => 2,
            MarkupPosition::End => 3,
            MarkupPosition::Tag => 4,
            MarkupPosition::Quoted(_) => 5,
            MarkupPosition::Other => 6,
        }
    }

    /// Hash of the innermost element's name.
    pub(super) fn element(&self) -> u32 {
        self.depth.checked_sub(1).map_or(0, |at| self.open[at % DEPTH].1)
    }

    pub(super) fn depth(&self) -> u32 {
        u32::try_from(self.depth).unwrap_or(u32::MAX)
    }

    /// Takes the byte at `at` of the history.
    pub(super) fn update(&mut self, byte: u8, at: usize) {
        self.lines(byte);
        self.words(byte);
        self.value = mix(self.value.wrapping_add(1), u32::from(byte));
        match self.place {
            MarkupPosition::Quoted(quote) if byte == quote => {
                self.place = MarkupPosition::Tag;
                self.value = 0;
            }
            MarkupPosition::Quoted(_) => {}
            MarkupPosition::Text | MarkupPosition::Other if byte == b'<' => self.begin(at),
            MarkupPosition::Other if byte == b'>' => self.text(0),
            MarkupPosition::Text => self.loose(byte),
            MarkupPosition::Other => {}
            MarkupPosition::Name => self.in_name(byte, at),
            MarkupPosition::Tag => self.in_tag(byte),
            MarkupPosition::End => {
                if byte == b'>' {
                    self.sibling = self.element();
                    self.depth = self.depth.saturating_sub(1);
                    self.text(self.element().wrapping_add(1));
                }
            }
        }
        self.slash = byte == b'/';
    }

    fn lines(&mut self, byte: u8) {
        if byte == b'\n' {
            (self.column, self.last_indent) = (0, self.indent);
            (self.blank, self.indent) = (true, 0);
            return;
        }
        self.column = self.column.saturating_add(1);
        self.blank &= byte == b' ' || byte == b'\t';
        self.indent += u32::from(self.blank && self.indent < 255);
    }

    fn words(&mut self, byte: u8) {
        if byte.is_ascii_alphanumeric() || byte >= 0x80 || byte == b'_' {
            self.word = mix(self.word.wrapping_add(0x51), u32::from(byte));
        } else if self.word != 0 {
            self.last_word = mix(self.word, u32::from(byte));
            self.word = 0;
        }
    }

    fn text(&mut self, field: u32) {
        self.place = MarkupPosition::Text;
        (self.field, self.value) = (field, 0);
    }

    fn begin(&mut self, at: usize) {
        self.place = MarkupPosition::Name;
        (self.name_at, self.name) = (at + 1, 0);
        (self.field, self.value) = (self.element() ^ 0x5555, 0);
    }

    /// JSON and the like: a word before a colon names what follows.
    fn loose(&mut self, byte: u8) {
        match byte {
            b':' | b'=' => (self.field, self.value) = (self.last_word, 0),
            b',' | b'{' | b'}' | b'[' | b']' | b'\n' => self.value = u32::from(byte),
            _ => {}
        }
    }

    fn in_name(&mut self, byte: u8, at: usize) {
        match byte {
            b'!' | b'?' if at == self.name_at => self.place = MarkupPosition::Other,
            b'/' if at == self.name_at => {
                self.place = MarkupPosition::End;
                self.expected = self.depth.checked_sub(1).map(|top| self.open[top % DEPTH].0);
                self.expected_len = 0;
            }
            b'>' | b' ' | b'\t' | b'\n' | b'\r' | b'/' => {
                self.open[self.depth % DEPTH] = (self.name_at, self.name);
                self.depth = self.depth.saturating_add(1);
                self.place = MarkupPosition::Tag;
                self.value = 0;
                self.sibling = 0;
                if byte == b'>' {
                    self.text(self.name);
                }
            }
            _ => self.name = mix(self.name.wrapping_add(7), u32::from(byte)),
        }
    }

    fn in_tag(&mut self, byte: u8) {
        match byte {
            b'>' => {
                if self.slash {
                    self.sibling = self.element();
                    self.depth = self.depth.saturating_sub(1);
                }
                self.text(self.element());
            }
            b'"' | b'\'' => self.place = MarkupPosition::Quoted(byte),
            b'=' => (self.field, self.value) = (self.last_word, 0),
            b' ' => self.value = 0,
            _ => {}
        }
    }

    /// What an end tag must say next; behind the name a `>`.
    pub(super) fn expected(&self, history: &[u8]) -> Option<u8> {
        let byte = *history.get(self.expected?)?;
        let ends = matches!(byte, b'>' | b' ' | b'\t' | b'\n' | b'\r' | b'/');
        Some(if ends { b'>' } else { byte })
    }

    /// Follows the end tag: `byte` came.
    pub(super) fn follow(&mut self, byte: u8, predicted: Option<u8>) {
        if self.place != MarkupPosition::End || byte == b'/' && self.expected_len == 0 {
            if self.place != MarkupPosition::End {
                self.expected = None;
            }
            return;
        }
        if predicted == Some(byte) {
            self.expected = self.expected.map(|at| at + 1);
            self.expected_len += 1;
        } else {
            self.expected = None;
        }
    }
}
