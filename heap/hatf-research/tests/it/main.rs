//! Integration tests of the models: the numbers in a paper.

mod zorn_grunwald;
