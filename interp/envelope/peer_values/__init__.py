"""Judge a program on the values that a peer shows inside it: as they may stay in f32, or stored."""
