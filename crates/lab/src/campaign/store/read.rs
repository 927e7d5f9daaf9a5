//! Stored results back into a [`Campaign`].

use std::collections::BTreeMap;

use record::campaign::{Campaign, Cell, Measured, Run, Share, Way};
use record::result::Exchange;
use rusqlite::{Connection, Row};

use super::{Frame, Store, damaged, meta, parse};
use crate::error::{Error, Result};

impl Store {
    /// Everything, finished or not.
    ///
    /// # Errors
    /// [`Error::Caller`] for a file that is damaged or has not begun.
    pub(crate) fn campaign(&self) -> Result<Campaign> {
        let Frame { setting, networks, references, advice, figures } = self.frame()?;
        let mut cells = self.cells()?;
        let mut exchanges = self.exchanges()?;
        let mut flights = self.read_with(|connection| {
            let mut select = connection.prepare("SELECT run, flight FROM packets")?;
            let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect::<rusqlite::Result<BTreeMap<i64, String>>>()
        })?;
        let mut decisions = self.read_with(read_decisions)?;
        for stored in self.runs()? {
            let StoredRun { id, cell, mut run, texts } = stored;
            (run.warm_up, run.measured) = exchanges.remove(&id).unwrap_or_default();
            let [up, down, lateness] = &texts;
            run.up = parse(&self.path, up)?;
            run.down = parse(&self.path, down)?;
            run.lateness = parse(&self.path, lateness)?;
            let flight = flights.remove(&id);
            run.flight = flight.map(|text| parse(&self.path, &text)).transpose()?;
            let list = decisions.remove(&id);
            run.decisions = list.map_or(Ok(Vec::new()), |text| parse(&self.path, &text))?;
            let home = cells.get_mut(cell);
            home.ok_or_else(|| damaged(&self.path, &"a run without its cell"))?.runs.push(run);
        }
        Ok(Campaign { setting, networks, cells, references, advice, figures })
    }

    pub(super) fn frame(&self) -> Result<Frame> {
        let text = |key: &str| -> Result<String> {
            let text = self.read_with(|connection| meta(connection, key))?;
            text.ok_or_else(|| {
                let shown = self.path.display();
                Error::Caller(format!("{shown} holds no results yet: run the campaign first"))
            })
        };
        Ok(Frame {
            setting: parse(&self.path, &text("setting")?)?,
            networks: parse(&self.path, &text("networks")?)?,
            references: parse(&self.path, &text("references")?)?,
            advice: parse(&self.path, &text("advice")?)?,
            figures: parse(&self.path, &text("figures")?)?,
        })
    }

    /// The cells without their runs, by id.
    pub(super) fn cells(&self) -> Result<Vec<Cell>> {
        let rows: Vec<[String; 7]> = self.read_with(|connection| {
            let mut select = connection.prepare(
                "SELECT name, network, server, service, way, settings, groups FROM cells \
                 ORDER BY id",
            )?;
            let row = |row: &Row<'_>| {
                let text = |at: usize| row.get(at);
                Ok([text(0)?, text(1)?, text(2)?, text(3)?, text(4)?, text(5)?, text(6)?])
            };
            select.query_map([], row)?.collect()
        })?;
        let cell = |[name, network, server, service, way, settings, groups]: [String; 7]| {
            Ok(Cell {
                way: Way::parse(&way).ok_or_else(|| damaged(&self.path, &way))?,
                settings: parse(&self.path, &settings)?,
                groups: parse(&self.path, &groups)?,
                name,
                network,
                server,
                service,
                runs: Vec::new(),
            })
        };
        rows.into_iter().map(cell).collect()
    }

    fn runs(&self) -> Result<Vec<StoredRun>> {
        self.read_with(|connection| {
            let sql = format!("{} ORDER BY cell, repetition", StoredRun::SELECT);
            let mut select = connection.prepare(&sql)?;
            select.query_map([], StoredRun::of)?.collect()
        })
    }

    fn exchanges(&self) -> Result<BTreeMap<i64, Passes>> {
        self.read_with(read_exchanges)
    }
}

/// Warm-up and measured pass.
pub(super) type Passes = (Vec<Measured>, Vec<Measured>);

/// A run as its row has it, the texts not yet read.
pub(super) struct StoredRun {
    pub(super) id: i64,
    cell: usize,
    pub(super) run: Run,
    pub(super) texts: [String; 3],
}

impl StoredRun {
    pub(super) const SELECT: &str = "SELECT id, cell, repetition, attempt, seed, \
        started_unix_s, elapsed_s, parallel, up, down, lateness, processor_wait_s, \
        congestion_client, congestion_server, flagged, failure FROM runs";

    pub(super) fn of(row: &Row<'_>) -> rusqlite::Result<Self> {
        let run = Run {
            repetition: row.get(2)?,
            attempt: row.get(3)?,
            seed: row.get::<_, i64>(4)?.cast_unsigned(),
            started_unix_s: row.get(5)?,
            elapsed_s: row.get(6)?,
            parallel: row.get(7)?,
            processor_wait_s: row.get(11)?,
            congestion_control: [row.get(12)?, row.get(13)?],
            flagged: row.get(14)?,
            failure: row.get(15)?,
            ..Run::default()
        };
        let texts = [row.get(8)?, row.get(9)?, row.get(10)?];
        Ok(Self { id: row.get(0)?, cell: row.get(1)?, run, texts })
    }
}

/// By run; none in results without the table.
fn read_decisions(connection: &Connection) -> rusqlite::Result<BTreeMap<i64, String>> {
    let sql = "SELECT count(*) FROM sqlite_schema WHERE name = 'decisions'";
    if connection.query_row(sql, [], |row| row.get::<_, i64>(0))? == 0 {
        return Ok(BTreeMap::new());
    }
    let mut select = connection.prepare("SELECT run, list FROM decisions")?;
    select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

fn read_exchanges(connection: &Connection) -> rusqlite::Result<BTreeMap<i64, Passes>> {
    let mut select = connection.prepare("SELECT * FROM exchanges ORDER BY run, warm_up, number")?;
    let mut rows = select.query([])?;
    let mut runs: BTreeMap<i64, Passes> = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let passes = runs.entry(row.get(0)?).or_default();
        let pass = if row.get(1)? { &mut passes.0 } else { &mut passes.1 };
        pass.push(measured(row)?);
    }
    Ok(runs)
}

/// Those of one run.
pub(super) fn read_pass(connection: &Connection, run: i64) -> rusqlite::Result<Passes> {
    let sql = "SELECT * FROM exchanges WHERE run = ? ORDER BY warm_up, number";
    let mut select = connection.prepare_cached(sql)?;
    let mut rows = select.query([run])?;
    let mut passes = Passes::default();
    while let Some(row) = rows.next()? {
        let pass = if row.get(1)? { &mut passes.0 } else { &mut passes.1 };
        pass.push(measured(row)?);
    }
    Ok(passes)
}

fn measured(row: &Row<'_>) -> rusqlite::Result<Measured> {
    let exchange = Exchange {
        name: row.get(3)?,
        start_s: row.get(4)?,
        elapsed_s: row.get(5)?,
        body_bytes: row.get(6)?,
        status: row.get(7)?,
        error: row.get(8)?,
        censored: row.get(9)?,
        connections: row.get(10)?,
    };
    let share = |at: usize| -> rusqlite::Result<Share> {
        let (packets, bytes) = (row.get(at)?, row.get(at + 1)?);
        Ok(Share { packets, bytes, retransmitted: row.get(at + 2)? })
    };
    Ok(Measured { exchange, up: share(11)?, down: share(14)?, flights: row.get(17)? })
}
