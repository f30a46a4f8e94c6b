"""Judge factors of matrices and solutions of systems by the equations that define them."""
