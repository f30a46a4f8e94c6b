"""The constraints of transforms, factorisations and random numbers."""

from verdicts import label, rows


@rows("""
 | c64[2,8] | c64[2,8] fft(a), fft_type=FFT, fft_length={8}
 | f64[<=2,8] | c128[<=2,5] fft(a), fft_type=RFFT, fft_length={8}
 | c64[3,5] | f32[3,8] fft(a), fft_type=IRFFT, fft_length={3,8}
 | f32[0] | c64[0] fft(a), fft_type=RFFT, fft_length={0}
parse | c64[8] | c64[8] fft(a), fft_type=DCT, fft_length={8}
C1 | f32[8] | c64[8] fft(a), fft_type=FFT, fft_length={8}
C1 | c64[8] | c64[5] fft(a), fft_type=RFFT, fft_length={8}
C1 | bf16[8] | c64[5] fft(a), fft_type=RFFT, fft_length={8}
C1 | (c64[8]) | c64[8] fft(a), fft_type=FFT, fft_length={8}
C2 | c64[8] | c64[8] fft(a), fft_type=FFT, fft_length={}
C2 | c64[8] | c64[8] fft(a), fft_type=FFT, fft_length={8,8}
C2 | c64[2,2,2,2] | c64[2,2,2,2] fft(a), fft_type=FFT, fft_length={2,2,2,2}
C3 | c64[8] | c64[8] fft(a), fft_type=FFT, fft_length={4}
C3 | c64[8] | f32[8] fft(a), fft_type=IRFFT, fft_length={8}
shape | f32[8] | c64[8] fft(a), fft_type=RFFT, fft_length={8}
""")
def test_fft(expected: str, operands: str, instruction: str) -> None:
    assert label(operands, instruction) == expected


@rows("""
 | f32[2,3,3] | f32[2,3,3] cholesky(a), lower=true
 | f32[<=2,3,3] | f32[<=2,3,3] cholesky(a)
C1 | f32[2,3] | f32[2,3] cholesky(a)
C1 | f32[3] | f32[3] cholesky(a)
C1 | s32[3,3] | s32[3,3] cholesky(a)
C1 | (f32[3,3]) | f32[3,3] cholesky(a)
 | f32[3,3] f32[3,2] | f32[3,2] triangular-solve(a, b), left_side=true, transpose_a=TRANSPOSE
 | f32[3,3] f32[2,3] | f32[2,3] triangular-solve(a, b), lower=true, transpose_a=NO_TRANSPOSE
C1 | f32[3,2] f32[3,2] | f32[3,2] triangular-solve(a, b), left_side=true
C1 | s32[3,3] s32[3,2] | s32[3,2] triangular-solve(a, b), left_side=true
C2 | f32[3,3] f32[2,3] | f32[2,3] triangular-solve(a, b), left_side=true
C2 | f32[3,3] f16[3,2] | f16[3,2] triangular-solve(a, b), left_side=true
C2 | f32[4,3,3] f32[5,3,2] | f32[5,3,2] triangular-solve(a, b), left_side=true
C2 | f32[3,3] f32[3] | f32[3] triangular-solve(a, b), left_side=true
parse | f32[3,3] f32[3,2] | f32[3,2] triangular-solve(a, b), left_side=true, transpose_a=SIDEWAYS
""")
def test_factors(expected: str, operands: str, instruction: str) -> None:
    assert label(operands, instruction) == expected


@rows("""
 | f32[] f32[] | f32[5] rng(a, b), distribution=rng_normal
 | s32[] s32[] | s32[5,<=2] rng(a, b), distribution=rng_uniform
C1 | f32[] f32[] | f32[5] rng(a, b), distribution=rng_invalid
C2 | f32[] | f32[5] rng(a), distribution=rng_normal
C2 | f32[] f64[] | f32[5] rng(a, b), distribution=rng_normal
C2 | f32[5] f32[5] | f32[5] rng(a, b), distribution=rng_normal
C3 | s32[] s32[] | s32[5] rng(a, b), distribution=rng_normal
 | u64[2] | (u64[2], u32[5]) rng-bit-generator(a), algorithm=rng_three_fry
 | u64[3] | (u64[3], u8[5]) rng-bit-generator(a), algorithm=rng_philox
 | u64[2] | u32[5] rng-bit-generator(a), algorithm=rng_default
C1 | u64[2] | (u64[2], u32[5]) rng-bit-generator(a), algorithm=dot_f32_f32_f32
C2 | u64[3] | (u64[3], u32[5]) rng-bit-generator(a), algorithm=rng_three_fry
C2 | s64[2] | (s64[2], u32[5]) rng-bit-generator(a), algorithm=rng_three_fry
C3 | u64[2] | (u64[3], u32[5]) rng-bit-generator(a), algorithm=rng_philox
C3 | u64[2] | (u64[2], u32[5], u32[5]) rng-bit-generator(a), algorithm=rng_philox
C3 | u64[2] | (u64[2], pred[5]) rng-bit-generator(a), algorithm=rng_philox
 | | u64[2] rng-get-and-update-state(), delta=1
C1 | | u64[3] rng-get-and-update-state(), delta=1
attributes | | u64[2] rng-get-and-update-state()
""")
def test_random_numbers(expected: str, operands: str, instruction: str) -> None:
    assert label(operands, instruction) == expected
