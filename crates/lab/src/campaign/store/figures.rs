//! Stored results a cell at a time: the figures of all runs by one question, the rest of a cell
//! when somebody looks at it.

use record::campaign::{Cell, Run};
use record::figures::{CellFigures, Overview, RunFigures};
use rusqlite::{OptionalExtension, Row};

use super::read::{StoredRun, read_pass};
use super::{Store, parse};
use crate::error::{Error, Result};

/// The mean time as [`Run::mean_s`] has it: an exchange that never began says nothing.
const RUN_FIGURES: &str = "
    SELECT runs.id, runs.cell, runs.repetition, runs.lateness_p99_us, runs.flagged, runs.failure,
        avg(exchanges.elapsed_s)
            FILTER (WHERE error IS NULL AND NOT (censored AND exchanges.elapsed_s = 0)),
        count(*) FILTER (WHERE error IS NOT NULL),
        coalesce(sum(censored), 0),
        count(number),
        coalesce(sum(up_bytes + down_bytes), 0),
        coalesce(sum(up_retransmitted + down_retransmitted), 0)
    FROM runs LEFT JOIN exchanges ON exchanges.run = runs.id AND exchanges.warm_up = 0
    GROUP BY runs.id ORDER BY runs.cell, runs.repetition";

impl Store {
    /// How many cells, runs planned and done, flagged and failed, with what surrounds them.
    pub(crate) fn overview(&self) -> Result<Overview> {
        let frame = self.frame()?;
        let [cells, planned] = self.read_with(|connection| {
            let sql = "SELECT count(*), coalesce(sum(repetitions), 0) FROM cells";
            connection.query_row(sql, [], |row| Ok([row.get(0)?, row.get(1)?]))
        })?;
        let [done, flagged, failed] = self.read_with(|connection| {
            let sql = "SELECT count(*), count(flagged), count(failure) FROM runs";
            connection.query_row(sql, [], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?]))
        })?;
        let super::Frame { setting, networks, references, advice, figures: _ } = frame;
        Ok(Overview {
            setting,
            networks,
            references,
            advice,
            cells,
            planned,
            done,
            flagged,
            failed,
        })
    }

    /// All cells with the figures of their runs.
    pub(crate) fn figures(&self) -> Result<Vec<CellFigures>> {
        let mut cells: Vec<CellFigures> =
            self.cells()?.into_iter().map(|cell| CellFigures { cell, runs: Vec::new() }).collect();
        let runs: Vec<(usize, RunFigures)> = self.read_with(|connection| {
            let mut select = connection.prepare(RUN_FIGURES)?;
            select.query_map([], run_figures)?.collect()
        })?;
        for (cell, run) in runs {
            let home = cells.get_mut(cell);
            home.ok_or_else(|| self.damaged("a run without its cell"))?.runs.push(run);
        }
        Ok(cells)
    }

    /// One cell with all that is known of it, by its place in the plan; none where there is none.
    pub(crate) fn cell(&self, place: usize) -> Result<Option<Cell>> {
        let Some(mut cell) = self.cells()?.into_iter().nth(place) else { return Ok(None) };
        for stored in self.runs_of(place)? {
            let (id, mut run) = self.whole(stored)?;
            (run.warm_up, run.measured) = self.read_with(|connection| read_pass(connection, id))?;
            let flight = self.read_with(|connection| {
                let sql = "SELECT flight FROM packets WHERE run = ?";
                connection.query_row(sql, [id], |row| row.get::<_, String>(0)).optional()
            })?;
            run.flight = flight.map(|text| parse(&self.path, &text)).transpose()?;
            cell.runs.push(run);
        }
        Ok(Some(cell))
    }

    fn runs_of(&self, cell: usize) -> Result<Vec<StoredRun>> {
        self.read_with(|connection| {
            let sql = format!("{} WHERE cell = ? ORDER BY repetition", StoredRun::SELECT);
            let mut select = connection.prepare(&sql)?;
            select.query_map([cell], StoredRun::of)?.collect()
        })
    }

    /// A run with its texts read.
    fn whole(&self, stored: StoredRun) -> Result<(i64, Run)> {
        let StoredRun { id, mut run, texts, .. } = stored;
        let [up, down, lateness] = &texts;
        run.up = parse(&self.path, up)?;
        run.down = parse(&self.path, down)?;
        run.lateness = parse(&self.path, lateness)?;
        Ok((id, run))
    }

    fn damaged(&self, what: &str) -> Error {
        super::damaged(&self.path, &what)
    }
}

fn run_figures(row: &Row<'_>) -> rusqlite::Result<(usize, RunFigures)> {
    let figures = RunFigures {
        repetition: row.get(2)?,
        lateness_p99_us: row.get(3)?,
        flagged: row.get(4)?,
        failure: row.get(5)?,
        mean_s: row.get(6)?,
        errors: row.get(7)?,
        censored: row.get(8)?,
        exchanges: row.get(9)?,
        wire_bytes: row.get(10)?,
        retransmitted: row.get(11)?,
    };
    Ok((row.get(1)?, figures))
}
