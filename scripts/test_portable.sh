#!/bin/sh
# Run tests as other processors would: usage: test_portable.sh PYTEST [arguments of pytest].
#
# PyTorch, MKL, OpenBLAS and NumPy choose their kernels by the processor they find. Their own switches
# make them choose as an older or another one would; sums are then added up in another order.
set -u

failed=""

combination() { # combination NAME SWITCH... : the tests under these switches
    name=$1
    shift
    echo "== $name: $*"
    env "$@" "$pytest" $arguments || failed="$failed $name"
}

pytest=$1
shift
arguments="$*"
# More threads than cores: they wait asleep instead of spinning, which changes no sum.
export OMP_WAIT_POLICY=passive
no_vectors="X86_V3 X86_V4 AVX512_ICL AVX512_SPR"

combination oldest ATEN_CPU_CAPABILITY=default MKL_ENABLE_INSTRUCTIONS=SSE4_2 OPENBLAS_CORETYPE=Nehalem \
    NPY_DISABLE_CPU_FEATURES="$no_vectors" OMP_NUM_THREADS=1
combination haswell ATEN_CPU_CAPABILITY=avx2 MKL_ENABLE_INSTRUCTIONS=AVX2 OPENBLAS_CORETYPE=Haswell OMP_NUM_THREADS=2
combination zen OPENBLAS_CORETYPE=Zen OMP_NUM_THREADS=4
combination compatible MKL_CBWR=COMPATIBLE OPENBLAS_CORETYPE=Haswell OMP_NUM_THREADS=1
combination mixed ATEN_CPU_CAPABILITY=avx2 MKL_CBWR=COMPATIBLE OPENBLAS_CORETYPE=Nehalem OMP_NUM_THREADS=2

if [ -n "$failed" ]; then
    echo "failed under:$failed" >&2
    exit 1
fi
echo "green under all five combinations"
