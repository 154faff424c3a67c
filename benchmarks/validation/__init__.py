"""What ten folds and the final model cost, beside one fit and beside eleven.

ratios       in units of one fit of ours, coding included on both sides; the paper's own data
"""

from benchmarks.validation import ratios

CASES = [*ratios.CASES]
