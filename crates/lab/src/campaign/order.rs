//! In what order runs begin.
//!
//! Each kind of job (network and server) is spread over the whole time, so that slow links and fast
//! ones are under way together and the packets of all come evenly; what takes long begins early
//! enough to end with the rest. Kinds with many packets a second, which a busy machine would spoil
//! first, come last, while only slow links are still under way; servers that serve a whole cell are
//! started first, since what it takes to start them would spoil others.
//!
//! Within a kind the first repetition of every cell comes before the second of any, in an order
//! drawn anew, so that a drift of the machine falls on all cells alike.

use std::collections::{BTreeMap, BTreeSet};

use super::job::{Job, Turn};
use super::plan::Plan;
use super::store::RunKey;

/// A job with its expected time.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) job: Job,
    pub(super) expected_s: f64,
    pub(super) memory_bytes: u64,
    /// Packets a second that it is expected to send, both ways.
    pub(super) load: f64,
}

/// Kinds with more packets a second in one run than this come last.
const DENSE: f64 = 150.0;

/// All jobs that are still to be done, first first, when the whole is to take so many seconds.
pub(super) fn jobs(plan: &Plan, finished: &BTreeSet<RunKey>, horizon_s: f64) -> Vec<Planned> {
    let mut kinds: BTreeMap<(usize, usize), Vec<Planned>> = BTreeMap::new();
    for cell in 0..plan.cells.len() {
        let of = &plan.cells[cell];
        let kind = kinds.entry((of.network, of.server)).or_default();
        kind.extend(jobs_of(plan, cell, finished));
    }
    let mut placed: Vec<(f64, Planned)> = Vec::new();
    for (_, mut jobs) in kinds {
        jobs.sort_by_cached_key(|planned| rank(plan, &planned.job));
        let count = jobs.len() as f64;
        for (number, planned) in jobs.into_iter().enumerate() {
            let room_s = (horizon_s - planned.expected_s).max(0.0);
            let share = number as f64 / count;
            let place_s = match (planned.load > DENSE, plan.is_shared(planned.job.cell)) {
                (true, _) => horizon_s + room_s * share,
                (false, true) => share - 1.0,
                (false, false) => room_s * share,
            };
            placed.push((place_s, planned));
        }
    }
    placed.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    placed.into_iter().map(|(_, planned)| planned).collect()
}

fn jobs_of(plan: &Plan, cell: usize, finished: &BTreeSet<RunKey>) -> Vec<Planned> {
    let of = &plan.cells[cell];
    let server = &plan.servers[of.server];
    let left = (1..=of.repetitions).filter(|repetition| !finished.contains(&(cell, *repetition)));
    let turns: Vec<Turn> = left.map(|repetition| Turn { repetition, attempt: 1 }).collect();
    let per_job = if server.share { turns.len().max(1) } else { 1 };
    turns.chunks(per_job).map(|turns| planned(plan, Job { cell, runs: turns.to_vec() })).collect()
}

/// A job with what is known of it beforehand.
pub(super) fn planned(plan: &Plan, job: Job) -> Planned {
    let of = &plan.cells[job.cell];
    Planned {
        expected_s: plan.estimate_s(of) * job.runs.len() as f64,
        memory_bytes: plan.servers[of.server].memory_bytes + plan.memory_beside(of),
        load: plan.estimate_load(of),
        job,
    }
}

/// Repetition by repetition; within one as chance has it.
fn rank(plan: &Plan, job: &Job) -> (u32, u64) {
    let repetition = job.runs.first().map_or(0, |turn| turn.repetition);
    let mixed = plan.run_seed(job.cell, repetition);
    // The finaliser of SplitMix64: neighbours end up far from each other.
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (repetition, mixed ^ (mixed >> 31))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::plan::Choice;

    const PLAN: &str = "title = 'x'\nrepetitions = 4\n[[network]]\nname = 'los'\n\
        [[network]]\nname = 'cnr'\n[[server]]\nname = 'own'\ncommand = ['true']\nshare = true\n\
        services = ['soap']\n[[group]]\nname = 'g'\n[group.settings]\nchunking = ['on']\n\
        [[group]]\nname = 'shared'\nserver = 'own'\n";

    const HORIZON_S: f64 = 600.0;

    fn plan() -> Plan {
        Plan::parse(PLAN.to_string(), &Choice::default()).unwrap()
    }

    #[test]
    fn every_run_is_in_one_job_and_those_of_a_shared_server_are_together() {
        let plan = plan();
        let jobs = jobs(&plan, &BTreeSet::new(), HORIZON_S);
        let mut runs: Vec<RunKey> = Vec::new();
        for planned in &jobs {
            let is_shared = plan.servers[plan.cells[planned.job.cell].server].share;
            assert_eq!(planned.job.runs.len(), if is_shared { 4 } else { 1 });
            runs.extend(planned.job.runs.iter().map(|turn| (planned.job.cell, turn.repetition)));
        }
        runs.sort_unstable();
        let count = runs.len();
        runs.dedup();
        assert_eq!((runs.len(), count), (plan.runs(), plan.runs()));
    }

    #[test]
    fn finished_runs_are_left_out() {
        let plan = plan();
        let finished = BTreeSet::from([(0, 1), (0, 2)]);
        let left: usize =
            jobs(&plan, &finished, HORIZON_S).iter().map(|planned| planned.job.runs.len()).sum();
        assert_eq!(left, plan.runs() - 2);
    }

    #[test]
    fn what_takes_long_begins_early_and_first_repetitions_come_first() {
        let plan = plan();
        let jobs = jobs(&plan, &BTreeSet::new(), HORIZON_S);
        let place = |network: usize, repetition: u32| {
            let is_it = |planned: &&Planned| {
                let cell = &plan.cells[planned.job.cell];
                cell.network == network
                    && !plan.servers[cell.server].share
                    && planned.job.runs[0].repetition == repetition
            };
            let of_these = jobs.iter().enumerate().filter(|(_, planned)| is_it(planned));
            of_these.map(|(at, _)| at).max().unwrap()
        };
        assert!(place(0, 1) < place(0, 4));
        assert!(place(1, 4) < place(0, 4));
    }
}
