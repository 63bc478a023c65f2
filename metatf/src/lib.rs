//! Runtime for Meta-TF traces: containers, decoding, encoding, the universal reader and writer.
