package model

// Dense is an affine map y = Wx + b; Weight is Out × In, row-major. A map
// without a bias has one of zeros.
type Dense struct {
	Weight, Bias []float32
	In, Out      int
}

// Norm is a layer normalisation's gain and bias, one each per dimension. One
// without a gain changes nothing.
type Norm struct{ Gain, Bias []float32 }

// Layer is one encoder layer, self-attention and a feed-forward block:
//
//	x = n₁(x + attention(x)); x = n₂(x + feed(x))      if not PreNorm
//	x = x + attention(n₁(x)); x = x + feed(n₂(x))      if PreNorm
//
// with n₁ the AttentionNorm, n₂ the OutputNorm, and feed(x) = Down·a(Up·x), or
// Down·(a(Gate·x) ∘ Up·x) if Gated; a is the config's Activation.
type Layer struct {
	Query, Key, Value Dense
	AttentionOut      Dense
	AttentionNorm     Norm
	Up, Gate, Down    Dense
	OutputNorm        Norm
}

// Encoder holds an encoder's weights as float32. Word, Position and Type are
// tables of Hidden-wide rows, summed and then normalised by Norm; one that is
// nil is not part of the sum. Position has Offset + Positions rows.
type Encoder struct {
	Word, Position, Type []float32
	Norm                 Norm
	// Relative has a row per bucket of distances and a number per head in it,
	// which is added to a head's scaled scores: see kernels/ref.RelativeBucket.
	Relative []float32
	Layers   []Layer
	Final    Norm // after the last layer
}
