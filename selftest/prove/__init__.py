"""The proofs of hlo.elementary: every f32 input of a function against mpmath."""
