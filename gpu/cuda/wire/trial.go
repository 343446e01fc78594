package wire

import (
	"fmt"

	"sluice/model"
)

// Trial asks a process that may fail, and serves nobody, to try the kernels for
// a model's products. It is JSON, as its answer is: Tried, one after the other.
type Trial struct {
	Config  model.Config
	Rows    []int    // of x, ascending
	Without []string // kernels that are not tried
}

// Product is the product of x with a matrix of In × Out numbers.
type Product struct {
	In, Out    int
	Activation model.Activation
	Adds       bool // it reads rows of Out numbers beside x: a residual, or a factor
}

// Name is as in "384 × 1536 gelu", or with a + where it adds.
func (p Product) Name() string {
	text := fmt.Sprintf("%d × %d", p.In, p.Out)
	if p.Activation != model.Identity {
		text += " " + string(p.Activation)
	}
	if p.Adds {
		text += " +"
	}
	return text
}

// Tried is a kernel that is about to be started, if neither Seconds nor Why is
// set, that takes Seconds for a product, or that is out, and Why.
type Tried struct {
	Kernel string
	Product
	Rows    int
	Seconds float64
	Why     string
}
