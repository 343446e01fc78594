package model

import (
	"math"

	"sluice/kernels/ref"
)

// oracle runs a model's description as Layer and Encoder state it: one
// sequence, one token after the other, in double precision.
type oracle struct {
	m *Model
	e *Encoder
	c Config
}

type matrix [][]float64

func newOracle(m *Model) oracle { return oracle{m, &m.Encoder, m.Config} }

// states returns the residual stream before the first layer and after every
// one; the last has had the final norm.
func (o oracle) states(ids, types []int32) []matrix {
	x := o.embed(ids, types)
	states := []matrix{x}
	for i := range o.e.Layers {
		x = o.layer(x, &o.e.Layers[i], o.c.Attention[i])
		states = append(states, x)
	}
	states[len(states)-1] = o.norm(x, o.e.Final)
	return states
}

func (o oracle) embed(ids, types []int32) matrix {
	x := zeros(len(ids), o.c.Hidden)
	counted := 0
	for t, id := range ids {
		position := o.c.Offset + counted
		if o.c.Offset > 0 && int(id) == o.c.Offset-1 {
			position = o.c.Offset - 1
		} else {
			counted++
		}
		kind := 0
		if o.c.Types > 1 && types != nil {
			kind = int(types[t])
		}
		for d := range x[t] {
			x[t][d] = float64(o.e.Word[int(id)*o.c.Hidden+d])
			if o.e.Position != nil {
				x[t][d] += float64(o.e.Position[position*o.c.Hidden+d])
			}
			if o.e.Type != nil {
				x[t][d] += float64(o.e.Type[kind*o.c.Hidden+d])
			}
		}
	}
	return o.norm(x, o.e.Norm)
}

func (o oracle) layer(x matrix, l *Layer, a Attention) matrix {
	if o.c.PreNorm {
		x = add(x, o.attention(o.norm(x, l.AttentionNorm), l, a))
		return add(x, o.feed(o.norm(x, l.OutputNorm), l))
	}
	x = o.norm(add(x, o.attention(x, l, a)), l.AttentionNorm)
	return o.norm(add(x, o.feed(x, l)), l.OutputNorm)
}

func (o oracle) attention(x matrix, l *Layer, a Attention) matrix {
	q, k, v := apply(l.Query, x), apply(l.Key, x), apply(l.Value, x)
	size := o.c.HeadSize()
	out := zeros(len(x), o.c.Hidden)
	for head := range o.c.Heads {
		at := head * size
		if a.Theta > 0 {
			rotate(q, at, size, a)
			rotate(k, at, size, a)
		}
		for i := range x {
			p := o.probabilities(q, k, i, head, a)
			for j := range x {
				for d := at; d < at+size; d++ {
					out[i][d] += p[j] * v[j][d]
				}
			}
		}
	}
	return apply(l.AttentionOut, out)
}

func (o oracle) probabilities(q, k matrix, i, head int, a Attention) []float64 {
	size := o.c.HeadSize()
	p := make([]float64, len(k))
	var sum float64
	for j := range k {
		if a.Window > 0 && max(i-j, j-i) > a.Window {
			continue
		}
		for d := head * size; d < (head+1)*size; d++ {
			p[j] += q[i][d] * k[j][d]
		}
		p[j] /= math.Sqrt(float64(size))
		if o.e.Relative != nil {
			p[j] += float64(o.e.Relative[ref.RelativeBucket(j-i, o.c.Buckets)*o.c.Heads+head])
		}
		p[j] = math.Exp(p[j])
		sum += p[j]
	}
	for j := range p {
		p[j] /= sum
	}
	return p
}

func rotate(x matrix, at, size int, a Attention) {
	for t := range x {
		for k := range size / 2 {
			angle := float64(t) * math.Pow(a.Theta, -2*float64(k)/float64(size))
			if a.Stretch > 0 {
				angle /= a.Stretch
			}
			sin, cos := math.Sincos(angle)
			p, q := x[t][at+k], x[t][at+size/2+k]
			x[t][at+k], x[t][at+size/2+k] = p*cos-q*sin, q*cos+p*sin
		}
	}
}

func (o oracle) feed(x matrix, l *Layer) matrix {
	up := apply(l.Up, x)
	if !o.c.Gated {
		return apply(l.Down, function(o.c.Activation, up))
	}
	gate := function(o.c.Activation, apply(l.Gate, x))
	for t := range up {
		for d := range up[t] {
			up[t][d] *= gate[t][d]
		}
	}
	return apply(l.Down, up)
}

func (o oracle) norm(x matrix, n Norm) matrix {
	if n.Gain == nil {
		return x
	}
	y := zeros(len(x), len(n.Gain))
	for t := range x {
		var mean, variance float64
		for _, v := range x[t] {
			mean += v / float64(len(x[t]))
		}
		for _, v := range x[t] {
			variance += (v - mean) * (v - mean) / float64(len(x[t]))
		}
		for d, v := range x[t] {
			y[t][d] = (v-mean)/math.Sqrt(variance+o.c.Epsilon)*float64(n.Gain[d]) + float64(n.Bias[d])
		}
	}
	return y
}

// embedding is the vector before it is normalised.
func (o oracle) embedding(last matrix) []float64 {
	x := matrix{pool(last, o.m.Pooling)}
	for _, p := range o.m.Projections {
		x = function(p.Activation, apply(p.Dense, x))
	}
	return x[0]
}

func (o oracle) logits(last matrix) []float64 {
	h := o.m.Classifier
	x := function(h.Activation, apply(h.Dense, matrix{pool(last, h.Pooling)}))
	return apply(h.Out, o.norm(x, h.Norm))[0]
}

func pool(x matrix, p Pooling) []float64 {
	switch p {
	case CLSPooling:
		return x[0]
	case LastPooling:
		return x[len(x)-1]
	}
	mean := make([]float64, len(x[0]))
	for t := range x {
		for d := range mean {
			mean[d] += x[t][d] / float64(len(x))
		}
	}
	return mean
}

func function(a Activation, x matrix) matrix {
	f := map[Activation]func(float64) float64{
		Identity: func(x float64) float64 { return x },
		GELU:     func(x float64) float64 { return x / 2 * math.Erfc(-x/math.Sqrt2) },
		GELUTanh: func(x float64) float64 { return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x))) },
		SiLU:     func(x float64) float64 { return x / (1 + math.Exp(-x)) },
		ReLU:     func(x float64) float64 { return max(0, x) },
		Tanh:     math.Tanh,
	}[a]
	for t := range x {
		for d := range x[t] {
			x[t][d] = f(x[t][d])
		}
	}
	return x
}

func apply(m Dense, x matrix) matrix {
	y := zeros(len(x), m.Out)
	for t := range x {
		for o := range y[t] {
			y[t][o] = float64(m.Bias[o])
			for i, v := range x[t] {
				y[t][o] += float64(m.Weight[o*m.In+i]) * v
			}
		}
	}
	return y
}

func add(a, b matrix) matrix {
	c := zeros(len(a), len(a[0]))
	for t := range a {
		for d := range a[t] {
			c[t][d] = a[t][d] + b[t][d]
		}
	}
	return c
}

func zeros(rows, columns int) matrix {
	m := make(matrix, rows)
	for i := range m {
		m[i] = make([]float64, columns)
	}
	return m
}
