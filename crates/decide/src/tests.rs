mod estimate;
mod learned;
mod prior;
mod state;
mod triage;
