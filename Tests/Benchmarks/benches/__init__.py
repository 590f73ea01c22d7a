"""What the benchmarks share, and the benchmarks themselves: one file for each group of them."""
