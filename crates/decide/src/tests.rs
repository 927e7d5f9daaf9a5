mod estimate;
mod fixed;
mod learned;
mod state;
mod triage;
