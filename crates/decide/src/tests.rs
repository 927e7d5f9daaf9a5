mod estimate;
mod learned;
mod paths;
mod prior;
mod state;
mod triage;
