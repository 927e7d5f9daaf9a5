mod estimate;
mod fixed;
mod learned;
