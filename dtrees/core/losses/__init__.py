"""What a boosted model makes smaller: losses, their derivatives, where a model begins, its links.

    y, raw predictions ──derivatives──▶ gradient, hessian of each row, in fixed point
    y                  ──initial──────▶ the raw prediction without any tree
    raw predictions    ──link─────────▶ probabilities, or numbers

    `losses`        the losses by name, and the user's own: beginnings, links, the loss of rows
    `_derivatives`  their derivatives, row by row, as integers; means in any order; exp(x)

An exponential function is our own, as the logarithm is (`core.data._fixed_point`): those of the C
libraries differ in the last bit, and then so would models. Only additions, multiplications and
divisions of IEEE doubles are used, each rounded once, so a loop has the same bits in registers of
any width.
"""
