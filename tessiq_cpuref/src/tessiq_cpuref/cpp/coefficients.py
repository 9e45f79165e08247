"""float32 polynomial coefficients, lowest degree first. Written by `tools/fit_math.py`; do not edit."""

from __future__ import annotations

# exp(r) = 1 + (r + r*r*P(r)) for |r| <= log(2)/2;
# largest relative error of the polynomial 4.3e-10.
EXP = (
    "0x1p-1",
    "0x1.555554p-3",
    "0x1.5554f8p-5",
    "0x1.1112d6p-7",
    "0x1.6d3a4ap-10",
    "0x1.9e77cp-13",
)

# log(1+f) = 2*s + s*z*P(z), s = f/(2+f), z = s*s, for 1+f in [sqrt(1/2), sqrt(2)];
# largest relative error of the polynomial 5e-11.
LOG = (
    "0x1.555554p-1",
    "0x1.999c26p-2",
    "0x1.23d3eep-2",
    "0x1.f13786p-3",
)

# tanh(x) = x + x*z*P(z), z = x*x, for |x| <= 0.625;
# largest relative error of the polynomial 4.5e-09.
TANH = (
    "-0x1.555532p-2",
    "0x1.1106fep-3",
    "-0x1.b83792p-5",
    "0x1.520a3ap-6",
    "-0x1.756d14p-8",
)

# erf(x) = x + x*P(z), z = x*x, for |x| <= 1;
# largest relative error of the polynomial 1.4e-09.
ERF = (
    "0x1.06eba8p-3",
    "-0x1.81273ep-2",
    "0x1.ce2ceap-4",
    "-0x1.b7f7bcp-6",
    "0x1.53f9fcp-8",
    "-0x1.a39df2p-11",
    "0x1.48740ep-14",
)

# erf(x) = 1 - exp(-(ERFC_START + P(t))), t = x - 1, for 1 <= x <= 4;
# largest relative error of the polynomial 1.3e-09.
ERFC_START = "0x1.d97fcp+0"
ERFC = (
    "-0x1.7d42p-25",
    "0x1.51c9aap+1",
    "0x1.afad48p-1",
    "0x1.53f1aep-5",
    "-0x1.43d4a4p-7",
    "0x1.dcacf6p-10",
    "-0x1.8007bp-13",
)
