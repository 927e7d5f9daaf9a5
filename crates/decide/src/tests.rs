mod estimate;
mod fixed;
mod learned;
mod triage;
