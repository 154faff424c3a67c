"""What a cross-validation costs: ten folds, their scores, the final model, and the size of trees.

ratios       in units of one fit of ours, coding included on both sides; the paper's own data
loop         the loop of plain fits that it stands for, over 38 works
one_fit      everything against a single fit of scikit-learn's
surface      trees of all sizes and the cost-complexity path, beside a search by scikit-learn
folds        seconds over the number of folds, with a picture
boosted      boosted models side by side, against eleven fits and `lightgbm.cv`
memory       peak memory over the number of folds, in processes of its own
"""

from benchmarks.validation import boosted, folds, loop, memory, one_fit, ratios, surface

CASES = [
    *ratios.CASES,
    *loop.CASES,
    *one_fit.CASES,
    *surface.CASES,
    *folds.CASES,
    *boosted.CASES,
    *memory.CASES,
]
