// Package ref holds every kernel in plain Go: the oracle that faster versions
// are tested against, and their replacement where the CPU lacks what they
// need. Matrices are row-major float32; sums are taken in float64 and in a
// fixed order, so a row's result does not depend on its neighbours.
//
// Functions trust their callers' shapes and panic like any slice access.
package ref
