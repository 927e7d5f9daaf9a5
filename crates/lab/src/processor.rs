//! Where the machine's processor time went.

use std::fs;

/// Processor time of all cores since boot (proc_stat(5)).
pub(crate) struct ProcessorTime {
    total: u64,
    idle: u64,
    stolen: u64,
}

impl ProcessorTime {
    /// Until now; none where the kernel does not tell.
    pub(crate) fn now() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    fn parse(stat: &str) -> Option<Self> {
        /// user, nice, system, idle, iowait, irq, softirq, steal; what follows is part of these.
        const FIELDS: usize = 8;
        let fields = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace().take(FIELDS);
        let fields: Vec<u64> = fields.map(str::parse).collect::<Result<_, _>>().ok()?;
        (fields.len() == FIELDS).then(|| Self {
            total: fields.iter().sum(),
            // Waiting for a disk is idle too.
            idle: fields[3] + fields[4],
            stolen: fields[FIELDS - 1],
        })
    }

    /// Share of the time since `earlier` in which the processors worked, for whomever.
    pub(crate) fn busy_since(&self, earlier: &Self) -> Option<f64> {
        let total = self.total.checked_sub(earlier.total).filter(|total| *total > 0)?;
        let idle = self.idle.saturating_sub(earlier.idle);
        Some(total.saturating_sub(idle) as f64 / total as f64)
    }

    /// Share that other guests of the machine took since `earlier`.
    pub(crate) fn stolen_since(&self, earlier: &Self) -> Option<f64> {
        let total = self.total.checked_sub(earlier.total).filter(|total| *total > 0)?;
        Some(self.stolen.saturating_sub(earlier.stolen) as f64 / total as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_time_is_the_eighth_field() {
        let before = ProcessorTime::parse("cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 1").unwrap();
        let after = ProcessorTime::parse("cpu  50 0 0 40 0 0 0 10 99 99\n").unwrap();
        assert_eq!(after.stolen_since(&before), Some(0.1));
        assert_eq!(after.busy_since(&before), Some(0.6));
        assert_eq!(before.stolen_since(&before), None);
        assert!(ProcessorTime::parse("cpu 1 2 3").is_none());
    }
}
